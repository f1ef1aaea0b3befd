//! The servers: `outlast server --sftp-listen`, OpenSSH's sshd with its sftp-server, and one of Go's libraries, which SFTPGo uses
//! as well. All have the same file to give, and users with the same key.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outlast_api::ops::transfer::create_server::CreateServer;
use outlast_api::ops::transfer::create_user::CreateUser;
use outlast_harness::pinned::{CLIENT_CORE, Pinned, SERVER_CORE, free_address, peer, tied};
use outlast_harness::server::{Folder, Options, Server};
use outlast_net::policy::Policy;
use outlast_ssh::{KeyKind, PrivateKey};
use serde_json::json;

use super::Way;
use super::client::Login;
use crate::process::{outlast, this_program};

/// Users of Outlast's server, so that each has fewer sessions than a user may have.
pub(super) const USERS: usize = 8;
/// Name of the file that all servers give, in `files`.
pub(super) const FILE: &str = "large";

/// Where files and keys are.
pub(super) struct World {
    folder: Folder,
    /// On a disk in memory, if there is one, for what is written: the disk is not what is measured.
    memory: tempfile::TempDir,
    /// On the disk of temporary files, for what is read: it stays in the kernel's page cache. A file system in memory does not let
    /// programs read without waiting (`RWF_NOWAIT`), which those of disks do.
    disk: tempfile::TempDir,
    /// Bytes of the file.
    pub(super) size: u64,
    key: Arc<PrivateKey>,
}

/// A running server.
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    pub(super) pid: u32,
    user: String,
    /// Folder of the file, as clients name it.
    path: String,
    _process: Process,
}

/// Ends with this.
enum Process {
    Ours { _server: Server },
    Peer { _server: Pinned },
}

impl World {
    /// A data folder with a Transfer server and its users, and a file of this size.
    pub(super) fn new(size: u64) -> Result<Self, String> {
        let folder = crate::process::folder()?;
        let memory = outlast_harness::server::in_memory(&std::env::temp_dir());
        let memory = tempfile::tempdir_in(memory).map_err(|error| error.to_string())?;
        let disk = tempfile::tempdir().map_err(|error| error.to_string())?;
        let key = PrivateKey::generate(KeyKind::Ed25519).map_err(|error| error.to_string())?;
        let world = Self { folder, memory, disk, size, key: Arc::new(key) };
        for files in [&world.memory, &world.disk] {
            std::fs::create_dir(files.path().join("bench")).map_err(|error| error.to_string())?;
        }
        for path in [world.disk.path().join("bench").join(FILE), world.local()] {
            write_random(&path, size).map_err(|error| error.to_string())?;
        }
        write_key(&world.folder.path("id"), &world.key)?;
        let host = PrivateKey::generate(KeyKind::Ed25519).map_err(|error| error.to_string())?;
        write_key(&world.folder.path("host"), &host)?;
        let line = world.key.public_key().to_openssh_line() + "\n";
        std::fs::write(world.folder.path("authorized_keys"), line)
            .map_err(|error| error.to_string())?;
        world.fill()?;
        Ok(world)
    }

    /// Folder of buckets.
    fn files(&self, way: Way) -> &Path {
        match way {
            Way::Get => self.disk.path(),
            Way::Put => self.memory.path(),
        }
    }

    /// The clients' file.
    pub(super) fn local(&self) -> PathBuf {
        self.memory.path().join("local")
    }

    /// All servers, with folders for one way.
    pub(super) fn servers(&self, way: Way) -> Result<[Target; 3], String> {
        Ok([self.ours(way)?, self.openssh(way)?, self.go(way)?])
    }

