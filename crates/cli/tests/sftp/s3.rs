//! The door with buckets behind S3, which moto and Versity's gateway serve.

use outlast_testing::s3::{S3, SECRET};

use super::*;
use crate::proxy::World as Pki;

impl World {
    /// A world whose buckets are behind an S3 endpoint, with its log.
    pub fn behind(s3: &S3, tools: &Path) -> (Self, common::Log, String) {
        Self::at(outlast(), &s3.endpoint(), "", tools)
    }

    /// The same at an endpoint, with more settings of `[buckets]` and the environment of `command`.
    fn at(
        command: Command,
        endpoint: &str,
        more: &str,
        tools: &Path,
    ) -> (Self, common::Log, String) {
        let folder = Folder::new();
        let secret = folder.write("secret", SECRET.as_bytes());
        let settings = format!(
            "[buckets]\nendpoint = {endpoint:?}\naccess_key_id = \"testing\"\nsecret_access_key_file = {secret:?}\n{more}"
        );
        let settings = folder.write("settings.toml", settings.as_bytes());
        let settings = settings.display().to_string();
        let arguments = ["--sftp-listen", "127.0.0.1:0", "--config", &settings];
        let (server, log) = Server::start_logged_by(command, &folder.data, &arguments);
        let mut world = Self { folder, server, id: String::new(), tools: tools.to_path_buf() };
        let new = json!({ "Protocols": ["SFTP"], "SecurityPolicyName": "2026-11" });
        world.id = world.call(async |session| {
            let made = session.call::<create_server::CreateServer>(new).await;
            made.unwrap().unwrap().server_id
        });
        world.role("all", &allowing(&[("s3:*", "arn:aws:s3:::*")]));
        (world, log, settings)
    }
}

#[test]
fn files_of_a_bucket_come_and_go() {
    let Some(tools) = openssh() else { return };
    let Some(moto) = S3::moto(10_001) else { return };
    let (world, log, _) = World::behind(&moto, &tools);
    world.at_home("alice", "all");
    world.role(
        "reader",
        &allowing(&[
            ("s3:GetObject", "arn:aws:s3:::files/alice/*"),
            ("s3:ListBucket", "arn:aws:s3:::files"),
        ]),
    );
    world.user("reader", "reader", json!({ "HomeDirectory": "/files/alice" }));
    let content = random(64 << 20);
    world.folder.write("big", &content);
    world.folder.write("small", b"small");
    let said = world.works("alice", &["put big", "put small", "ls -l", "get big back"]);
    assert!(said.contains(&content.len().to_string()), "{said}");
    assert!(std::fs::read(world.folder.path("back")).unwrap() == content, "another content");
    assert!(moto.curl(&[], "/files/alice/big") == content, "another content");
    // What is missing of a file is sent.
    world.folder.write("part", &content[..10_000_000]);
    world.works("alice", &["put part again"]);
    world.folder.write("again", &content[..20_000_000]);
    world.works("alice", &["reput again", "get again back"]);
    assert!(std::fs::read(world.folder.path("back")).unwrap() == content[..20_000_000]);
    let moves = ["mkdir sub", "rename small \"sub/s mall\"", "get \"sub/s mall\" back"];
    world.works("alice", &moves);
    assert_eq!(std::fs::read(world.folder.path("back")).unwrap(), b"small");
    assert!(moto.keys("files").contains(&"alice/sub/s mall".to_owned()));
    world.fails("alice", &["rename sub other"], "");
    world.fails("alice", &["rmdir sub"], "");
    world.fails("alice", &["chmod 600 big"], "");
    world.fails("alice", &["symlink big link"], "");
    // Rights are those of the role, as in folders.
    world.works("reader", &["get again back", "ls"]);
    world.fails("reader", &["put small other"], "ermission denied");
    world.fails("reader", &["rm big"], "ermission denied");
    world.works("alice", &["rm \"sub/s mall\"", "rmdir sub", "rm big", "rm again"]);
    assert_eq!(moto.keys("files"), ["alice/"]);
    assert!(moto.uploads("files").is_empty());
    let said = world.works("alice", &["ls -1 /many/all"]);
    assert_eq!(said.lines().filter(|line| line.starts_with("/many/all/")).count(), 10_001);
    let close = world.events_until("DISCONNECTED");
    let close = close.iter().find(|event| event["activity-type"] == "CLOSE").unwrap();
    assert_eq!(close["bytes-in"], json!(content.len().to_string()));
    assert_eq!(log.count(SECRET), 0);
    assert!(!world.events().iter().any(|event| event.to_string().contains(SECRET)));
}

#[test]
fn an_upload_to_s3_that_is_interrupted_leaves_nothing_visible() {
    let Some(tools) = openssh() else { return };
    for s3 in [S3::moto(0), S3::gateway()].iter().flatten() {
        interrupted_uploads(s3, &tools);
    }
}

