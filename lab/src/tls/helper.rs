//! Helper processes of the CPU engine: the program itself, asked in JSON, answers in lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use super::rounds::{Cold, Rounds, Times, perform};
use super::{Handshaker, profile, stack};
use crate::agent::Agent;
use crate::error::LabError;
use crate::pinned::tied;
use crate::run::Settings;
use crate::subject::{Subject, SubjectNames};
use crate::trace::Trace;

/// What a process is asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Which of these it can do.
    Ask { stack: String, subjects: Vec<SubjectNames> },
    /// Rounds of handshakes.
    Rounds(Rounds),
    /// What [`typical`] says.
    Typical { stack: String, subject: SubjectNames, rounds: usize },
    /// A handshake for each line that comes in.
    Serve { stack: String, subject: SubjectNames },
    /// So many handshakes of each in turn, for others to look at: without a word, with a mark before each and at the end.
    Repeat { stack: String, subjects: Vec<SubjectNames>, count: u64, named: bool },
}

/// A line of what a process answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Unavailable {
        what: String,
        needs: String,
    },
    Offer(Offer),
    Cold(Cold),
    Round(Vec<Times>),
    Trace(Trace),
    /// A handshake that did not succeed.
    Failed(String),
}

/// What a TLS implementation can do on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its version.
    pub version: String,
    /// Whether it supports each of what was asked for.
    pub supported: Vec<bool>,
}

/// A pair that shakes hands in a helper process, whenever it is told to.
pub(super) fn remote(
    executable: &Path,
    stack: &str,
    subject: &Subject,
) -> Result<Box<dyn Handshaker>, LabError> {
    let order = Order::Serve { stack: stack.to_owned(), subject: subject.into() };
    let mut command = tied(executable, &command(executable, stack, &order)?, None)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut helper = Helper(command.spawn().map_err(LabError::failed)?);
    let (Some(input), Some(output)) = (helper.0.stdin.take(), helper.0.stdout.take()) else {
        return Err(unexpected());
    };
    Ok(Box::new(Remote { input, output: read(output), _helper: helper }))
}

struct Remote {
    input: ChildStdin,
    output: Receiver<std::io::Result<String>>,
    _helper: Helper,
}

impl Handshaker for Remote {
    fn handshake(&mut self) -> Result<Trace, LabError> {
        self.input.write_all(b"\n").map_err(LabError::failed)?;
        let never = AtomicBool::new(false);
        let line = next(&self.output, HANDSHAKE, &never, "a helper process")?;
        let line = line.ok_or_else(unexpected)?;
        match serde_json::from_str(&line).map_err(|_| unexpected())? {
            Line::Trace(trace) => Ok(trace),
            Line::Unavailable { what, needs } => Err(LabError::Unavailable { what, needs }),
            Line::Failed(reason) => Err(LabError::Failed(reason)),
            _ => Err(unexpected()),
        }
    }
}

/// The process's end.
pub const AGENT: Agent = Agent { name: "cpu", run: answer };

/// A helper process for a stack: the command, with what it is asked for.
fn command(executable: &Path, stack_name: &str, order: &Order) -> Result<Command, LabError> {
    let mut command = stack(stack_name)?.command(executable);
    let argument = serde_json::to_string(order).map_err(LabError::failed)?;
    command.args(["agent", AGENT.name, &argument]);
    Ok(command)
}

/// Runs a helper process, and gives its answers.
pub(super) fn ask_process(
    executable: &Path,
    stack: &str,
    order: &Order,
    stop: &AtomicBool,
    mut each: impl FnMut(Line) -> Result<(), LabError>,
) -> Result<(), LabError> {
    lines(executable, &command(executable, stack, order)?, stop, |line| match serde_json::from_str(
        line,
    )
    .map_err(LabError::failed)?
    {
        Line::Unavailable { what, needs } => Err(LabError::Unavailable { what, needs }),
        line => each(line),
    })
}

pub(super) fn unexpected() -> LabError {
    LabError::failed("a helper process answered something else")
}

