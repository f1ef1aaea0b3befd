//! Rotation of secrets by a running server: built-in for PostgreSQL under load, by a program, by a function behind Lambda's
//! invocation interface, and killed at random moments.
//!
//! `OUTLAST_ROTATIONS` sets the number of rotations under load (default 8), `OUTLAST_ROTATION_KILLS` the number of kills
//! (default 10), `OUTLAST_ROTATION_SEED` their moments.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_api::aws::Operation;
use outlast_api::ops::secretsmanager::{
    create_secret::CreateSecret, describe_secret::DescribeSecret, get_secret_value::GetSecretValue,
    list_secret_version_ids::ListSecretVersionIds, put_secret_value::PutSecretValue,
    rotate_secret::RotateSecret,
};
use outlast_store::postgres::log_in;
use outlast_store::testing::{PASSWORD, Postgres};
use serde_json::{Value, json};

use crate::common::{self, Folder, Server, Session, outlast, runtime, succeed};

const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:rotate";
/// A secret has about 100 versions a day.
const ROTATIONS_OF_ONE: usize = 50;
const ROLE: &str = "arn:aws:iam::123456789012:role/rotator";

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A data folder whose server knows one rotation function, with a role that may use secrets.
fn folder(function: &str) -> Folder {
    let folder = Folder::new();
    let policy = |name: &str, policy: Value| folder.write(name, policy.to_string().as_bytes());
    let trust = policy(
        "trust.json",
        json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Action": "sts:AssumeRole", "Principal": { "Service": "lambda.amazonaws.com" },
    }] }),
    );
    let rights = policy(
        "rights.json",
        json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Resource": "*", "Action": [
            "secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue",
            "secretsmanager:UpdateSecretVersionStage", "secretsmanager:GetRandomPassword",
        ] },
    ] }),
    );
    succeed(
        outlast()
            .args(["principal", "create", "rotator", "--role", "--trust-policy-file"])
            .arg(&trust)
            .arg("--policy-file")
            .arg(&rights)
            .arg("--data")
            .arg(&folder.data),
    );
    let functions =
        folder.write("functions.toml", format!("['{FUNCTION}']\n{function}\n").as_bytes());
    let settings = format!("[rotation]\nfunctions = '{}'\n", functions.display());
    std::fs::write(folder.data.join("outlast.toml"), settings).unwrap();
    folder
}

async fn call<O: Operation>(session: &mut Session, body: Value) -> O::Output {
    let answer = session.call::<O>(body.clone()).await.unwrap();
    answer.unwrap_or_else(|error| panic!("{} {body}: {error}", O::NAME))
}

