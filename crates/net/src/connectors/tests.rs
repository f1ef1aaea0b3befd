//! Transfers with servers on the loopback: this project's own, and OpenSSH's.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod openssh;
mod reports;
mod served;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use outlast_crypto::Secret;
use outlast_domain::transfer::connector::{Endpoint, FailureCode, Finish};
use outlast_ledger::Observe;
use outlast_sftp::limits::MAX_HANDLES;
use outlast_sftp::local::{Folder, FolderOptions};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::Volume;
use outlast_ssh::{KeyKind, PrivateKey};
use serde_json::{Value, json};

use super::local::Local;
use super::{files, listing, remote};
use crate::limits;
use crate::metrics::{ConnectorCounts, Metrics};
use crate::outbound::{Destinations, Outbound};
use crate::server::system_clock;
use served::{Options, Served, Trick};

const PASSWORD: &str = "correct horse";

fn outbound(destinations: &[&str]) -> Outbound {
    watched(destinations, None, None)
}

/// The same, with those who are told of connections.
fn watched(
    destinations: &[&str],
    observer: Option<Arc<dyn Observe>>,
    metrics: Option<&Metrics>,
) -> Outbound {
    let destinations = Destinations::parse(destinations.iter().copied()).unwrap();
    Outbound::new(destinations, system_clock, observer, ConnectorCounts::new(metrics))
}

fn loopback() -> Outbound {
    outbound(&["127.0.0.1"])
}

/// An endpoint with a password.
fn endpoint(port: u16, trusted: &[&PrivateKey]) -> Endpoint {
    Endpoint {
        connector_arn: "arn:aws:transfer:us-east-1:111111111111:connector/c-1".to_owned(),
        host: "localhost".to_owned(),
        port,
        security_policy: "2026-11".to_owned(),
        trusted_host_keys: trusted.iter().map(|key| key.public_key().to_openssh_line()).collect(),
        user: "alice".to_owned(),
        private_key: None,
        password: Some(Secret::new(PASSWORD.as_bytes().to_vec())),
        max_connections: 1,
    }
}

