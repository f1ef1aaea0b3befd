//! A real Outlast server as a child process with its data in a temporary folder, and clients of it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outlast_api::aws::Operation;
use outlast_api::client::{Client, ServiceError};
use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::{Secret, random};
use outlast_net::client::{Connection, Connector};
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Programs;
use crate::error::LabError;
use crate::pinned::tied;
use crate::temporary;

/// Longest time until a server must say where it listens.
const START: Duration = Duration::from_secs(30);
/// Last lines of a server's log that the message about its end quotes.
const LAST_LINES: usize = 8;
/// Longest part of a log line that is kept.
const MAX_LINE: u64 = 2000;
/// Name in the server's certificate.
pub const NAME: &str = "localhost";
/// Region of all requests.
const REGION: &str = "us-east-1";
/// The administrator's access key.
const ACCESS_KEY: &str = "LABKEY001";

/// `outlast` without the variables for AWS and Outlast in the user's environment.
pub fn outlast(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("AWS_") || text.starts_with("OUTLAST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// A data folder with an administrator's access key; removed on drop.
pub struct Folder {
    programs: Programs,
    temporary: tempfile::TempDir,
    secret: String,
}

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address to listen on; the port is a free one.
    pub address: IpAddr,
    /// Kind of certificate, as in `--tls-cert`.
    pub certificate: &'static str,
    /// Whether it also serves CRLs and OCSP over plain HTTP.
    pub revocation: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { address: Ipv4Addr::LOCALHOST.into(), certificate: "ecdsa-p256", revocation: false }
    }
}

impl Folder {
    /// Makes a data folder in `place`.
    pub fn new(programs: &Programs, place: &Path) -> Result<Self, LabError> {
        let program = &programs.service;
        let temporary = temporary::folder_in(place)?;
        let secret = hex::encode(random::bytes::<20>().map_err(LabError::failed)?);
        let folder = Self { programs: programs.clone(), temporary, secret };
        let output = outlast(program)
            .args(["init", "--access-key-id", ACCESS_KEY, "--data"])
            .arg(folder.data())
            .env("OUTLAST_SECRET_ACCESS_KEY", &folder.secret)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| LabError::file(program, error))?;
        if output.status.success() {
            return Ok(folder);
        }
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(LabError::Peer { peer: "outlast init".into(), reason })
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.temporary.path().join("data")
    }

    /// `outlast` itself.
    pub fn program(&self) -> &Path {
        &self.programs.service
    }

    /// Path next to the data folder that is removed with it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// Starts a server on loopback with all services.
    pub fn serve(&self) -> Result<Server, LabError> {
        let options = Options { revocation: true, ..Options::default() };
        self.serve_by(&options, None, |command| tied(&self.programs.agent, command, None))
    }

    /// Starts a server. `tie` turns its command into one that ends with this program and may run it elsewhere, such
    /// as in a network namespace. Waits until the server listens or `stop` is set.
    pub fn serve_by(
        &self,
        options: &Options,
        stop: Option<&AtomicBool>,
        tie: impl FnOnce(&Command) -> Result<Command, LabError>,
    ) -> Result<Server, LabError> {
        let mut command = outlast(self.program());
        command.args(["server", "--log", "warn", "--listen"]);
        command.arg(SocketAddr::new(options.address, 0).to_string());
        command.args(["--tls-cert", options.certificate]);
        if !options.revocation {
            command.args(["--revocation-listen", "off"]);
        }
        command.arg("--data").arg(self.data());
        let mut child = tie(&command)?
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| LabError::file(self.program(), error))?;
        let stdout = child.stdout.take();
        let words = LastWords::of(child.stderr.take());
        let mut server = Server {
            child,
            address: SocketAddr::new(options.address, 0),
            port: 0,
            revocation: 0,
            words,
            roots: Vec::new(),
            secret: self.secret.clone(),
        };
        let stdout = stdout.ok_or_else(|| LabError::failed("no stdout"))?;
        let ports = ports(stdout, 1 + usize::from(options.revocation));
        let until = Instant::now() + START;
        let mut port = || match heard(&ports, until, stop)? {
            Some(port) => Ok(port),
            None => Err(server.ended()),
        };
        let api = port()?;
        let revocation = if options.revocation { port()? } else { 0 };
        server.port = api;
        server.address.set_port(api);
        server.revocation = revocation;
        let ca = self.data().join("client/ca.pem");
        let pem = std::fs::read(&ca).map_err(|error| LabError::file(&ca, error))?;
        server.roots = outlast_pki::pem::read_certificates(&pem).map_err(LabError::failed)?;
        Ok(server)
    }
}

