//! Servers that speak S3, which are peers: moto, a mock that checks no signature, and Versity's gateway, which serves a folder
//! and does.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::{free_port, peer, until};

/// The access key of every server.
pub const ACCESS_KEY: &str = "testing";
/// Its secret.
pub const SECRET: &str = "the-secret-of-the-test";

/// Serves, with a bucket `files`, and with a bucket `many` in which the folder `all` has as many objects as the second
/// argument says: one request for each would take half a minute.
const SERVE: &str = r#"
import sys, time
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.s3.models import s3_backends
backend = s3_backends["123456789012"]["aws"]
backend.create_bucket("files", "us-east-1")
backend.create_bucket("many", "us-east-1")
for number in range(int(sys.argv[2])):
    backend.put_object("many", f"all/{number:05}", b"")
ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False).start()
time.sleep(3600)
"#;

/// A server; it ends when this is dropped. It has the buckets `files` and `many`.
pub struct S3 {
    child: Child,
    /// Its port on loopback.
    pub port: u16,
    /// What the gateway serves.
    _folder: Option<TempDir>,
}

impl S3 {
    /// Starts moto, if the peer is there, with so many objects in the bucket `many`.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn moto(many: usize) -> Option<Self> {
        let program = peer("moto")?.join("bin/python");
        let port = free_port();
        let arguments = ["-c", SERVE, &port.to_string(), &many.to_string()];
        Some(Self::start(Command::new(program).args(arguments), port, None))
    }

    /// Starts the gateway, if the peer is there, with empty buckets.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    #[expect(clippy::unwrap_used, reason = "a test may fail")]
    pub fn gateway() -> Option<Self> {
        let program = peer("versitygw")?.join("bin/versitygw");
        let (port, folder) = (free_port(), TempDir::new().unwrap());
        let mut command = Command::new(program);
        command.args(["--quiet", "--access", ACCESS_KEY, "--secret", SECRET, "--port"]);
        command.arg(format!("127.0.0.1:{port}")).arg("posix").arg(folder.path());
        let started = Self::start(&mut command, port, Some(folder));
        for bucket in ["/files", "/many"] {
            let _ = started.curl(&["-X", "PUT"], bucket);
        }
        Some(started)
    }

    #[expect(clippy::unwrap_used, reason = "a test may fail")]
    fn start(command: &mut Command, port: u16, folder: Option<TempDir>) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let started = Self { child: command.spawn().unwrap(), port, _folder: folder };
        until("a server that speaks S3", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        started
    }

    /// URL of the endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The answer to a signed request of curl's, without our client; `path` begins with a slash. Fails on an error of S3's.
    ///
    /// # Panics
    /// If there is no such answer.
    #[must_use]
    #[expect(clippy::unwrap_used, reason = "a test may fail")]
    pub fn curl(&self, arguments: &[&str], path: &str) -> Vec<u8> {
        let mut command = Command::new("curl");
        command.args(["-sSf", "--path-as-is", "--user", &format!("{ACCESS_KEY}:{SECRET}")]);
        command.args(["--aws-sigv4", "aws:amz:us-east-1:s3"]).args(arguments);
        // Older curls sign the payload of S3 without naming its digest.
        command.args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
        let output = command.arg(format!("{}{path}", self.endpoint())).output().unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// The bucket's keys, as S3's XML lists them.
    #[must_use]
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        self.texts(&format!("/{bucket}?list-type=2"), "Key")
    }

    /// Keys of uploads in parts that have neither been completed nor aborted.
    #[must_use]
    pub fn uploads(&self, bucket: &str) -> Vec<String> {
        self.texts(&format!("/{bucket}?uploads="), "Key")
    }

    fn texts(&self, path: &str, element: &str) -> Vec<String> {
        let answer = String::from_utf8_lossy(&self.curl(&[], path)).into_owned();
        let begin = format!("<{element}>");
        let parts = answer.split(&begin).skip(1);
        parts.filter_map(|part| part.split_once('<')).map(|(text, _)| text.to_owned()).collect()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