/// Buckets that are folders here.
fn local(at: &Path) -> Local {
    let options = FolderOptions { atomic_uploads: true };
    let folder = Arc::new(Folder::open(at, options).unwrap());
    let made = folder.clone();
    let make_room = move |path: &RemotePath| {
        let mut folder = RemotePath::root();
        for name in path.parent().components() {
            folder = folder.join(name);
            let _ = made.make_folder(&folder, None);
        }
        Ok(())
    };
    Local::new(folder, Arc::new(make_room))
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

/// All names below a folder.
fn names(at: &Path) -> Vec<String> {
    let mut found: Vec<_> = fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn files_go_both_ways() {
    let served = Served::start(Options::default()).await;
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("bucket")).unwrap();
    fs::create_dir(served.folder().join("in")).unwrap();
    let local = local(here.path());
    let mut session = loopback().connect(&endpoint(served.port, &[served.key()])).await.unwrap();
    for length in [0, 1, 100_000, 9_000_000] {
        let content = content(length);
        fs::write(here.path().join("bucket/a.bin"), &content).unwrap();
        let (sent, is_over) =
            files::send(&mut session, &local, "/bucket/a.bin", Some("/in/")).await;
        assert_eq!((sent, is_over), (Ok(length as u64), false));
        assert!(fs::read(served.folder().join("in/a.bin")).unwrap() == content);
        let (sent, _) = files::send(&mut session, &local, "/bucket/a.bin", None).await;
        assert_eq!(sent, Ok(length as u64));
        let (got, _) = files::retrieve(&mut session, &local, "a.bin", "/bucket/new/deep").await;
        assert_eq!(got, Ok(length as u64));
        assert!(fs::read(here.path().join("bucket/new/deep/a.bin")).unwrap() == content);
    }
    assert_eq!(names(&here.path().join("bucket/new/deep")), ["a.bin"]);
    for (path, to, code) in [
        ("/bucket/missing", Some("/in"), FailureCode::SendFileNotFound),
        ("/bucket/a.bin", Some("/nowhere"), FailureCode::WriteFile),
        ("/bucket/", Some("/in"), FailureCode::SendFileNotFound),
    ] {
        let (sent, is_over) = files::send(&mut session, &local, path, to).await;
        assert_eq!((sent.unwrap_err().code, is_over), (code, false), "{path}");
    }
    for (path, code) in [
        ("/missing", FailureCode::RetrieveFileNotFound),
        ("/in", FailureCode::ReadFile),
        ("/in/..", FailureCode::RetrieveFileNotFound),
    ] {
        let (got, is_over) = files::retrieve(&mut session, &local, path, "/bucket/x").await;
        assert_eq!((got.unwrap_err().code, is_over), (code, false), "{path}");
    }
    assert!(!here.path().join("bucket/x").exists());
    session.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_exchanged_again_while_data_flows() {
    let served = Served::start(Options { rekey_bytes: 256 << 10, ..Options::default() }).await;
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("bucket")).unwrap();
    let (local, content) = (local(here.path()), content(3_000_000));
    fs::write(here.path().join("bucket/a"), &content).unwrap();
    let mut session = loopback().connect(&endpoint(served.port, &[served.key()])).await.unwrap();
    let (sent, _) = files::send(&mut session, &local, "/bucket/a", None).await;
    assert_eq!(sent, Ok(3_000_000));
    let between = served.rekeys();
    let (got, _) = files::retrieve(&mut session, &local, "/a", "/bucket/back").await;
    assert_eq!(got, Ok(3_000_000));
    assert!(fs::read(here.path().join("bucket/back/a")).unwrap() == content);
    // What is on its way when an exchange begins goes on with the old keys.
    assert!(between > 0 && served.rekeys() > between, "{between} {}", served.rekeys());
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_are_listed_and_changed() {
    let served = Served::start(Options::default()).await;
    let at = served.folder();
    fs::create_dir_all(at.join("d/sub")).unwrap();
    fs::write(at.join("d/one"), "1").unwrap();
    std::os::unix::fs::symlink("one", at.join("d/link")).unwrap();
    std::os::unix::fs::symlink("nowhere", at.join("d/dangling")).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_706_646_894);
    fs::File::options().write(true).open(at.join("d/one")).unwrap().set_modified(time).unwrap();
    let here = tempfile::tempdir().unwrap();
    let local = local(here.path());
    let mut session = loopback().connect(&endpoint(served.port, &[served.key()])).await.unwrap();
    let listed = listing::list(&mut session, "/d/", 1000).await.unwrap();
    let finish = listed.store(&local, "/bucket/lists/l.json").await.unwrap();
    assert_eq!(finish, Finish::Listed { items: 3, is_truncated: false });
    let text = fs::read(here.path().join("bucket/lists/l.json")).unwrap();
    let mut list: Value = serde_json::from_slice(&text).unwrap();
    list["files"].as_array_mut().unwrap().sort_by_key(ToString::to_string);
    let file = |path: &str| json!({ "filePath": path, "modifiedTimestamp": "2024-01-30T20:34:54Z", "size": 1 });
    let expected = json!({
        "files": [file("/d/link"), file("/d/one")],
        "paths": [{ "path": "/d/sub" }],
        "truncated": false,
    });
    assert_eq!(list, expected);
    let listed = listing::list(&mut session, "/d", 2).await.unwrap();
    let finish = listed.store(&local, "/bucket/lists/l.json").await.unwrap();
    assert_eq!(finish, Finish::Listed { items: 2, is_truncated: true });
    let missing = listing::list(&mut session, "/e", 2).await.unwrap_err();
    assert_eq!(missing.code, FailureCode::DirectoryNotFound);

    remote::rename(&mut session, "/d/one", "/d/sub/two").await.unwrap();
    assert_eq!(fs::read(at.join("d/sub/two")).unwrap(), b"1");
    let failure = remote::rename(&mut session, "/d/one", "/d/three").await.unwrap_err();
    assert_eq!(failure.code, FailureCode::FileNotFound);
    let failure = remote::rename(&mut session, "/d/sub/two", "/x/y").await.unwrap_err();
    assert_eq!(failure.code, FailureCode::PathNotFound);
    let failure = remote::delete(&mut session, "/d/sub").await.unwrap_err();
    assert_eq!(failure.code, FailureCode::Delete);
    for path in ["/d/sub/two", "/d/sub", "/d/dangling"] {
        remote::delete(&mut session, path).await.unwrap();
    }
    assert_eq!(names(&at.join("d")), ["link"]);
    let failure = remote::delete(&mut session, "/d/sub").await.unwrap_err();
    assert_eq!(failure.code, FailureCode::FileNotFound);
}

/// What a server may ask for, and what is tried.
#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_log_in() {
    let user = PrivateKey::generate(KeyKind::EcdsaP256).unwrap();
    let secret = || Some(user.to_openssh_pem("").unwrap());
    let cases: [(&[&str], bool, bool, bool); 8] = [
        (&["password"], false, true, true),
        (&["keyboard-interactive"], false, true, true),
        (&["publickey"], true, false, true),
        (&["publickey"], true, true, true),
        (&["publickey"], false, true, false),
        (&["password"], true, false, false),
        (&["password", "publickey"], true, true, true),
        (&["keyboard-interactive"], true, false, false),
    ];
    for (methods, key, password, expected) in cases {
        let options = Options {
            methods: methods.to_vec(),
            user: Some(user.public_key().clone()),
            ..Options::default()
        };
        let served = Served::start(options).await;
        let mut endpoint = endpoint(served.port, &[served.key()]);
        endpoint.private_key = secret().filter(|_| key);
        endpoint.password = endpoint.password.filter(|_| password);
        let tested = loopback().test(&endpoint).await;
        assert_eq!(tested.is_ok(), expected, "{methods:?} {key} {password}: {tested:?}");
        if let Err(failure) = tested {
            assert!(failure.message.starts_with("the server refused the login"), "{failure:?}");
            assert_eq!(failure.host_key, None);
        }
    }
    // Key and password together.
    let options = Options {
        methods: vec!["publickey", "password"],
        needs_both: true,
        user: Some(user.public_key().clone()),
        ..Options::default()
    };
    let served = Served::start(options).await;
    let mut both = endpoint(served.port, &[served.key()]);
    both.private_key = secret();
    loopback().test(&both).await.unwrap();
    both.password = Some(Secret::new(b"wrong".to_vec()));
    assert!(loopback().test(&both).await.is_err());
    // Secrets that are none.
    both.private_key = Some(Secret::new(b"no key".to_vec()));
    let failure = loopback().test(&both).await.unwrap_err();
    assert!(
        failure.message.starts_with("the PrivateKey of the secret cannot be read"),
        "{failure:?}"
    );
    (both.private_key, both.password) = (None, None);
    let failure = loopback().test(&both).await.unwrap_err();
    assert!(failure.message.starts_with("Private key not found"), "{failure:?}");
}

