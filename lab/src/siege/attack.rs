//! The attacking process: many lives of one pattern, each a connection with what is done on it.
//!
//! Attackers share the machine with what they attack, so they are kept cheap: lives begin at a bounded rate, most of what they do is
//! waiting, and what they cost is told.

use std::io::{BufRead, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use tokio::io::{self, AsyncRead, AsyncReadExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::time::{Interval, MissedTickBehavior, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::field::{Field, attackers_address, client_config, server_name};
use super::limits::{LONGEST_ATTACK, RAMP, SHORT_DIVISOR, SPARE_FILES};
use super::patterns::{PATTERNS, Pattern};
use crate::agent::Agent;
use crate::error::LabError;
use crate::pinned::tied;
use crate::server::cpu_time;

/// The row.
pub const AGENT: Agent = Agent { name: "siege", run: attack };

/// What an attack amounted to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Connections that were opened.
    pub connections: u64,
    /// Connections, or QUIC handshakes, that did not come about.
    pub refused: u64,
    /// Connections that the server ended.
    pub ended_by_server: u64,
    /// Requests that were begun.
    pub requests: u64,
    /// Bytes that were sent, inside TLS.
    pub bytes: u64,
    /// CPU time of the attacking process, in milliseconds.
    pub cpu_ms: u64,
}

impl Volume {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            refused: self.refused + other.refused,
            ended_by_server: self.ended_by_server + other.ended_by_server,
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            cpu_ms: self.cpu_ms + other.cpu_ms,
        }
    }
}

/// What the process is told on the first line of its input; the attack ends with the input.
#[derive(Serialize, Deserialize)]
struct Job {
    pattern: String,
    short: bool,
    field: Field,
}

/// An attack that goes on in another process.
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
    /// Starts one by `program`, which is `outlast-lab` itself.
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

    /// Ends it.
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
                    let reason = "the attacking process ended or says nothing".into();
                    return Err(LabError::Peer { peer: "the siege's attacker".into(), reason });
                }
            }
        }
    }
}

/// What all lives of an attack share.
pub(super) struct Attack {
    pub field: Field,
    pub pattern: &'static Pattern,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    pace: Mutex<Interval>,
    begun: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
    ended: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
}

fn attack(_: &str) -> Result<(), LabError> {
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    input.read_line(&mut line).map_err(LabError::failed)?;
    let job: Job = serde_json::from_str(&line).map_err(LabError::failed)?;
    // It came over a pipe, but whoever can call this program can write one.
    super::check_loopback(job.field.access.address)?;
    super::check_loopback(job.field.plain)?;
    if let Some(proxy) = &job.field.proxy {
        super::check_loopback(proxy.address)?;
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
        let attack = Arc::new(Attack::new(job.field, pattern)?);
        for _ in 0..lives {
            tokio::spawn(live(attack.clone()));
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

/// Connections at a time: the pattern's, or what the system's limit on open files leaves.
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

/// One after the other, for ever.
async fn live(attack: Arc<Attack>) {
    loop {
        attack.turn().await;
        attack.begun.fetch_add(1, Ordering::Relaxed);
        // How a life ends says nothing about the server's health; the good client tells that.
        if (attack.pattern.life)(attack.clone()).await.is_err() {
            attack.ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Attack {
    fn new(field: Field, pattern: &'static Pattern) -> Result<Self, LabError> {
        let roots = match &field.proxy {
            Some(proxy) => proxy.roots()?,
            None => field.access.roots()?,
        };
        let period = Duration::from_secs(1) / pattern.lives_per_second.max(1);
        let mut pace = tokio::time::interval(period);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            http1: client_config(&roots, &[b"http/1.1"])?,
            http2: client_config(&roots, &[b"h2"])?,
            field,
            pattern,
            pace: Mutex::new(pace),
            begun: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Waits for a turn to open something.
    async fn turn(&self) {
        self.pace.lock().await.tick().await;
    }

    fn volume(&self) -> Volume {
        let told = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let cpu = cpu_time(std::process::id()).unwrap_or_default();
        Volume {
            connections: told(&self.connections),
            refused: told(&self.refused),
            ended_by_server: told(&self.ended),
            requests: told(&self.requests),
            bytes: told(&self.bytes),
            cpu_ms: u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Counts a connection that was opened.
    pub fn opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one that was not.
    pub fn was_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts requests that were begun, and their bytes.
    pub fn sent(&self, requests: u64, bytes: usize) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Opens a connection over TCP.
    pub async fn tcp(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let open = async {
            let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.bind(SocketAddr::new(attackers_address(to), 0))?;
            let stream = socket.connect(to).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        self.count(open.await)
    }

    /// Opens a connection of TLS for HTTP/1.1.
    pub async fn tls(&self) -> io::Result<TlsStream<TcpStream>> {
        self.handshake(self.http1.clone()).await
    }

    /// Opens a connection of TLS for HTTP/2.
    pub async fn tls_http2(&self) -> io::Result<TlsStream<TcpStream>> {
        self.handshake(self.http2.clone()).await
    }

    /// The TLS that connections are opened with.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.http1
    }

    async fn handshake(&self, config: Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
        let to = self.field.proxy.as_ref().map_or(self.field.access.address, |proxy| proxy.address);
        let stream = self.tcp(to).await?;
        let name = server_name().map_err(io::Error::other)?;
        let shaken = TlsConnector::from(config).connect(name, stream).await;
        shaken.inspect_err(|_| self.was_refused())
    }

    fn count<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        match &outcome {
            Ok(_) => self.opened(),
            Err(_) => self.was_refused(),
        }
        outcome
    }
}

/// Reads and forgets until the other side ends, which is an error.
pub(super) async fn drain(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut piece = [0; 4096];
    while stream.read(&mut piece).await? > 0 {}
    Err(io::ErrorKind::UnexpectedEof.into())
}