/// Waits until the version of a rotation is the current one.
async fn rotated(session: &mut Session, id: &str, version: &str) {
    for _ in 0..2400 {
        let described = call::<DescribeSecret>(session, json!({ "SecretId": id })).await;
        let stages = described.version_ids_to_stages.unwrap_or_default();
        let labels = stages.get(version).cloned().unwrap_or_default();
        if labels == ["AWSCURRENT"] && described.last_rotated_date.is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the rotation did not end");
}

/// Waits until no version is pending.
async fn no_longer_pending(session: &mut Session, id: &str) {
    for _ in 0..2400 {
        let described = call::<DescribeSecret>(session, json!({ "SecretId": id })).await;
        let stages = described.version_ids_to_stages.unwrap_or_default();
        if !stages.values().flatten().any(|label| label == "AWSPENDING") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the test did not end");
}

async fn rotate(session: &mut Session, id: &str, more: Value) -> String {
    let made = call::<RotateSecret>(session, with(json!({ "SecretId": id }), more)).await;
    let version = made.version_id.unwrap();
    rotated(session, id, &version).await;
    version
}

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn login(session: &mut Session, id: &str) -> (String, String) {
    let got = call::<GetSecretValue>(session, json!({ "SecretId": id })).await;
    let value: Value = serde_json::from_str(&got.secret_string.unwrap()).unwrap();
    let text = |name: &str| value[name].as_str().unwrap().to_owned();
    (text("username"), text("password"))
}

/// Logs in again and again with what the secret had when it was read last, which is as old as a rotation at most.
async fn work(
    mut session: Session,
    id: String,
    url: String,
    counts: Arc<(AtomicUsize, AtomicUsize, AtomicBool)>,
) {
    let (logins, failed, stop) = (&counts.0, &counts.1, &counts.2);
    while !stop.load(Ordering::SeqCst) {
        let (user, password) = login(&mut session, &id).await;
        for _ in 0..3 {
            match log_in(&url, None, &user, &password).await {
                Ok(_) => logins.fetch_add(1, Ordering::SeqCst),
                Err(_) => failed.fetch_add(1, Ordering::SeqCst),
            };
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}

#[test]
fn no_login_fails_while_users_alternate() {
    let Some(postgres) = Postgres::shared() else { return };
    let (_, port) = postgres.folder_and_port();
    postgres.execute("postgres", "CREATE ROLE single LOGIN PASSWORD 'first-password'");
    let folder = folder(&format!(
        "postgresql = 'alternating-users'\nhosts = ['127.0.0.1:{port}']\nrole = '{ROLE}'\ntimeout_seconds = 20\n\
         ['{FUNCTION}-single']\npostgresql = 'single-user'\nhosts = ['127.0.0.1:{port}']\nrole = '{ROLE}'\n\
         ['{FUNCTION}-elsewhere']\npostgresql = 'single-user'\nhosts = ['127.0.0.1:1']\nrole = '{ROLE}'"
    ));
    let (server, log) = Server::start_logged(&folder.data, &[]);
    let url = format!("postgres://127.0.0.1:{port}/postgres");
    let rounds = setting("OUTLAST_ROTATIONS", 8);
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let value = |user: &str, password: &str, more: Value| {
            with(
                json!({ "host": "127.0.0.1", "port": port, "username": user, "password": password,
                "dbname": "postgres", "engine": "postgres" }),
                more,
            )
        };
        let secret =
            |name: &str, value: Value| json!({ "Name": name, "SecretString": value.to_string() });
        let master = secret("master", value("outlast", PASSWORD, json!({})));
        let master = call::<CreateSecret>(&mut session, master).await.arn;
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false)));
        for first in (0..rounds).step_by(ROTATIONS_OF_ONE) {
            let app = format!("app{first}");
            let sql = format!("CREATE ROLE {app} LOGIN PASSWORD 'first-password'");
            postgres.execute("postgres", &sql);
            let first_value = value(&app, "first-password", json!({ "masterarn": master }));
            call::<CreateSecret>(&mut session, secret(&app, first_value)).await;
            counts.2.store(false, Ordering::SeqCst);
            let mut workers = Vec::new();
            for _ in 0..3 {
                let session = server.session().await.unwrap();
                workers.push(tokio::spawn(work(session, app.clone(), url.clone(), counts.clone())));
            }
            for round in first..rounds.min(first + ROTATIONS_OF_ONE as u64) {
                let (before, _) = login(&mut session, &app).await;
                rotate(&mut session, &app, json!({ "RotationLambdaARN": FUNCTION })).await;
                let (user, _) = login(&mut session, &app).await;
                assert_ne!(user, before, "round {round}");
            }
            counts.2.store(true, Ordering::SeqCst);
            for worker in workers {
                worker.await.unwrap();
            }
        }
        let (logins, failed) = (counts.0.load(Ordering::SeqCst), counts.1.load(Ordering::SeqCst));
        println!("{rounds} rotations of alternating users, {logins} logins, {failed} failed");
        assert!(logins > 0);
        assert_eq!(failed, 0);

        // A single user: the old password is refused afterwards.
        let single = secret("single", value("single", "first-password", json!({})));
        call::<CreateSecret>(&mut session, single).await;
        for _ in 0..2 {
            let (user, old) = login(&mut session, "single").await;
            let function = json!({ "RotationLambdaARN": format!("{FUNCTION}-single") });
            rotate(&mut session, "single", function).await;
            let (_, new) = login(&mut session, "single").await;
            assert!(log_in(&url, None, &user, &new).await.is_ok());
            let refused = log_in(&url, None, &user, &old).await.err().unwrap();
            assert!(refused.is_password, "{}", refused.what);
        }

        // The test of a schedule logs in with a pending version, which goes afterwards.
        let later = json!({ "SecretId": "single", "RotateImmediately": false,
            "RotationRules": { "ScheduleExpression": "rate(30 days)" } });
        call::<RotateSecret>(&mut session, later).await;
        no_longer_pending(&mut session, "single").await;

        // A server that the operator has not named, and a function that nobody has configured.
        let body =
            json!({ "SecretId": "single", "RotationLambdaARN": format!("{FUNCTION}-elsewhere") });
        let before = log.count("a rotation function failed");
        call::<RotateSecret>(&mut session, body).await;
        log.until("a rotation function failed", before);
        let before = log.count("a function that this server does not call");
        let body = json!({ "SecretId": "single", "RotationLambdaARN": format!("{FUNCTION}-none") });
        let refused = session.call::<RotateSecret>(body).await.unwrap().err().unwrap();
        assert_eq!(refused.code, "AccessDeniedException");
        // The operator learns where to name it.
        log.until("a function that this server does not call", before);
        assert!(log.count("[rotation] of outlast.toml") > 0);
        let (user, password) = login(&mut session, "single").await;
        assert!(log_in(&url, None, &user, &password).await.is_ok());
    });
    let text = succeed(
        outlast()
            .args(["audit", "tail", "-n", "100000", "--output", "json", "--data"])
            .arg(&folder.data),
    );
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count =
        |name: &str| events.iter().filter(|event| event["eventName"] == name).count() as u64;
    assert_eq!(count("RotationSucceeded"), rounds + 2);
    assert_eq!((count("TestRotationSucceeded"), count("TestRotationFailed")), (1, 0));
    assert!(count("RotationStarted") >= rounds + 2 && count("AssumeRole") > 0);
    // The rotation acts as its role, and no password is in the trail.
    let role = events.iter().find(|event| event["eventName"] == "PutSecretValue").unwrap();
    assert_eq!(role["userIdentity"]["sessionContext"]["sessionIssuer"]["arn"], ROLE);
    assert!(!text.contains("first-password"));
}

