//! The setting of experiments with a real server: servers at one end, callers at the other, loopback or an emulated
//! link between them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::client::{self, Job, Target, Work};
use crate::error::LabError;
use crate::link::Link;
use crate::live::{self as engine, Live, Proof};
use crate::pinned::ahead;
use crate::run::{Progress, Run, Settings};
use crate::server::{Folder, Options, Server, in_memory, outlast};
use crate::trace::Side;
use outlast_harness::agent::Programs;

/// User agent of the measuring client.
const WHO: &str = "the client of the measurement";

/// Servers over a link, which are set up for the first measurement.
pub struct Site<'a> {
    settings: &'a Settings,
    stop: &'a AtomicBool,
    folder: PathBuf,
    /// The emulated link; `None` for loopback.
    link: Option<Link>,
    certificates: &'static [&'static str],
    open: Option<Open<'a>>,
    progress: Option<&'a dyn Progress>,
}

/// How long to wait for a live engine that another process uses.
const PATIENCE: Duration = Duration::from_secs(30);

/// The live engine over this link. Waits, within limits, while another process on this machine emulates a link.
pub fn live<'a>(
    settings: &Settings,
    link: &Link,
    seed: u64,
    stop: &'a AtomicBool,
    progress: Option<&dyn Progress>,
) -> Result<Live<'a>, LabError> {
    patiently(PATIENCE, stop, progress, || Live::open(settings, link, seed, stop))
}

/// Tries until no other process is in the way, or the time is over.
fn patiently<T>(
    patience: Duration,
    stop: &AtomicBool,
    progress: Option<&dyn Progress>,
    mut open: impl FnMut() -> Result<T, LabError>,
) -> Result<T, LabError> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        match open() {
            Err(error) if error.is_busy() && begun.elapsed() < patience => {
                if let Some(progress) = progress
                    && !told
                {
                    let seconds = patience.as_secs();
                    progress.say(&format!("{error}; waiting for up to {seconds} seconds"));
                }
                told = true;
            }
            done => return done,
        }
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(200).min(patience));
    }
}

/// Fields are dropped in this order: the servers, their data, the link.
struct Open<'a> {
    servers: Vec<Server>,
    targets: Vec<Target>,
    folders: Vec<Folder>,
    live: Option<Live<'a>>,
    link: Option<Link>,
}

impl<'a> Site<'a> {
    /// For an experiment: a server for each kind of certificate; all are idle, except the one that is called.
    pub fn new(run: &Run<'a>, link: Option<Link>, certificates: &'static [&'static str]) -> Self {
        let site = Self::at(run.settings(), run.stop_flag(), run.folder(), link, certificates);
        Self { progress: Some(run.progress()), ..site }
    }

    /// The same in any folder.
    pub fn at(
        settings: &'a Settings,
        stop: &'a AtomicBool,
        folder: &Path,
        link: Option<Link>,
        certificates: &'static [&'static str],
    ) -> Self {
        Self {
            settings,
            stop,
            folder: folder.to_path_buf(),
            link,
            certificates,
            open: None,
            progress: None,
        }
    }

    /// Changes the link; the servers stay where they are if there was a link before.
    pub fn over(&mut self, link: Option<Link>) {
        self.link = link;
    }

    /// Its name, for keys and headings.
    pub fn name(&self) -> String {
        place_name(self.link.as_ref())
    }

    /// Has an agent do a job at the client's end.
    pub fn call<T: DeserializeOwned>(&mut self, work: Work) -> Result<T, LabError> {
        if self.open.as_ref().is_some_and(|open| open.link.is_some() != self.link.is_some()) {
            self.open = None;
        }
        if self.open.is_none() {
            self.open = Some(self.set_up()?);
        }
        let (settings, stop) = (self.settings, self.stop);
        let open = self.open.as_mut().ok_or_else(|| LabError::failed("no servers"))?;
        if let (Some(live), Some(link)) = (&mut open.live, &self.link)
            && open.link != self.link
        {
            live.set_link(link, settings.seed)?;
            open.link = self.link;
        }
        open.call(settings, stop, open.targets.clone(), work)
    }

