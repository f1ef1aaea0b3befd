//! Identity providers outside, with OpenSSH's client: one over HTTPS, and a program.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::path::PathBuf;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast_api::aws::Operation;
use outlast_api::client::ServiceError;
use outlast_api::ops::transfer::create_server::CreateServer;
use outlast_api::ops::transfer::test_identity_provider::TestIdentityProvider;
use outlast_api::ops::transfer::update_server::UpdateServer;
use outlast_testing::until;
use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::common::stub::Stub;
use crate::common::{self, Folder, Log, Server, outlast, run, stderr, stdout, succeed};

const ROLE: &str = "arn:aws:iam::123456789012:role/files";
const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:login";
const PASSWORD: &str = "correct horse";

/// A service that serves SFTP, and OpenSSH's programs.
struct World {
    folder: Folder,
    server: Server,
    log: Log,
    tools: PathBuf,
}

/// What a client shows.
enum Shows<'a> {
    Password(&'a str),
    Key(&'a str),
    /// A key, then a password.
    Both(&'a str, &'a str),
}

impl World {
    fn new(tools: PathBuf, folder: Folder, arguments: &[&str]) -> Self {
        let statement =
            json!({ "Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::*" });
        let policy = json!({ "Version": "2012-10-17", "Statement": [statement] }).to_string();
        let policy = folder.write("policy.json", policy.as_bytes());
        for (name, service) in [("files", "transfer"), ("untrusting", "lambda")] {
            let trust = json!({ "Version": "2012-10-17", "Statement": [{
                "Effect": "Allow", "Action": "sts:AssumeRole",
                "Principal": { "Service": format!("{service}.amazonaws.com") },
            }] });
            let trust = folder.write("trust.json", trust.to_string().as_bytes());
            let mut create = outlast();
            create.args(["principal", "create", "--role", name, "--data"]).arg(&folder.data);
            succeed(create.arg("--trust-policy-file").arg(trust).arg("--policy-file").arg(&policy));
        }
        let arguments = [&["--sftp-listen", "127.0.0.1:0"], arguments].concat();
        let (server, log) = Server::start_logged(&folder.data, &arguments);
        Self { folder, server, log, tools }
    }

    fn call<O: Operation>(&self, body: Value) -> Result<O::Output, ServiceError> {
        common::runtime().block_on(async {
            let mut session = self.server.session().await.unwrap();
            session.call::<O>(body).await.unwrap()
        })
    }

    fn serve(&self, kind: &str, details: &Value) -> Result<String, ServiceError> {
        let body = json!({ "IdentityProviderType": kind, "IdentityProviderDetails": details });
        self.call::<CreateServer>(body).map(|made| made.server_id)
    }

    /// What the provider says of a user, and what a login would make of it.
    fn tested(&self, server: &str, user: &str, password: &str) -> (i64, Value, String, String) {
        let body = json!({ "ServerId": server, "UserName": user, "UserPassword": password, "SourceIp": "192.0.2.1" });
        let told = self.call::<TestIdentityProvider>(body).unwrap();
        let response = serde_json::from_str(&told.response).unwrap_or(json!(told.response));
        (told.status_code, response, told.message, told.url)
    }

    /// How many events of an operation there are.
    fn events(&self, operation: &str) -> usize {
        let mut tail = outlast();
        tail.args(["audit", "tail", "-n", "10000", "--output", "json", "--data"]);
        let all = succeed(tail.arg(&self.folder.data));
        all.lines().filter(|line| line.contains(&format!("\"{operation}\""))).count()
    }

    /// A key of OpenSSH's; returns its public line.
    fn key(&self, name: &str) -> String {
        let path = self.folder.path(name);
        let mut command = std::process::Command::new(self.tools.join("ssh-keygen"));
        succeed(command.args(["-q", "-N", "", "-C", "", "-t", "ed25519", "-f"]).arg(&path));
        std::fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned()
    }

    /// Logs in and puts a file.
    fn login(&self, user: &str, shows: &Shows<'_>) -> Output {
        let name = format!("{user}.txt");
        self.folder.write(&name, user.as_bytes());
        let batch = self.folder.write("batch", format!("put {name}").as_bytes());
        let port = self.server.sftp.unwrap().to_string();
        let known = format!("UserKnownHostsFile={}", self.folder.path("known").display());
        let mut command = std::process::Command::new(self.tools.join("sftp"));
        command.arg("-S").arg(self.tools.join("ssh")).args(["-F", "none", "-P", &port]);
        command.args(["-o", "BatchMode=no", "-o", "NumberOfPasswordPrompts=1"]);
        command.args(["-o", "StrictHostKeyChecking=no", "-o", &known]);
        let (key, password, methods) = match *shows {
            Shows::Password(password) => (None, Some(password), "password"),
            Shows::Key(key) => (Some(key), None, "publickey"),
            Shows::Both(key, password) => (Some(key), Some(password), "publickey,password"),
        };
        command.args(["-o", &format!("PreferredAuthentications={methods}")]);
        if let Some(password) = password {
            let ask = self.folder.write("ask.sh", b"#!/bin/sh\nprintf '%s\\n' \"$SHOWN\"\n");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&ask, mode).unwrap();
            command.env("SSH_ASKPASS", ask).env("SSH_ASKPASS_REQUIRE", "force");
            command.env("SHOWN", password);
        }
        if let Some(key) = key {
            command.args(["-o", "IdentitiesOnly=yes", "-i"]).arg(self.folder.path(key));
        }
        command.arg("-b").arg(batch).arg(format!("{user}@127.0.0.1"));
        run(command.current_dir(self.folder.temporary.path()))
    }

    #[track_caller]
    fn enters(&self, user: &str, shows: &Shows<'_>) {
        let output = self.login(user, shows);
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        let there = self.folder.data.join(format!("buckets/files/{user}/{user}.txt"));
        assert_eq!(std::fs::read(&there).unwrap(), user.as_bytes());
        std::fs::remove_file(there).unwrap();
    }

    #[track_caller]
    fn is_refused(&self, user: &str, shows: &Shows<'_>) {
        let output = self.login(user, shows);
        assert!(!output.status.success(), "{user} is let in: {}", stdout(&output));
        let said = stderr(&output);
        assert!(said.contains("Permission denied"), "{said}");
    }
}

