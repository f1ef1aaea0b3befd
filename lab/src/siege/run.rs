//! Runs one pattern after the other: a quiet window, an attacked one, and so on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::attack::Volume;
use super::field::{Battlefield, Given};
use super::good::{Good, Phase};
use super::limits::{LOOK, MOST_SECONDS, REST};
use super::measured::{Measured, Memory};
use super::pattern::Pattern;
use super::process::Running;
use crate::error::LabError;
use crate::server::{cpu_time, status_kib};
use outlast_harness::agent::Programs;

/// Settings of a siege.
pub struct Settings {
    /// `outlast` itself, which is also the attacker.
    pub program: PathBuf,
    /// Folder for the siege's own data folder.
    pub temporary: PathBuf,
    /// A running server; otherwise each pattern has its own.
    pub given: Option<Given>,
    /// Length of each window.
    pub window: Duration,
    /// Number of quiet and of attacked windows.
    pub rounds: u32,
    /// Fewer connections.
    pub short: bool,
}

/// Progress of a siege.
#[derive(Clone, Copy)]
pub enum Stage<'a> {
    /// The store is being filled.
    Preparing,
    /// A pattern is tried.
    Trying(&'a Pattern),
    /// It cannot be tried, for this reason.
    Skipped(&'a Pattern, &'a str),
}

/// Tries these patterns, in this order.
pub fn run(
    settings: Settings,
    patterns: &[&'static Pattern],
    stage: &mut dyn FnMut(Stage<'_>),
) -> Result<Vec<Measured>, LabError> {
    let most = Duration::from_secs(MOST_SECONDS);
    if settings.window.is_zero() || settings.window > most || settings.rounds == 0 {
        return Err(LabError::Plan(format!("a window must take 1 to {MOST_SECONDS} seconds")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LabError::failed)?;
    let Settings { program, temporary, given, window, rounds, short } = settings;
    let windows = Windows { length: window, rounds, short };
    stage(Stage::Preparing);
    runtime.block_on(async {
        let field = match given {
            Some(given) => Battlefield::given(given).await?,
            None => Battlefield::own(&Programs::beside(&program), &temporary).await?,
        };
        let mut rows = Vec::new();
        for pattern in patterns.iter().copied() {
            if let Some(reason) = field.lacks(pattern.needs_own) {
                stage(Stage::Skipped(pattern, reason));
                continue;
            }
            stage(Stage::Trying(pattern));
            rows.push(besiege(&program, &field, pattern, &windows).await?);
        }
        Ok(rows)
    })
}

struct Windows {
    length: Duration,
    rounds: u32,
    short: bool,
}

async fn besiege(
    program: &Path,
    field: &Battlefield,
    pattern: &'static Pattern,
    windows: &Windows,
) -> Result<Measured, LabError> {
    let besieged = field.begin(pattern.door)?;
    let field = Arc::new(besieged.field.clone());
    let good = Good::start(&field, pattern)?;
    // The first calls cost more on both sides.
    sleep(REST).await;
    let mut watched = Watched::new(besieged.pid);
    let mut volume = Volume::default();
    for _ in 0..windows.rounds {
        good.phase(Phase::Quiet);
        sleep(windows.length).await;
        good.phase(Phase::Between);
        watched.quiet()?;
        let attack = Running::start(program, pattern, windows.short, &field)?;
        watched.meanwhile(attack.ready()).await?;
        good.phase(Phase::Attacked);
        let window = async {
            sleep(windows.length).await;
            Ok(())
        };
        watched.meanwhile(window).await?;
        good.phase(Phase::Between);
        volume = volume.plus(attack.end().await?);
        sleep(REST).await;
        watched.after()?;
    }
    let told = good.end().await;
    let (cpu, memory) = watched.told();
    Ok(Measured::new(pattern, told, volume, cpu, memory))
}

/// Watches the server's process.
struct Watched {
    pid: Option<u32>,
    cpu: Duration,
    cpu_before: Duration,
    memory: Option<Memory>,
}

impl Watched {
    fn new(pid: Option<u32>) -> Self {
        Self { pid, cpu: Duration::ZERO, cpu_before: Duration::ZERO, memory: None }
    }

    /// To be called at the end of a quiet window.
    fn quiet(&mut self) -> Result<(), LabError> {
        let Some(pid) = self.pid else { return Ok(()) };
        let now = status_kib(pid, "VmRSS")?;
        self.cpu_before = cpu_time(pid)?;
        self.memory.get_or_insert(Memory { before_kib: now, peak_kib: now, after_kib: Vec::new() });
        Ok(())
    }

    /// Keeps reading while a future runs.
    async fn meanwhile(
        &mut self,
        work: impl Future<Output = Result<(), LabError>>,
    ) -> Result<(), LabError> {
        let mut work = std::pin::pin!(work);
        let mut last = Instant::now();
        loop {
            tokio::select! {
                outcome = &mut work => return outcome,
                () = sleep(LOOK) => {}
            }
            if last.elapsed() >= LOOK {
                last = Instant::now();
                self.look()?;
            }
        }
    }

    fn look(&mut self) -> Result<u64, LabError> {
        let Some(pid) = self.pid else { return Ok(0) };
        let now = status_kib(pid, "VmRSS").map_err(|_| LabError::Peer {
            peer: "the besieged server".into(),
            reason: "it has ended".into(),
        })?;
        if let Some(memory) = &mut self.memory {
            memory.peak_kib = memory.peak_kib.max(now);
        }
        Ok(now)
    }

    /// To be called after an attack.
    fn after(&mut self) -> Result<(), LabError> {
        let Some(pid) = self.pid else { return Ok(()) };
        let now = self.look()?;
        self.cpu += cpu_time(pid)?.saturating_sub(self.cpu_before);
        if let Some(memory) = &mut self.memory {
            memory.after_kib.push(now);
        }
        Ok(())
    }

    fn told(self) -> (Option<u64>, Option<Memory>) {
        let cpu = u64::try_from(self.cpu.as_millis()).unwrap_or(u64::MAX);
        (self.pid.map(|_| cpu), self.memory)
    }
}
