//! A program that the operator has configured as a rotation function, a target of events or an identity provider: it reads the
//! event from its standard input and succeeds with exit code 0.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use outlast_crypto::Secret;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

/// Bytes of the standard error that a failure quotes.
const QUOTED: u64 = 300;
/// Interval between checks whether the program has ended.
const WATCH: Duration = Duration::from_millis(20);

/// Runs the program with nothing but `environment` and `PATH` in its environment. If this is dropped, the program is killed.
pub(crate) async fn run(
    words: &[String],
    event: &Value,
    environment: &[(&'static str, String)],
    timeout: Duration,
) -> Result<(), String> {
    let event = Secret::new(event.to_string().into_bytes());
    started(words, event, environment, timeout, None).await.map(|_| ())
}

/// Runs the program in the same way, and returns what it writes to its standard output. Its standard error is not read: a
/// program could repeat a password there, which would get into the log.
pub(crate) async fn answer(
    words: &[String],
    event: Secret,
    environment: &[(&'static str, String)],
    timeout: Duration,
    max: usize,
) -> Result<Vec<u8>, String> {
    started(words, event, environment, timeout, Some(max)).await
}

async fn started(
    words: &[String],
    event: Secret,
    environment: &[(&'static str, String)],
    timeout: Duration,
    max: Option<usize>,
) -> Result<Vec<u8>, String> {
    let (words, environment) = (words.to_vec(), environment.to_vec());
    let unwanted = Unwanted(Arc::default());
    let is_unwanted = unwanted.0.clone();
    let running = move || run_and_wait(&words, event, &environment, timeout, max, &is_unwanted);
    let outcome = tokio::task::spawn_blocking(running).await;
    drop(unwanted);
    outcome.map_err(|error| error.to_string())?
}

/// Tells the thread that waits for a program, when it is dropped, that nobody waits for the outcome: a server that stops would
/// wait for that thread.
struct Unwanted(Arc<AtomicBool>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn run_and_wait(
    words: &[String],
    event: Secret,
    environment: &[(&'static str, String)],
    timeout: Duration,
    max: Option<usize>,
    is_unwanted: &AtomicBool,
) -> Result<Vec<u8>, String> {
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let named = |error: std::io::Error| format!("{program}: {error}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(if max.is_some() { Stdio::piped() } else { Stdio::null() })
        .stderr(if max.is_some() { Stdio::null() } else { Stdio::piped() })
        // A group of its own, so that what it has started ends with it.
        .process_group(0)
        .spawn()
        .map_err(named)?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let end_group = || {
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    };
    if let Some(mut stdin) = child.stdin.take() {
        // In a thread of its own, because a program may write first. One that does not read the event may still succeed.
        std::thread::spawn(move || stdin.write_all(event.expose()));
    }
    let (answers, answered) = mpsc::channel();
    if let (Some(stdout), Some(max)) = (child.stdout.take(), max) {
        std::thread::spawn(move || {
            let (mut answer, most) = (Vec::new(), u64::try_from(max).unwrap_or(u64::MAX));
            let read = stdout.take(most.saturating_add(1)).read_to_end(&mut answer);
            let _ = answers.send(read.map(|_| answer));
        });
    }
    let said = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || {
            let mut said = Vec::new();
            let mut stderr = stderr;
            let _ = stderr.by_ref().take(QUOTED).read_to_end(&mut said);
            // The rest is read, so that the program does not wait for a reader.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            String::from_utf8_lossy(&said).trim().to_owned()
        })
    });
    let end = Instant::now() + timeout;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(named)? {
            break status;
        }
        let is_unwanted = is_unwanted.load(Ordering::Relaxed);
        if is_unwanted || Instant::now() >= end {
            end_group();
            let _ = child.wait();
            if is_unwanted {
                return Err(format!("{program} was stopped with the server"));
            }
            return Err(format!("{program} took longer than {} s", timeout.as_secs()));
        }
        std::thread::sleep(WATCH);
    };
    if status.success() {
        let Some(max) = max else { return Ok(Vec::new()) };
        // Children of the program may keep its standard output open.
        let left = end.saturating_duration_since(Instant::now());
        let answer = answered.recv_timeout(left);
        // Who has answered has nothing more to do.
        end_group();
        let answer = answer.map_err(|_| format!("{program} did not close its standard output"))?;
        return match answer.map_err(named)? {
            answer if answer.len() > max => {
                Err(format!("{program} answered with more than {max} bytes"))
            }
            answer => Ok(answer),
        };
    }
    // Children of the program may keep its standard error open: then it is not waited for.
    let said = said.filter(std::thread::JoinHandle::is_finished).and_then(|said| said.join().ok());
    Err(format!("{program}: {status}: {}", said.unwrap_or_default()))
}