/// A folder in memory if the machine has one, otherwise `folder`.
pub fn in_memory(folder: &Path) -> PathBuf {
    let memory = Path::new("/dev/shm");
    match tempfile::tempfile_in(memory) {
        Ok(_) => memory.to_path_buf(),
        Err(_) => folder.to_path_buf(),
    }
}

/// Ports that a server prints, one per line.
fn ports(stdout: ChildStdout, count: usize) -> Receiver<Option<u16>> {
    let (sender, ports) = channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout);
        for _ in 0..count {
            let mut line = String::new();
            let read = lines.by_ref().take(MAX_LINE).read_line(&mut line);
            let port = read.ok().and_then(|_| line.trim().rsplit(':').next()?.parse().ok());
            if sender.send(port).is_err() {
                return;
            }
        }
    });
    ports
}

/// The next port; `None` if the server printed something else or nothing more.
fn heard(
    ports: &Receiver<Option<u16>>,
    until: Instant,
    stop: Option<&AtomicBool>,
) -> Result<Option<u16>, LabError> {
    loop {
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(LabError::Interrupted);
        }
        match ports.recv_timeout(Duration::from_millis(20)) {
            Ok(port) => return Ok(port),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(peer(format!("it did not listen within {} s", START.as_secs())));
            }
        }
    }
}

/// Last lines that a process wrote to stderr.
struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl LastWords {
    fn of(stderr: Option<ChildStderr>) -> Self {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = lines.clone();
        let reader = stderr.map(|stderr| std::thread::spawn(move || keep(stderr, &kept)));
        Self { lines, reader }
    }

    /// Its last lines, after it has ended.
    fn said(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("; ")
    }
}

fn keep(stderr: ChildStderr, kept: &Mutex<VecDeque<String>>) {
    let mut stderr = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        match stderr.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LAST_LINES {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).into_owned());
    }
}

/// A server process; ended on drop, and by the kernel if the program that started it ends.
pub struct Server {
    /// The process.
    pub child: Child,
    /// Address of the services.
    pub address: SocketAddr,
    /// Port of the services.
    pub port: u16,
    /// Port of plain HTTP; 0 if that is off.
    pub revocation: u16,
    words: LastWords,
    roots: Vec<Vec<u8>>,
    secret: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// What clients need to reach the server.
    pub fn access(&self) -> Access {
        Access::new(self.address, &self.roots, ACCESS_KEY.into(), self.secret.clone())
    }

    /// Opens a kept connection.
    pub async fn session(&self, policy: &Policy) -> Result<Session, LabError> {
        let access = self.access();
        Session::open(&access, &access.connector(policy)?).await
    }

    /// An error with the server's last words if it has ended.
    pub fn check(&mut self) -> Result<(), LabError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Error for a server that does not serve; ends it if it is still running.
    fn ended(&mut self) -> LabError {
        // A server that closed its standard output is about to end, and its last words are worth waiting for.
        std::thread::sleep(Duration::from_millis(50));
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
        }
        let status = self.child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
        let said = self.words.said();
        let reason = if said.is_empty() {
            format!("it ended ({status}) and said nothing")
        } else {
            format!("it ended ({status}); the last it said: {said}")
        };
        LabError::Peer { peer: "the Outlast server".into(), reason }
    }
}

