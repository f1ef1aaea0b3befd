//! The server as a process: start, memory; and what the other cases need of it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outlast_api::client::{Client, ServiceError};
use outlast_api::ops::Operation;
use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::Secret;
use outlast_net::client::{Connection, Connector};
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use serde_json::{Value, json};

use crate::Figure;
use crate::statistics::quantile;

pub(crate) const ACCESS_KEY: &str = "BENCHKEY1";
pub(crate) const SECRET: &str = "a-secret-of-the-benchmark-123456";

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = Folder::new()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let rounds = if quick { 3 } else { 11 };
    let mut starts = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        let server = folder.serve()?;
        runtime.block_on(async {
            let mut session = server.session(&Policy::default()).await?;
            session.call::<outlast_api::ops::kms::list_keys::ListKeys>(json!({})).await
        })?;
        starts.push(begun.elapsed());
        std::thread::sleep(Duration::from_millis(500));
        memory.push(status_kib(server.child.id(), "VmRSS")?);
    }
    memory.sort_unstable();
    let start = quantile(&mut starts, 0.5);
    let resident = memory[memory.len() / 2] / 1024;
    Ok(vec![
        Figure {
            name: "server start to first answered API call, existing store",
            value: format!("{} ms", start.as_millis()),
            limit: "< 300 ms",
            met: start < Duration::from_millis(300),
            note: format!("median of {rounds} starts; exec, TLS handshake and ListKeys included"),
        },
        Figure {
            name: "resident memory, idle",
            value: format!("{resident} MiB"),
            limit: "< 40 MiB",
            met: resident < 40,
            note: "VmRSS after the first call".into(),
        },
    ])
}

/// The release binary beside this one.
pub(crate) fn outlast_binary() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let binary = here.with_file_name("outlast");
    if binary.exists() {
        return Ok(binary);
    }
    Err(format!("{} is missing: use cargo xtask bench", binary.display()))
}

/// The command with nothing of the user's own configuration.
pub(crate) fn outlast() -> Result<Command, String> {
    let mut command = Command::new(outlast_binary()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    Ok(command)
}

/// A data folder in a temporary place.
pub(crate) struct Folder {
    temporary: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Result<Self, String> {
        // Beside the binary, so that it is on a real disk: /tmp may be memory.
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let place = here.parent().unwrap_or(Path::new("."));
        let temporary = tempfile::tempdir_in(place).map_err(|error| error.to_string())?;
        let folder = Self { temporary };
        let output = outlast()?
            .args(["init", "--access-key-id", ACCESS_KEY, "--data"])
            .arg(folder.data())
            .env("OUTLAST_SECRET_ACCESS_KEY", SECRET)
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(folder)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.temporary.path().join("data")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    pub(crate) fn serve(&self) -> Result<Server, String> {
        let mut child = outlast()?
            .args(["server", "--listen", "127.0.0.1:0", "--log", "warn", "--data"])
            .arg(self.data())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut port = || {
            let mut line = String::new();
            stdout.read_line(&mut line).map_err(|error| error.to_string())?;
            let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
            port.ok_or_else(|| "the server did not start".to_owned())
        };
        let (port, revocation) = (port()?, port()?);
        let pem = std::fs::read(self.data().join("client/ca.pem"));
        let roots = pem
            .ok()
            .and_then(|pem| outlast_pki::pem::read_certificates(&pem).ok())
            .ok_or("no ca.pem")?;
        Ok(Server { child, port, revocation, roots })
    }
}

/// A server process; ended when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// Port of plain HTTP.
    pub(crate) revocation: u16,
    roots: Vec<Vec<u8>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(crate) async fn session(&self, policy: &Policy) -> Result<Session, String> {
        let connector = Connector::new(policy, &self.roots).map_err(|error| error.to_string())?;
        let connection =
            connector.connect("localhost", self.port).await.map_err(|error| error.to_string())?;
        let client = Client {
            host: format!("localhost:{}", self.port),
            region: "us-east-1".into(),
            credentials: Credentials {
                access_key_id: ACCESS_KEY.into(),
                secret: Secret::new(SECRET.as_bytes().to_vec()),
                token: None,
            },
        };
        Ok(Session { client, connection })
    }
}

/// A kept connection with the administrator's key.
pub(crate) struct Session {
    client: Client,
    connection: Connection,
}

impl Session {
    pub(crate) async fn call<O: Operation>(&mut self, input: Value) -> Result<O::Output, String> {
        let input = serde_json::from_value(input).map_err(|error| error.to_string())?;
        let now = system_clock().div_euclid(1000);
        let request = self.client.request::<O>(&input, now).map_err(|error| error.to_string())?;
        let (status, body) =
            self.connection.send(request).await.map_err(|error| error.to_string())?;
        Client::response::<O>(status, &body).map_err(|error: ServiceError| error.to_string())
    }
}

/// A memory figure of a process in KiB, from `/proc/PID/status`.
pub(crate) fn status_kib(pid: u32, name: &str) -> Result<u64, String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|error| error.to_string())?;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .ok_or_else(|| format!("{name} is not in the status of the process"))
}

/// CPU time that a process has used, in its own code and the kernel's, from `/proc/PID/stat` (fields 14 and 15).
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, String> {
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| error.to_string())?;
    // The name in parentheses may contain anything; what follows begins with the third field.
    let rest = text.rsplit_once(')').ok_or("the process's statistics cannot be read")?.1;
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap_or_default())
        .sum();
    Ok(Duration::from_micros(ticks * 1_000_000 / rustix::param::clock_ticks_per_second()))
}