/// Whether the implementation is there, and what of this it supports.
pub fn ask(settings: &Settings, stack: &str, subjects: &[Subject]) -> Result<Offer, LabError> {
    offer(&settings.executable, stack, subjects)
}

/// The same of this program.
pub(super) fn offer(
    executable: &Path,
    stack: &str,
    subjects: &[Subject],
) -> Result<Offer, LabError> {
    let subjects = subjects.iter().map(SubjectNames::from).collect();
    let order = Order::Ask { stack: stack.to_owned(), subjects };
    let mut offer = None;
    ask_process(executable, stack, &order, &AtomicBool::new(false), |line| match line {
        Line::Offer(found) => {
            offer = Some(found);
            Ok(())
        }
        _ => Err(unexpected()),
    })?;
    offer.ok_or_else(unexpected)
}

/// [`typical`] in a helper process: OpenSSL may need one.
pub fn typical_trace(
    settings: &Settings,
    stack: &str,
    subject: &Subject,
    rounds: usize,
    stop: &AtomicBool,
) -> Result<Trace, LabError> {
    let order = Order::Typical { stack: stack.to_owned(), subject: subject.into(), rounds };
    let mut trace = None;
    ask_process(&settings.executable, stack, &order, stop, |line| match line {
        Line::Trace(found) => {
            trace = Some(found);
            Ok(())
        }
        _ => Err(unexpected()),
    })?;
    trace.ok_or_else(unexpected)
}

/// A helper process that shakes hands so often and says nothing: for profilers.
pub fn repeating(
    settings: &Settings,
    stack: &str,
    subject: &Subject,
    count: u64,
) -> Result<Command, LabError> {
    repeat(settings, stack, std::slice::from_ref(subject), count, false)
}

/// The same with a thread that changes its name with whose turn it is.
pub(super) fn named(
    settings: &Settings,
    stack: &str,
    subject: &Subject,
    count: u64,
) -> Result<Command, LabError> {
    repeat(settings, stack, std::slice::from_ref(subject), count, true)
}

/// The same with each of these, one after the other, and marks around each.
pub(super) fn between_marks(
    settings: &Settings,
    stack: &str,
    subjects: &[Subject],
    count: u32,
) -> Result<Command, LabError> {
    repeat(settings, stack, subjects, count.into(), false)
}

fn repeat(
    settings: &Settings,
    stack: &str,
    subjects: &[Subject],
    count: u64,
    named: bool,
) -> Result<Command, LabError> {
    let subjects = subjects.iter().map(SubjectNames::from).collect();
    let order = Order::Repeat { stack: stack.to_owned(), subjects, count, named };
    command(&settings.executable, stack, &order)
}

