//! The agent and the credentials against `outlast server`.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::common::pki::{New, issue};
use crate::common::stub::{Process, exchange};
use crate::common::{Folder, outlast, succeed};
use outlast_net::server::system_clock;

/// Runs the AWS CLI with the profile that `init` made, and returns what it prints.
fn aws(cli: &Path, folder: &Folder, server: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new(cli);
    command.args(["--endpoint-url", server, "--output", "json"]).args(arguments);
    command.env("AWS_CONFIG_FILE", folder.data.join("client/config"));
    command.env("AWS_SHARED_CREDENTIALS_FILE", folder.data.join("client/credentials"));
    command.env("AWS_PROFILE", "outlast").env_remove("AWS_CA_BUNDLE");
    let text = succeed(&mut command);
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

fn get(port: u16, target: &str) -> (u16, String) {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Vault-Token: t\r\n\r\n"
    );
    let (status, _, body) = exchange(stream, &request);
    (status, body)
}

#[test]
fn the_agent_serves_a_secret_of_the_service_until_it_is_deleted() {
    let Some(book) = peer("book") else { return };
    let cli = book.join("bin/aws");
    let folder = Folder::new();
    let server = folder.serve();
    let url = format!("https://localhost:{}", server.port);
    aws(
        &cli,
        &folder,
        &url,
        &["secretsmanager", "create-secret", "--name", "prod/db", "--secret-string", "one"],
    );
    let config = folder.write("agent.toml", b"http_port = 0\n");
    let mut command = folder.client(&["agent", "--config"]);
    command.arg(config).args(["--endpoint-url", &url]).env("AWS_TOKEN", "t");
    let agent = Process::start(&mut command, 1, folder.temporary.path());
    let port = agent.port("listening on http://127.0.0.1:");
    let (status, body) = get(port, "/v1/prod/db");
    assert!(status == 200 && body.contains("\"SecretString\":\"one\""), "{body}");
    aws(
        &cli,
        &folder,
        &url,
        &["secretsmanager", "put-secret-value", "--secret-id", "prod/db", "--secret-string", "two"],
    );
    assert!(get(port, "/v1/prod/db").1.contains("\"one\""));
    assert!(get(port, "/v1/prod/db?refreshNow=true").1.contains("\"two\""));
    assert!(get(port, "/v1/prod/db?versionStage=AWSPREVIOUS").1.contains("\"one\""));
    aws(
        &cli,
        &folder,
        &url,
        &[
            "secretsmanager",
            "delete-secret",
            "--secret-id",
            "prod/db",
            "--force-delete-without-recovery",
        ],
    );
    assert_eq!(get(port, "/v1/prod/db?refreshNow=true").0, 400);
    assert_eq!(get(port, "/v1/prod/db").0, 400);
}

#[test]
fn a_certificate_gets_credentials_that_the_service_knows() {
    let Some(book) = peer("book") else { return };
    let cli = book.join("bin/aws");
    let folder = Folder::new();
    let server = folder.serve();
    let url = format!("https://localhost:{}", server.port);
    let now = system_clock().div_euclid(1000);
    let root = issue(
        "ML_DSA_65",
        New { days: 3650, ..New::of("RootCACertificate", "Machines", now) },
        None,
    );
    let machine =
        issue("ML_DSA_65", New::of("EndEntityClientAuthCertificate", "machine", now), Some(&root));
    let (certificate, key) = (
        folder.write("machine.pem", machine.pem().as_bytes()),
        folder.write("machine.key", machine.key_pem().as_bytes()),
    );
    let trust = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
        "Principal": {"Service": "rolesanywhere.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"]}]});
    let trust = folder.write("trust.json", trust.to_string().as_bytes());
    let mut create = outlast();
    create.args([
        "principal",
        "create",
        "machines",
        "--role",
        "--admin",
        "--output",
        "json",
        "--data",
    ]);
    let role = succeed(create.arg(&folder.data).arg("--trust-policy-file").arg(trust));
    let role: Value = serde_json::from_str(&role).unwrap();
    let role = role["arn"].as_str().unwrap();
    let source = json!({"sourceType": "CERTIFICATE_BUNDLE", "sourceData": {"x509CertificateData": root.pem()}});
    let anchor = aws(
        &cli,
        &folder,
        &url,
        &[
            "rolesanywhere",
            "create-trust-anchor",
            "--name",
            "machines",
            "--enabled",
            "--source",
            &source.to_string(),
        ],
    );
    let anchor = anchor["trustAnchor"]["trustAnchorArn"].as_str().unwrap();
    let profile = aws(
        &cli,
        &folder,
        &url,
        &[
            "rolesanywhere",
            "create-profile",
            "--name",
            "machines",
            "--enabled",
            "--role-arns",
            role,
        ],
    );
    let profile = profile["profile"]["profileArn"].as_str().unwrap();
    let mut command = folder.client(&["credentials", "process", "--endpoint-url", &url]);
    command.arg("--certificate").arg(certificate).arg("--private-key").arg(key);
    command.args(["--trust-anchor-arn", anchor, "--profile-arn", profile, "--role-arn", role]);
    let found: Value = serde_json::from_str(&succeed(&mut command)).unwrap();
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    let mut caller = Command::new(&cli);
    caller.args(["--endpoint-url", &url, "--region", "us-east-1", "sts", "get-caller-identity"]);
    caller.arg("--ca-bundle").arg(folder.data.join("client/ca.pem"));
    caller
        .env("AWS_ACCESS_KEY_ID", text("AccessKeyId"))
        .env("AWS_SECRET_ACCESS_KEY", text("SecretAccessKey"));
    caller.env("AWS_SESSION_TOKEN", text("SessionToken")).env_remove("AWS_PROFILE");
    assert!(succeed(&mut caller).contains("assumed-role/machines/"));
}
