//! SFTP connectors of a running server, with OpenSSH's sshd as the server outside.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;

use outlast_api::aws::Operation;
use outlast_api::ops::secretsmanager::{
    create_secret::CreateSecret, put_secret_value::PutSecretValue,
};
use outlast_api::ops::transfer::create_connector::CreateConnector;
use outlast_api::ops::transfer::describe_security_policy::DescribeSecurityPolicy;
use outlast_api::ops::transfer::list_file_transfer_results::ListFileTransferResults;
use outlast_api::ops::transfer::start_directory_listing::StartDirectoryListing;
use outlast_api::ops::transfer::start_file_transfer::StartFileTransfer;
use outlast_api::ops::transfer::start_remote_delete::StartRemoteDelete;
use outlast_api::ops::transfer::start_remote_move::StartRemoteMove;
use outlast_api::ops::transfer::test_connection::TestConnection;
use outlast_api::ops::transfer::update_connector::UpdateConnector;
use outlast_ssh::{KeyKind, PrivateKey};
use outlast_testing::s3::S3;
use outlast_testing::sshd::Sshd;
use outlast_testing::{eventually, until};
use serde_json::{Value, json};

use crate::common::cluster::Cluster;
use crate::common::{self, Folder, Server, Session, outlast, run, succeed};

const ROLE: &str = "arn:aws:iam::123456789012:role/connector";
/// Permits what is served on this machine.
const HERE: [&str; 2] = ["--connector-destination", "127.0.0.1"];

/// A service with a connector for an sshd.
struct World {
    folder: Folder,
    server: Server,
    sshd: Sshd,
    host: PrivateKey,
    secret: String,
    id: String,
}

fn call<O: Operation>(server: &Server, input: Value) -> O::Output {
    common::runtime().block_on(async {
        let mut session: Session = server.session().await.unwrap();
        let answer = session.call::<O>(input.clone()).await.unwrap();
        answer.unwrap_or_else(|error| panic!("{} {input}: {error}", O::NAME))
    })
}

