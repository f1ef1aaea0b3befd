//! OpenSSH's sshd, as a peer of clients.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running sshd with its internal SFTP server, to which one key may log in as the user who runs the tests. It ends
/// with this value.
pub struct Sshd {
    child: Child,
    /// Port at 127.0.0.1.
    pub port: u16,
    /// Who may log in.
    pub user: String,
}

impl Sshd {
    /// Starts the peer `sshd`, if it is there, with its files in a folder: the private host key is the text of a file, the key
    /// that may log in a line.
    pub fn start(folder: &Path, host_key: &[u8], authorized: &str) -> Option<Self> {
        Self::start_with(folder, host_key, authorized, "")
    }

    /// The same with further lines of `sshd_config`.
    pub fn start_with(
        folder: &Path,
        host_key: &[u8],
        authorized: &str,
        more: &str,
    ) -> Option<Self> {
        let peer = crate::peer("sshd")?;
        let place = |name: &str| folder.join(name);
        fs::write(place("host"), host_key).ok()?;
        fs::set_permissions(place("host"), fs::Permissions::from_mode(0o600)).ok()?;
        fs::write(place("keys"), format!("{authorized}\n")).ok()?;
        let port = crate::free_port();
        let settings = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             PermitRootLogin prohibit-password\nUsePAM no\nPidFile none\nPerSourcePenalties no\n\
             Subsystem sftp internal-sftp\n{more}",
            place("host").display(),
            place("keys").display(),
        );
        fs::write(place("sshd_config"), settings).ok()?;
        let child = Command::new(peer.join("bin/sshd"))
            .args(["-D", "-e", "-f"])
            .arg(place("sshd_config"))
            .stdin(Stdio::null())
            .stderr(fs::File::create(place("sshd.log")).ok()?)
            .spawn()
            .ok()?;
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let sshd = Self { child, port, user };
        crate::until("sshd listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(sshd)
    }

    /// Kills the server and everything that serves connections.
    pub fn kill(&mut self) {
        let mut all = vec![self.child.id()];
        let mut seen = 0;
        while let Some(pid) = all.get(seen) {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            seen += 1;
        }
        for pid in &all[1..] {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether a connection is being served.
    pub fn is_busy(&self) -> bool {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.is_ok_and(|children| !children.trim().is_empty())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.kill();
    }
}
