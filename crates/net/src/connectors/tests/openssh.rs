//! OpenSSH's sshd with its internal SFTP server.

use std::fs;

use outlast_ssh::{KeyKind, PrivateKey};
use outlast_testing::sshd::Sshd;

use super::*;

/// A running sshd and its keys.
struct Peer {
    sshd: Sshd,
    host: PrivateKey,
    user: PrivateKey,
    folder: tempfile::TempDir,
}

impl Peer {
    /// None if the peer is missing.
    fn start(kind: KeyKind) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let [host, user] = [(); 2].map(|()| PrivateKey::generate(kind).unwrap());
        let text = host.to_openssh_pem("").unwrap();
        let authorized = user.public_key().to_openssh_line();
        let sshd = Sshd::start(folder.path(), text.expose(), &authorized)?;
        fs::create_dir(folder.path().join("files")).unwrap();
        Some(Self { sshd, host, user, folder })
    }

    fn files(&self) -> std::path::PathBuf {
        self.folder.path().join("files")
    }

    fn path(&self, name: &str) -> String {
        self.files().join(name).display().to_string()
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            user: self.sshd.user.clone(),
            private_key: Some(self.user.to_openssh_pem("").unwrap()),
            password: None,
            ..endpoint(self.sshd.port, &[&self.host])
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openssh_sends_takes_lists_moves_and_deletes() {
    for kind in [KeyKind::Ed25519, KeyKind::Rsa2048, KeyKind::EcdsaP256] {
        let Some(sshd) = Peer::start(kind) else { return };
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
    let Some(sshd) = Peer::start(KeyKind::Ed25519) else { return };
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