fn openssh() -> Option<PathBuf> {
    Some(peer("openssh")?.join("10.0/bin"))
}

/// Passwords that a provider got, in their order.
type Got = Arc<Mutex<Vec<Option<String>>>>;

/// A provider that knows alice by her password and her key, and bob, whose role does not trust the service.
fn provider(got: &Got, key: Arc<Mutex<String>>) -> Stub {
    let got = got.clone();
    Stub::new(Box::new(move |head, body| {
        assert_eq!((head.method.as_str(), body.len()), ("GET", 0));
        let parts: Vec<_> = head.uri.path().split('/').collect();
        let ["", "prod", "servers", server, "users", user, "config"] = parts[..] else {
            panic!("{}", head.uri)
        };
        assert!(server.starts_with("s-"));
        let query = head.uri.query().unwrap();
        assert!(query.starts_with("protocol=SFTP&sourceIp="), "{query}");
        let text = |name| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let password = text("password").or_else(|| text("passwordbase64"));
        got.lock().unwrap().push(password.clone());
        let answer = |more: Value| {
            let mut answer = json!({ "Role": ROLE, "HomeDirectory": format!("/files/{user}") });
            answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Some((200, Vec::new(), answer.to_string()))
        };
        match (user, password.as_deref()) {
            // "schlüssel" in base64.
            ("alice", Some(PASSWORD | "c2NobMO8c3NlbA==")) => answer(json!({})),
            ("alice", None) => answer(json!({ "PublicKeys": [*key.lock().unwrap()] })),
            ("bob", _) => answer(json!({ "Role": ROLE.replace("files", "untrusting") })),
            ("carol", _) => Some((500, Vec::new(), "the provider is broken".into())),
            ("nobody", _) => Some((200, Vec::new(), "{}".into())),
            _ => Some((401, Vec::new(), String::new())),
        }
    }))
}