    /// The emulated link's figures so far; `None` on loopback.
    pub fn proof(&self) -> Result<Option<Proof>, LabError> {
        self.open.as_ref().and_then(|open| open.live.as_ref()).map(Live::proof).transpose()
    }

    /// The process id of the server with this index, if it runs: for tests of its death.
    pub fn server(&mut self, index: usize) -> Option<&mut Server> {
        self.open.as_mut()?.servers.get_mut(index)
    }

    fn set_up(&self) -> Result<Open<'a>, LabError> {
        let live = match &self.link {
            Some(link) => {
                let (settings, stop) = (self.settings, self.stop);
                Some(live(settings, link, settings.seed, stop, self.progress)?)
            }
            None => None,
        };
        let mut open = Open {
            servers: Vec::new(),
            targets: Vec::new(),
            folders: Vec::new(),
            live,
            link: self.link,
        };
        let programs = Programs::beside(&self.settings.executable);
        for certificate in self.certificates {
            let folder = Folder::new(&programs, &in_memory(&self.folder))?;
            let mut options = Options { certificate, ..Options::default() };
            if let Some(live) = &open.live {
                options.address = live.server_address(0).ip();
            }
            let server = folder.serve_by(&options, Some(self.stop), |command| {
                open.at(self.settings, Side::Server, command)
            })?;
            open.targets.push(Target { access: server.access(), key: String::new() });
            open.servers.push(server);
            open.folders.push(folder);
        }
        let keys: Vec<String> =
            open.call(self.settings, self.stop, open.targets.clone(), Work::Keys)?;
        for (target, key) in open.targets.iter_mut().zip(keys) {
            target.key = key;
        }
        Ok(open)
    }
}

impl Open<'_> {
    /// The command at this end of the link, which ends with this program.
    fn at(&self, settings: &Settings, side: Side, command: &Command) -> Result<Command, LabError> {
        let ahead = ahead(&settings.executable, command)?;
        Ok(match &self.live {
            Some(live) => live.at(side, &ahead),
            None => ahead,
        })
    }

    fn call<T: DeserializeOwned>(
        &mut self,
        settings: &Settings,
        stop: &AtomicBool,
        targets: Vec<Target>,
        work: Work,
    ) -> Result<T, LabError> {
        let program = &settings.executable;
        let mut agent = outlast(program);
        agent.args(["agent", client::AGENT.name, "-"]);
        let mut child = self
            .at(settings, Side::Client, &agent)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| LabError::file(program, error))?;
        let job = serde_json::to_vec(&Job { targets, work }).map_err(LabError::failed)?;
        let told = child.stdin.take().map(|stdin| tell(stdin, job));
        let caller = Caller {
            answer: listen(child.stdout.take()),
            words: listen(child.stderr.take()),
            child,
        };
        let ended = caller.wait(stop, &mut self.servers);
        if let Some(told) = told {
            let _ = told.join();
        }
        let answer = ended?;
        serde_json::from_slice(&answer)
            .map_err(|error| LabError::Peer { peer: WHO.into(), reason: error.to_string() })
    }
}

/// A running agent; killed when dropped.
struct Caller {
    child: Child,
    answer: JoinHandle<Vec<u8>>,
    words: JoinHandle<Vec<u8>>,
}