/// Runs a helper process and gives each line that it writes; ends it when told to stop, or if it is silent for too long. What it
/// says on standard error becomes the error's text. `program` is `outlast` itself, with which the helper ends ([`tied`]).
pub(crate) fn lines(
    program: &Path,
    command: &Command,
    stop: &AtomicBool,
    mut each: impl FnMut(&str) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let died = |reason: String| LabError::Peer { peer: name.clone(), reason };
    let mut command = tied(program, command, None)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut helper = Helper(command.spawn().map_err(|error| died(error.to_string()))?);
    // A helper that complains a lot must not wait for somebody to read it.
    let stderr = helper.0.stderr.take();
    let (sender, complaints) = sync_channel(1);
    std::thread::spawn(move || {
        let text = stderr.and_then(|stderr| std::io::read_to_string(stderr).ok());
        let _ = sender.send(text.unwrap_or_default());
    });
    if let Some(stdout) = helper.0.stdout.take() {
        let lines = read(stdout);
        while let Some(line) = next(&lines, SILENCE, stop, &name)? {
            each(&line)?;
        }
    }
    let until = Instant::now() + END;
    let status = loop {
        if let Some(status) = helper.0.try_wait().map_err(|error| died(error.to_string()))? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if Instant::now() > until {
            return Err(died("it closed its output and goes on".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    if status.success() {
        return Ok(());
    }
    if stop.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    // A process that it started may hold its standard error open.
    let complaints = complaints.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    Err(died(format!("{status}: {}", complaints.trim())))
}

/// Lines as they come, from a thread that may wait for them.
fn read(stdout: ChildStdout) -> Receiver<std::io::Result<String>> {
    let (sender, lines) = sync_channel(1000);
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The next line; `None` after the last.
fn next(
    lines: &Receiver<std::io::Result<String>>,
    patience: Duration,
    stop: &AtomicBool,
    name: &str,
) -> Result<Option<String>, LabError> {
    let died = |reason: String| LabError::Peer { peer: name.to_owned(), reason };
    let until = Instant::now() + patience;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        match lines.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => return line.map(Some).map_err(|error| died(error.to_string())),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(died(format!("said nothing for {} s", patience.as_secs())));
            }
        }
    }
}

/// How long a helper may be silent: callgrind is until it is done.
const SILENCE: Duration = Duration::from_secs(3600);
/// How long a handshake may take, with the start of the helper before the first.
const HANDSHAKE: Duration = Duration::from_secs(60);
/// How long a helper may live after its last word: valgrind and perf have files to write.
const END: Duration = Duration::from_secs(60);

/// A process that does not outlive its use, nor does what it started: it has a group of its own ([`tied`]).
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        // Once it has been waited for its number may be another's.
        if matches!(self.0.try_wait(), Ok(None)) {
            let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

fn answer(argument: &str) -> Result<(), LabError> {
    let order: Order = serde_json::from_str(argument).map_err(LabError::failed)?;
    let mut out = std::io::stdout().lock();
    let mut tell = |line: Line| {
        let mut text = serde_json::to_vec(&line).map_err(LabError::failed)?;
        text.push(b'\n');
        out.write_all(&text).and_then(|()| out.flush()).map_err(LabError::failed)
    };
    match obey(&order, &mut tell) {
        Err(LabError::Unavailable { what, needs }) => tell(Line::Unavailable { what, needs }),
        other => other,
    }
}

fn obey(order: &Order, tell: &mut dyn FnMut(Line) -> Result<(), LabError>) -> Result<(), LabError> {
    match order {
        Order::Ask { stack: name, subjects } => {
            let stack = stack(name)?;
            let version = stack.version()?;
            let supports = |names| Subject::try_from(names).map(|subject| stack.supports(&subject));
            let supported = subjects.iter().map(supports).collect::<Result<_, LabError>>()?;
            tell(Line::Offer(Offer { version, supported }))
        }
        Order::Rounds(rounds) => perform(rounds, tell),
        Order::Typical { stack: name, subject, rounds } => {
            let trace = super::typical(stack(name)?, &Subject::try_from(subject)?, *rounds)?;
            tell(Line::Trace(trace))
        }
        Order::Serve { stack: name, subject } => {
            let subject = Subject::try_from(subject)?;
            let mut handshaker = stack(name).and_then(|stack| stack.prepare(&subject));
            for line in std::io::stdin().lines() {
                line.map_err(LabError::failed)?;
                let outcome = match &mut handshaker {
                    Ok(handshaker) => handshaker.handshake().map_err(|error| error.to_string()),
                    Err(error) => Err(error.to_string()),
                };
                tell(outcome.map_or_else(Line::Failed, Line::Trace))?;
            }
            Ok(())
        }
        Order::Repeat { stack: name, subjects, count, named } => {
            profile::take_no_times();
            let stack = stack(name)?;
            let mut ready = subjects
                .iter()
                .map(|names| stack.prepare(&Subject::try_from(names)?))
                .collect::<Result<Vec<_>, LabError>>()?;
            for handshaker in &mut ready {
                for _ in 0..3 {
                    handshaker.handshake()?;
                }
            }
            if *named {
                profile::name_turns();
            }
            for handshaker in &mut ready {
                profile::outlast_profile_mark();
                for _ in 0..*count {
                    handshaker.handshake()?;
                }
            }
            profile::outlast_profile_mark();
            Ok(())
        }
    }
}