/// A role that may use the bucket `files` and read secrets.
fn role(folder: &Folder) {
    let trust = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": { "Service": "transfer.amazonaws.com" }, "Action": "sts:AssumeRole",
    }] });
    let policy = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::files", "arn:aws:s3:::files/*"] },
        { "Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": "*" },
    ] });
    let trust = folder.write("trust.json", trust.to_string().as_bytes());
    let policy = folder.write("policy.json", policy.to_string().as_bytes());
    let mut create = outlast();
    create.args(["principal", "create", "--role", "connector", "--data"]).arg(&folder.data);
    create.arg("--trust-policy-file").arg(trust).arg("--policy-file").arg(policy);
    succeed(&mut create);
}

fn secret(user: &str, key: &PrivateKey) -> String {
    let key = key.to_openssh_pem("").unwrap();
    let key = std::str::from_utf8(key.expose()).unwrap();
    json!({ "Username": user, "PrivateKey": key }).to_string()
}

impl World {
    fn start() -> Option<Self> {
        Self::start_with(|_| Vec::new())
    }

    /// Starts the server with further arguments.
    fn start_with(arguments: impl FnOnce(&Folder) -> Vec<String>) -> Option<Self> {
        Self::on(Folder::new(), arguments)
    }

    /// The same with the data of a folder.
    fn on(folder: Folder, arguments: impl FnOnce(&Folder) -> Vec<String>) -> Option<Self> {
        let [host, user] = [(); 2].map(|()| PrivateKey::generate(KeyKind::EcdsaP256).unwrap());
        let text = host.to_openssh_pem("").unwrap();
        let place = folder.path("sshd");
        fs::create_dir_all(place.join("files")).unwrap();
        let sshd = Sshd::start(&place, text.expose(), &user.public_key().to_openssh_line())?;
        role(&folder);
        let arguments = arguments(&folder);
        let arguments: Vec<_> =
            HERE.into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let server = Server::start(&folder.data, &arguments);
        let stored = json!({ "Name": "partner", "SecretString": secret(&sshd.user, &user) });
        let secret = call::<CreateSecret>(&server, stored).arn;
        let made = json!({
            "Url": format!("sftp://localhost:{}", sshd.port), "AccessRole": ROLE,
            "SftpConfig": {
                "UserSecretId": secret, "MaxConcurrentConnections": 2,
                "TrustedHostKeys": [host.public_key().to_openssh_line()],
            },
        });
        let id = call::<CreateConnector>(&server, made).connector_id;
        Some(Self { folder, server, sshd, host, secret: secret.to_string(), id })
    }

    /// A path at the server outside.
    fn there(&self, name: &str) -> PathBuf {
        self.folder.path("sshd").join("files").join(name)
    }

    fn remote(&self, name: &str) -> String {
        self.there(name).display().to_string()
    }

    /// A path in the bucket.
    fn here(&self, name: &str) -> PathBuf {
        self.folder.data.join("buckets/files").join(name)
    }

    fn transfer(&self, mut request: Value) -> String {
        request["ConnectorId"] = json!(self.id);
        call::<StartFileTransfer>(&self.server, request).transfer_id
    }

    /// Results of a transfer when all of its files have one.
    fn results(&self, transfer: &str) -> Vec<Outcome> {
        self.results_at(&self.server, transfer)
    }

    fn results_at(&self, server: &Server, transfer: &str) -> Vec<Outcome> {
        let input = json!({ "ConnectorId": self.id, "TransferId": transfer });
        eventually("the files have their results", || {
            let found = call::<ListFileTransferResults>(server, input.clone());
            let all = found.file_transfer_results.into_iter();
            let all: Vec<_> =
                all.map(|one| (one.file_path, one.status_code, one.failure_code)).collect();
            let has_ended = |status: &str| matches!(status, "COMPLETED" | "FAILED");
            all.iter().all(|(_, status, _)| has_ended(status)).then_some(all)
        })
    }

    fn test(&self) -> (String, String, Option<String>) {
        let tested = call::<TestConnection>(&self.server, json!({ "ConnectorId": self.id }));
        (tested.status, tested.status_message, tested.sftp_connection_details.host_key)
    }

    fn update(&self, config: Value) {
        let input = json!({ "ConnectorId": self.id, "SftpConfig": config });
        call::<UpdateConnector>(&self.server, input);
    }
}

/// Path, status and failure code of a file.
type Outcome = (String, String, Option<String>);

fn completed(path: &str) -> Outcome {
    (path.to_owned(), "COMPLETED".to_owned(), None)
}

fn failed(path: &str, code: &str) -> Outcome {
    (path.to_owned(), "FAILED".to_owned(), Some(code.to_owned()))
}

#[test]
fn connectors_send_retrieve_list_move_and_delete() {
    let Some(world) = World::start() else { return };
    let line = world.host.public_key().to_openssh_line();
    assert_eq!(world.test(), ("OK".to_owned(), "Connection succeeded".to_owned(), Some(line)));
    fs::create_dir_all(world.here("out")).unwrap();
    let content: Vec<u8> = (0..5_000_000_u32).map(|at| (at * 31 % 251) as u8).collect();
    fs::write(world.here("out/a.bin"), &content).unwrap();
    fs::write(world.here("out/b.txt"), "b").unwrap();
    let to = world.remote("");
    let paths = ["/files/out/a.bin", "/files/out/b.txt", "/files/out/missing", "/other/c"];
    let sent = world.transfer(json!({ "SendFilePaths": paths, "RemoteDirectoryPath": to }));
    let expected = [
        completed(paths[0]),
        completed(paths[1]),
        failed(paths[2], "SEND_FILE_NOT_FOUND"),
        failed(paths[3], "READ_FILE_ERROR"),
    ];
    assert_eq!(world.results(&sent), expected);
    assert!(fs::read(world.there("a.bin")).unwrap() == content);

    let paths = [world.remote("a.bin"), world.remote("missing"), world.remote("b.txt")];
    let got = world
        .transfer(json!({ "RetrieveFilePaths": paths, "LocalDirectoryPath": "/files/in/new" }));
    let expected =
        [completed(&paths[0]), failed(&paths[1], "RETRIEVE_FILE_NOT_FOUND"), completed(&paths[2])];
    assert_eq!(world.results(&got), expected);
    assert!(fs::read(world.here("in/new/a.bin")).unwrap() == content);
    // The role decides where files may go.
    let denied = world
        .transfer(json!({ "RetrieveFilePaths": [paths[2]], "LocalDirectoryPath": "/other/in" }));
    assert_eq!(world.results(&denied), [failed(&paths[2], "WRITE_FILE_ERROR")]);
    assert!(!world.folder.data.join("buckets/other").exists());

    let input = json!({
        "ConnectorId": world.id, "RemoteDirectoryPath": to, "OutputDirectoryPath": "/files/lists", "MaxItems": 1000,
    });
    let listing = call::<StartDirectoryListing>(&world.server, input);
    let file = world.here("lists").join(&listing.output_file_name);
    let list = eventually("the list is there", || fs::read(&file).ok());
    let mut list: Value = serde_json::from_slice(&list).unwrap();
    list["files"].as_array_mut().unwrap().sort_by_key(ToString::to_string);
    assert_eq!(list["files"][0]["filePath"], world.remote("a.bin"));
    assert_eq!((&list["files"][1]["size"], &list["truncated"]), (&json!(1), &json!(false)));

    let (from, to) = (world.remote("b.txt"), world.remote("c.txt"));
    let input = json!({ "ConnectorId": world.id, "SourcePath": from, "TargetPath": to });
    call::<StartRemoteMove>(&world.server, input);
    until("the file has its new name", || world.there("c.txt").exists());
    let input = json!({ "ConnectorId": world.id, "DeletePath": to });
    call::<StartRemoteDelete>(&world.server, input);
    until("the file is gone", || !world.there("c.txt").exists());
}

/// Two partners, one of whom has no hybrids: the reports name that server, and what to ask its operator for.
#[test]
fn the_ledger_names_the_partner_who_has_no_hybrids() {
    let Some(world) = World::start() else { return };
    let [host, user] = [(); 2].map(|()| PrivateKey::generate(KeyKind::EcdsaP256).unwrap());
    let place = world.folder.path("old");
    fs::create_dir_all(&place).unwrap();
    let text = host.to_openssh_pem("").unwrap();
    let authorized = user.public_key().to_openssh_line();
    let classical = "KexAlgorithms curve25519-sha256\n";
    let old = Sshd::start_with(&place, text.expose(), &authorized, classical).unwrap();
    let stored = json!({ "Name": "old", "SecretString": secret(&old.user, &user) });
    let made = json!({
        "Url": format!("sftp://localhost:{}", old.port), "AccessRole": ROLE,
        "SftpConfig": {
            "UserSecretId": call::<CreateSecret>(&world.server, stored).arn,
            "TrustedHostKeys": [host.public_key().to_openssh_line()],
        },
    });
    let id = call::<CreateConnector>(&world.server, made).connector_id;
    for id in [&world.id, &id] {
        let tested = call::<TestConnection>(&world.server, json!({ "ConnectorId": id }));
        assert_eq!(tested.status, "OK", "{}", tested.status_message);
    }
    let report = |verb: &str| {
        let mut command = outlast();
        command.args(["--output", "json", "ledger", verb, "--listener", "connectors", "--data"]);
        let output = run(command.arg(&world.folder.data));
        serde_json::from_slice::<Value>(&output.stdout).ok()
    };
    let summary = eventually("both connections are written and have ended", || {
        let summary = report("summary")?;
        let has_ended = summary["unseen"]["open"] == 0;
        (has_ended && summary["total"]["connections"] == 2).then_some(summary)
    });
    assert_eq!(summary["total"]["hybrid"], 1, "{summary}");
    let laggards = report("laggards").unwrap();
    let [laggard] = &laggards.as_array().unwrap()[..] else { panic!("{laggards}") };
    assert_eq!(laggard["destinations"], json!([format!("localhost:{}", old.port)]));
    let arn = format!("arn:aws:transfer:us-east-1:123456789012:connector/{id}");
    assert_eq!(laggard["principal"], arn);
    assert!(laggard["fingerprint"]["identification"].as_str().unwrap().contains("OpenSSH"));
    assert!(laggard["hint"].as_str().unwrap().starts_with("ask its operator"), "{laggard}");
}

#[test]
fn servers_and_secrets_that_are_wrong_are_told() {
    let Some(world) = World::start() else { return };
    fs::create_dir_all(world.here("")).unwrap();
    fs::write(world.here("a"), "a").unwrap();
    let other = PrivateKey::generate(KeyKind::EcdsaP256).unwrap();
    world.update(json!({ "TrustedHostKeys": [other.public_key().to_openssh_line()] }));
    let (status, message, host_key) = world.test();
    assert_eq!(status, "ERROR");
    assert!(message.starts_with("Invalid trusted host keys"), "{message}");
    assert_eq!(host_key, Some(world.host.public_key().to_openssh_line()));
    let send = json!({ "SendFilePaths": ["/files/a"], "RemoteDirectoryPath": world.remote("") });
    let sent = world.transfer(send.clone());
    assert_eq!(world.results(&sent), [failed("/files/a", "CONNECTION_ERROR")]);
    assert!(!world.there("a").exists());

    world.update(json!({ "TrustedHostKeys": [world.host.public_key().to_openssh_line()] }));
    let wrong = secret(&world.sshd.user, &other);
    call::<PutSecretValue>(
        &world.server,
        json!({ "SecretId": world.secret, "SecretString": wrong }),
    );
    let (status, message, _) = world.test();
    assert_eq!(status, "ERROR");
    assert!(message.starts_with("the server refused the login"), "{message}");
    let sent = world.transfer(send);
    assert_eq!(world.results(&sent), [failed("/files/a", "CONNECTION_ERROR")]);
}

/// The same with a bucket of S3, which needs no folders.
#[test]
fn buckets_of_s3_are_sent_from_and_retrieved_into() {
    let Some(moto) = S3::moto(10) else { return };
    let world = World::start_with(|folder| {
        let secret = folder.write("secret", outlast_testing::s3::SECRET.as_bytes());
        let settings = format!(
            "[buckets]\nendpoint = \"{}\"\naccess_key_id = \"testing\"\nsecret_access_key_file = {secret:?}\n",
            moto.endpoint()
        );
        let settings = folder.write("settings.toml", settings.as_bytes());
        vec!["--config".to_owned(), settings.display().to_string()]
    });
    let Some(world) = world else { return };
    let content: Vec<u8> = (0..20_000_000_u32).map(|at| (at * 31 % 251) as u8).collect();
    fs::write(world.there("a.bin"), &content).unwrap();
    let paths = [world.remote("a.bin"), world.remote("missing")];
    let request = json!({ "RetrieveFilePaths": paths, "LocalDirectoryPath": "/files/in/new" });
    let got = world.transfer(request);
    let expected = [completed(&paths[0]), failed(&paths[1], "RETRIEVE_FILE_NOT_FOUND")];
    assert_eq!(world.results(&got), expected);
    assert!(moto.curl(&[], "/files/in/new/a.bin") == content);
    assert_eq!(moto.keys("files"), ["in/new/a.bin"]);
    fs::create_dir(world.there("back")).unwrap();
    let paths = ["/files/in/new/a.bin", "/files/in/missing"];
    let request = json!({ "SendFilePaths": paths, "RemoteDirectoryPath": world.remote("back") });
    let sent = world.transfer(request);
    let expected = [completed(paths[0]), failed(paths[1], "SEND_FILE_NOT_FOUND")];
    assert_eq!(world.results(&sent), expected);
    assert!(fs::read(world.there("back/a.bin")).unwrap() == content);
    assert!(moto.uploads("files").is_empty());
}

/// What comes from outside is scanned like an upload.
#[test]
fn a_retrieved_file_that_the_scan_refuses_does_not_appear() {
    let world = World::start_with(|folder| {
        let settings =
            "[sftp_uploads]\nscan = ['/usr/bin/grep', '--quiet', '--invert-match', 'virus']\n";
        let settings = folder.write("settings.toml", settings.as_bytes());
        vec!["--config".to_owned(), settings.display().to_string()]
    });
    let Some(world) = world else { return };
    fs::write(world.there("good"), "harmless\n").unwrap();
    fs::write(world.there("bad"), "a virus\n").unwrap();
    let paths = [world.remote("good"), world.remote("bad")];
    let request = json!({ "RetrieveFilePaths": paths, "LocalDirectoryPath": "/files/in" });
    let got = world.transfer(request);
    let expected = [completed(&paths[0]), failed(&paths[1], "WRITE_FILE_ERROR")];
    assert_eq!(world.results(&got), expected);
    let names: Vec<_> = fs::read_dir(world.here("in")).unwrap().collect();
    assert_eq!(names.len(), 1);
    assert_eq!(fs::read(world.here("in/good")).unwrap(), b"harmless\n");
}

/// A file whose server goes away fails, and nothing of it appears.
#[test]
fn a_server_that_dies_leaves_no_half_file() {
    let Some(mut world) = World::start() else { return };
    let large = fs::File::create(world.there("large")).unwrap();
    large.set_len(2 << 30).unwrap();
    fs::create_dir_all(world.here("in")).unwrap();
    fs::write(world.here("in/large"), "before").unwrap();
    let path = world.remote("large");
    let got =
        world.transfer(json!({ "RetrieveFilePaths": [path], "LocalDirectoryPath": "/files/in" }));
    until("the transfer has begun", || world.sshd.is_busy());
    std::thread::sleep(std::time::Duration::from_millis(300));
    world.sshd.kill();
    assert_eq!(world.results(&got), [failed(&path, "CONNECTION_ERROR")]);
    let names: Vec<_> =
        fs::read_dir(world.here("in")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["large"]);
    assert_eq!(fs::read(world.here("in/large")).unwrap(), b"before");
}

/// The next server goes on with the files that have no result, and with no others.
#[test]
#[ignore = "waits a minute for the end of a lease"]
fn the_next_server_goes_on_with_what_is_left() {
    let Some(mut world) = World::start() else { return };
    fs::create_dir_all(world.here("")).unwrap();
    fs::write(world.here("small"), "small").unwrap();
    fs::File::create(world.here("large")).unwrap().set_len(3 << 30).unwrap();
    world.update(json!({ "MaxConcurrentConnections": 1 }));
    let paths = ["/files/small", "/files/large"];
    let sent =
        world.transfer(json!({ "SendFilePaths": paths, "RemoteDirectoryPath": world.remote("") }));
    until("the second file has begun", || world.there("large").exists());
    world.server.kill();
    // The first one would come back if it were sent again.
    fs::remove_file(world.there("small")).unwrap();
    fs::write(world.here("large"), "now it is shorter").unwrap();
    world.server = Server::start(&world.folder.data, &HERE);
    until("the second file is sent again", || {
        fs::read(world.there("large")).is_ok_and(|bytes| bytes == b"now it is shorter")
    });
    assert_eq!(world.results(&sent), paths.map(completed));
    assert!(!world.there("small").exists());
}

/// Each file is sent once, whichever server was asked, and each server tells the results.
#[test]
fn servers_on_one_database_share_transfers() {
    let Some(cluster) = Cluster::new() else { return };
    // The same buckets for both, as those of S3 would be.
    let buckets = cluster.temporary.path().join("buckets");
    fs::create_dir_all(buckets.join("files")).unwrap();
    for data in &cluster.folders {
        let settings = data.join("outlast.toml");
        let mut settings = fs::OpenOptions::new().append(true).open(settings).unwrap();
        writeln!(settings, "\n[buckets]\nfolder = {buckets:?}").unwrap();
    }
    let data = cluster.folders[0].clone();
    let folder = Folder { temporary: tempfile::tempdir().unwrap(), data };
    let Some(world) = World::on(folder, |_| Vec::new()) else { return };
    let other = cluster.serve_with(1, &HERE);
    let servers = [&world.server, &other];
    let mut sent = Vec::new();
    for number in 0..20 {
        let name = format!("f{number}");
        fs::write(buckets.join("files").join(&name), &name).unwrap();
        let input = json!({
            "ConnectorId": world.id, "SendFilePaths": [format!("/files/{name}")],
            "RemoteDirectoryPath": world.remote(""),
        });
        let transfer = call::<StartFileTransfer>(servers[number % 2], input).transfer_id;
        sent.push((name, transfer));
    }
    for (number, (name, transfer)) in sent.iter().enumerate() {
        let results = world.results_at(servers[(number + 1) % 2], transfer);
        assert_eq!(results, [completed(&format!("/files/{name}"))]);
        assert_eq!(fs::read_to_string(world.there(name)).unwrap(), *name);
    }
    let is_sent = |event: &&Value| event["eventName"] == "FileSend";
    assert_eq!(world.folder.events().iter().filter(is_sent).count(), sent.len());
}

/// Without the setting a connector reaches nothing on this machine, by no name for it, and says nothing about it.
#[test]
fn a_connector_reaches_only_permitted_destinations() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = Folder::new();
    role(&folder);
    let (server, log) = Server::start_logged(&folder.data, &[]);
    let key = PrivateKey::generate(KeyKind::EcdsaP256).unwrap();
    let stored = json!({ "Name": "partner", "SecretString": secret("alice", &key) });
    let secret = call::<CreateSecret>(&server, stored).arn;
    for host in [
        "localhost",
        "127.0.0.1",
        "2130706433.example",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ] {
        let url = format!("sftp://{host}:{port}");
        let made = json!({
            "Url": url, "AccessRole": ROLE,
            "SftpConfig": { "UserSecretId": secret, "TrustedHostKeys": [key.public_key().to_openssh_line()] },
        });
        let id = call::<CreateConnector>(&server, made).connector_id;
        let tested = call::<TestConnection>(&server, json!({ "ConnectorId": id }));
        assert_eq!(tested.status, "ERROR", "{url}");
        // The same for a name without an address and for one that may not be reached: only the log tells.
        let expected = "Unknown Host/Connection failed: the host has no address that connectors may connect to; the server's log \
                        has the reason";
        assert_eq!(tested.status_message, expected, "{url}");
    }
    assert_eq!(log.count("a connector may not connect to its destination"), 5);
    assert!(listener.accept().is_err());
}

#[test]
fn policies_of_connectors_are_of_their_type() {
    let folder = Folder::new();
    let server = folder.serve();
    for (name, kind) in [
        ("TransferSFTPConnectorSecurityPolicy-2024-03", "CONNECTOR"),
        ("TransferSFTPConnectorSecurityPolicy-2023-07", "CONNECTOR"),
        ("TransferSFTPConnectorSecurityPolicy-FIPS-2024-10", "CONNECTOR"),
        ("TransferSecurityPolicy-2025-03", "SERVER"),
        ("2026-11", "SERVER"),
    ] {
        let input = json!({ "SecurityPolicyName": name });
        let policy = call::<DescribeSecurityPolicy>(&server, input).security_policy;
        assert_eq!(policy.kind, kind, "{name}");
    }
}
