//! Programs of others at the SFTP door: a crowd of clients as they are, each algorithm of each client, ssh-audit, and
//! transfers that last.

mod audit;
mod crowd;
mod endurance;
mod matrix;
mod regress;

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_testing::program;

use crate::common::peers::{checkout, peer};
use crate::sftp::World;

/// A library of SFTP behind a program of `tests/interop/ssh`, which takes a port, a user, a key, and algorithms to try.
struct Library {
    name: &'static str,
    command: Command,
}

/// Those whose peers are installed; the others are reported as left out.
fn libraries() -> Vec<Library> {
    let mut found = Vec::new();
    if let Some(python) = peer("python") {
        for name in ["asyncssh", "paramiko"] {
            let mut command = program::command(python.join("bin/python").to_str().unwrap());
            command.arg(checkout().join("tests/interop/ssh/python/sftp.py")).arg(name);
            found.push(Library { name, command });
        }
    }
    if let Some(go) = peer("ssh-go") {
        let command = program::command(go.join("bin/sftp-clients").to_str().unwrap());
        found.push(Library { name: "go-sftp", command });
    }
    if let Some(java) = peer("ssh-java") {
        for name in ["mina", "jsch"] {
            let mut command = program::command("java");
            command.arg("-cp").arg(format!("{0}/classes:{0}/lib/*", java.display()));
            command.args(["outlast.ssh.Clients", name]);
            found.push(Library { name, command });
        }
    }
    found
}

/// An OpenSSH of some version.
#[derive(Clone)]
struct OpenSsh {
    name: &'static str,
    bin: PathBuf,
}

fn openssh() -> Vec<OpenSsh> {
    let mut found = Vec::new();
    if Path::new("/usr/bin/sftp").exists() {
        found.push(OpenSsh { name: "openssh-of-the-machine", bin: "/usr/bin".into() });
    }
    if let Some(place) = peer("openssh") {
        for (name, version) in [("openssh-10-0", "10.0"), ("openssh-10-6", "10.6")] {
            found.push(OpenSsh { name, bin: place.join(version).join("bin") });
        }
    }
    found
}

impl OpenSsh {
    /// `sftp` with a batch that puts, gets and removes a file, as a user of `world` with the key of this name.
    fn sftp(&self, world: &World, user: &str, key: &str, options: &[String]) -> Command {
        let batch = world.folder.write(&format!("{}.batch", self.name), b"put x\nget x y\nrm x\n");
        let mut command = program::command(self.bin.join("sftp").to_str().unwrap());
        command.env_remove("SSH_AUTH_SOCK");
        command.arg("-S").arg(self.bin.join("ssh")).args(world.options(key)).args(options);
        command.args(["-P", &world.server.sftp.unwrap().to_string(), "-b"]).arg(batch);
        command.arg(format!("{user}@127.0.0.1")).current_dir(world.folder.temporary.path());
        command
    }

    /// Names of this kind that it has: `kex`, `sig`, `cipher`, `mac`.
    fn has(&self, kind: &str) -> Vec<String> {
        let mut command = program::command(self.bin.join("ssh").to_str().unwrap());
        let text = program::succeed(command.args(["-F", "none", "-Q", kind]));
        text.lines().map(str::to_owned).collect()
    }
}

/// PuTTY's `psftp` with settings of its own.
struct Putty {
    place: PathBuf,
    home: tempfile::TempDir,
}

impl Putty {
    fn find() -> Option<Self> {
        let place = peer("putty")?;
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".putty/sessions")).unwrap();
        Some(Self { place, home })
    }

    /// Converts a key of OpenSSH's; returns the new file.
    fn key(&self, key: &Path) -> PathBuf {
        let out = self.home.path().join(key.file_name().unwrap()).with_extension("ppk");
        let mut command = program::command(self.place.join("bin/puttygen").to_str().unwrap());
        program::succeed(command.arg(key).args(["-O", "private", "-o"]).arg(&out));
        out
    }

    /// `psftp`, as [`OpenSsh::sftp`], with settings by their names in a saved session.
    fn psftp(&self, world: &World, user: &str, key: &Path, settings: &str) -> Command {
        let session = self.home.path().join(".putty/sessions").join(user);
        std::fs::write(session, settings).unwrap();
        let batch = world.folder.write(&format!("{user}.psftp"), b"put x\nget x y\ndel x\nquit\n");
        let mut command = program::command(self.place.join("bin/psftp").to_str().unwrap());
        command.env("HOME", self.home.path()).env_remove("SSH_AUTH_SOCK");
        command.args(["-load", user, "-batch", "-P", &world.server.sftp.unwrap().to_string()]);
        command.arg("-i").arg(key).arg("-b").arg(batch);
        for fingerprint in fingerprints(world) {
            command.args(["-hostkey", &fingerprint]);
        }
        command.arg(format!("{user}@127.0.0.1")).current_dir(world.folder.temporary.path());
        command
    }
}

/// SHA-256 fingerprints of the server's host keys.
fn fingerprints(world: &World) -> Vec<String> {
    let list = serde_json::json!({ "ServerId": world.id });
    world.call(async |session| {
        let listed = session
            .call::<outlast_api::ops::transfer::list_host_keys::ListHostKeys>(list)
            .await
            .unwrap()
            .unwrap();
        listed.host_keys.into_iter().map(|key| key.fingerprint).collect()
    })
}
