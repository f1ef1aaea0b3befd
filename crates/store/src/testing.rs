//! A PostgreSQL server for tests: new, in its own folder, on a unix socket and a loopback port.
//!
//! For tests only: it panics when something is wrong.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "support of tests, which may fail and print"
)]

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// PostgreSQL refuses to run as root, so it then runs as `nobody`.
const NOBODY: u32 = 65534;
/// Superuser of the server.
const USER: &str = "outlast";
/// Password of the superuser.
pub const PASSWORD: &str = "correct-horse";

/// A running server; it and its data are removed on drop.
pub struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    postmaster: Mutex<Option<Child>>,
    databases: AtomicU32,
}

impl Postgres {
    /// Starts a new server. `None` when PostgreSQL is not installed, unless OUTLAST_REQUIRE_PEERS has `postgresql`.
    pub fn start() -> Option<Self> {
        let Some(programs) = find_programs() else {
            outlast_testing::skip_for_want_of("postgresql", "PostgreSQL");
            return None;
        };
        // The path of a unix socket has at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("outlast-pg-").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::write(folder.path().join("password"), PASSWORD).unwrap();
        if is_root() {
            for path in [folder.path(), &folder.path().join("password")] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let port = outlast_testing::free_port();
        let server = Self {
            folder,
            programs,
            port,
            postmaster: Mutex::new(None),
            databases: AtomicU32::new(0),
        };
        let output = server
            .command("initdb")
            .args(["--username", USER, "--auth", "scram-sha-256", "--encoding", "UTF8"])
            .args(["--locale", "C", "--no-sync", "--pwfile"])
            .arg(server.folder.path().join("password"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        server.start_again();
        Some(server)
    }

    /// A server that all tests of a program share as long as one of them holds it.
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Some(server);
        }
        let server = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&server);
        Some(server)
    }

    /// URL of the database `postgres`, on the unix socket.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Creates an empty database; returns its URL on the unix socket.
    pub fn new_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::SeqCst));
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
        self.url_of(&name)
    }

    /// Executes statements in a database as the superuser.
    pub fn execute(&self, database: &str, statements: &str) {
        self.try_execute(database, statements).unwrap();
    }

    /// Folder of the unix socket, and the port, which is also in the socket's name and open on 127.0.0.1.
    pub fn folder_and_port(&self) -> (&Path, u16) {
        (self.folder.path(), self.port)
    }

    /// Adds lines to the server's configuration; they take effect at the next start.
    pub fn configure(&self, lines: &str) {
        let file = self.data().join("postgresql.conf");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}\n{lines}\n")).unwrap();
    }

    /// Copies a file to the server's folder, readable only by the server.
    pub fn install(&self, name: &str, content: &[u8]) {
        let path = self.data().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        if is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Sends SIGKILL to the postmaster and all its children: data that was not synced is lost, as in a crash.
    pub fn kill(&self) {
        let mut postmaster = self.postmaster();
        let Some(mut child) = postmaster.take() else { return };
        // A stopped postmaster makes no more children.
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        let children = children(child.id());
        child.kill().unwrap();
        for pid in children {
            let _ = kill_process(pid, Signal::KILL);
        }
        child.wait().unwrap();
    }

    /// Sends SIGSTOP to the postmaster and all its children: connections stay open but get no answers.
    pub fn freeze(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Sends SIGCONT after [`Postgres::freeze`].
    pub fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, signal: Signal) {
        let postmaster = self.postmaster();
        let Some(child) = postmaster.as_ref() else { return };
        // The postmaster first: once stopped, it makes no more children.
        kill_process(Pid::from_child(child), signal).unwrap();
        for pid in children(child.id()) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Shuts the server down in order; open connections are cut.
    pub fn stop(&self) {
        let mut postmaster = self.postmaster();
        let Some(mut child) = postmaster.take() else { return };
        // SIGINT is PostgreSQL's fast shutdown.
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).unwrap();
        child.wait().unwrap();
    }

    /// Starts the server once more after [`Postgres::kill`] or [`Postgres::stop`].
    pub fn start_again(&self) {
        let mut postmaster = self.postmaster();
        assert!(postmaster.is_none(), "the server is already running");
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut child = None;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            if child.is_none() {
                let spawned = self
                    .command("postgres")
                    .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-k"])
                    .arg(self.folder.path())
                    .args(["-c", "max_connections=100", "-c", "shared_buffers=32MB"])
                    .stdin(Stdio::null())
                    .stdout(log.try_clone().unwrap())
                    .stderr(log.try_clone().unwrap())
                    .spawn()
                    .unwrap();
                child = Some(spawned);
            }
            std::thread::sleep(Duration::from_millis(50));
            // After a crash it may have to wait for its predecessor's shared memory.
            if child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some()) {
                child = None;
            } else if self.try_execute("postgres", "SELECT 1").is_ok() {
                *postmaster = child;
                return;
            }
        }
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
        panic!("PostgreSQL does not start: {log}");
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn postmaster(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.postmaster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn url_of(&self, database: &str) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://{USER}:{PASSWORD}@{folder}:{}/{database}", self.port)
    }

    /// Command that runs a PostgreSQL program on this server's data, as a user other than root.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            let user = NOBODY.to_string();
            command.args([&format!("--reuid={user}"), &format!("--regid={user}")]);
            command.arg("--clear-groups").arg(program);
            command
        } else {
            Command::new(program)
        };
        command.arg("-D").arg(self.data()).current_dir(self.folder.path());
        command
    }

    /// Executes statements in a database as the superuser; they may fail.
    pub fn try_execute(
        &self,
        database: &str,
        statements: &str,
    ) -> Result<(), tokio_postgres::Error> {
        let mut config: tokio_postgres::Config = self.url_of(database).parse()?;
        config.ssl_mode(tokio_postgres::config::SslMode::Disable);
        // On its own thread, because the caller may be inside a runtime.
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
                    tokio::spawn(connection);
                    client.batch_execute(statements).await
                })
            });
            running.join().unwrap()
        })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Folder with `postgres` and `initdb`: on the PATH, or the newest of Debian's.
fn find_programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    versions.sort();
    folders.extend(versions.into_iter().rev());
    let both =
        |folder: &PathBuf| ["postgres", "initdb"].iter().all(|name| folder.join(name).is_file());
    folders.into_iter().find(both)
}

/// Child processes of `parent`.
fn children(parent: u32) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        line.is_some_and(|line| line.trim() == parent.to_string())
    })
    .filter_map(Pid::from_raw)
    .collect()
}