fn interrupted_uploads(s3: &S3, tools: &Path) {
    let (mut world, _, settings) = World::behind(s3, tools);
    world.at_home("alice", "all");
    world.folder.write("big", b"the old one");
    world.works("alice", &["put big"]);
    world.folder.write("big", &random(64_000_000));
    let upload = |world: &World| {
        let batch = world.folder.write("kill.batch", b"put big\nput big new\n");
        let port = world.server.sftp.unwrap().to_string();
        let mut command = world.tool("sftp");
        command.args(world.options("alice")).args(["-l", "16000", "-P", &port, "-b"]).arg(batch);
        command.arg("alice@127.0.0.1").current_dir(world.folder.temporary.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        outlast_testing::until("parts are in S3", || !s3.uploads("files").is_empty());
        child
    };
    // The client is lost: the server forgets the parts.
    let mut client = upload(&world);
    client.kill().unwrap();
    client.wait().unwrap();
    outlast_testing::until("the parts are forgotten", || s3.uploads("files").is_empty());
    world.events_until("PARTIAL_CLOSE");
    assert_eq!(s3.curl(&[], "/files/alice/big"), b"the old one");
    // The server is killed: the parts stay, and nobody sees them.
    let mut client = upload(&world);
    world.server.kill();
    assert!(!client.wait().unwrap().success());
    assert_eq!(s3.keys("files"), ["alice/", "alice/big"]);
    let arguments = ["--sftp-listen", "127.0.0.1:0", "--config", &settings];
    world.server = Server::start(&world.folder.data, &arguments);
    let said = world.works("alice", &["ls -1", "get big back"]);
    assert!(said.contains("big") && !said.contains("new"), "{said}");
    assert_eq!(std::fs::read(world.folder.path("back")).unwrap(), b"the old one");
}

/// The proxy in front of S3 refuses what is not hybrid. A server sends nothing to an endpoint that it does not trust.
#[test]
fn tls_to_s3_is_hybrid_and_its_certificate_is_checked() {
    let Some(tools) = openssh() else { return };
    let Some(moto) = S3::moto(0) else { return };
    let [pki, other] = [Pki::new(), Pki::new()];
    let front = pki.proxy(&format!("tcp://127.0.0.1:{}", moto.port), &["--mode", "require"]);
    let endpoint = format!("https://localhost:{}", front.port);
    let content = random(12 << 20);
    let bundle = |pki: &Pki| format!("ca_bundle = {:?}\n", pki.path("ca.pem"));
    let system = |pki: &Pki| {
        let mut command = outlast();
        command.env("SSL_CERT_FILE", pki.path("ca.pem"));
        command
    };
    for (user, command, more) in [
        ("alice", system(&other), bundle(&pki)),
        // Without a bundle those count that the system trusts.
        ("bob", system(&pki), String::new()),
    ] {
        let (world, ..) = World::at(command, &endpoint, &more, &tools);
        world.at_home(user, "all");
        world.folder.write("big", &content);
        world.works(user, &["put big", "get big back"]);
        assert!(std::fs::read(world.folder.path("back")).unwrap() == content, "{user}");
        assert!(moto.curl(&[], &format!("/files/{user}/big")) == content, "{user}");
    }
    let before = moto.keys("files");
    for (command, more) in [(system(&pki), bundle(&other)), (system(&other), String::new())] {
        let (world, log, _) = World::at(command, &endpoint, &more, &tools);
        world.at_home("carol", "all");
        world.folder.write("big", b"x");
        world.fails("carol", &["put big"], "");
        log.until("certificate", 0);
    }
    assert_eq!(moto.keys("files"), before);
}

/// What the system trusts is in a pipe, which is removed while it is read for the first time.
#[test]
fn trust_in_s3_is_read_once_for_all_clients() {
    let folder = Folder::new();
    let secret = folder.write("secret", SECRET.as_bytes());
    let settings = format!(
        "[buckets]\nendpoint = \"https://localhost:1\"\naccess_key_id = \"testing\"\nsecret_access_key_file = {secret:?}\n"
    );
    let settings = folder.write("settings.toml", settings.as_bytes());
    let roots = std::fs::read(folder.data.join("client/ca.pem")).unwrap();
    let pipe = folder.path("roots.pem");
    succeed(Command::new("mkfifo").arg(&pipe));
    let mut command = outlast();
    command.env("SSL_CERT_FILE", &pipe);
    let place = pipe.clone();
    std::thread::spawn(move || {
        // Waits for the reader, which then waits for the end of the content.
        let mut file = std::fs::OpenOptions::new().write(true).open(&place).unwrap();
        std::fs::remove_file(&place).unwrap();
        file.write_all(&roots).unwrap();
    });
    let arguments = ["--sftp-listen", "127.0.0.1:0", "--config", settings.to_str().unwrap()];
    let server = Server::start_by(command, &folder.data, &arguments);
    assert!(server.sftp.is_some());
    assert!(!pipe.exists(), "it was not read");
}