    fn fill(&self) -> Result<(), String> {
        let write = |name: &str, value: serde_json::Value| {
            let path = self.folder.path(name);
            std::fs::write(&path, value.to_string()).map_err(|error| error.to_string())?;
            Ok::<_, String>(path)
        };
        let trust = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Principal": { "Service": "transfer.amazonaws.com" }, "Action": "sts:AssumeRole",
        }] });
        let rights = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::*",
        }] });
        let mut create = outlast()?;
        create.args(["principal", "create", "--role", "users", "--data"]).arg(self.folder.data());
        create.arg("--trust-policy-file").arg(write("trust.json", trust)?);
        create.arg("--policy-file").arg(write("rights.json", rights)?);
        let output = create.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let server = self.folder.serve()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let mut session = server.session(&Policy::default()).await?;
            let new = json!({ "Protocols": ["SFTP"], "SecurityPolicyName": "2026-11" });
            let id = session.call::<CreateServer>(new).await?.server_id;
            for number in 0..USERS {
                let new = json!({
                    "ServerId": id, "UserName": user(number), "HomeDirectory": "/bench",
                    "Role": "arn:aws:iam::123456789012:role/users",
                    "SshPublicKeyBody": self.key.public_key().to_openssh_line(),
                });
                session.call::<CreateUser>(new).await?;
            }
            Ok(())
        })
    }

    /// Starts Outlast's server on its core.
    pub(super) fn ours(&self, way: Way) -> Result<Target, String> {
        let address = free_address()?;
        let settings = format!(
            "[sftp]\naddress = \"{address}\"\n[buckets]\nfolder = \"{}\"\n",
            self.files(way).display()
        );
        std::fs::write(self.folder.data().join("outlast.toml"), settings)
            .map_err(|error| error.to_string())?;
        let program = this_program()?;
        let tie = |command: &Command| tied(&program, command, Some(SERVER_CORE));
        let server = self.folder.serve_by(&Options::default(), None, tie)?;
        let pid = server.child.id();
        until("the server listens", || std::net::TcpStream::connect(address).is_ok())?;
        let process = Process::Ours { _server: server };
        let path = "/bench".to_owned();
        Ok(Target { name: "outlast", address, pid, user: user(0), path, _process: process })
    }

    /// Starts OpenSSH's server on the same core. Its user is the one who runs the benchmark.
    fn openssh(&self, way: Way) -> Result<Target, String> {
        let program = peer("sshd/bin/sshd")?;
        let sftp_server = peer("sshd/lib/openssh/sftp-server")?;
        let sftp_server = sftp_server.canonicalize().map_err(|error| error.to_string())?;
        let address = free_address()?;
        // `PerSourcePenalties` would refuse clients that leave before they log in. sshd starts sftp-server by the user's shell:
        // bash reads `.bashrc` under sshd unless SHLVL says that it is an inner shell, and what that file does would count.
        let settings = format!(
            "ListenAddress {address}\nHostKey {host}\nAuthorizedKeysFile {keys}\nStrictModes no\n\
             PermitRootLogin prohibit-password\nUsePAM no\nPidFile none\nPerSourcePenalties no\n\
             MaxStartups 10000\nSetEnv SHLVL=2\nSubsystem sftp {sftp_server}\n",
            host = self.folder.path("host").display(),
            keys = self.folder.path("authorized_keys").display(),
            sftp_server = sftp_server.display(),
        );
        let path = self.folder.path("sshd_config");
        std::fs::write(&path, settings).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f"]).arg(path);
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let path = self.files(way).join("bench").display().to_string();
        peer_target("OpenSSH", &command, address, user, path)
    }

    /// Starts the server built on Go's libraries on the same core.
    fn go(&self, way: Way) -> Result<Target, String> {
        let address = free_address()?;
        let mut command = Command::new(peer("ssh-go/bin/sftp-server")?);
        command.arg(address.to_string());
        command.args([self.folder.path("host"), self.folder.path("authorized_keys")]);
        command.arg(self.files(way));
        peer_target("Go", &command, address, user(0), "/bench".to_owned())
    }

    /// A login at a server, as one of its users.
    pub(super) fn login(&self, target: &Target, number: usize) -> Login {
        let is_ours = matches!(target._process, Process::Ours { .. });
        Login {
            address: target.address,
            user: if is_ours { user(number % USERS) } else { target.user.clone() },
            key: self.key.clone(),
            from: None,
        }
    }

    /// Runs commands with OpenSSH's own `sftp`, on the clients' core.
    pub(super) fn sftp(
        &self,
        target: &Target,
        cipher: &str,
        commands: &[String],
    ) -> Result<(), String> {
        let batch = self.folder.path("batch");
        std::fs::write(&batch, commands.join("\n") + "\n").map_err(|error| error.to_string())?;
        let mut command = Command::new(peer("openssh/10.0/bin/sftp")?);
        command.arg("-S").arg(peer("openssh/10.0/bin/ssh")?).args(["-q", "-F", "none"]);
        for option in [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "UpdateHostKeys=no",
            "IdentitiesOnly=yes",
            "KexAlgorithms=mlkem768x25519-sha256",
            "HostKeyAlgorithms=ssh-ed25519",
            &format!("Ciphers={cipher}"),
        ] {
            command.args(["-o", option]);
        }
        command.arg("-i").arg(self.folder.path("id")).arg("-b").arg(batch);
        command.args(["-P", &target.address.port().to_string()]);
        command.arg(format!("{}@127.0.0.1", target.user));
        let mut tied = tied(&this_program()?, &command, Some(CLIENT_CORE))?;
        let output = tied.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{}: {}", target.name, String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Starts a peer on the servers' core.
fn peer_target(
    name: &'static str,
    command: &Command,
    address: SocketAddr,
    user: String,
    path: String,
) -> Result<Target, String> {
    let server = Pinned::start(&this_program()?, command, SERVER_CORE, address)?;
    let pid = server.child.id();
    Ok(Target { name, address, pid, user, path, _process: Process::Peer { _server: server } })
}

impl Target {
    /// A file of the server, as clients name it.
    pub(super) fn remote(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// CPU time of the server and of all processes that it started: they must have ended, as OpenSSH's have when their
    /// connections are closed.
    pub(super) fn cpu(&self) -> Result<Duration, String> {
        until("the server's processes have ended", || !has_children(self.pid))?;
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .map_err(|error| error.to_string())?;
        // proc_pid_stat(5): fields 14 to 17, of which the last two are those of children that have ended.
        let ticks: u64 =
            fields(&text).skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_micros(ticks * 1_000_000 / rustix::param::clock_ticks_per_second()))
    }
}

/// Fields of `/proc/PID/stat` from the third on: the name before them may contain anything.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default().split_whitespace()
}

fn has_children(pid: u32) -> bool {
    let parent = pid.to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| {
        let text = std::fs::read_to_string(process.path().join("stat"));
        text.is_ok_and(|text| fields(&text).nth(1) == Some(&parent))
    })
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    for _ in 0..1000 {
        if is_so() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(format!("it takes longer than 10 s until {what}"))
}

fn user(number: usize) -> String {
    format!("user-{number}")
}

fn write_key(path: &PathBuf, key: &PrivateKey) -> Result<(), String> {
    let pem = key.to_openssh_pem("benchmark").map_err(|error| error.to_string())?;
    std::fs::write(path, pem.expose())
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Random content, the same mebibyte again and again.
fn write_random(path: &Path, size: u64) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut piece = vec![0; 1 << 20];
    outlast_crypto::random::fill(&mut piece).map_err(std::io::Error::other)?;
    let mut file = std::fs::File::create(path)?;
    for _ in 0..size >> 20 {
        file.write_all(&piece)?;
    }
    // The disk is idle when the file is read.
    file.sync_all()
}
