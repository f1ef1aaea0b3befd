//! OpenSSH's sshd with its internal SFTP server.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use outlast_ssh::{KeyKind, PrivateKey};

use super::*;

/// A running sshd that one key may log in to, as the user who runs the tests.
struct Sshd {
    child: Child,
    port: u16,
    host: PrivateKey,
    user: PrivateKey,
    folder: tempfile::TempDir,
}

impl Sshd {
    /// None if the peer is missing.
    fn start(kind: KeyKind) -> Option<Self> {
        let peer = outlast_testing::peer("sshd")?;
        let folder = tempfile::tempdir().unwrap();
        let [host, user] = [(); 2].map(|()| PrivateKey::generate(kind).unwrap());
        let place = |name: &str| folder.path().join(name);
        write_key(&place("host"), &host);
        fs::write(place("keys"), user.public_key().to_openssh_line() + "\n").unwrap();
        fs::create_dir(place("files")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             PermitRootLogin prohibit-password\nUsePAM no\nPidFile none\nPerSourcePenalties no\n\
             Subsystem sftp internal-sftp\n",
            place("host").display(),
            place("keys").display(),
        );
        fs::write(place("sshd_config"), settings).unwrap();
        let child = Command::new(peer.join("bin/sshd"))
            .args(["-D", "-e", "-f"])
            .arg(place("sshd_config"))
            .stdin(Stdio::null())
            .stderr(fs::File::create(place("log")).unwrap())
            .spawn()
            .unwrap();
        let sshd = Self { child, port, host, user, folder };
        outlast_testing::until("sshd listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(sshd)
    }

    fn files(&self) -> std::path::PathBuf {
        self.folder.path().join("files")
    }

    fn path(&self, name: &str) -> String {
        self.files().join(name).display().to_string()
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            user: std::env::var("USER").unwrap_or_else(|_| "root".to_owned()),
            private_key: Some(self.user.to_openssh_pem("").unwrap()),
            password: None,
            ..endpoint(self.port, &[&self.host])
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_key(path: &Path, key: &PrivateKey) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, key.to_openssh_pem("").unwrap().expose()).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_sends_takes_lists_moves_and_deletes() {
    for kind in [KeyKind::Ed25519, KeyKind::Rsa2048, KeyKind::EcdsaP256] {
        let Some(sshd) = Sshd::start(kind) else { return };
        let here = tempfile::tempdir().unwrap();
        fs::create_dir(here.path().join("bucket")).unwrap();
        let local = local(here.path());
        let facts = loopback().test(&sshd.endpoint()).await.unwrap();
        assert_eq!(facts.host_key, sshd.host.public_key().to_openssh_line());
        let mut session = loopback().connect(&sshd.endpoint()).await.unwrap();
        let content = content(20_000_000);
        fs::write(here.path().join("bucket/a.bin"), &content).unwrap();
        let to = sshd.path("");
        let (sent, _) = files::send(&mut session, &local, "/bucket/a.bin", Some(&to)).await;
        assert_eq!(sent, Ok(20_000_000));
        assert!(fs::read(sshd.path("a.bin")).unwrap() == content);
        let (got, _) =
            files::retrieve(&mut session, &local, &sshd.path("a.bin"), "/bucket/new").await;
        assert_eq!(got, Ok(20_000_000));
        assert!(fs::read(here.path().join("bucket/new/a.bin")).unwrap() == content);
        fs::create_dir(sshd.path("sub")).unwrap();
        let listed = listing::list(&mut session, &to, 1000).await.unwrap();
        listed.store(&local, "/bucket/l.json").await.unwrap();
        let list: Value =
            serde_json::from_slice(&fs::read(here.path().join("bucket/l.json")).unwrap()).unwrap();
        assert_eq!(list["files"][0]["filePath"], sshd.path("a.bin"));
        assert_eq!(list["files"][0]["size"], 20_000_000);
        assert_eq!(list["paths"], json!([{ "path": sshd.path("sub") }]));
        remote::rename(&mut session, &sshd.path("a.bin"), &sshd.path("sub/b")).await.unwrap();
        let failure = remote::delete(&mut session, &sshd.path("sub")).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::Delete);
        for name in ["sub/b", "sub"] {
            remote::delete(&mut session, &sshd.path(name)).await.unwrap();
        }
        assert_eq!(names(&sshd.files()), [""; 0]);
        let (got, is_over) =
            files::retrieve(&mut session, &local, &sshd.path("gone"), "/bucket").await;
        assert_eq!((got.unwrap_err().code, is_over), (FailureCode::RetrieveFileNotFound, false));
        session.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_refuses_a_wrong_key_and_is_refused_with_a_wrong_one() {
    let Some(sshd) = Sshd::start(KeyKind::Ed25519) else { return };
    let other = PrivateKey::generate(KeyKind::Ed25519).unwrap();
    let wrong =
        Endpoint { private_key: Some(other.to_openssh_pem("").unwrap()), ..sshd.endpoint() };
    let failure = loopback().test(&wrong).await.unwrap_err();
    assert!(failure.message.starts_with("the server refused the login"), "{failure:?}");
    let untrusted = Endpoint {
        trusted_host_keys: vec![other.public_key().to_openssh_line()],
        ..sshd.endpoint()
    };
    let failure = loopback().test(&untrusted).await.unwrap_err();
    assert_eq!(failure.host_key, Some(sshd.host.public_key().to_openssh_line()));
}
