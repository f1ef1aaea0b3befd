//! A process at an end of the link as its parent sees it: lines in, lines out, and its last words.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::agents::Line;
use crate::error::LabError;

/// A child process that reads and writes lines.
pub(super) struct Peer {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    said: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Peer {
    /// Starts it.
    pub fn start(name: impl Into<String>, mut command: Command) -> Result<Self, LabError> {
        let name = name.into();
        // Ctrl-C is for the parent, which ends its helpers after it has saved their results.
        command.process_group(0);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| LabError::Peer { peer: name.clone(), reason: error.to_string() })?;
        let (sender, lines) = channel();
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let mut readers = Vec::new();
        if let Some(out) = child.stdout.take() {
            readers.push(std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            }));
        }
        if let Some(errors) = child.stderr.take() {
            let said = Arc::clone(&said);
            readers.push(std::thread::spawn(move || {
                for line in BufReader::new(errors).lines().map_while(Result::ok) {
                    if let Ok(mut said) = said.lock() {
                        said.push_back(line);
                        if said.len() > LINES {
                            said.pop_front();
                        }
                    }
                }
            }));
        }
        let input = child.stdin.take();
        Ok(Self { name, child, input, lines, said, readers })
    }

    /// Sends it an order.
    pub fn tell(&mut self, order: &impl Serialize) -> Result<(), LabError> {
        let mut text = serde_json::to_vec(order).map_err(LabError::failed)?;
        text.push(b'\n');
        let told =
            self.input.as_mut().map(|input| input.write_all(&text).and_then(|()| input.flush()));
        match told {
            Some(Ok(())) => Ok(()),
            _ => Err(self.dead()),
        }
    }

    /// Its next line. While none comes, `alive` is asked from time to time whether to go on waiting.
    pub fn hear(
        &mut self,
        patience: Duration,
        stop: &AtomicBool,
        alive: &mut dyn FnMut() -> Result<(), LabError>,
    ) -> Result<Line, LabError> {
        let until = Instant::now() + patience;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            match self.lines.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => return serde_json::from_str(&line).map_err(LabError::failed),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => alive()?,
                Err(RecvTimeoutError::Timeout) => {
                    let reason = format!("said nothing for {} s", patience.as_secs());
                    return Err(LabError::Peer { peer: self.name.clone(), reason });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let error = self.dead();
                    // Ctrl-C reaches every process of the terminal.
                    return Err(if stop.load(Ordering::Relaxed) {
                        LabError::Interrupted
                    } else {
                        error
                    });
                }
            }
        }
    }

    /// Whether it has ended; if so, the error that describes how.
    pub fn ended(&mut self) -> Option<LabError> {
        matches!(self.child.try_wait(), Ok(Some(_))).then(|| self.dead())
    }

    /// The error for a process that has ended.
    fn dead(&mut self) -> LabError {
        self.input = None;
        let until = Instant::now() + LAST_WORDS;
        let mut status = None;
        while status.is_none() && Instant::now() < until {
            status = self.child.try_wait().ok().flatten();
            std::thread::sleep(Duration::from_millis(5));
        }
        let how =
            status.map_or_else(|| "does not answer".into(), |status| format!("ended ({status})"));
        // Its last words come through another pipe, which a grandchild may hold open.
        while !self.readers.iter().all(JoinHandle::is_finished) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let said: Vec<String> =
            self.said.lock().map(|said| said.iter().cloned().collect()).unwrap_or_default();
        let reason = if said.is_empty() { how } else { format!("{how}: {}", said.join(" / ")) };
        LabError::Peer { peer: self.name.clone(), reason }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        for reader in self.readers.drain(..) {
            // A grandchild may hold the pipe open: it is killed with the emulation, and then the reader ends.
            if reader.is_finished() {
                let _ = reader.join();
            }
        }
    }
}

/// How long to wait for the status and the last lines of a process that has ended.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Lines of standard error that are kept.
const LINES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Peer {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Peer::start("the peer", command).unwrap()
    }

    #[test]
    fn what_it_said_last_is_told() {
        let mut peer = shell("for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i >&2; done; exit 3");
        let stop = AtomicBool::new(false);
        let error = peer.hear(outlast_testing::PATIENCE, &stop, &mut || Ok(())).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("the peer: ended (exit status: 3): line 3 / line 4"), "{said}");
        assert!(said.ends_with("line 10"), "{said}");
        assert!(peer.ended().is_some());
    }

    #[test]
    fn silence_has_an_end_and_so_has_patience() {
        let mut peer = shell("sleep 600");
        let stop = AtomicBool::new(false);
        let error = peer.hear(Duration::from_millis(100), &stop, &mut || Ok(())).unwrap_err();
        assert!(error.to_string().contains("said nothing"), "{error}");
        stop.store(true, Ordering::Relaxed);
        let error = peer.hear(outlast_testing::PATIENCE, &stop, &mut || Ok(())).unwrap_err();
        assert!(matches!(error, LabError::Interrupted));
        assert!(peer.ended().is_none());
    }

    #[test]
    fn it_hears_what_is_told() {
        let mut peer = shell("read line; echo $line");
        peer.tell(&Line::Failed("told".into())).unwrap();
        let stop = AtomicBool::new(false);
        let heard = peer.hear(outlast_testing::PATIENCE, &stop, &mut || Ok(())).unwrap();
        assert!(matches!(heard, Line::Failed(text) if text == "told"));
    }
}