#[test]
fn a_provider_over_https_decides_about_logins() {
    let Some(tools) = openssh() else { return };
    let (got, key) = (Got::default(), Arc::new(Mutex::new(String::new())));
    let stub = provider(&got, key.clone());
    let ca = stub.path("ca.pem").display().to_string();
    let world = World::new(tools, Folder::new(), &["--sftp-identity-ca-bundle", &ca]);
    *key.lock().unwrap() = world.key("alice");
    world.key("mallory");
    let url = format!("{}/prod", stub.url());
    let server = world.serve("API_GATEWAY", &json!({ "Url": url })).unwrap();
    let (password, not_ascii) = (Shows::Password(PASSWORD), Shows::Password("schlüssel"));
    world.enters("alice", &password);
    world.enters("alice", &not_ascii);
    world.enters("alice", &Shows::Key("alice"));
    world.is_refused("alice", &Shows::Key("mallory"));
    world.is_refused("alice", &Shows::Password("wrong"));
    for user in ["bob", "carol", "nobody", "stranger"] {
        world.is_refused(user, &password);
        world.is_refused(user, &Shows::Key("alice"));
    }
    // One that could not say anything has not refused.
    let failures = |user: &str| {
        let mut tail = outlast();
        tail.args(["audit", "tail", "-n", "10000", "--output", "json", "--data"]);
        let all = succeed(tail.arg(&world.folder.data));
        let name = format!("\"{user}\"");
        let is_one = |line: &&str| line.contains("\"AUTH_FAILURE\"") && line.contains(&name);
        all.lines().filter(is_one).map(str::to_owned).collect::<Vec<_>>()
    };
    for (user, reason) in [
        ("nobody", "the identity provider refuses the user"),
        ("stranger", "the identity provider refuses the user"),
        ("carol", "the identity provider could not be asked"),
    ] {
        until("failures are recorded", || !failures(user).is_empty());
        let told = failures(user);
        assert!(told.iter().all(|line| line.contains(reason)), "{user}: {told:?}");
    }
    // With no password a provider means that the key will be checked: an empty one is never passed on.
    let before = got.lock().unwrap().len();
    world.is_refused("alice", &Shows::Password(""));
    assert_eq!(got.lock().unwrap().len(), before);
    // The test of the administrator says what the logins above came to.
    let (status, answer, message, asked) = world.tested(&server, "alice", PASSWORD);
    assert_eq!((status, message.as_str()), (200, ""));
    assert_eq!(answer, json!({ "Role": ROLE, "HomeDirectory": "/files/alice" }));
    let path = format!("/servers/{server}/users/alice/config?protocol=SFTP&sourceIp=192.0.2.1");
    assert_eq!(asked, format!("{url}{path}"));
    assert_eq!(got.lock().unwrap().last().unwrap().as_deref(), Some(PASSWORD));
    for (user, status, says) in [
        ("bob", 200, "the trust policy of the role"),
        ("carol", 500, "the status 500"),
        ("nobody", 200, "the identity provider refuses the user"),
        ("stranger", 401, "the identity provider refuses the user"),
    ] {
        let (told, _, message, _) = world.tested(&server, user, PASSWORD);
        assert_eq!(told, status, "{user}");
        assert!(message.contains(says), "{user}: {message}");
    }
    // Both proofs: as AWS demands, the provider names keys only when it is asked without a password.
    let methods = json!({ "Url": url, "SftpAuthenticationMethods": "PUBLIC_KEY_AND_PASSWORD" });
    let body = json!({ "ServerId": server, "IdentityProviderDetails": methods });
    world.call::<UpdateServer>(body).unwrap();
    let both = Shows::Both("alice", PASSWORD);
    until("the server wants both", || world.login("alice", &both).status.success());
    for shows in [
        password,
        Shows::Key("alice"),
        Shows::Both("alice", "wrong"),
        Shows::Both("mallory", PASSWORD),
    ] {
        world.is_refused("alice", &shows);
    }
    world.enters("alice", &both);
    let (_, keys, _, _) = world.tested(&server, "alice", "");
    assert_eq!(keys["PublicKeys"], json!([*key.lock().unwrap()]));
    stub.down(true);
    world.is_refused("alice", &both);
    let (status, answer, message, _) = world.tested(&server, "alice", PASSWORD);
    assert_eq!((status, &answer), (500, &json!("")));
    assert!(message.starts_with("Unable to call identity provider"), "{message}");
    assert!(!message.contains("127.0.0.1"), "{message}");
    assert_eq!(world.log.count(PASSWORD), 0, "a password is in the log");
}

#[test]
fn a_provider_whose_certificate_is_not_trusted_learns_no_password() {
    let Some(tools) = openssh() else { return };
    let (got, key) = (Got::default(), Arc::default());
    let (trusted, stub) = (provider(&got, Arc::clone(&key)), provider(&got, key));
    let ca = trusted.path("ca.pem").display().to_string();
    let world = World::new(tools, Folder::new(), &["--sftp-identity-ca-bundle", &ca]);
    let details = json!({ "Url": format!("{}/prod", stub.url()) });
    let server = world.serve("API_GATEWAY", &details).unwrap();
    world.is_refused("alice", &Shows::Password(PASSWORD));
    assert_eq!(world.tested(&server, "alice", PASSWORD).0, 500);
    assert_eq!((stub.requests(), trusted.requests()), (0, 0));
}

