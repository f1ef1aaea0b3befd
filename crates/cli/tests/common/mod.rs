//! The program as a user has it: processes, data folders, and a client session.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod acme;

pub mod authority;

pub mod cluster;

pub mod dns;

pub mod peers;
pub mod pki;
pub mod stub;
pub mod tsa;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use outlast_api::aws::Operation;
use outlast_api::client::{Client, ServiceError};
use outlast_api::ops::kms;
use outlast_api::wire::sigv4::{Credentials, Target, sign};
use outlast_crypto::Secret;
use outlast_net::client::{ClientError, Connection, Connector};
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use serde_json::{Value, json};

pub const ACCESS_KEY: &str = "TESTKEY01";
pub const SECRET: &str = "a-secret-of-the-tests-0123456789";

pub use outlast_testing::program::{run, stderr, stdout, succeed};

/// The program, without variables of AWS or Outlast in its environment.
pub fn outlast() -> Command {
    outlast_testing::program::command(env!("CARGO_BIN_EXE_outlast"))
}

/// Runs a command that must fail with this exit code, and returns its stderr.
pub fn fail(command: &mut Command, code: i32) -> String {
    let text = outlast_testing::program::fail(command, code);
    assert!(!text.contains(SECRET), "the secret is in the message: {text}");
    text
}

/// A temporary data folder.
pub struct Folder {
    pub temporary: tempfile::TempDir,
    pub data: PathBuf,
}

/// Starts OpenSSH's `sftp`, which reads its commands from standard input; returns once the session has answered.
pub fn stays(mut sftp: Command) -> Child {
    let mut child = sftp.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"pwd\n").unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
    while !line.contains("working directory") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the session has ended");
    }
    child
}

impl Folder {
    pub fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let data = temporary.path().join("data");
        succeed(
            outlast()
                .args(["init", "--access-key-id", ACCESS_KEY, "--data"])
                .arg(&data)
                .env("OUTLAST_SECRET_ACCESS_KEY", SECRET),
        );
        Self { temporary, data }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn serve(&self) -> Server {
        Server::start(&self.data, &[])
    }

    /// The newest audit events, at most 10,000, the oldest first.
    pub fn events(&self) -> Vec<Value> {
        let mut tail = outlast();
        tail.args(["audit", "tail", "-n", "10000", "--output", "json", "--data"]);
        let all = succeed(tail.arg(&self.data));
        all.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Additional data of the audit events of SFTP, the oldest first.
    pub fn sftp_events(&self) -> Vec<Value> {
        let told = self.events().into_iter().map(|mut event| event["additionalEventData"].take());
        told.filter(|told| told["activity-type"].is_string()).collect()
    }

    /// A command that uses the folder's profile.
    pub fn client(&self, arguments: &[&str]) -> Command {
        let mut command = outlast();
        command
            .args(arguments)
            .env("AWS_CONFIG_FILE", self.data.join("client/config"))
            .env("AWS_SHARED_CREDENTIALS_FILE", self.data.join("client/credentials"))
            .env("AWS_PROFILE", "outlast");
        command
    }

    /// The same at a server, in the folder that [`Folder::write`] writes to.
    pub fn client_at(&self, server: &Server, arguments: &[&str]) -> Command {
        let mut command = self.client(arguments);
        command.args(["--endpoint-url", &format!("https://localhost:{}", server.port)]);
        self.here(command)
    }

    /// Has a command run in the folder that [`Folder::write`] writes to.
    pub fn here(&self, mut command: Command) -> Command {
        command.current_dir(self.temporary.path());
        command
    }
}

/// A server process; killed when dropped.
pub struct Server {
    pub child: Child,
    pub port: u16,
    /// Port of plain HTTP, unless that is off.
    pub revocation: Option<u16>,
    /// Port of SFTP, if that is on.
    pub sftp: Option<u16>,
    data: PathBuf,
}

/// A server's standard error.
pub struct Log(PathBuf);

impl Log {
    /// How many times it contains this.
    pub fn count(&self, what: &str) -> usize {
        std::fs::read_to_string(&self.0).unwrap().matches(what).count()
    }

    /// Waits until it contains this more than `before` times.
    pub fn until(&self, what: &str, before: usize) {
        outlast_testing::until(what, || self.count(what) > before);
    }
}

impl Server {
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        Self::start_by(outlast(), data, arguments)
    }

