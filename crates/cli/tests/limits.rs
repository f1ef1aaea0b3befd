//! Limits against peers: many silent connections, large bodies, a disk that fills up.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use common::{Folder, Server, Session, fail, outlast, run, runtime, succeed};
use outlast_api::ops::kms::{create_key, list_keys};
use outlast_testing::PATIENCE;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

/// Highest resident memory of the server so far, in KiB.
fn peak(server: &Server) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

/// Raises the limit on open files as far as possible, and returns it.
fn open_files() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |count| usize::try_from(count).unwrap())
}

#[test]
fn silent_connections_do_not_lock_others_out() {
    let folder = Folder::new();
    // As from a shell: the server raises its own limit.
    let mut command = Command::new("sh");
    let program = outlast().get_program().to_owned();
    command.args(["-c", "ulimit -Sn 1024; exec \"$0\" \"$@\""]).arg(program);
    let server = Server::start_by(command, &folder.data, &[]);
    let count = open_files().saturating_sub(500).min(10_000);
    let open = |count: usize| -> Vec<TcpStream> {
        let address = ([127, 0, 0, 1], server.port).into();
        (0..count).map(|_| TcpStream::connect_timeout(&address, PATIENCE).unwrap()).collect()
    };
    runtime().block_on(async {
        let mut before = server.session().await.unwrap();
        let begun = Instant::now();
        let silent = tokio::task::block_in_place(|| open(count));
        println!("{count} silent connections after {:?}", begun.elapsed());
        // A client that is connected already, and one that connects now.
        before.call::<list_keys::ListKeys>(json!({})).await.unwrap().unwrap();
        for _ in 0..3 {
            let begun = Instant::now();
            let mut session = server.session().await.unwrap();
            session.call::<list_keys::ListKeys>(json!({})).await.unwrap().unwrap();
            println!("answered another client after {:?}", begun.elapsed());
        }
        drop(silent);
    });
    println!("memory of the server: {} MiB", peak(&server) / 1024);
    assert!(peak(&server) < 300 * 1024, "{} KiB", peak(&server));
}

#[test]
fn a_body_of_ten_megabytes_is_refused() {
    let folder = Folder::new();
    let server = folder.serve();
    let before = peak(&server);
    runtime().block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..8 {
            let mut session = server.session().await.unwrap();
            tasks.push(tokio::spawn(async move {
                let mut request = http::Request::new(vec![b' '; 10 << 20]);
                *request.method_mut() = http::Method::POST;
                for (name, value) in [("host", "localhost"), ("x-amz-target", "TrentService.Sign")]
                {
                    request.headers_mut().insert(name, value.parse().unwrap());
                }
                session.connection.send(request).await
            }));
        }
        for task in tasks {
            let (status, body) = task.await.unwrap().unwrap();
            assert_eq!(status, 413, "{}", String::from_utf8_lossy(&body));
        }
        let mut session = server.session().await.unwrap();
        session.call::<list_keys::ListKeys>(json!({})).await.unwrap().unwrap();
    });
    println!("memory of the server: {before} KiB before, {} KiB after", peak(&server));
    assert!(peak(&server) < before + 32 * 1024);
}

/// A small file system of its own.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` if this user may not mount one.
    fn new(place: &Path) -> Option<Self> {
        std::fs::create_dir(place).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "outlast-test"]).arg(place);
        if run(&mut mount).status.success() {
            return Some(Self(place.to_path_buf()));
        }
        outlast_testing::skip("this user may not mount a tmpfs");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up_stops_writes_and_loses_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::new(&temporary.path().join("disk")) else { return };
    let data = disk.0.join("data");
    succeed(
        outlast()
            .args(["init", "--access-key-id", common::ACCESS_KEY, "--data"])
            .arg(&data)
            .env("OUTLAST_SECRET_ACCESS_KEY", common::SECRET),
    );
    let mut server = Server::start(&data, &[]);
    let create = async |session: &mut Session| {
        session.call::<create_key::CreateKey>(json!({})).await.unwrap()
    };
    let made = runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let mut made = vec![create(&mut session).await.unwrap().key_metadata.key_id];
        let filler = disk.0.join("filler");
        // As much as fits, to the last byte.
        let _ = std::fs::write(&filler, vec![0; 8 << 20]);
        let error = loop {
            match create(&mut session).await {
                Ok(key) => made.push(key.key_metadata.key_id),
                Err(error) => break error,
            }
            assert!(made.len() < 10_000, "the disk does not fill up");
        };
        assert_eq!((error.code.as_str(), error.status), ("KMSInternalException", 500));
        assert!(create(&mut session).await.is_err());
        assert_eq!(session.get("/healthz").await.0, 200);
        let text = fail(outlast().args(["principal", "create", "x", "--data"]).arg(&data), 1);
        assert!(text.contains("full") && text.contains("hint: make room"), "{text}");
        // With free space again it goes on, without a restart.
        std::fs::remove_file(filler).unwrap();
        made.push(create(&mut session).await.unwrap().key_metadata.key_id);
        made
    });
    assert_eq!(server.terminate(), Some(0));
    let text = succeed(outlast().args(["store", "check", "--output", "json", "--data"]).arg(&data));
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["keys"], made.len(), "{found}");
    succeed(outlast().args(["audit", "verify", "--data"]).arg(&data));
}
