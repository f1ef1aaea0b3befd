//! The attacking process: many lives of one pattern, each a connection and what is done on it.
//!
//! Attackers share the machine with what they attack, so they are kept cheap: lives begin at a limited rate and
//! mostly wait, and their cost is reported.

use std::io::{BufRead, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use outlast_harness::agent::Agent;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::attack::{Attack, Volume};
use super::field::{Field, check_loopback};
use super::limits::{LONGEST_ATTACK, RAMP, SHORT_DIVISOR, SPARE_FILES};
use super::pattern::{Life, Pattern};
use super::patterns::PATTERNS;
use crate::error::LabError;
use crate::pinned::tied;

/// The agent's row.
pub const AGENT: Agent = Agent { name: "siege", run: attack };

/// The job, on the first line of the process's input; the attack ends with the input.
#[derive(Serialize, Deserialize)]
struct Job {
    pattern: String,
    short: bool,
    field: Field,
}

/// An attack in another process.
pub(super) struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts an attack with `program`, which is `outlast-lab` itself.
    pub fn start(
        program: &std::path::Path,
        pattern: &Pattern,
        short: bool,
        field: &Field,
    ) -> Result<Self, LabError> {
        let mut command = crate::server::outlast(program);
        command.args(["agent", AGENT.name, "-"]);
        let mut child = tied(program, &command, None)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| LabError::file(program, error))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = channel();
        if let Some(output) = output {
            std::thread::spawn(move || {
                for line in std::io::BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let mut running = Self { child, input, lines };
        let job = Job { pattern: pattern.name.into(), short, field: field.clone() };
        let mut text = serde_json::to_string(&job).map_err(LabError::failed)?;
        text.push('\n');
        if let Some(input) = &mut running.input {
            input.write_all(text.as_bytes()).map_err(LabError::failed)?;
        }
        Ok(running)
    }

    /// Waits until all its connections have begun.
    pub async fn ready(&self) -> Result<(), LabError> {
        self.line(RAMP + RAMP).await.map(drop)
    }

    /// Ends the attack.
    pub async fn end(mut self) -> Result<Volume, LabError> {
        drop(self.input.take());
        let line = self.line(RAMP).await?;
        serde_json::from_str(&line).map_err(LabError::failed)
    }

    async fn line(&self, time: Duration) -> Result<String, LabError> {
        let begun = Instant::now();
        loop {
            match self.lines.try_recv() {
                Ok(line) => return Ok(line),
                Err(std::sync::mpsc::TryRecvError::Empty) if begun.elapsed() < time => {
                    sleep(Duration::from_millis(20)).await;
                }
                Err(_) => {
                    let reason = "the attacking process ended or does not respond".into();
                    return Err(LabError::Peer { peer: "the siege's attacker".into(), reason });
                }
            }
        }
    }
}

fn attack(_: &str) -> Result<(), LabError> {
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    input.read_line(&mut line).map_err(LabError::failed)?;
    let job: Job = serde_json::from_str(&line).map_err(LabError::failed)?;
    // The address came over a pipe, but anybody who can call this program can write one.
    check_loopback(job.field.access.address)?;
    check_loopback(job.field.plain)?;
    if let Some(proxy) = &job.field.proxy {
        check_loopback(proxy.address)?;
    }
    let pattern = PATTERNS
        .iter()
        .find(|row| row.name == job.pattern)
        .ok_or_else(|| LabError::Plan(format!("no pattern is named {}", job.pattern)))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LabError::failed)?;
    let (sender, over) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = std::io::stdin().lock().read_to_end(&mut rest);
        let _ = sender.send(());
    });
    drop(input);
    runtime.block_on(async {
        let lives = lives(pattern, job.short);
        let attack = Arc::new(Attack::new(job.field, pattern.lives_per_second)?);
        for _ in 0..lives {
            tokio::spawn(live(attack.clone(), pattern.life));
        }
        let begun = Instant::now();
        let all = u64::try_from(lives).unwrap_or(u64::MAX);
        while attack.begun.load(Ordering::Relaxed) < all && begun.elapsed() < RAMP {
            sleep(Duration::from_millis(20)).await;
        }
        say("{}")?;
        let _ = timeout(LONGEST_ATTACK, over).await;
        say(&serde_json::to_string(&attack.volume()).map_err(LabError::failed)?)
    })
}

fn say(line: &str) -> Result<(), LabError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(LabError::failed)
}

/// Number of concurrent connections: the pattern's, or what the system's limit on open files allows.
fn lives(pattern: &Pattern, short: bool) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let files = usize::try_from(files.saturating_sub(SPARE_FILES)).unwrap_or(usize::MAX);
    let wanted =
        if short { pattern.connections.div_ceil(SHORT_DIVISOR) } else { pattern.connections };
    wanted.min(files / pattern.files).max(1)
}

/// Lives one after the other, for ever.
async fn live(attack: Arc<Attack>, life: Life) {
    loop {
        attack.turn().await;
        attack.begun.fetch_add(1, Ordering::Relaxed);
        // The end of a life says nothing about the server's health; the good client reports that.
        if life(attack.clone()).await.is_err() {
            attack.ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}