/// A rotation function as AWS's template has it, called by a program and behind Lambda's interface.
#[test]
fn functions_of_aws_form_rotate() {
    let Some(python) = common::peers::peer("python") else { return };
    let python = python.join("bin/python");
    let script = common::peers::checkout().join("tests/interop/python/rotation_function.py");
    // The port is known only when the server runs, so that the program asks its environment.
    let place = tempfile::tempdir().unwrap();
    let (port, ca) = (place.path().join("port"), place.path().join("ca.pem"));
    let listening = Command::new(&python)
        .arg(&script)
        .args(["serve"])
        .args([&port, &ca])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let _child = Killed(listening);
    outlast_testing::until("the function listens", || port.exists());
    let port = std::fs::read_to_string(&port).unwrap();
    let folder = folder(&format!(
        "program = ['{}', '{}', 'program', '{}']\nrole = '{ROLE}'\n\
         ['{FUNCTION}-url']\nurl = 'http://127.0.0.1:{port}/2015-03-31/functions/function/invocations'\n\
         ['{FUNCTION}-broken']\nprogram = ['/bin/sh', '-c', 'echo no; exit 3']",
        python.display(),
        script.display(),
        ca.display(),
    ));
    std::fs::copy(folder.data.join("client/ca.pem"), &ca).unwrap();
    let (server, log) = Server::start_logged(&folder.data, &[]);
    // What a function at AWS has in its environment, the one behind the interface reads from a file.
    let environment = json!({
        "AWS_ENDPOINT_URL": format!("https://localhost:{}", server.port), "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": common::ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": common::SECRET,
    });
    std::fs::write(place.path().join("environment.json"), environment.to_string()).unwrap();
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let value = json!({ "username": "u", "password": "first" }).to_string();
        call::<CreateSecret>(&mut session, json!({ "Name": "s", "SecretString": value })).await;
        for function in [FUNCTION.to_owned(), format!("{FUNCTION}-url")] {
            let (_, before) = login(&mut session, "s").await;
            rotate(&mut session, "s", json!({ "RotationLambdaARN": function })).await;
            let (user, after) = login(&mut session, "s").await;
            assert_eq!(user, "u");
            assert_ne!(before, after, "{function}");
        }
        let before = log.count("a rotation function failed");
        let body = json!({ "SecretId": "s", "RotationLambdaARN": format!("{FUNCTION}-broken") });
        call::<RotateSecret>(&mut session, body).await;
        log.until("a rotation function failed", before);
    });
}

struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Values that the server has acknowledged, by secret and version.
type Acknowledged = Arc<Mutex<BTreeMap<(String, String), String>>>;

