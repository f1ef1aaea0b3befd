//! A mixed crowd of real clients at one server: the ledger must have the right verdict on each, its dry run must say
//! who would break, and exactly those must break.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::peers::{checkout, openssl, peer};
use common::{Folder, Server, outlast, run, stderr, stdout, succeed};
use serde_json::{Value, json};

/// A client, and what the ledger must say of it.
struct Member {
    name: &'static str,
    /// Whether it signs in, as a user with its name. Otherwise it asks for a server name with its name.
    signs: bool,
    /// Starts it; `None` if it is not installed.
    start: fn(&Scene, &str) -> Option<Command>,
    /// Verdict in the ledger.
    verdict: &'static str,
    /// Software in the ledger.
    software: Option<&'static str>,
}

impl Member {
    fn is_hybrid(&self) -> bool {
        self.verdict.starts_with("hybrid")
    }
}

const OLD_OPENSSL: Option<&str> = Some("OpenSSL 3.0 to 3.4");

const CROWD: &[Member] = &[
    Member {
        name: "curl",
        signs: true,
        start: curl,
        verdict: "never-offers",
        software: OLD_OPENSSL,
    },
    Member {
        name: "boto3",
        signs: true,
        start: boto3,
        verdict: "never-offers",
        software: OLD_OPENSSL,
    },
    Member {
        name: "go-sdk",
        signs: true,
        start: go_sdk,
        verdict: "hybrid",
        // Built by Go 1.26, whose defaults are those of the version in `go.mod`.
        software: Some("Go 1.24 or 1.25 (or in go.mod)"),
    },
    Member { name: "java-crt", signs: true, start: java_crt, verdict: "hybrid", software: None },
    Member {
        name: "java-crt-classical",
        signs: true,
        start: java_crt_classical,
        verdict: "never-offers",
        software: None,
    },
    Member {
        name: "outlast",
        signs: true,
        start: itself,
        verdict: "hybrid",
        software: Some("Outlast (its clients, and its proxy towards servers)"),
    },
    Member {
        name: "go127",
        signs: false,
        start: go127,
        verdict: "hybrid",
        software: Some("Go 1.26 or newer"),
    },
    Member {
        name: "java",
        signs: false,
        start: jsse,
        verdict: "never-offers",
        software: Some("Java (JSSE of OpenJDK 13 to 26)"),
    },
    Member {
        name: "node",
        signs: false,
        start: node,
        verdict: "hybrid",
        software: Some("OpenSSL 3.5 or newer"),
    },
    Member {
        name: "openssl-new",
        signs: false,
        start: |scene, name| s_client(&scene.openssl, scene, name, &[]),
        verdict: "hybrid",
        software: Some("OpenSSL 3.5 or newer"),
    },
    Member {
        name: "openssl-classical-first",
        signs: false,
        start: |scene, name| {
            s_client(&scene.openssl, scene, name, &["-groups", "X25519:X25519MLKEM768"])
        },
        verdict: "hybrid-after-retry",
        software: None,
    },
    Member {
        name: "openssl-old",
        signs: false,
        start: |scene, name| s_client(&scene.system, scene, name, &[]),
        verdict: "never-offers",
        software: OLD_OPENSSL,
    },
    Member {
        name: "openssl-tls12",
        signs: false,
        start: |scene, name| s_client(&scene.openssl, scene, name, &["-tls1_2"]),
        verdict: "tls12",
        software: None,
    },
];

/// The setting that all of them meet in.
struct Scene {
    folder: Folder,
    port: u16,
    ca: PathBuf,
    /// Access key and secret by name.
    keys: HashMap<&'static str, (String, String)>,
    openssl: PathBuf,
    /// The machine's own OpenSSL.
    system: PathBuf,
    /// Compiled classes.
    classes: PathBuf,
    java: PathBuf,
}