/// Writes what it gets to files, and answers for alice; others make it misbehave.
const PROGRAM: &str = r#"
cd "$(dirname "$0")"
event=$(cat)
printf '%s %s\n' "$#" "$event" >> asked
env >> environment
answer='"Role":"ROLE","HomeDirectory":"/files/alice"'
case "$event" in
*'"username":"slow"'*) exec sleep 3600 ;;
*'"username":"fails"'*) printf '{%s}' "$answer"; printf '%s' "$event" >&2; exit 1 ;;
*'"username":"loud"'*) exec head -c 300000 /dev/zero ;;
*'"username":"odd"'*) printf 'yes' ;;
*'"username":"alice"'*'"password":"correct horse"'*|*'"password":"correct horse"'*'"username":"alice"'*) printf '{%s}' "$answer" ;;
*'"password":""'*) printf '{%s,"PublicKeys":["%s"]}' "$answer" "$(cat alice.pub)" ;;
*) printf '{}' ;;
esac
"#;

#[test]
fn a_program_decides_about_logins() {
    let Some(tools) = openssh() else { return };
    let folder = Folder::new();
    let program = folder.write("login.sh", PROGRAM.replace("ROLE", ROLE).as_bytes());
    let entry = format!("program = ['/bin/sh', '{}']\ntimeout_seconds = 10", program.display());
    let file = folder.write("functions.toml", format!("['{FUNCTION}']\n{entry}\n").as_bytes());
    let file = file.display().to_string();
    let world = World::new(tools, folder, &["--sftp-identity-functions", &file]);
    world.key("alice");
    world.key("mallory");
    let other = json!({ "Function": FUNCTION.replace("login", "other") });
    let refused = world.serve("AWS_LAMBDA", &other).unwrap_err();
    assert_eq!(refused.code, "InvalidRequestException");
    let server = world.serve("AWS_LAMBDA", &json!({ "Function": FUNCTION })).unwrap();
    let password = Shows::Password(PASSWORD);
    world.enters("alice", &password);
    world.enters("alice", &Shows::Key("alice"));
    world.is_refused("alice", &Shows::Key("mallory"));
    world.is_refused("alice", &Shows::Password("wrong"));
    let begun = Instant::now();
    for user in ["stranger", "fails", "loud", "odd", "slow"] {
        world.is_refused(user, &password);
    }
    assert!(begun.elapsed() < Duration::from_secs(1800), "the program was not ended in time");
    let asked = std::fs::read_to_string(world.folder.path("asked")).unwrap();
    for line in asked.lines() {
        // No arguments, and AWS's event.
        let event: Value = serde_json::from_str(line.strip_prefix("0 ").unwrap()).unwrap();
        assert_eq!(event["serverId"], json!(server));
        assert_eq!((&event["protocol"], &event["sourceIp"]), (&json!("SFTP"), &json!("127.0.0.1")));
        assert!(event["username"].is_string() && event["password"].is_string(), "{event}");
    }
    let environment = std::fs::read_to_string(world.folder.path("environment")).unwrap();
    assert!(environment.contains("AWS_LAMBDA_FUNCTION_NAME=login"), "{environment}");
    assert!(!environment.contains(PASSWORD) && !environment.contains("OUTLAST"), "{environment}");
    let (status, answer, message, url) = world.tested(&server, "alice", PASSWORD);
    assert_eq!((status, message.as_str(), url.as_str()), (200, "", ""));
    assert_eq!(answer["HomeDirectory"], "/files/alice");
    let (status, _, message, _) = world.tested(&server, "fails", PASSWORD);
    assert_eq!(status, 500);
    assert!(!message.contains(PASSWORD), "{message}");
    // A caller that hangs up while the program is asked leaves its event.
    let tests = || world.events("TestIdentityProvider");
    let slow = || {
        let asked = std::fs::read_to_string(world.folder.path("asked")).unwrap();
        asked.matches("\"username\":\"slow\"").count()
    };
    let (before, asked) = (tests(), slow());
    common::runtime().block_on(async {
        let mut session = world.server.session().await.unwrap();
        let body = json!({ "ServerId": server, "UserName": "slow", "UserPassword": PASSWORD });
        let begun = async {
            while slow() == asked {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = session.call::<TestIdentityProvider>(body) => panic!("it was answered first"),
            () = begun => {}
        }
    });
    until("the event of a call that nobody waits for", || tests() == before + 1);
    assert_eq!(world.log.count(PASSWORD), 0, "a password is in the log");
}