/// A password is for the server whose key is trusted, and for no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_trusted_learns_nothing() {
    let kinds = vec![KeyKind::Ed25519, KeyKind::Rsa2048];
    let served = Served::start(Options { kinds, ..Options::default() }).await;
    let line = |at: usize| served.keys[at].public_key().to_openssh_line();
    // Each of its keys may be the one that is trusted.
    for key in &served.keys {
        let facts = loopback().test(&endpoint(served.port, &[key])).await.unwrap();
        assert_eq!(facts.host_key, key.public_key().to_openssh_line());
    }
    let before = served.tries();
    assert!(before > 0);
    let others = [
        PrivateKey::generate(KeyKind::Ed25519).unwrap(),
        PrivateKey::generate(KeyKind::Rsa2048).unwrap(),
        PrivateKey::generate(KeyKind::EcdsaP256).unwrap(),
    ];
    for (trusted, shown) in [
        (&[][..], line(0)),
        (&[&others[0]][..], line(0)),
        (&[&others[1]][..], line(1)),
        // The server has no key of this type: which it has is shown all the same.
        (&[&others[2]][..], line(0)),
    ] {
        let endpoint = endpoint(served.port, trusted);
        let failure = loopback().test(&endpoint).await.unwrap_err();
        assert!(failure.message.starts_with("Invalid trusted host keys"), "{failure:?}");
        assert_eq!(failure.host_key, Some(shown));
        let failure = loopback().connect(&endpoint).await.err().unwrap();
        assert_eq!(failure.code, FailureCode::Connection);
    }
    assert_eq!(served.tries(), before);
    // A comment is not part of a key.
    let mut commented = endpoint(served.port, &[&served.keys[0]]);
    commented.trusted_host_keys[0] += " a comment";
    loopback().test(&commented).await.unwrap();
    commented.trusted_host_keys = vec!["ssh-rsa AAAA".to_owned()];
    let failure = loopback().test(&commented).await.unwrap_err();
    assert!(failure.message.starts_with("Invalid trusted host keys"), "{failure:?}");
}