impl Scene {
    fn endpoint(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// A program of an AWS SDK, with standard variables only.
    fn sdk(&self, name: &str, mut command: Command) -> Command {
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("AWS_") {
                command.env_remove(&variable);
            }
        }
        let (id, secret) = &self.keys[name];
        command
            .env("AWS_ACCESS_KEY_ID", id)
            .env("AWS_SECRET_ACCESS_KEY", secret)
            .env("AWS_REGION", "us-east-1")
            // A client that is refused would try again.
            .env("AWS_MAX_ATTEMPTS", "1")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .env("AWS_ENDPOINT_URL", self.endpoint())
            .env("AWS_CA_BUNDLE", &self.ca)
            .env("AWS_CONFIG_FILE", "/dev/null")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
        command
    }

    /// A program that takes the address, the server name and the trusted CAs as arguments.
    fn plain(&self, mut command: Command, name: &str) -> Command {
        command.arg(format!("127.0.0.1:{}", self.port)).arg(server_name(name)).arg(&self.ca);
        command
    }
}

fn server_name(name: &str) -> String {
    format!("{name}.crowd.test")
}

fn source(name: &str) -> PathBuf {
    checkout().join("tests/interop/endpoints/plain").join(name)
}

fn curl(scene: &Scene, name: &str) -> Option<Command> {
    let (id, secret) = &scene.keys[name];
    let mut command = Command::new("curl");
    command
        .args(["-sS", "--fail", "--aws-sigv4", "aws:amz:us-east-1:kms", "-d", "{}", "--user"])
        .arg(format!("{id}:{secret}"))
        .args(["-H", "content-type: application/x-amz-json-1.1"])
        .args(["-H", "x-amz-target: TrentService.ListKeys", "--cacert"])
        .arg(&scene.ca)
        .arg(scene.endpoint());
    Some(command)
}

fn boto3(scene: &Scene, name: &str) -> Option<Command> {
    let mut command = Command::new(peer("python")?.join("bin/python"));
    command.args(["-c", "import boto3; boto3.client('kms').list_keys()"]);
    Some(scene.sdk(name, command))
}

fn go_sdk(scene: &Scene, name: &str) -> Option<Command> {
    let (id, secret) = &scene.keys[name];
    let (endpoint, ca) = (scene.endpoint(), scene.ca.display());
    let config = format!(
        "[profile crowd]\nregion = us-east-1\nendpoint_url = {endpoint}\nca_bundle = {ca}\n"
    );
    let keys = format!("[crowd]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n");
    let mut command = scene.sdk(name, Command::new(peer("go")?.join("bin/kms-whole")));
    for variable in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"] {
        command.env_remove(variable);
    }
    command
        .env("AWS_PROFILE", "crowd")
        .env("AWS_CONFIG_FILE", scene.folder.write("config", config.as_bytes()))
        .env("AWS_SHARED_CREDENTIALS_FILE", scene.folder.write("credentials", keys.as_bytes()));
    Some(command)
}

fn java_crt(scene: &Scene, name: &str) -> Option<Command> {
    list_keys(scene, name, "pq")
}

fn java_crt_classical(scene: &Scene, name: &str) -> Option<Command> {
    list_keys(scene, name, "classical")
}

fn list_keys(scene: &Scene, name: &str, which: &str) -> Option<Command> {
    // The CRT client only trusts the system's CA file; the script gives it another one.
    let mut command = Command::new(checkout().join("tests/interop/java/run-with-ca.sh"));
    command.arg(&scene.ca).arg("java").arg("-cp");
    command.arg(format!("{}:{}/lib/*", scene.classes.display(), scene.java.display()));
    command.args(["ListKeys", which]);
    Some(scene.sdk(name, command))
}

fn itself(scene: &Scene, name: &str) -> Option<Command> {
    let mut command = outlast();
    // The key does not exist: the client must be told so, after it has signed in.
    command.args(["sign", "--key", "alias/none"]).arg(&scene.ca);
    Some(scene.sdk(name, command))
}

fn go127(scene: &Scene, name: &str) -> Option<Command> {
    let case = json!({
        "id": 1, "address": format!("127.0.0.1:{}", scene.port), "name": server_name(name),
        "ca": scene.ca,
    });
    let file = scene.folder.write("case.json", case.to_string().as_bytes());
    let mut command = Command::new(peer("go127")?.join("bin/endpoints"));
    command.stdin(std::fs::File::open(file).unwrap());
    Some(command)
}

fn jsse(scene: &Scene, name: &str) -> Option<Command> {
    let mut command = Command::new("java");
    command.arg("-cp").arg(&scene.classes).arg("Connect");
    Some(scene.plain(command, name))
}

