//! `init` and `server`: the data folder, its settings, and what can go wrong with them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use common::{Folder, Server, fail, outlast, runtime, succeed};
use outlast_api::ops::kms;
use serde_json::json;

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn init_makes_a_complete_private_folder() {
    let folder = Folder::new();
    assert_eq!(mode(&folder.data), 0o700);
    assert_eq!(mode(&folder.data.join("root.key")), 0o600);
    assert_eq!(mode(&folder.data.join("client/credentials")), 0o600);
    let config = std::fs::read_to_string(folder.data.join("client/config")).unwrap();
    assert!(config.contains("[profile outlast]"));
    assert!(config.contains("endpoint_url = https://localhost:8443"));
    assert!(config.contains("region = us-east-1"));
    let bundle = config.lines().find_map(|line| line.strip_prefix("ca_bundle = ")).unwrap();
    assert!(std::path::Path::new(bundle).is_absolute());
    assert!(std::fs::read_to_string(bundle).unwrap().contains("BEGIN CERTIFICATE"));
    let database = std::fs::read(folder.data.join("store.db")).unwrap();
    let holds = |needle: &[u8]| database.windows(needle.len()).any(|window| window == needle);
    assert!(holds(common::ACCESS_KEY.as_bytes()) && !holds(common::SECRET.as_bytes()));
    let entries = std::fs::read_dir(folder.temporary.path()).unwrap().count();
    assert_eq!(entries, 1, "something was left beside the folder");
}

/// `init` is waiting for its passphrase from a pipe, with the folder half built, when it is interrupted.
#[test]
fn an_interrupted_init_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let pipe = temporary.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let folder = temporary.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let count = || std::fs::read_dir(&folder).unwrap().count();
    let mut init = outlast();
    init.args(["init", "--root-key", &format!("passphrase:file:{}", pipe.display()), "--data"]);
    let mut child = init.arg(folder.join("data")).spawn().unwrap();
    outlast_testing::until("the folder is being built", || count() == 1);
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(count(), 0, "something was left");
}

#[test]
fn init_generates_what_is_not_given_and_prints_json() {
    let temporary = tempfile::tempdir().unwrap();
    let data = temporary.path().join("d");
    let text = succeed(
        outlast()
            .args(["init", "--output", "json", "--account", "999999999999", "--data"])
            .arg(&data),
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["account"], "999999999999");
    assert_eq!(value["access_key_id"].as_str().unwrap().len(), 20);
    let credentials = std::fs::read_to_string(data.join("client/credentials")).unwrap();
    let secret = credentials.lines().find_map(|l| l.strip_prefix("aws_secret_access_key = "));
    assert_eq!(secret.unwrap().len(), 40);
    assert!(!text.contains(secret.unwrap()));
}

#[test]
fn init_refuses_what_it_would_spoil() {
    let folder = Folder::new();
    let before = std::fs::read(folder.data.join("root.key")).unwrap();
    let text = fail(outlast().args(["init", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("not empty") && text.contains("hint: "), "{text}");
    assert_eq!(std::fs::read(folder.data.join("root.key")).unwrap(), before);
    for (arguments, expected) in [
        (&["--account", "12"][..], "12 digits"),
        (&["--access-key-id", "a/b"], "an access key id has 3 to 128 letters, digits"),
    ] {
        let text =
            fail(outlast().arg("init").args(arguments).arg("--data").arg(folder.path("new")), 2);
        assert!(text.contains(expected), "{text}");
        assert!(!folder.path("new").exists());
    }
    let weak = fail(
        outlast()
            .args(["init", "--data"])
            .arg(folder.path("new"))
            .env("OUTLAST_SECRET_ACCESS_KEY", "short"),
        1,
    );
    assert!(weak.contains("OUTLAST_SECRET_ACCESS_KEY"), "{weak}");
}

#[test]
fn the_server_answers_and_stops_on_sigterm() {
    let folder = Folder::new();
    let mut server = folder.serve();
    let runtime = runtime();
    runtime.block_on(async {
        let mut session = server.session().await.unwrap();
        assert_eq!(session.connection.negotiated.group.as_deref(), Some("X25519MLKEM768"));
        assert_eq!(session.get("/healthz").await, (200, b"ok\n".to_vec()));
        assert_eq!(session.get("/readyz").await, (200, b"ok\n".to_vec()));
        assert_eq!(session.get("/elsewhere").await.0, 400);
        let made = session.call::<kms::create_key::CreateKey>(json!({})).await.unwrap();
        assert_eq!(made.unwrap().key_metadata.key_state, "Enabled");
    });
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn one_server_for_each_folder() {
    let folder = Folder::new();
    let mut server = folder.serve();
    let text =
        fail(outlast().args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("in use by another outlast process"), "{text}");
    server.kill();
    drop(folder.serve());
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text =
        fail(outlast().args(["server", "--listen", &address, "--data"]).arg(&folder.data), 1);
    assert!(text.contains(&address) && text.contains("hint: "), "{text}");
}

#[test]
fn a_newer_database_is_refused() {
    let folder = Folder::new();
    rusqlite::Connection::open(folder.data.join("store.db"))
        .unwrap()
        .pragma_update(None, "user_version", 4711)
        .unwrap();
    let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("schema version 4711") && text.contains("hint: "), "{text}");
}

#[test]
fn the_root_key_of_another_store_is_refused() {
    let folder = Folder::new();
    let other = Folder::new();
    std::fs::copy(other.data.join("root.key"), folder.data.join("root.key")).unwrap();
    let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("root key of another store"), "{text}");
    std::fs::write(folder.data.join("root.key"), "nonsense").unwrap();
    let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("not a root key"), "{text}");
    std::fs::remove_file(folder.data.join("root.key")).unwrap();
    let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("root.key") && text.contains("hint: "), "{text}");
}