/// The policy of the connector decides, hybrids first.
#[tokio::test(flavor = "multi_thread")]
async fn the_security_policy_decides() {
    let served =
        Served::start(Options { kinds: vec![KeyKind::EcdsaP256], ..Options::default() }).await;
    for (policy, expected) in [
        ("2026-11", "mlkem768x25519-sha256"),
        ("2026-11-require-pq", "mlkem768x25519-sha256"),
        ("fips-2026-11", "mlkem768nistp256-sha256"),
        ("TransferSFTPConnectorSecurityPolicy-2024-03", "curve25519-sha256"),
        ("TransferSFTPConnectorSecurityPolicy-FIPS-2024-10", "ecdh-sha2-nistp256"),
        ("TransferSFTPConnectorSecurityPolicy-2023-07", "curve25519-sha256"),
    ] {
        let endpoint = Endpoint {
            security_policy: policy.to_owned(),
            ..endpoint(served.port, &[served.key()])
        };
        loopback().test(&endpoint).await.unwrap();
        assert_eq!(served.last_exchange(), expected, "{policy}");
    }
    let classical =
        Served::start(Options { exchanges: vec!["curve25519-sha256"], ..Options::default() }).await;
    let endpoint = Endpoint {
        security_policy: "2026-11-require-pq".to_owned(),
        ..endpoint(classical.port, &[classical.key()])
    };
    let failure = loopback().test(&endpoint).await.unwrap_err();
    assert_eq!(
        failure.message,
        "the server has no key exchange method that the security policy 2026-11-require-pq allows"
    );
    assert_eq!(classical.tries(), 0);
}

/// Loopback by name and by address, without the setting and with others.
#[tokio::test(flavor = "multi_thread")]
async fn this_machine_is_no_destination_unless_it_is_named() {
    let served = Served::start(Options::default()).await;
    for destinations in
        [&[][..], &["*"], &["localhost"], &["0.0.0.0/0"], &["127.0.0.1:1"], &["10.0.0.0/8"]]
    {
        for host in
            ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "::ffff:127.0.0.1"]
        {
            let endpoint =
                Endpoint { host: host.to_owned(), ..endpoint(served.port, &[served.key()]) };
            let failure = outbound(destinations).test(&endpoint).await.unwrap_err();
            // The same for what is no address here.
            let expected = "Unknown Host/Connection failed: the host has no address that connectors may connect to; the server's \
                            log has the reason";
            assert_eq!(failure.message, expected, "{host} {destinations:?}");
            assert_eq!(failure.host_key, None);
        }
    }
    assert_eq!(served.connections(), 0);
    loopback().test(&endpoint(served.port, &[served.key()])).await.unwrap();
}

/// A file that is too large is not begun: nothing of it is on disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_is_not_retrieved() {
    let served = Served::start(Options::default()).await;
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("bucket")).unwrap();
    let file = fs::File::create(served.folder().join("large")).unwrap();
    file.set_len(limits::MAX_CONNECTOR_FILE + 1).unwrap();
    let mut session = loopback().connect(&endpoint(served.port, &[served.key()])).await.unwrap();
    let (got, is_over) =
        files::retrieve(&mut session, &local(here.path()), "/large", "/bucket").await;
    let failure = got.unwrap_err();
    assert_eq!((failure.code, is_over), (FailureCode::ReadFile, false));
    assert!(failure.message.contains("150 GiB"), "{failure}");
    assert_eq!(names(&here.path().join("bucket")), [""; 0]);
    session.end().await;
}

/// Nor is more written of a file whose size the server did not tell before.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_becomes_too_large_is_given_up() {
    let served = Served::start(Options { trick: Trick::NoSizes, ..Options::default() }).await;
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("bucket")).unwrap();
    fs::write(served.folder().join("large"), content(1_000_001)).unwrap();
    fs::write(served.folder().join("fits"), content(1_000_000)).unwrap();
    let mut local = local(here.path());
    local.max_file = 1_000_000;
    let mut session = loopback().connect(&endpoint(served.port, &[served.key()])).await.unwrap();
    let (got, is_over) = files::retrieve(&mut session, &local, "/large", "/bucket").await;
    let failure = got.unwrap_err();
    assert_eq!((failure.code, is_over), (FailureCode::ReadFile, false));
    assert!(failure.message.contains("the most that a connector retrieves"), "{failure}");
    let (got, _) = files::retrieve(&mut session, &local, "/fits", "/bucket").await;
    assert_eq!(got, Ok(1_000_000));
    outlast_testing::until("the file is forgotten", || {
        names(&here.path().join("bucket")) == ["fits"]
    });
    session.end().await;
}

