//! moto's S3 server, a peer.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{peer, until};

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

/// The server; it ends when this is dropped.
pub struct Moto {
    child: Child,
    /// Its port on loopback.
    pub port: u16,
}

impl Moto {
    /// Starts a server, if the peer is there, with so many objects in the bucket `many`.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(many: usize) -> Option<Self> {
        let peer = peer("moto")?;
        Some(Self::start_at(&peer, many))
    }

    #[expect(clippy::unwrap_used, reason = "a test may fail")]
    fn start_at(peer: &Path, many: usize) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(peer.join("bin/python"));
        command.args(["-c", SERVE, &port.to_string(), &many.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let moto = Self { child: command.spawn().unwrap(), port };
        until("moto's S3", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        moto
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
        command.args(["-sSf", "--path-as-is", "--user", "testing:testing"]);
        command.args(["--aws-sigv4", "aws:amz:us-east-1:s3"]).args(arguments);
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
        self.texts(&format!("/{bucket}?uploads"), "Key")
    }

    fn texts(&self, path: &str, element: &str) -> Vec<String> {
        let answer = String::from_utf8_lossy(&self.curl(&[], path)).into_owned();
        let begin = format!("<{element}>");
        let parts = answer.split(&begin).skip(1);
        parts.filter_map(|part| part.split_once('<')).map(|(text, _)| text.to_owned()).collect()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