    /// Starts a server with a log, which is next to the data.
    pub fn start_logged(data: &Path, arguments: &[&str]) -> (Self, Log) {
        Self::start_logged_by(outlast(), data, arguments)
    }

    /// The same with the environment of `command`.
    pub fn start_logged_by(mut command: Command, data: &Path, arguments: &[&str]) -> (Self, Log) {
        let place = data.with_extension("log");
        command.stderr(std::fs::File::create(&place).unwrap());
        (Self::start_by(command, data, arguments), Log(place))
    }

    /// Starts a server with the environment of `command`.
    pub fn start_by(mut command: Command, data: &Path, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["server", "--listen", "127.0.0.1:0", "--log", "warn", "--data"])
            .arg(data)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut port = |before: &str| -> u16 {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            let port = line.trim().strip_prefix(before);
            port.unwrap_or_else(|| panic!("the server did not start: {line}")).parse().unwrap()
        };
        let api = port("listening on https://127.0.0.1:");
        let plain = !arguments.windows(2).any(|pair| pair == ["--revocation-listen", "off"]);
        let revocation = plain.then(|| port("revocation on http://127.0.0.1:"));
        let sftp = arguments.contains(&"--sftp-listen").then(|| {
            loop {
                let mut line = String::new();
                assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "there is no SFTP");
                if let Some(port) = line.trim().strip_prefix("SFTP on sftp://127.0.0.1:") {
                    break port.parse().unwrap();
                }
            }
        });
        Self { child, port: api, revocation, sftp, data: data.to_path_buf() }
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the server to read its files again.
    pub fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// Sends SIGTERM, and returns the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    pub fn roots(&self) -> Vec<Vec<u8>> {
        let pem = std::fs::read(self.data.join("client/ca.pem")).unwrap();
        outlast_pki::pem::read_certificates(&pem).unwrap()
    }

    pub async fn session(&self) -> Result<Session, ClientError> {
        Session::open(self.port, &self.roots()).await
    }

    pub async fn session_as(&self, identity: Identity) -> Session {
        Session::open_as(self.port, &self.roots(), identity).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A caller's access key.
pub struct Identity {
    pub id: String,
    pub secret: String,
    /// Session token, for temporary credentials.
    pub token: Option<String>,
}

impl Identity {
    pub fn administrator() -> Self {
        Self { id: ACCESS_KEY.into(), secret: SECRET.into(), token: None }
    }

    /// Parses the output of `principal --output json`.
    pub fn printed(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap().to_owned();
        Self { id: text("access_key_id"), secret: text("secret_access_key"), token: None }
    }
}

/// A connection, and a caller's key.
pub struct Session {
    client: Client,
    pub connection: Connection,
}

impl Session {
    pub async fn open(port: u16, roots: &[Vec<u8>]) -> Result<Self, ClientError> {
        Self::open_as(port, roots, Identity::administrator()).await
    }

    pub async fn open_as(
        port: u16,
        roots: &[Vec<u8>],
        identity: Identity,
    ) -> Result<Self, ClientError> {
        let connector = Connector::new(&Policy::default(), roots)?;
        let connection = connector.connect("localhost", port).await?;
        let client = Client {
            host: format!("localhost:{port}"),
            region: "us-east-1".into(),
            credentials: Credentials {
                access_key_id: identity.id,
                secret: Secret::new(identity.secret.into_bytes()),
                token: identity.token.map(|token| Secret::new(token.into_bytes())),
            },
        };
        Ok(Self { client, connection })
    }

    /// Calls an operation; the outer error is the connection's.
    pub async fn call<O: Operation>(
        &mut self,
        input: Value,
    ) -> Result<Result<O::Output, ServiceError>, ClientError> {
        let input = serde_json::from_value(input).unwrap();
        let now = system_clock().div_euclid(1000);
        let request = self.client.request::<O>(&input, now).unwrap();
        let (status, body) = self.connection.send(request).await?;
        Ok(Client::response::<O>(status, &body))
    }

    /// Calls STS as its clients do, with a form; returns the status and the XML.
    pub async fn sts(&mut self, form: &str) -> (u16, String) {
        let body = format!("{form}&Version=2011-06-15").into_bytes();
        let Client { host, region, credentials } = &self.client;
        let mut headers = http::HeaderMap::new();
        let content_type = "application/x-www-form-urlencoded; charset=utf-8";
        headers.insert("content-type", content_type.parse().unwrap());
        let target = Target { path: "/", host, body: &body, region, service: "sts" };
        sign(&mut headers, &target, credentials, system_clock().div_euclid(1000)).unwrap();
        headers.insert("host", host.parse().unwrap());
        let mut request = http::Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.headers_mut() = headers;
        let (status, body) = self.connection.send(request).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Begins a session of a role.
    pub async fn assume(&mut self, role_arn: &str, name: &str) -> Result<Identity, String> {
        let form = format!("Action=AssumeRole&RoleArn={role_arn}&RoleSessionName={name}");
        let (status, xml) = self.sts(&form).await;
        if status != 200 {
            return Err(xml);
        }
        let element = |name: &str| {
            let (_, rest) = xml.split_once(&format!("<{name}>")).unwrap();
            rest.split_once('<').unwrap().0.to_owned()
        };
        Ok(Identity {
            id: element("AccessKeyId"),
            secret: element("SecretAccessKey"),
            token: Some(element("SessionToken")),
        })
    }

    /// A GET that is signed for reading the audit log.
    pub async fn get_signed(&mut self, path: &str) -> (u16, Vec<u8>) {
        let Client { host, region, credentials } = &self.client;
        let mut headers = http::HeaderMap::new();
        let target = Target { path, host, body: &[], region, service: "outlast" };
        let now = system_clock().div_euclid(1000);
        outlast_api::wire::sigv4::sign_get(&mut headers, &target, credentials, now).unwrap();
        headers.insert("host", host.parse().unwrap());
        let mut request = http::Request::new(Vec::new());
        *request.uri_mut() = path.parse().unwrap();
        *request.headers_mut() = headers;
        let (status, body) = self.connection.send(request).await.unwrap();
        (status, body.to_vec())
    }

    pub async fn get(&mut self, path: &str) -> (u16, Vec<u8>) {
        let mut request = http::Request::new(Vec::new());
        *request.uri_mut() = path.parse().unwrap();
        request.headers_mut().insert("host", "localhost".parse().unwrap());
        let (status, body) = self.connection.send(request).await.unwrap();
        (status, body.to_vec())
    }
}

/// Data keys from a server: ciphertext in base64, and plaintext.
#[derive(Default)]
pub struct Load {
    pub acknowledged: Mutex<Vec<(String, Vec<u8>)>>,
    pub failures: Mutex<Vec<String>>,
    pub stop: AtomicBool,
}

impl Load {
    /// Makes keys and data keys until it is told to stop.
    pub async fn run(self: Arc<Self>, mut session: Session) {
        while !self.stop.load(Ordering::SeqCst) {
            if let Err(failure) = self.step(&mut session).await {
                self.failures.lock().unwrap().push(failure);
                return;
            }
        }
    }

    async fn step(&self, session: &mut Session) -> Result<(), String> {
        let made = session.call::<kms::create_key::CreateKey>(json!({})).await;
        let made = made.map_err(|e| e.to_string())?.map_err(|e| format!("{e:?}"))?;
        let request = json!({ "KeyId": made.key_metadata.key_id, "KeySpec": "AES_256" });
        let data_key = session.call::<kms::generate_data_key::GenerateDataKey>(request).await;
        let data_key = data_key.map_err(|e| e.to_string())?.map_err(|e| format!("{e:?}"))?;
        let blob = serde_json::to_value(&data_key.ciphertext_blob).unwrap();
        let pair = (blob.as_str().unwrap().to_owned(), data_key.plaintext.0);
        self.acknowledged.lock().unwrap().push(pair);
        Ok(())
    }

    pub fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    pub fn taken(&self) -> Vec<(String, Vec<u8>)> {
        self.acknowledged.lock().unwrap().clone()
    }
}

/// How many of these data keys the server does not decrypt to their plaintexts.
pub async fn lost(session: &mut Session, pairs: &[(String, Vec<u8>)]) -> usize {
    let mut lost = 0;
    for (blob, plaintext) in pairs {
        let request = json!({ "CiphertextBlob": blob });
        let opened = session.call::<kms::decrypt::Decrypt>(request).await.unwrap();
        lost += usize::from(!opened.is_ok_and(|opened| opened.plaintext.0 == *plaintext));
    }
    lost
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}
