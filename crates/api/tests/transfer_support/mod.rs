//! Transfer Family in tests: servers, users, and logins.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use outlast_api::outside::Reply;
use outlast_api::service::sftp::{Connection, Decision};
use outlast_api::service::{Request, Step};
use outlast_crypto::Secret;
use outlast_domain::arn::Scope;
use outlast_domain::transfer::{Answer, Login};
use serde_json::{Value, json};

use crate::common::{self, ACCOUNT, Fixture, REGION, Who, policy, route_of, text, with};

/// A public key that differs for each number.
pub fn key(number: u8) -> String {
    format!("ssh-ed25519 {}", STANDARD.encode(blob(number)))
}

/// The same as SSH sends it.
pub fn blob(number: u8) -> Vec<u8> {
    let name = b"ssh-ed25519";
    [&[0, 0, 0, 11][..], name, &[0, 0, 0, 32], &[number; 32]].concat()
}

/// A trust policy for the service.
pub fn trust(more: &Value) -> Value {
    let statement = json!({
        "Effect": "Allow", "Principal": { "Service": "transfer.amazonaws.com" }, "Action": "sts:AssumeRole",
    });
    policy(json!([with(&statement, more.clone())]))
}

/// A role of users that may do everything in the bucket `files`.
pub fn role(fixture: &Fixture, name: &str) -> String {
    let all = policy(json!([
        { "Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::files", "arn:aws:s3:::files/*"] },
    ]));
    fixture.role(ACCOUNT, name, &trust(&json!({})), &[all])
}

impl Fixture {
    pub fn transfer_as(&self, who: &Who, operation: &str, body: &Value) -> common::Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        headers.insert("x-amz-target", format!("TransferService.{operation}").parse().unwrap());
        let response = self.request(who, "transfer", headers, body.to_string().as_bytes());
        common::answer(&response)
    }

    pub fn transfer(&self, operation: &str, body: Value) -> common::Answer {
        self.transfer_as(&Who::admin(), operation, &body)
    }

    /// A new server: its id.
    #[track_caller]
    pub fn server(&self, body: Value) -> String {
        text(&self.transfer("CreateServer", body).unwrap()["ServerId"]).to_owned()
    }

    /// A new user with key number 1 in `/files/home/NAME`.
    #[track_caller]
    pub fn sftp_user(&self, server: &str, name: &str, role: &str, more: Value) {
        let body = json!({
            "ServerId": server, "UserName": name, "Role": role, "SshPublicKeyBody": key(1),
            "HomeDirectory": format!("/files/home/{name}"),
        });
        self.transfer("CreateUser", with(&body, more)).unwrap();
    }
}

/// The request of a workflow.
pub fn a_workflow() -> Value {
    json!({ "Steps": [{ "Type": "DELETE", "DeleteStepDetails": {} }] })
}

/// The scope of the tests' account.
pub fn scope() -> Scope {
    Scope { account: ACCOUNT.into(), region: REGION.into() }
}

/// A connection to a server.
pub fn connection(server: &str) -> Connection {
    Connection {
        scope: scope(),
        server_arn: format!("arn:aws:transfer:{REGION}:{ACCOUNT}:server/{server}"),
        session: "0123456789abcdef".into(),
        source_ip: IpAddr::from([192, 0, 2, 7]),
        client: "SSH-2.0-OpenSSH_10.0".into(),
        key_exchange: "mlkem768x25519-sha256".into(),
        post_quantum: true,
        host_key: "ssh-ed25519".into(),
        ciphers: ["aes256-gcm@openssh.com".into(), "aes256-gcm@openssh.com".into()],
        macs: [String::new(), String::new()],
    }
}

/// What a peer shows.
#[derive(Clone)]
pub struct Shown<'a> {
    pub server: &'a str,
    pub user: &'a str,
    pub key: Option<Vec<u8>>,
    pub proven: bool,
    /// Whether an earlier step of the connection said that a password is wanted as well.
    pub accepted: bool,
    pub password: Option<&'a str>,
    pub from: IpAddr,
}