fn node(scene: &Scene, name: &str) -> Option<Command> {
    let mut command = Command::new(peer("javascript")?.join("bin/node"));
    command.arg(source("connect.mjs"));
    Some(scene.plain(command, name))
}

fn s_client(openssl_folder: &Path, scene: &Scene, name: &str, extra: &[&str]) -> Option<Command> {
    let name = server_name(name);
    let mut command = openssl(openssl_folder, &["s_client", "-servername", &name]);
    command.args(["-verify_hostname", &name, "-verify_return_error", "-CAfile"]).arg(&scene.ca);
    command.args(["-connect", &format!("127.0.0.1:{}", scene.port)]).args(extra);
    command.stdin(Stdio::null());
    Some(command)
}

fn compile(classes: &Path, java: &Path) {
    let mut command = Command::new("javac");
    command.arg("-cp").arg(format!("{}/lib/*", java.display())).arg("-d").arg(classes);
    succeed(command.arg(source("Connect.java")).arg(source("ListKeys.java")));
}

/// The scene and its server, with a user for each client that signs in; `None` if a client is missing.
fn scene() -> Option<(Scene, Server)> {
    let (openssl, java) = (peer("openssl")?, peer("java")?);
    for name in ["python", "go", "go127", "javascript"] {
        peer(name)?;
    }
    let folder = Folder::new();
    let mut keys = HashMap::new();
    for member in CROWD.iter().filter(|member| member.signs) {
        let mut create = outlast();
        create.args(["principal", "create", member.name, "--admin", "--output", "json", "--data"]);
        let made: Value = serde_json::from_str(&succeed(create.arg(&folder.data))).unwrap();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        keys.insert(member.name, (text("access_key_id"), text("secret_access_key")));
    }
    let server = serve(&folder, &[]);
    let classes = folder.path("classes");
    compile(&classes, &java);
    let ca = folder.data.join("client/ca.pem");
    let (port, system) = (server.port, PathBuf::from("/usr"));
    Some((Scene { folder, port, ca, keys, openssl, system, classes, java }, server))
}

fn serve(folder: &Folder, extra: &[&str]) -> Server {
    let names: Vec<_> = CROWD.iter().map(|member| server_name(member.name)).collect();
    Server::start(&folder.data, &[&["--tls-name", &names.join(",")], extra].concat())
}

/// Output of the command with `--output json`; the exit code says whether it found something.
fn ledger(scene: &Scene, arguments: &[&str]) -> (Value, Option<i32>) {
    let mut command = outlast();
    command.arg("ledger").args(arguments).args(["--output", "json", "--data"]);
    let output = run(command.arg(&scene.folder.data));
    let text = stdout(&output);
    let value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}{}", stderr(&output)));
    (value, output.status.code())
}

/// The rows of a member: by the user that it signs in as, or by the server name that it asks for.
fn rows<'a>(member: &Member, clients: &'a Value) -> Vec<&'a Value> {
    let clients = clients.as_array().unwrap().iter();
    let principal = format!("arn:aws:iam::123456789012:user/{}", member.name);
    let name = server_name(member.name);
    let is_it = |row: &&Value| match member.signs {
        true => row["principal"] == principal,
        false => row["server_names"].as_array().unwrap().iter().any(|found| *found == name),
    };
    clients.filter(is_it).collect()
}

/// All at once.
fn come(scene: &Scene) -> HashMap<&'static str, Output> {
    std::thread::scope(|scope| {
        let running: Vec<_> = CROWD
            .iter()
            .map(|member| {
                let mut command = (member.start)(scene, member.name).unwrap();
                (member.name, scope.spawn(move || run(&mut command)))
            })
            .collect();
        running.into_iter().map(|(name, thread)| (name, thread.join().unwrap())).collect()
    })
}

/// Whether a client was served, according to its own output.
fn was_served(member: &Member, output: &Output) -> bool {
    let text = stdout(output) + &stderr(output);
    match member.name {
        // The answer to its question.
        "outlast" => text.contains("alias/none") && text.contains("NotFound"),
        // It tests more than is needed here.
        "go-sdk" => text
            .lines()
            .any(|line| line.split_once(" steps passed").is_some_and(|(passed, _)| passed != "0")),
        "go127" | "java" | "node" => text.contains("\"ok\":true"),
        _ => output.status.success(),
    }
}