#[test]
fn a_folder_without_a_store_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let text = fail(outlast().args(["server", "--data"]).arg(temporary.path()), 1);
    assert!(text.contains("outlast init --data"), "{text}");
}

#[test]
fn flags_go_before_variables_before_the_file() {
    let folder = Folder::new();
    let settings = folder.data.join("outlast.toml");
    std::fs::write(&settings, "tls_cert = \"from-file\"\n").unwrap();
    let base = || {
        let mut command = outlast();
        command.args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&folder.data);
        command
    };
    assert!(fail(&mut base(), 1).contains("from-file"));
    assert!(fail(base().env("OUTLAST_TLS_CERT", "from-env"), 2).contains("from-env"));
    let mut both = base();
    both.env("OUTLAST_TLS_CERT", "from-env").args(["--tls-cert", "from-flag"]);
    assert!(fail(&mut both, 2).contains("--tls-cert: from-flag"));
    for unknown in ["lisen = \"127.0.0.1:1\"\n", "[tls]\ncert = 1\n", "listen = 5\n"] {
        std::fs::write(&settings, unknown).unwrap();
        let text = fail(&mut base(), 1);
        assert!(text.contains("outlast.toml"), "{text}");
    }
    std::fs::write(&settings, "log = \"error\"\ntls_names = [\"kms.example.com\"]\n").unwrap();
    drop(Server::start(&folder.data, &[]));
}

#[test]
fn an_ml_dsa_service_certificate_serves_closed_worlds() {
    let folder = Folder::new();
    let server = Server::start(&folder.data, &["--tls-cert", "ml-dsa-65"]);
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        assert!(session.connection.handshake.received > 8000, "no ML-DSA flight");
        assert_eq!(session.get("/healthz").await.0, 200);
    });
}

#[test]
fn the_store_keeps_what_it_has_over_a_restart() {
    let folder = Folder::new();
    let runtime = runtime();
    let mut server = folder.serve();
    let key = runtime.block_on(async {
        let mut session = server.session().await.unwrap();
        let made = session.call::<kms::create_key::CreateKey>(json!({})).await.unwrap();
        made.unwrap().key_metadata.key_id
    });
    server.terminate();
    let roots = server.roots();
    let server = folder.serve();
    assert_eq!(server.roots(), roots, "the service got another root");
    runtime.block_on(async {
        let mut session = server.session().await.unwrap();
        let request = json!({ "KeyId": key, "KeySpec": "AES_256" });
        session.call::<kms::generate_data_key::GenerateDataKey>(request).await.unwrap().unwrap();
    });
}

#[test]
fn oversized_bodies_are_refused_before_they_are_read() {
    let folder = Folder::new();
    let server = folder.serve();
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let mut request = http::Request::new(vec![b' '; 300 * 1024]);
        *request.method_mut() = http::Method::POST;
        request.headers_mut().insert("host", "localhost".parse().unwrap());
        request.headers_mut().insert("x-amz-target", "TrentService.Sign".parse().unwrap());
        let (status, body) = session.connection.send(request).await.unwrap();
        assert_eq!(status, 413, "{}", String::from_utf8_lossy(&body));
    });
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(succeed(outlast().args(["completions", shell])).contains("quickstart"), "{shell}");
    }
}

/// The order of AWS's tools: `--profile`, then keys in the environment, then the profile that `AWS_PROFILE` names.
#[test]
fn keys_of_the_environment_come_before_the_profile_of_a_variable() {
    let folder = Folder::new();
    let server = folder.serve();
    let request = |arguments: &[&str], variables: &[(&str, &str)]| {
        let client = folder.data.join("client");
        let mut command = outlast();
        command.args(["cert", "request", "--key", "alias/none", "--subject", "CN=a"]);
        command.arg("--endpoint-url").arg(format!("https://localhost:{}", server.port));
        command.args(arguments).env("AWS_CONFIG_FILE", client.join("config"));
        command.env("AWS_SHARED_CREDENTIALS_FILE", client.join("credentials"));
        fail(command.envs(variables.iter().copied()), 1)
    };
    let profile = ("AWS_PROFILE", "outlast");
    let keys = [
        profile,
        ("AWS_ACCESS_KEY_ID", "AKIAZZZZZZZZZZZZZZZZ"),
        ("AWS_SECRET_ACCESS_KEY", "of-nobody"),
    ];
    assert!(request(&[], &[profile]).contains("NotFoundException"));
    assert!(request(&[], &keys).contains("UnrecognizedClientException"));
    assert!(request(&["--profile", "outlast"], &keys).contains("NotFoundException"));
}