/// What a client needs to reach a server; agents receive it on their standard input.
#[derive(Clone, Serialize, Deserialize)]
pub struct Access {
    /// Address of the server.
    pub address: SocketAddr,
    /// Trusted root certificates, DER in hexadecimal.
    roots: Vec<String>,
    access_key: String,
    secret: String,
}

impl Access {
    /// For a server below these roots (DER), and a client with this access key.
    pub fn new(address: SocketAddr, roots: &[Vec<u8>], access_key: String, secret: String) -> Self {
        Self { address, roots: roots.iter().map(hex::encode).collect(), access_key, secret }
    }

    /// Trusted root certificates in DER.
    pub fn roots(&self) -> Result<Vec<Vec<u8>>, LabError> {
        self.roots.iter().map(hex::decode).collect::<Result<_, _>>().map_err(LabError::failed)
    }

    /// Makes a connector to the server.
    pub fn connector(&self, policy: &Policy) -> Result<Connector, LabError> {
        Connector::new(policy, &self.roots()?).map_err(LabError::failed)
    }

    /// A client that signs requests with the access key.
    pub fn client(&self) -> Client {
        Client {
            host: format!("{NAME}:{}", self.address.port()),
            region: REGION.into(),
            credentials: Credentials {
                access_key_id: self.access_key.clone(),
                secret: Secret::new(self.secret.clone().into_bytes()),
                token: None,
            },
        }
    }
}

/// A kept connection with the administrator's access key.
pub struct Session {
    client: Client,
    /// The connection.
    pub connection: Connection,
}

impl Session {
    /// Opens a connection.
    pub async fn open(access: &Access, connector: &Connector) -> Result<Self, LabError> {
        let connection = connector.connect_to(NAME, access.address).await.map_err(peer)?;
        Ok(Self { client: access.client(), connection })
    }

    /// Calls an operation.
    pub async fn call<O: Operation>(&mut self, input: Value) -> Result<O::Output, LabError> {
        let input = serde_json::from_value(input).map_err(LabError::failed)?;
        call::<O>(&self.client, &mut self.connection, &input).await
    }
}

/// Calls an operation over the given connection.
pub async fn call<O: Operation>(
    client: &Client,
    connection: &mut Connection,
    input: &O::Input,
) -> Result<O::Output, LabError> {
    let now = system_clock().div_euclid(1000);
    let request = client.request::<O>(input, now).map_err(LabError::failed)?;
    let (status, body) = connection.send(request).await.map_err(peer)?;
    Client::response::<O>(status, &body).map_err(|error: ServiceError| peer(error))
}

fn peer(error: impl std::fmt::Display) -> LabError {
    LabError::Peer { peer: "the Outlast server".into(), reason: error.to_string() }
}

/// A memory figure of a process in KiB, from `/proc/PID/status`.
pub fn status_kib(pid: u32, name: &str) -> Result<u64, LabError> {
    let text = proc_file(pid, "status")?;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .ok_or_else(|| LabError::failed(format!("{name} is not in the status of the process")))
}

/// CPU time that a process has used in user and kernel mode, from `/proc/PID/stat` (fields 14 and 15).
pub fn cpu_time(pid: u32) -> Result<Duration, LabError> {
    let text = proc_file(pid, "stat")?;
    // The name in parentheses may contain anything; the third field follows it.
    let rest = text
        .rsplit_once(')')
        .ok_or_else(|| LabError::failed("the process's statistics cannot be read"))?
        .1;
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap_or_default())
        .sum();
    Ok(Duration::from_micros(ticks * 1_000_000 / rustix::param::clock_ticks_per_second()))
}

fn proc_file(pid: u32, name: &str) -> Result<String, LabError> {
    let path = PathBuf::from(format!("/proc/{pid}")).join(OsStr::new(name));
    std::fs::read_to_string(&path).map_err(|error| LabError::file(&path, error))
}