#[test]
fn the_ledger_is_right_about_each_of_a_mixed_crowd() {
    let Some((mut scene, mut server)) = scene() else { return };
    let outputs = come(&scene);
    for member in CROWD {
        let output = &outputs[member.name];
        let text = stdout(output) + &stderr(output);
        assert!(was_served(member, output), "{}: {text}", member.name);
    }
    assert_eq!(server.terminate(), Some(0));

    let (summary, code) = ledger(&scene, &["summary"]);
    assert_eq!(summary["missed"], 0, "{summary}");
    assert_eq!(code, Some(0));
    println!("{:<24} {:<20} {:<20} software", "client", "verdict", "group");
    for member in CROWD {
        let rows = rows(member, &summary["clients"]);
        assert!(!rows.is_empty(), "{} is not in the ledger: {summary}", member.name);
        for row in rows {
            let software = row["fingerprint"]["software"].as_str();
            let groups: Vec<_> = row["groups"].as_object().unwrap().keys().cloned().collect();
            let verdict = row["verdict"].as_str().unwrap();
            println!("{:<24} {verdict:<20} {:<20} {software:?}", member.name, groups.join(","));
            assert_eq!(verdict, member.verdict, "{}: {row}", member.name);
            assert_eq!(software, member.software, "{}: {row}", member.name);
            let hybrid = groups == ["X25519MLKEM768"];
            assert_eq!(hybrid, member.is_hybrid(), "{}: {row}", member.name);
        }
    }

    let (laggards, code) = ledger(&scene, &["laggards"]);
    assert_eq!(code, Some(5));
    for member in CROWD {
        let rows = rows(member, &laggards);
        assert_eq!(rows.is_empty(), member.is_hybrid(), "{}: {laggards}", member.name);
        assert!(rows.iter().all(|row| !row["hint"].as_str().unwrap().is_empty()));
    }

    // Who would break under other policies. All forecasts are made before any client connects again.
    let require = foretold(&scene, &["--policy", "2026-11", "--mode", "require"]);
    let strictest = foretold(&scene, &["--policy", "cnsa2-2026-11", "--certificates", "ml-dsa-87"]);
    let never: Vec<_> = CROWD.iter().filter(|member| !member.is_hybrid()).collect();
    assert_eq!(require, never.iter().map(|member| member.name).collect::<Vec<_>>());
    // Few clients have its groups and its signatures.
    let served = CROWD.iter().map(|member| member.name).filter(|name| !strictest.contains(name));
    assert_eq!(served.collect::<Vec<_>>(), ["outlast", "go127"]);
    comes_true(&mut scene, &["--mode", "require"], &require);
    comes_true(&mut scene, &["--policy", "cnsa2-2026-11", "--tls-cert", "ml-dsa-87"], &strictest);
}

/// Clients that would break, according to the ledger.
fn foretold(scene: &Scene, arguments: &[&str]) -> Vec<&'static str> {
    let (dry_run, code) = ledger(scene, &[&["dry-run"], arguments].concat());
    assert_eq!(code, Some(5));
    let breaks = |member: &&Member| {
        let rows = rows(member, &dry_run["clients"]);
        rows.iter().all(|row| row["breaks"].as_u64().unwrap() > 0)
    };
    let broken: Vec<_> = CROWD.iter().filter(breaks).map(|member| member.name).collect();
    println!("{} breaks {}", arguments.join(" "), broken.join(", "));
    broken
}

/// Lets every client connect to a server with these options: exactly the predicted ones must break.
fn comes_true(scene: &mut Scene, flags: &[&str], broken: &[&str]) {
    let server = serve(&scene.folder, flags);
    scene.port = server.port;
    let outputs = come(scene);
    for member in CROWD {
        let output = &outputs[member.name];
        let text = stdout(output) + &stderr(output);
        let served = was_served(member, output);
        assert_eq!(served, !broken.contains(&member.name), "{flags:?}, {}: {text}", member.name);
    }
}