impl Caller {
    /// Waits for its result. If a server has ended, the server is to blame.
    fn wait(mut self, stop: &AtomicBool, servers: &mut [Server]) -> Result<Vec<u8>, LabError> {
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(LabError::failed)? {
                break status;
            }
            let trouble = if stop.load(Ordering::Relaxed) {
                Err(LabError::Interrupted)
            } else {
                servers.iter_mut().try_for_each(Server::check)
            };
            if let Err(trouble) = trouble {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return Err(trouble);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        };
        if status.success() {
            return self.answer.join().map_err(|_| LabError::failed("a reader died"));
        }
        // It takes a moment until a killed server is gone.
        for _ in 0..20 {
            servers.iter_mut().try_for_each(Server::check)?;
            std::thread::sleep(Duration::from_millis(10));
        }
        let words = self.words.join().unwrap_or_default();
        let words = String::from_utf8_lossy(&words).trim().trim_start_matches("error: ").to_owned();
        let reason = if words.is_empty() { format!("it ended: {status}") } else { words };
        Err(LabError::Peer { peer: WHO.into(), reason })
    }
}

fn tell(mut stdin: ChildStdin, job: Vec<u8>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        // An agent that does not read reports the reason itself.
        let _ = stdin.write_all(&job);
    })
}

fn listen(from: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Name of the link.
pub fn place_name(link: Option<&Link>) -> String {
    link.map_or_else(|| "loopback".into(), |link| format!("RTT {} ms", milliseconds(link)))
}

fn milliseconds(link: &Link) -> f64 {
    link.rtt().as_secs_f64() * 1e3
}

/// Links that can be emulated here: `wanted`, or only loopback with a note on what is missing.
pub fn links(run: &mut Run<'_>, wanted: &[Link], missing: &str) -> Vec<Option<Link>> {
    match engine::available() {
        Ok(()) => wanted.iter().copied().map(Some).collect(),
        Err(error) => {
            run.left_out(&format!("Measured over loopback only, because {error}. {missing}"));
            vec![None]
        }
    }
}

/// A note on how well the link was emulated.
pub fn note_proof(run: &mut Run<'_>, name: &str, proof: Option<&Proof>) {
    let Some(proof) = proof else { return };
    let all: u64 = proof.late_counts.iter().sum();
    let (mut late, edges) = (0, proof.late_edges_us.iter().map(Some).chain([None]));
    for (edge, count) in edges.zip(&proof.late_counts) {
        if edge.is_none_or(|edge| *edge > 50.0) {
            late += count;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of packets")]
    let share = late as f64 / all.max(1) as f64;
    run.note(format!(
        "{name}: emulated by {}{}; the median of TCP connects was {:+.0} µs off after calibration ({:+.0} µs before); {:.2} % of {all} packets were more than 50 µs late.",
        proof.emulator,
        if proof.real_time { " with real-time priority" } else { "" },
        proof.calibrated_us,
        proof.uncalibrated_us,
        share * 100.0,
    ));
}

#[cfg(test)]
mod tests {
    use outlast_testing::PATIENCE;

    use super::*;

    #[test]
    fn a_busy_engine_is_waited_for_and_not_for_ever() {
        let busy = || {
            LabError::unavailable(
                "the live engine",
                format!("{} (x)", crate::error::ANOTHER_EMULATION),
            )
        };
        let never = AtomicBool::new(false);
        let mut left = 2;
        let opened = patiently(PATIENCE, &never, None, || {
            left -= 1;
            if left > 0 { Err(busy()) } else { Ok(7) }
        });
        assert_eq!(opened.unwrap(), 7);
        let short = Duration::from_millis(5);
        let error = patiently::<()>(short, &never, None, || Err(busy())).unwrap_err();
        assert!(error.is_busy() && error.to_string().contains("another emulation is running"));
        // A missing requirement does not come by waiting, and Ctrl-C ends it.
        let mut tries = 0;
        let lacking = patiently::<()>(PATIENCE, &never, None, || {
            tries += 1;
            Err(LabError::unavailable("the live engine", "root"))
        });
        assert!(lacking.is_err() && tries == 1);
        let stopped = AtomicBool::new(true);
        let error = patiently::<()>(PATIENCE, &stopped, None, || Err(busy()));
        assert!(matches!(error, Err(LabError::Interrupted)));
    }
}
