//! AWS's own Secrets Manager Agent as a client of the server, and next to `outlast agent`: both give the same answers.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::net::TcpStream;
use std::process::Command;

use outlast_api::ops::secretsmanager::{create_secret, put_secret_value};
use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::common::stub::{Process, exchange};
use crate::common::{ACCESS_KEY, Folder, SECRET, outlast, runtime, succeed};

const TOKEN: &str = "token-of-the-tests";

/// Credentials and place of the service, as both agents find them.
fn configured(command: &mut Command, folder: &Folder, url: &str) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    command.env("AWS_TOKEN", TOKEN).env("HOME", folder.temporary.path());
    command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_REGION", "us-east-1").env("AWS_ENDPOINT_URL", url);
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    command.env("SSL_CERT_FILE", folder.data.join("client/ca.pem"));
    command.current_dir(folder.temporary.path());
}

/// Status and body; JSON without the order of its members.
fn ask(port: u16, method: &str, target: &str, headers: &str) -> (u16, Value) {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
    );
    let (status, _, body) = exchange(stream, &request);
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

#[test]
fn the_agent_of_aws_and_this_one_answer_alike() {
    let Some(peer) = peer("aws-agent") else { return };
    let folder = Folder::new();
    let mut server = folder.serve();
    let url = format!("https://localhost:{}", server.port);
    let (first, put) = runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        type Create = create_secret::CreateSecret;
        type Put = put_secret_value::PutSecretValue;
        let new = json!({ "Name": "prod/db", "SecretString": "one" });
        let made = session.call::<Create>(new).await.unwrap().unwrap();
        let next = json!({ "SecretId": "prod/db", "SecretString": "\u{fc}\"\n2" });
        let put = session.call::<Put>(next).await.unwrap().unwrap();
        (made.version_id.unwrap(), put.version_id)
    });
    let (theirs_port, ours_port) = (outlast_testing::free_port(), outlast_testing::free_port());
    let same = "ttl_seconds = \"300\"\nlog_to_file = false\n";
    let config = |name: &str, port: u16, more: &str| {
        folder.write(name, format!("http_port = \"{port}\"\n{same}{more}").as_bytes())
    };
    let mut theirs = Command::new(peer.join("bin/aws_secretsmanager_agent"));
    theirs.arg("--config").arg(config("theirs.toml", theirs_port, "log_level = \"none\"\n"));
    configured(&mut theirs, &folder, &url);
    let theirs = Process::start(&mut theirs, 1, folder.temporary.path());
    assert!(theirs.lines[0].starts_with("Agent/"), "{:?}", theirs.lines);
    let ca = folder.data.join("client/ca.pem");
    let more = format!("ca_bundle = '{}'\n", ca.display());
    let mut ours = outlast();
    ours.args(["agent", "--config"]).arg(config("ours.toml", ours_port, &more));
    configured(&mut ours, &folder, &url);
    let _ours = Process::start(&mut ours, 1, folder.temporary.path());

    let token = format!("X-Aws-Parameters-Secrets-Token: {TOKEN}\r\n");
    let vault = format!("x-vault-token: {TOKEN}\r\n");
    let forwarded = format!("{token}X-Forwarded-For: 192.0.2.1\r\n");
    let of_version = format!("/v1/prod/db?versionId={first}");
    let of_both =
        format!("/secretsmanager/get?secretId=prod/db&versionId={put}&versionStage=AWSCURRENT");
    let of_neither = format!("/v1/prod/db?versionId={first}&versionStage=AWSCURRENT");
    for (method, target, headers, status) in [
        ("GET", "/ping", "", 200),
        ("POST", "/ping", "", 405),
        ("GET", "/secretsmanager/get?secretId=prod/db", token.as_str(), 200),
        ("GET", "/secretsmanager/get?secretId=prod%2Fdb", &token, 200),
        ("GET", "/secretsmanager/get?secretId=prod/db", &vault, 200),
        ("GET", "/v1/prod/db", &token, 200),
        ("GET", "/v1/prod/db?refreshNow=true", &token, 200),
        ("GET", "/v1/prod/db?refreshNow=0", &token, 200),
        ("GET", "/v1/prod/db?versionStage=AWSPREVIOUS", &token, 200),
        ("GET", &of_version, &token, 200),
        ("GET", &of_both, &token, 200),
        ("GET", &of_neither, &token, 400),
        ("GET", "/v1/none", &token, 400),
        ("GET", "/v1/prod/db?versionStage=NONE", &token, 400),
        ("GET", "/v1/prod/db?refreshNow=maybe", &token, 400),
        ("GET", "/v1/prod/db?other=1", &token, 400),
        ("GET", "/v1/prod/db?secretId=x", &token, 400),
        ("GET", "/v1/", &token, 400),
        ("GET", "/secretsmanager/get", &token, 400),
        ("GET", "/v1/prod/db", "", 403),
        ("GET", "/v1/prod/db", "X-Vault-Token: wrong\r\n", 403),
        ("GET", "/v1/prod/db", &forwarded, 400),
        ("POST", "/v1/prod/db", &token, 405),
        ("GET", "/v2/prod/db", &token, 404),
    ] {
        let (theirs, ours) =
            (ask(theirs_port, method, target, headers), ask(ours_port, method, target, headers));
        assert_eq!(theirs, ours, "{method} {target} {headers}");
        assert_eq!(ours.0, status, "{method} {target} {headers}: {ours:?}");
    }
    // The texts differ: AWS's does not say why.
    for (role, status, kind) in [
        ("x", 400, None),
        ("arn:aws:iam::123456789012:role/none", 403, Some("AccessDeniedException")),
    ] {
        for port in [theirs_port, ours_port] {
            let found = ask(port, "GET", &format!("/v1/prod/db?roleArn={role}"), &token);
            assert_eq!((found.0, found.1["__type"].as_str()), (status, kind), "{found:?}");
        }
    }
    // This agent has forgotten the secret, because one of the errors could also mean that it was deleted.
    for port in [theirs_port, ours_port] {
        assert_eq!(ask(port, "GET", "/v1/prod/db", &token).0, 200);
    }
    // A new value is not seen before its time, unless it is asked for.
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let next = json!({ "SecretId": "prod/db", "SecretString": "three" });
        session.call::<put_secret_value::PutSecretValue>(next).await.unwrap().unwrap();
    });
    for (target, expected) in [
        ("/v1/prod/db", "\u{fc}\"\n2"),
        ("/v1/prod/db?refreshNow=true", "three"),
        ("/v1/prod/db", "three"),
    ] {
        for port in [theirs_port, ours_port] {
            assert_eq!(ask(port, "GET", target, &token).1["SecretString"], expected, "{target}");
        }
    }
    drop(theirs);
    assert_eq!(server.terminate(), Some(0));
    // The trail tells AWS's agent by its name, and its key exchange was hybrid.
    let mut tail = outlast();
    tail.args(["audit", "tail", "-n", "100000", "--output", "json", "--data"]);
    let mut count = 0;
    for line in succeed(tail.arg(&folder.data)).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["userAgent"]
            .as_str()
            .is_some_and(|name| name.contains("aws-secrets-manager-agent"))
        {
            assert_eq!(event["tlsDetails"]["keyExchange"], "X25519MLKEM768", "{event}");
            count += 1;
        }
    }
    assert!(count >= 5, "{count} events");
}
