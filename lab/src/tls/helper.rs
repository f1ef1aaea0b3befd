//! Helper processes of the CPU engine: the program itself, with orders in JSON and answers in lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::implementation::{Handshaker, Stack};
use super::orders::{Line, Offer, Order};
use crate::error::LabError;
use crate::pinned::tied;
use crate::run::Settings;
use crate::subject::{Subject, SubjectNames};
use crate::trace::Trace;

/// A pair in a helper process that makes a handshake whenever it is told to.
pub(super) fn remote(
    executable: &Path,
    stack: &dyn Stack,
    subject: &Subject,
) -> Result<Box<dyn Handshaker>, LabError> {
    let order = Order::Serve { stack: stack.name().to_owned(), subject: subject.into() };
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

/// Name of the agent.
pub(super) const NAME: &str = "cpu";

/// The command of a helper process for a stack, with its order.
fn command(executable: &Path, stack: &dyn Stack, order: &Order) -> Result<Command, LabError> {
    let mut command = stack.command(executable);
    let argument = serde_json::to_string(order).map_err(LabError::failed)?;
    command.args(["agent", NAME, &argument]);
    Ok(command)
}

/// Runs a helper process, and returns its answers.
pub(super) fn ask_process(
    executable: &Path,
    stack: &dyn Stack,
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
    LabError::failed("a helper process gave an unexpected answer")
}

/// Whether the implementation is available, and which of these subjects it supports.
pub fn ask(
    settings: &Settings,
    stack: &dyn Stack,
    subjects: &[Subject],
) -> Result<Offer, LabError> {
    offer(&settings.executable, stack, subjects)
}

/// The same for this program.
pub(super) fn offer(
    executable: &Path,
    stack: &dyn Stack,
    subjects: &[Subject],
) -> Result<Offer, LabError> {
    let subjects = subjects.iter().map(SubjectNames::from).collect();
    let order = Order::Ask { stack: stack.name().to_owned(), subjects };
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

/// [`super::typical()`] in a helper process, which OpenSSL may need.
pub fn typical_trace(
    settings: &Settings,
    stack: &dyn Stack,
    subject: &Subject,
    rounds: usize,
    stop: &AtomicBool,
) -> Result<Trace, LabError> {
    let order = Order::Typical { stack: stack.name().to_owned(), subject: subject.into(), rounds };
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

/// A helper process that makes so many handshakes and writes nothing: for profilers.
pub fn repeating(
    settings: &Settings,
    stack: &dyn Stack,
    subject: &Subject,
    count: u64,
) -> Result<Command, LabError> {
    repeat(settings, stack, std::slice::from_ref(subject), count, false)
}

/// The same with a thread whose name says whose turn it is.
pub(super) fn named(
    settings: &Settings,
    stack: &dyn Stack,
    subject: &Subject,
    count: u64,
) -> Result<Command, LabError> {
    repeat(settings, stack, std::slice::from_ref(subject), count, true)
}

/// The same with each of these subjects, one after the other, and marks around each.
pub(super) fn between_marks(
    settings: &Settings,
    stack: &dyn Stack,
    subjects: &[Subject],
    count: u32,
) -> Result<Command, LabError> {
    repeat(settings, stack, subjects, count.into(), false)
}

fn repeat(
    settings: &Settings,
    stack: &dyn Stack,
    subjects: &[Subject],
    count: u64,
    named: bool,
) -> Result<Command, LabError> {
    let subjects = subjects.iter().map(SubjectNames::from).collect();
    let order = Order::Repeat { stack: stack.name().to_owned(), subjects, count, named };
    command(&settings.executable, stack, &order)
}

/// Runs a helper process and returns each line that it writes; ends it when told to stop, or if it is silent for too
/// long. Its standard error becomes the error's text. `program` is the lab itself, with which the helper ends
/// ([`tied`]).
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
    // A helper that writes much to standard error must not block.
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
            return Err(died("it closed its output but keeps running".to_owned()));
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

/// Lines as they come, from a thread that may block.
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

/// How long a helper may be silent: callgrind is until it has finished.
const SILENCE: Duration = Duration::from_secs(3600);
/// How long a handshake may take, including the start of the helper before the first.
const HANDSHAKE: Duration = Duration::from_secs(60);
/// How long a helper may live after its last line: valgrind and perf have files to write.
const END: Duration = Duration::from_secs(60);

/// A process that is killed when dropped, with everything that it started: it has its own process group ([`tied`]).
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        // After it has been waited for, its number may be another process's.
        if matches!(self.0.try_wait(), Ok(None)) {
            let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
