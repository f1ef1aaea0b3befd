//! Processes that are pinned to one core and end with this one, and their CPU time.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{
    Signal, getppid, set_parent_process_death_signal, setpriority_process, setsid,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::error::LabError;
use crate::trusted::{own_peers, trusted};

/// Core of the measured process.
pub const SERVER_CORE: usize = 0;
/// Core of everything else.
pub const CLIENT_CORE: usize = 1;

/// Nice value of processes that run [`ahead`].
const AHEAD: i32 = -15;

/// A server process on its own core; ended on drop.
pub struct Pinned {
    /// The process.
    pub child: Child,
    /// Address on which it listens.
    pub address: SocketAddr,
}

impl Pinned {
    /// Starts a server that listens on this address, and waits until it does. `program` contains the agents
    /// ([`tied`]).
    pub fn start(
        program: &Path,
        command: &Command,
        core: usize,
        address: SocketAddr,
    ) -> Result<Self, LabError> {
        Self::start_when(program, command, core, address, || TcpStream::connect(address).is_ok())
    }

    /// Like `start`, with another sign that the server is ready.
    pub fn start_when(
        program: &Path,
        command: &Command,
        core: usize,
        address: SocketAddr,
        alive: impl Fn() -> bool,
    ) -> Result<Self, LabError> {
        let mut server = Self { child: spawn(program, command, core)?, address };
        let peer = || command.get_program().display().to_string();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if alive() {
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                let reason = format!("it ended at once: {status}");
                return Err(LabError::Peer { peer: peer(), reason });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(LabError::Peer { peer: peer(), reason: format!("it does not listen at {address}") })
    }

    /// CPU time so far.
    pub fn cpu(&self) -> Result<Duration, LabError> {
        cpu_of(self.child.id())
    }
}

/// CPU time of all threads of a process so far, in nanoseconds (`/proc/PID/task/TID/schedstat`), because ticks of 10
/// ms are too coarse. Threads that have ended are not included; the servers measured here keep theirs.
pub fn cpu_of(pid: u32) -> Result<Duration, LabError> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let failed = |error: io::Error| LabError::file(&tasks, error);
    let mut nanos = 0;
    for task in std::fs::read_dir(&tasks).map_err(failed)? {
        let place = task.map_err(failed)?.path().join("schedstat");
        let Ok(text) = std::fs::read_to_string(place) else { continue };
        nanos += text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program on one core.
fn spawn(program: &Path, command: &Command, core: usize) -> Result<Child, LabError> {
    let mut pinned = tied(program, command, Some(core))?;
    // Some servers end when their standard input closes.
    pinned.stdin(Stdio::piped()).stdout(Stdio::null());
    if std::env::var_os("OUTLAST_BENCH_SHOW").is_none() {
        pinned.stderr(Stdio::null());
    }
    pinned.spawn().map_err(|error| LabError::Peer {
        peer: command.get_program().display().to_string(),
        reason: error.to_string(),
    })
}

/// Argument of `agent exec`.
#[derive(Serialize, Deserialize)]
struct Exec {
    parent: u32,
    core: Option<usize>,
    ahead: bool,
    program: String,
    arguments: Vec<String>,
}

/// Turns the command into one that ends when this process does, in whatever way, and that is pinned to a core if one
/// is given.
///
/// `program` contains the agents ([`crate::agent`]): its agent asks the kernel for the signal and then becomes the
/// command. The kernel sends the signal when the *thread* that starts the command ends, so threads that end before
/// their servers must not start them.
pub fn tied(program: &Path, command: &Command, core: Option<usize>) -> Result<Command, LabError> {
    by_agent(program, command, core, false)
}

/// Like `tied`, with priority over other work on the machine if the system allows it, because that is not part of a
/// measurement.
pub fn ahead(program: &Path, command: &Command) -> Result<Command, LabError> {
    by_agent(program, command, None, true)
}

fn by_agent(
    program: &Path,
    command: &Command,
    core: Option<usize>,
    ahead: bool,
) -> Result<Command, LabError> {
    let text = |value: &std::ffi::OsStr| {
        let text = value.to_str().map(str::to_owned);
        text.ok_or_else(|| LabError::Plan(format!("{} is not UTF-8", value.display())))
    };
    let exec = Exec {
        parent: std::process::id(),
        core,
        ahead,
        program: text(command.get_program())?,
        arguments: command.get_args().map(text).collect::<Result<_, _>>()?,
    };
    let mut tied = Command::new(program);
    tied.args(["agent", AGENT.name]).arg(serde_json::to_string(&exec).map_err(LabError::failed)?);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => tied.env(name, value),
            None => tied.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        tied.current_dir(folder);
    }
    // Ctrl-C is for the program, which ends its helpers after it has kept their results.
    if !ahead {
        tied.process_group(0);
    }
    Ok(tied)
}

/// Becomes another program, which ends with the parent.
pub const AGENT: Agent = Agent { name: "exec", run: exec };

fn exec(argument: &str) -> Result<(), LabError> {
    let exec: Exec = serde_json::from_str(argument).map_err(LabError::failed)?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(LabError::failed)?;
    // The parent may have ended before the kernel was asked.
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get());
    if parent.and_then(|parent| u32::try_from(parent).ok()) != Some(exec.parent) {
        return Err(LabError::failed("the program that measures has ended"));
    }
    if let Some(core) = exec.core {
        stay_on(core)?;
    }
    if exec.ahead {
        // A session of its own is also out of the terminal's reach, and has its own share of the processor if the
        // kernel schedules by sessions (sched(7), autogroup).
        let _ = setsid();
        let _ = setpriority_process(None, AHEAD);
        let _ = std::fs::write("/proc/self/autogroup", AHEAD.to_string());
    }
    let error = Command::new(&exec.program).args(&exec.arguments).exec();
    Err(LabError::Peer { peer: exec.program, reason: error.to_string() })
}

