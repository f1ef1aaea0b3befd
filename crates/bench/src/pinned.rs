//! Processes that are kept on one core, and the CPU time that they use.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::statistics::quantile;

/// The core of what is measured.
pub(crate) const SERVER_CORE: usize = 0;
/// The core of everything else.
pub(crate) const CLIENT_CORE: usize = 1;

/// A server process on a core of its own; ended when dropped.
pub(crate) struct Pinned {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Pinned {
    /// Starts a server that listens on this address, and waits until it does.
    pub(crate) fn start(
        command: &Command,
        core: usize,
        address: SocketAddr,
    ) -> Result<Self, String> {
        Self::start_when(command, core, address, || TcpStream::connect(address).is_ok())
    }

    /// The same with another sign of life.
    pub(crate) fn start_when(
        command: &Command,
        core: usize,
        address: SocketAddr,
        alive: impl Fn() -> bool,
    ) -> Result<Self, String> {
        let mut server = Self { child: spawn(command, core)?, address };
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if alive() {
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("a server ended at once: {status}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("a server does not listen".into())
    }

    /// CPU time of all threads so far, to the nanosecond (`/proc/PID/task/TID/schedstat`); in ticks of 10 ms it would be
    /// too coarse. Threads that ended are not in it: the servers measured here keep theirs.
    pub(crate) fn cpu(&self) -> Result<Duration, String> {
        let failed = |error: io::Error| format!("CPU time: {error}");
        let tasks = format!("/proc/{}/task", self.child.id());
        let mut nanos = 0;
        for task in std::fs::read_dir(tasks).map_err(failed)? {
            let place = task.map_err(failed)?.path().join("schedstat");
            let Ok(text) = std::fs::read_to_string(place) else { continue };
            nanos += text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanos))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program on one core. `taskset` becomes the program, so that all of its threads begin there.
fn spawn(command: &Command, core: usize) -> Result<Child, String> {
    let mut pinned = Command::new("taskset");
    pinned.arg("-c").arg(core.to_string()).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => pinned.env(name, value),
            None => pinned.env_remove(name),
        };
    }
    // Some servers end when their input does.
    pinned.stdin(Stdio::piped()).stdout(Stdio::null());
    if std::env::var_os("OUTLAST_BENCH_SHOW").is_none() {
        pinned.stderr(Stdio::null());
    }
    pinned.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))
}

/// Load for this time: how many were served.
pub(crate) type Load<'a> = &'a dyn Fn(Duration) -> Result<u64, String>;

/// The median CPU time of each server for one of what its load asks for. Another server begins in each round.
pub(crate) fn in_turns<const N: usize>(
    runs: [(&Pinned, Load<'_>); N],
    rounds: usize,
    time: Duration,
) -> Result<[Duration; N], String> {
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
    Ok(samples.map(|mut samples| quantile(&mut samples, 0.5)))
}

/// Keeps this thread, and the threads that it will start, on a core.
pub(crate) fn stay_on(core: usize) -> Result<(), String> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).map_err(|error| format!("core {core}: {error}"))
}

/// Whether there are two cores to divide.
pub(crate) fn has_two_cores() -> bool {
    sched_getaffinity(None)
        .is_ok_and(|cores| cores.is_set(SERVER_CORE) && cores.is_set(CLIENT_CORE))
}

/// A port of the loopback address that nobody uses now.
pub(crate) fn free_address() -> Result<SocketAddr, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| error.to_string())
}

/// A program of the peers: `cargo xtask peers` installs them.
pub(crate) fn peer(path: &str) -> Result<PathBuf, String> {
    let place = Path::new("target/peers").join(path);
    if place.exists() {
        return Ok(place);
    }
    Err(format!("{} is missing: run cargo xtask peers, then this in the checkout", place.display()))
}