/// Nor does one that cannot be made durable stay open: the server has only so many handles.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_durable_is_closed() {
    let served = Served::start(Options { trick: Trick::NoFsync, ..Options::default() }).await;
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("bucket")).unwrap();
    fs::write(here.path().join("bucket/a"), "content").unwrap();
    let local = local(here.path());
    let mut session = loopback().connect(&endpoint(served.port, &[served.key()])).await.unwrap();
    for _ in 0..=MAX_HANDLES {
        let (sent, is_over) = files::send(&mut session, &local, "/bucket/a", None).await;
        let failure = sent.unwrap_err();
        assert_eq!((failure.code, is_over), (FailureCode::WriteFile, false));
        assert!(failure.message.contains("the disk is broken"), "{failure}");
    }
    session.end().await;
}

/// A server that is there, and does not answer: what it says otherwise is no answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_no_request_is_given_up() {
    let served = Served::start(Options { trick: Trick::Chatty, ..Options::default() }).await;
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("bucket")).unwrap();
    fs::write(served.folder().join("large"), content(9_000_000)).unwrap();
    let mut session = loopback().connect(&endpoint(served.port, &[served.key()])).await.unwrap();
    assert_eq!(session.patience, limits::OUTBOUND_IDLE);
    session.patience = std::time::Duration::from_millis(300);
    let local = local(here.path());
    let retrieved = files::retrieve(&mut session, &local, "/large", "/bucket");
    let soon = std::time::Duration::from_secs(10);
    let (got, is_over) = tokio::time::timeout(soon, retrieved).await.expect("it is waited for");
    let failure = got.unwrap_err();
    assert_eq!((failure.code, is_over), (FailureCode::Timeout, true), "{failure}");
    assert_eq!(names(&here.path().join("bucket")), [""; 0]);
}

/// A file that does not arrive whole does not appear, and the one before it stays.
#[tokio::test(flavor = "multi_thread")]
async fn half_a_file_is_none() {
    for trick in [Trick::CloseAfter(3 << 20), Trick::Unasked, Trick::Wrong, Trick::Garbage] {
        let served = Served::start(Options { trick, ..Options::default() }).await;
        fs::write(served.folder().join("large"), content(9_000_000)).unwrap();
        let here = tempfile::tempdir().unwrap();
        fs::create_dir(here.path().join("bucket")).unwrap();
        fs::write(here.path().join("bucket/large"), "before").unwrap();
        fs::write(here.path().join("bucket/mine"), content(9_000_000)).unwrap();
        let local = local(here.path());
        let key = served.key();
        let mut session = loopback().connect(&endpoint(served.port, &[key])).await.unwrap();
        let (got, is_over) = files::retrieve(&mut session, &local, "/large", "/bucket").await;
        let failure = got.unwrap_err();
        assert_eq!((failure.code, is_over), (FailureCode::Connection, true), "{trick:?} {failure}");
        let mut session = loopback().connect(&endpoint(served.port, &[key])).await.unwrap();
        let (sent, is_over) = files::send(&mut session, &local, "/bucket/mine", None).await;
        let failure = sent.unwrap_err();
        assert_eq!((failure.code, is_over), (FailureCode::Connection, true), "{trick:?} {failure}");
        drop(session);
        // The thread that wrote has noticed.
        outlast_testing::until("the file is forgotten", || {
            names(&here.path().join("bucket")) == ["large", "mine"]
        });
        assert_eq!(fs::read(here.path().join("bucket/large")).unwrap(), b"before");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_sftp_is_told() {
    let served = Served::start(Options { trick: Trick::NoSubsystem, ..Options::default() }).await;
    let failure = loopback().test(&endpoint(served.port, &[served.key()])).await.unwrap_err();
    assert_eq!(failure.message, "the server has no SFTP");
    // Something that is not SSH.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.writable().await;
            let _ = stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let failure = loopback().test(&endpoint(port, &[served.key()])).await.unwrap_err();
    assert!(failure.message.contains("connection"), "{failure:?}");
}