impl<'a> Shown<'a> {
    /// A proven key.
    pub fn key(server: &'a str, user: &'a str, number: u8) -> Self {
        let from = IpAddr::from([192, 0, 2, 7]);
        let key = Some(blob(number));
        Self { server, user, key, proven: true, accepted: false, password: None, from }
    }

    /// A password.
    pub fn password(server: &'a str, user: &'a str, password: &'a str) -> Self {
        Self { key: None, proven: false, password: Some(password), ..Self::key(server, user, 0) }
    }

    /// Decides the login.
    pub fn decide(&self, fixture: &Fixture, answer: Option<Option<&Answer>>) -> Decision {
        let scope = scope();
        let password = self.password.map(|text| Secret::new(text.as_bytes().to_vec()));
        let login = Login {
            certificate: None,
            scope: &scope,
            server: self.server,
            user: self.user,
            key: self.key.as_deref(),
            key_is_proven: self.proven,
            key_was_accepted: self.accepted,
            password: password.as_ref(),
            source_ip: self.from,
            session: "0123456789abcdef",
        };
        let connection = Connection { source_ip: self.from, ..connection(self.server) };
        let now_ms = fixture.now.get() * 1000;
        fixture.service.sftp_login_call(&login, &connection, answer, now_ms)
    }

    /// The decision in a word, or the reason of a refusal.
    pub fn told(&self, fixture: &Fixture, answer: Option<Option<&Answer>>) -> String {
        match self.decide(fixture, answer) {
            Decision::Refused(refusal) => refusal.to_string(),
            Decision::KeyAcceptable => "key acceptable".into(),
            Decision::NeedsPassword => "needs a password".into(),
            Decision::Ask(_) => "ask".into(),
            Decision::Account(account) => format!("welcome {}", account.user),
            Decision::Failed => "failed".into(),
        }
    }
}

/// The value of the secret of a connector.
pub fn credentials() -> Value {
    json!({ "Username": "outlast", "PrivateKey": "tell-tale-key", "Password": "tell-tale-password" })
}

/// A role of connectors that may read all secrets and do everything in the bucket `files`.
pub fn connector_role(fixture: &Fixture, name: &str) -> String {
    let all = policy(json!([
        { "Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::files", "arn:aws:s3:::files/*"] },
        { "Effect": "Allow", "Action": ["secretsmanager:GetSecretValue", "kms:Decrypt"], "Resource": "*" },
    ]));
    fixture.role(ACCOUNT, name, &trust(&json!({})), &[all])
}

impl Fixture {
    /// A new connector to `sftp.example.com`, with a secret and a host key: its id.
    #[track_caller]
    pub fn connector(&self, role: &str, more: Value) -> String {
        let value = credentials().to_string();
        let name = format!("connector{}", self.events().len());
        let made = self.secrets("CreateSecret", json!({ "Name": name, "SecretString": value }));
        let body = json!({
            "Url": "sftp://sftp.example.com:2222", "AccessRole": role,
            "SftpConfig": { "UserSecretId": made.unwrap()["ARN"], "TrustedHostKeys": [key(9)] },
        });
        let made = self.transfer("CreateConnector", with(&body, more)).unwrap();
        text(&made["ConnectorId"]).to_owned()
    }

    /// Requests a transfer of files: its id.
    #[track_caller]
    pub fn send_files(&self, connector: &str, files: &[&str]) -> String {
        let body = json!({ "ConnectorId": connector, "SendFilePaths": files });
        text(&self.transfer("StartFileTransfer", body).unwrap()["TransferId"]).to_owned()
    }
}

/// Prepares a call that asks somebody outside, with this reply of theirs.
pub fn prepared(
    fixture: &Fixture,
    operation: &str,
    body: &Value,
    reply: Option<Reply>,
    use_it: impl FnOnce(Step),
) {
    let body = body.to_string();
    let target = format!("TransferService.{operation}");
    let signed = fixture.raw("transfer", &target, body.as_bytes());
    let request = Request { source_ip: "198.51.100.7", ..fixture.received(&signed) };
    use_it(fixture.service.prepare_with(route_of(&signed), &request, reply.as_ref()));
}
