//! A program that the operator has configured as a rotation function or a target of events: it reads the event from its
//! standard input and succeeds with exit code 0.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
    let (words, event, environment) = (words.to_vec(), event.to_string(), environment.to_vec());
    let unwanted = Unwanted(Arc::default());
    let is_unwanted = unwanted.0.clone();
    let running = move || run_and_wait(&words, &event, &environment, timeout, &is_unwanted);
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
    event: &str,
    environment: &[(&'static str, String)],
    timeout: Duration,
    is_unwanted: &AtomicBool,
) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let named = |error: std::io::Error| format!("{program}: {error}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(named)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read the event may still succeed.
        let _ = stdin.write_all(event.as_bytes());
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
            let _ = child.kill();
            let _ = child.wait();
            if is_unwanted {
                return Err(format!("{program} was stopped with the server"));
            }
            return Err(format!("{program} took longer than {} s", timeout.as_secs()));
        }
        std::thread::sleep(WATCH);
    };
    if status.success() {
        return Ok(());
    }
    // Children of the program may keep its standard error open: then it is not waited for.
    let said = said.filter(std::thread::JoinHandle::is_finished).and_then(|said| said.join().ok());
    Err(format!("{program}: {status}: {}", said.unwrap_or_default()))
}