async fn put(mut session: Session, prefix: String, seen: Acknowledged) {
    for number in 0.. {
        let name = format!("{prefix}-{}", number / 20);
        let value = format!("{prefix} {number}");
        if number % 20 == 0 {
            let body = json!({ "Name": name, "SecretString": value });
            let Ok(Ok(made)) = session.call::<CreateSecret>(body).await else { return };
            seen.lock().unwrap().insert((name, made.version_id.unwrap()), value);
            continue;
        }
        let body = json!({ "SecretId": name, "SecretString": value });
        let Ok(Ok(made)) = session.call::<PutSecretValue>(body).await else { return };
        seen.lock().unwrap().insert((name, made.version_id), value);
    }
}

#[test]
fn one_version_is_current_whenever_the_server_is_killed() {
    let Some(postgres) = Postgres::shared() else { return };
    let (_, port) = postgres.folder_and_port();
    postgres.execute("postgres", "CREATE ROLE killed LOGIN PASSWORD 'first-password'");
    let folder = folder(&format!(
        "postgresql = 'single-user'\nhosts = ['127.0.0.1:{port}']\nrole = '{ROLE}'\ntimeout_seconds = 5"
    ));
    let url = format!("postgres://127.0.0.1:{port}/postgres");
    let mut seed = setting("OUTLAST_ROTATION_SEED", u64::from(std::process::id()));
    let rounds = setting("OUTLAST_ROTATION_KILLS", 10);
    println!("replay with OUTLAST_ROTATION_SEED={seed} OUTLAST_ROTATION_KILLS={rounds}");
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    let seen = Acknowledged::default();
    let runtime = runtime();
    for round in 0..rounds {
        let mut server = folder.serve();
        runtime.block_on(async {
            let mut session = server.session().await.unwrap();
            if round == 0 {
                let value = json!({ "host": "127.0.0.1", "port": port, "username": "killed",
                    "password": "first-password" });
                let body = json!({ "Name": "rotated", "SecretString": value.to_string() });
                call::<CreateSecret>(&mut session, body).await;
            }
            // Refused while an earlier rotation is under way, which then goes on.
            let rotate = json!({ "SecretId": "rotated", "RotationLambdaARN": FUNCTION });
            let _ = session.call::<RotateSecret>(rotate).await.unwrap();
            let mut writers = Vec::new();
            for writer in 0..2 {
                let session = server.session().await.unwrap();
                let writing = put(session, format!("r{round}-w{writer}"), seen.clone());
                writers.push(tokio::spawn(writing));
            }
            tokio::time::sleep(Duration::from_millis(random() % 1500)).await;
            server.kill();
            for writer in writers {
                writer.await.unwrap();
            }
        });
    }
    let server = folder.serve();
    let seen = seen.lock().unwrap().clone();
    runtime.block_on(async {
        let mut session = server.session().await.unwrap();
        let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
        for ((name, version), value) in &seen {
            let body = json!({ "SecretId": name, "VersionId": version });
            let got = call::<GetSecretValue>(&mut session, body).await;
            assert_eq!(got.secret_string.as_deref(), Some(value.as_str()), "{name}");
            let number = |value: &str| value.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
            let newest = newest.entry(name).or_insert(value);
            if number(value) > number(newest) {
                *newest = value;
            }
        }
        let names = newest.keys().copied().chain(["rotated"]);
        for name in names {
            let body = json!({ "SecretId": name, "IncludeDeprecated": true });
            let listed = call::<ListSecretVersionIds>(&mut session, body).await.versions;
            let labels: Vec<_> = listed
                .iter()
                .filter_map(|version| version.version_stages.clone())
                .flatten()
                .collect();
            let current = labels.iter().filter(|label| *label == "AWSCURRENT").count();
            assert_eq!(current, 1, "{name}: {labels:?}");
        }
        println!("{rounds} kills, {} acknowledged values, none lost", seen.len());
        assert!(seen.len() as u64 > rounds);
        // What a kill has interrupted comes to an end, and the database has the current password then.
        for _ in 0..3000 {
            let (user, password) = login(&mut session, "rotated").await;
            let pending =
                call::<DescribeSecret>(&mut session, json!({ "SecretId": "rotated" })).await;
            let pending = pending.version_ids_to_stages.unwrap_or_default();
            let is_pending = pending.values().flatten().any(|label| label == "AWSPENDING");
            if !is_pending && log_in(&url, None, &user, &password).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the interrupted rotation did not end");
    });
}