/// Produces load for the given time; returns the number of units served.
pub type Load<'a, E> = &'a dyn Fn(Duration) -> Result<u64, E>;

/// Median CPU time of each server per unit of its load. Each round starts with another server.
pub fn in_turns<const N: usize, E: From<LabError>>(
    runs: [(&Pinned, Load<'_, E>); N],
    rounds: usize,
    time: Duration,
) -> Result<[Duration; N], E> {
    let mut samples = [const { Vec::new() }; N];
    for (_, load) in runs {
        load(time / 4)?;
    }
    for round in 0..rounds {
        for offset in 0..N {
            let index = (round + offset) % N;
            let (server, load) = runs[index];
            let before = server.cpu()?;
            let count = load(time)?;
            let spent = server.cpu()?.saturating_sub(before);
            samples[index].push(spent / u32::try_from(count).unwrap_or(u32::MAX).max(1));
        }
    }
    Ok(samples.map(|mut samples| {
        samples.sort_unstable();
        samples.get(samples.len() / 2).copied().unwrap_or_default()
    }))
}

/// Pins this thread, and threads that it will start, to a core.
pub fn stay_on(core: usize) -> Result<(), LabError> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores)
        .map_err(|error| LabError::failed(format!("core {core}: {error}")))
}

/// Whether there are two cores to divide.
pub fn has_two_cores() -> bool {
    sched_getaffinity(None)
        .is_ok_and(|cores| cores.is_set(SERVER_CORE) && cores.is_set(CLIENT_CORE))
}

/// A loopback address with a port that is free now.
pub fn free_address() -> Result<SocketAddr, LabError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(LabError::failed)
}

/// A peer's program: `cargo xtask peers` installs peers next to the build of this program.
pub fn peer(path: &str) -> Result<PathBuf, LabError> {
    let what = format!("target/peers/{path}");
    let Some(place) = own_peers().map(|peers| peers.join(path)).filter(|place| place.exists())
    else {
        return Err(LabError::unavailable(what, "run cargo xtask peers, then cargo xtask bench"));
    };
    trusted(&place).map_err(|error| LabError::unavailable(what, error.to_string()))?;
    Ok(place)
}
