//! A small HTTPS server that answers as the test says, in place of Secrets Manager and Roles Anywhere.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::request::Parts;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::pki::{New, Party, issue};

/// Status, headers and body.
pub type Reply = (u16, Vec<(&'static str, String)>, String);

/// Answers a request; `None` never answers.
pub type Handler = Box<dyn Fn(&Parts, &[u8]) -> Option<Reply> + Send + Sync>;

/// The server. It ends with the test.
pub struct Stub {
    pub port: u16,
    pub folder: tempfile::TempDir,
    shared: Arc<Shared>,
}

struct Shared {
    is_down: AtomicBool,
    requests: AtomicUsize,
    handler: Mutex<Arc<Handler>>,
}

impl Stub {
    /// A server that offers hybrid groups first, as Outlast does.
    pub fn new(handler: Handler) -> Self {
        Self::with(&Policy::default(), handler)
    }

    /// A server with the groups of this policy.
    pub fn with(policy: &Policy, handler: Handler) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = system_clock().div_euclid(1000);
        let new = New { days: 3650, ..New::of("RootCACertificate", "Stub Root", now) };
        let root = issue("ECC_NIST_P256", new, None);
        std::fs::write(folder.path().join("ca.pem"), root.pem()).unwrap();
        let new = New::of("EndEntityServerAuthCertificate", "localhost", now);
        let leaf =
            issue("ECC_NIST_P256", New { dns: &["localhost", "127.0.0.1"], ..new }, Some(&root));
        let config = Arc::new(config(policy, &leaf));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            is_down: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            handler: Mutex::new(Arc::new(handler)),
        });
        let serving = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (config, shared) = (config.clone(), serving.clone());
                std::thread::spawn(move || serve(stream.unwrap(), config, &shared));
            }
        });
        Self { port, folder, shared }
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Whether connections break off.
    pub fn down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
    }

    pub fn answer(&self, handler: Handler) {
        *self.shared.handler.lock().unwrap() = Arc::new(handler);
    }

    /// How many requests were answered.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

fn config(policy: &Policy, leaf: &Party) -> ServerConfig {
    let chain = vec![CertificateDer::from(leaf.certificate.der().to_vec())];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(leaf.pkcs8().expose().to_vec()));
    ServerConfig::builder_with_provider(policy.provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

fn serve(tcp: TcpStream, config: Arc<ServerConfig>, shared: &Shared) {
    tcp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), tcp);
    let mut bytes = Vec::new();
    loop {
        if shared.is_down.load(Ordering::SeqCst) {
            return;
        }
        if let Some((head, body)) = take_request(&mut bytes) {
            let handler = shared.handler.lock().unwrap().clone();
            shared.requests.fetch_add(1, Ordering::SeqCst);
            let Some((status, headers, body)) = handler(&head, &body) else { continue };
            let headers: String =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let length = body.len();
            let text =
                format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
            if stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
        let mut buffer = [0; 16_384];
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

/// The first whole request.
fn take_request(bytes: &mut Vec<u8>) -> Option<(Parts, Vec<u8>)> {
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n")? + 4;
    let text = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = text.lines();
    let mut first = lines.next().unwrap().split(' ');
    let mut builder =
        http::Request::builder().method(first.next().unwrap()).uri(first.next().unwrap());
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        builder = builder.header(name, value);
    }
    let (head, ()) = builder.body(()).unwrap().into_parts();
    let length = head.headers.get("content-length");
    let length = length.map_or(0, |value| value.to_str().unwrap().parse().unwrap());
    let body = bytes.get(end..end + length)?.to_vec();
    bytes.drain(..end + length);
    Some((head, body))
}

/// An HTTP client without TLS, for one request: status, head and body.
pub fn exchange(mut stream: impl Read + Write, request: &str) -> (u16, String, String) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

/// A process that prints where it listens, and is stopped at the end.
pub struct Process {
    pub child: std::process::Child,
    pub lines: Vec<String>,
    log: PathBuf,
}

impl Process {
    /// Starts a command and waits for this many lines on stdout. Its log goes to a file in `folder`.
    pub fn start(command: &mut std::process::Command, lines: usize, folder: &Path) -> Self {
        use std::io::BufRead as _;
        let log = tempfile::Builder::new().prefix("log").tempfile_in(folder).unwrap();
        let (file, log) = log.keep().unwrap();
        let mut child = command.stdout(std::process::Stdio::piped()).stderr(file).spawn().unwrap();
        let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut read = || {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert!(!line.is_empty(), "it ended: {}", std::fs::read_to_string(&log).unwrap());
            line.trim_end().to_owned()
        };
        let lines = (0..lines).map(|_| read()).collect();
        Self { child, lines, log }
    }

    /// Port in the first line that begins like this.
    pub fn port(&self, start: &str) -> u16 {
        let line = self.lines.iter().find_map(|line| line.strip_prefix(start)).unwrap();
        line.split('/').next().unwrap().parse().unwrap()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
