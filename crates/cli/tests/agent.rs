//! `outlast agent` as a process, between programs and a stub of Secrets Manager.

use std::collections::HashMap;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::request::Parts;
use outlast_api::wire::sigv4::{Claim, Parts as Signed};
use outlast_crypto::Secret;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_testing::{skip, until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::stub::{Handler, Process, Reply, Stub, exchange};
use crate::common::{fail, outlast, stderr, succeed};

const KEY: &str = "AKIDEXAMPLE01";
const SECRET: &str = "a-secret-of-the-tests-0123456789";
const TOKEN: &str = "token-of-the-tests";

/// What the stub says of a secret.
#[derive(Clone)]
pub enum Says {
    Text(&'static str),
    Error(u16, &'static str),
    Nothing,
}

/// Secrets by name, or by name and stage.
pub type Secrets = Arc<Mutex<HashMap<String, Says>>>;

pub fn error(status: u16, code: &str) -> Reply {
    (status, Vec::new(), json!({"__type": code, "Message": "text of the service"}).to_string())
}

/// Secrets Manager and STS, as far as the agent uses them. Verifies every signature.
pub fn service(secrets: &Secrets, token: Option<&'static str>) -> Handler {
    let secrets = secrets.clone();
    Box::new(move |head, body| {
        let now = system_clock().div_euclid(1000);
        let parts = Signed {
            method: head.method.as_str(),
            path: head.uri.path(),
            query: "",
            host: head.headers["host"].to_str().unwrap(),
            headers: &head.headers,
            body,
        };
        let claim = Claim::parse(&parts, now).unwrap();
        claim.verify(&parts, &Secret::new(SECRET.into())).unwrap();
        let shown = head.headers.get("x-amz-security-token");
        assert_eq!(shown.map(|value| value.to_str().unwrap()), token);
        if claim.service == "sts" {
            return Some((200, Vec::new(), "<xml/>".into()));
        }
        assert_eq!(claim.access_key_id, KEY);
        assert_eq!(head.headers["x-amz-target"], "secretsmanager.GetSecretValue");
        let input: Value = serde_json::from_slice(body).unwrap();
        let name = input["SecretId"].as_str().unwrap();
        let stage = input["VersionStage"].as_str().unwrap_or("AWSCURRENT");
        let key = if stage == "AWSCURRENT" { name.to_owned() } else { format!("{name}@{stage}") };
        match secrets.lock().unwrap().get(&key).cloned() {
            None => Some(error(400, "ResourceNotFoundException")),
            Some(Says::Error(status, code)) => Some(error(status, code)),
            Some(Says::Nothing) => None,
            Some(Says::Text(text)) => {
                let value = json!({
                    "ARN": format!("arn:aws:secretsmanager:eu-central-1:123456789012:secret:{name}-AbCdEf"),
                    "Name": name, "VersionId": "v1", "SecretString": text,
                    "VersionStages": [stage], "CreatedDate": 1_793_491_200.5,
                });
                Some((200, Vec::new(), value.to_string()))
            }
        }
    })
}

pub struct World {
    pub stub: Stub,
    pub secrets: Secrets,
    configurations: AtomicUsize,
}

impl World {
    pub fn new() -> Self {
        let secrets = Secrets::default();
        let stub = Stub::new(service(&secrets, None));
        let world = Self { stub, secrets, configurations: AtomicUsize::new(0) };
        world.say("a", Says::Text("one"));
        world
    }

    fn say(&self, name: &str, says: Says) {
        self.secrets.lock().unwrap().insert(name.into(), says);
    }

    /// The command with this configuration, which reaches the stub.
    pub fn command(&self, configuration: &str) -> Command {
        let port = if configuration.contains("http_port") { "" } else { "http_port = 0\n" };
        let text = format!(
            "endpoint_url = '{}'\nregion = 'eu-central-1'\nca_bundle = 'ca.pem'\n{port}{configuration}",
            self.stub.url()
        );
        let number = self.configurations.fetch_add(1, Ordering::Relaxed);
        let path = self.stub.write(&format!("agent{number}.toml"), text);
        let mut command = outlast();
        command.args(["agent", "--config"]).arg(path);
        command.env("AWS_TOKEN", TOKEN).env("HOME", self.stub.folder.path());
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    }

    pub fn start(&self, configuration: &str) -> Agent {
        Agent(Process::start(&mut self.command(configuration), 1, self.stub.folder.path()))
    }

    fn text(&self, name: &str) -> String {
        self.stub.path(name).display().to_string()
    }
}

pub struct Agent(pub Process);

impl Agent {
    fn send(&self, target: &str, headers: &str) -> (u16, String) {
        let port = self.0.port("listening on http://127.0.0.1:");
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        );
        let (status, _, body) = exchange(stream, &request);
        (status, body)
    }

    pub fn get(&self, target: &str) -> (u16, String) {
        self.send(target, &format!("X-Aws-Parameters-Secrets-Token: {TOKEN}\r\n"))
    }

    /// Status, and the secret or the error's name.
    pub fn secret(&self, target: &str) -> (u16, String) {
        let (status, body) = self.get(target);
        let value: Value = serde_json::from_str(&body).unwrap();
        let member = if status == 200 { "SecretString" } else { "__type" };
        (status, value[member].as_str().unwrap().to_owned())
    }
}

pub fn ok(text: &str) -> (u16, String) {
    (200, text.to_owned())
}

#[test]
fn clients_of_aws_agent_get_what_they_expect() {
    let world = World::new();
    world.say("a@AWSPREVIOUS", Says::Text("zero"));
    world.say("path/to/b", Says::Text("two"));
    let agent = world.start("");
    let (status, body) = agent.get("/secretsmanager/get?secretId=a");
    let expected = r#"{"ARN":"arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf","Name":"a","VersionId":"v1","SecretString":"one","VersionStages":["AWSCURRENT"],"CreatedDate":"1793491200.5"}"#;
    assert_eq!((status, body.as_str()), (200, expected));
    assert_eq!(agent.secret("/v1/a?versionStage=AWSPREVIOUS"), ok("zero"));
    assert_eq!(agent.secret("/v1/path/to/b"), ok("two"));
    assert_eq!(agent.send("/ping", ""), ok("healthy"));
    assert_eq!(agent.send("/v1/a", ""), (403, "Bad Token".into()));
    assert_eq!(
        agent.send("/v1/a", "X-Aws-Parameters-Secrets-Token: wrong\r\n"),
        (403, "Bad Token".into())
    );
    let both = format!("X-Vault-Token: {TOKEN}\r\nX-Forwarded-For: 192.0.2.1\r\n");
    assert_eq!(agent.send("/v1/a", &both), (400, "Forwarded".into()));
    assert_eq!(agent.get("/v1/"), (400, "missing secret ID".into()));
    assert_eq!(agent.get("/other"), (404, "Not found".into()));
    assert_eq!(agent.secret("/v1/none"), (400, "ResourceNotFoundException".into()));
    let log = agent.0.log();
    assert!(!log.contains("zero") && !log.contains("\"one\"") && !log.contains(TOKEN), "{log}");
    assert!(log.contains("X25519MLKEM768"), "{log}");
}

#[test]
fn secrets_come_from_memory_until_they_are_old_or_refreshed() {
    let world = World::new();
    let agent = world.start("ttl_seconds = 3600");
    assert_eq!(agent.secret("/v1/a"), ok("one"));
    let asked = world.stub.requests();
    world.say("a", Says::Text("two"));
    for _ in 0..20 {
        assert_eq!(agent.secret("/v1/a"), ok("one"));
    }
    assert_eq!(world.stub.requests(), asked);
    assert_eq!(agent.secret("/v1/a?refreshNow=true"), ok("two"));
    assert_eq!(world.stub.requests(), asked + 1);
    assert_eq!(agent.secret("/v1/a"), ok("two"));
    // SIGHUP forgets.
    world.say("a", Says::Text("three"));
    agent.0.signal(Signal::HUP);
    until("the agent forgot", || agent.secret("/v1/a") == ok("three"));
    // A failed refresh is an error, and does not cost the secret that is kept.
    world.say("a", Says::Error(503, "ServiceUnavailable"));
    assert_eq!(agent.secret("/v1/a?refreshNow=true").0, 503);
    assert_eq!(agent.secret("/v1/a"), ok("three"));
}

#[test]
fn without_a_time_to_live_every_read_asks() {
    let world = World::new();
    let agent = world.start("ttl_seconds = \"0\"\nvalidate_credentials = false");
    for number in 1..=3 {
        assert_eq!(agent.secret("/v1/a"), ok("one"));
        assert_eq!(world.stub.requests(), number);
    }
}

#[test]
fn the_cache_has_a_size() {
    let world = World::new();
    world.say("b", Says::Text("two"));
    let agent = world.start("cache_size = 1\nvalidate_credentials = false");
    for (name, asked) in [("a", 1), ("a", 1), ("b", 2), ("a", 3)] {
        assert_eq!(agent.get(&format!("/v1/{name}")).0, 200);
        assert_eq!(world.stub.requests(), asked, "{name}");
    }
}

/// Away: served for as long as the configuration allows, then refused and erased.
#[test]
fn secrets_outlive_the_service_for_a_while() {
    let world = World::new();
    let agent = world.start("ttl_seconds = 1\nstale_seconds = 20");
    assert_eq!(agent.secret("/v1/a"), ok("one"));
    world.stub.down(true);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(agent.secret("/v1/a"), ok("one"));
    assert_eq!(agent.secret("/v1/a?refreshNow=true"), (502, "ConnectionError".into()));
    until("the secret ended", || agent.secret("/v1/a") == (502, "ConnectionError".into()));
    world.stub.down(false);
    until("the service is asked again", || agent.secret("/v1/a") == ok("one"));
}

#[test]
fn without_transient_errors_nothing_old_is_served() {
    let world = World::new();
    let agent = world.start("ttl_seconds = 1\nignore_transient_errors = false");
    assert_eq!(agent.secret("/v1/a"), ok("one"));
    world.say("a", Says::Error(500, "InternalServiceError"));
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(agent.secret("/v1/a"), (500, "InternalServiceError".into()));
}

#[test]
fn a_service_that_does_not_answer_is_not_waited_for() {
    let world = World::new();
    let agent = world.start("upstream_timeout_seconds = 1");
    world.say("b", Says::Nothing);
    assert_eq!(agent.secret("/v1/b"), (504, "TimeoutError".into()));
}

/// A refusal ends what is kept, at once and for good.
#[test]
fn a_revocation_ends_a_secret() {
    for code in ["AccessDeniedException", "ResourceNotFoundException", "DecryptionFailure"] {
        let world = World::new();
        world.say("b", Says::Text("two"));
        let agent = world.start("ttl_seconds = 3600");
        assert_eq!(agent.secret("/v1/a"), ok("one"));
        assert_eq!(agent.secret("/v1/b"), ok("two"));
        world.say("a", Says::Error(400, code));
        assert_eq!(agent.secret("/v1/a?refreshNow=1"), (400, code.into()));
        world.stub.down(true);
        assert_eq!(agent.secret("/v1/a"), (502, "ConnectionError".into()), "{code}");
        assert_eq!(agent.secret("/v1/b"), ok("two"), "{code}");
    }
}

#[test]
fn a_refused_identity_ends_all_secrets() {
    let world = World::new();
    world.say("b", Says::Text("two"));
    let agent = world.start("ttl_seconds = 3600");
    assert_eq!(agent.secret("/v1/b"), ok("two"));
    world.say("a", Says::Error(403, "UnrecognizedClientException"));
    assert_eq!(agent.secret("/v1/a"), (403, "UnrecognizedClientException".into()));
    world.stub.down(true);
    assert_eq!(agent.secret("/v1/b"), (502, "ConnectionError".into()));
}

#[test]
fn a_classical_service_is_refused_unless_it_is_preferred_only() {
    let secrets = Secrets::default();
    let stub = Stub::with(&Policy::classical(), service(&secrets, None));
    let world = World { stub, secrets, configurations: AtomicUsize::new(0) };
    world.say("a", Says::Text("one"));
    let text = fail(&mut world.command("ignore_transient_errors = false"), 1);
    assert!(text.contains("no post-quantum group"), "{text}");
    // Away at the start is not an error by default, but nothing is served.
    let agent = world.start("");
    assert_eq!(agent.secret("/v1/a"), (502, "ConnectionError".into()));
    drop(agent);
    let agent = world.start("mode = 'prefer'");
    assert_eq!(agent.secret("/v1/a"), ok("one"));
    assert!(agent.0.log().contains("post_quantum=false"), "{}", agent.0.log());
}

#[test]
fn connections_are_limited() {
    let world = World::new();
    let agent = world.start("max_conn = 2");
    let port = agent.0.port("listening on http://127.0.0.1:");
    let open: Vec<_> = (0..2).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    until("the third is too many", || {
        agent.get("/v1/a") == (429, "Connection limit exceeded".into())
    });
    assert_eq!(agent.send("/ping", ""), ok("healthy"));
    drop(open);
    until("there is room again", || agent.get("/v1/a").0 == 200);
}

/// Reads over the socket with curl, perhaps as another user.
fn curl(socket: &str, target: &str, uid: Option<u32>) -> String {
    let url = format!("http://localhost{target}");
    let words = ["curl", "--silent", "--unix-socket", socket, &url];
    let mut command = match uid {
        None => Command::new("env"),
        Some(uid) => {
            let mut command = Command::new("setpriv");
            let (uid, gid) = (format!("--reuid={uid}"), format!("--regid={uid}"));
            command.args([&uid, &gid]).arg("--clear-groups");
            command
        }
    };
    succeed(command.args(words))
}

#[test]
fn callers_of_the_socket_get_what_their_rules_grant() {
    let world = World::new();
    world.say("web/x", Says::Text("three"));
    let socket = world.text("agent.sock");
    let me = std::env::current_exe().unwrap();
    let uid = rustix::process::getuid().as_raw();
    let agent = world.start(&format!(
        "http = false\nsocket = '{socket}'\nlog_level = 'debug'\n\
         [[caller]]\nname = 'test'\nuser = {uid}\nexecutable = '{}'\nsecrets = ['a']\n\
         [[caller]]\nname = 'curl'\nuser = {uid}\nexecutable = '/usr/bin/curl'\nsecrets = ['web/*']\n\
         [[caller]]\nname = 'nobody'\nuser = 65534\nsecrets = ['web/x']\n",
        me.display()
    ));
    assert_eq!(agent.0.lines, [format!("listening on unix:{socket}")]);
    let mine = |target: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let (status, _, body) = exchange(UnixStream::connect(&socket).unwrap(), &request);
        (status, body)
    };
    assert_eq!(mine("/v1/a").0, 200);
    let (status, body) = mine("/v1/web/x");
    assert!(status == 403 && body.contains("AccessDeniedException"), "{status} {body}");
    assert_eq!(mine("/ping"), ok("healthy"));
    // The same user with another program.
    assert!(curl(&socket, "/v1/a", None).contains("AccessDeniedException"));
    assert!(curl(&socket, "/v1/web/x", None).contains("three"));
    // By its ARN, too.
    let arn = "/v1/arn:aws:secretsmanager:eu-central-1:123456789012:secret:web/x-AbCdEf";
    assert!(curl(&socket, arn, None).contains("ResourceNotFound"));
    assert!(
        curl(&socket, "/v1/arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf", None)
            .contains("AccessDenied")
    );
    if uid != 0 {
        return skip("only root can be another user");
    }
    std::fs::set_permissions(world.stub.folder.path(), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    assert!(curl(&socket, "/v1/web/x", Some(65534)).contains("three"));
    assert!(curl(&socket, "/v1/a", Some(65534)).contains("AccessDeniedException"));
    assert!(curl(&socket, "/v1/web/x", Some(65533)).contains("AccessDeniedException"));
    let log = agent.0.log();
    assert!(log.contains("denied by the rules") && log.contains("uid 65533"), "{log}");
}

#[test]
fn a_socket_is_taken_over_from_a_dead_agent_only() {
    let world = World::new();
    let socket = world.text("agent.sock");
    let text =
        format!("http = false\nsocket = '{socket}'\n[[caller]]\nuser = 0\nsecrets = ['a']\n");
    let agent = world.start(&text);
    let error = fail(&mut world.command(&text), 1);
    assert!(error.contains("another process listens"), "{error}");
    agent.0.signal(Signal::KILL);
    drop(agent);
    assert!(Path::new(&socket).exists());
    let mut agent = world.start(&text);
    agent.0.signal(Signal::TERM);
    assert!(agent.0.child.wait().unwrap().success());
    assert!(!Path::new(&socket).exists());
    world.stub.write("agent.sock", "a file");
    let error = fail(&mut world.command(&text), 1);
    assert!(error.contains("not a socket"), "{error}");
}

/// A folder in memory.
fn memory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("outlast").tempdir_in("/dev/shm").unwrap()
}

#[test]
fn files_are_written_whole_and_programs_are_told() {
    let world = World::new();
    world.say("json", Says::Text(r#"{"user":"app","password":"p"}"#));
    let folder = memory();
    let path = |name: &str| folder.path().join(name);
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap_or_default();
    world.stub.write("t.j2", "{% set db = secret('json') | from_json %}{{ db.user }}:{{ db.password }}:{{ secret('a') }}\n");
    // A process that notes the signal. Not SIGHUP: where the tests run under nohup, a shell cannot catch it.
    let script = "trap 'echo told >> \"$1\"' USR1; echo ready; echo $$ > \"$2\"; while [ -e \"$2\" ]; do sleep 0.1; done";
    let (told, pid) = (path("told"), path("pid"));
    let mut listener = Command::new("sh");
    listener.args(["-c", script, "sh"]).args([&told, &pid]);
    let _listener = Process::start(&mut listener, 1, world.stub.folder.path());
    until("it listens", || !read("pid").is_empty());
    let agent = world.start(&format!(
        "ttl_seconds = 1\n\
         [[file]]\npath = '{0}/plain'\nsecret = 'a'\nmode = '0440'\nuser = 65534\ngroup = 65533\n\
         signal = 'USR1'\npid_file = '{0}/pid'\n\
         [[file]]\npath = '{0}/conf'\ntemplate = 't.j2'\ncommand = ['sh', '-c', 'echo run >> {0}/run']\n",
        folder.path().display()
    ));
    assert_eq!((read("plain"), read("conf")), ("one".into(), "app:p:one\n".into()));
    let found = std::fs::metadata(path("plain")).unwrap();
    assert_eq!((found.mode() & 0o7777, found.uid(), found.gid()), (0o440, 65534, 65533));
    assert_eq!(std::fs::metadata(path("conf")).unwrap().mode() & 0o7777, 0o400);
    until("they were told", || read("told") == "told\n" && read("run") == "run\n");
    let inode = found.ino();
    world.say("a", Says::Text("two"));
    until("the files changed", || read("plain") == "two" && read("conf") == "app:p:two\n");
    until("they were told again", || read("told") == "told\ntold\n" && read("run") == "run\nrun\n");
    // Replaced, not written to: a program that has the old one open reads it to its end.
    assert_ne!(std::fs::metadata(path("plain")).unwrap().ino(), inode);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    // Away: the files stay. Refused: they go.
    world.stub.down(true);
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(read("plain"), "two");
    world.stub.down(false);
    world.say("a", Says::Error(400, "AccessDeniedException"));
    until("the files went", || !path("plain").exists() && !path("conf").exists());
    assert!(!agent.0.log().contains("p:two"), "{}", agent.0.log());
}

/// After a restart the cache is empty, but the file says how old it is.
#[test]
fn a_file_outlives_a_restart_while_the_service_is_away() {
    let world = World::new();
    let folder = memory();
    let path = folder.path().join("plain");
    let text = format!(
        "ttl_seconds = 1\nstale_seconds = 20\n[[file]]\npath = '{}'\nsecret = 'a'\n",
        path.display()
    );
    drop(world.start(&text));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
    world.stub.down(true);
    let agent = world.start(&text);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
    assert!(agent.0.log().contains("stays for a while"), "{}", agent.0.log());
    until("it is too old", || !path.exists());
}

/// What an agent that was killed while it wrote has left is gone after the next start, and a FIFO at the path is replaced.
#[test]
fn a_start_cleans_up_after_a_killed_agent() {
    let world = World::new();
    let folder = memory();
    let path = folder.path().join("plain");
    let left = folder.path().join(".outlast-0123456789ab");
    std::fs::write(&left, "half a sec").unwrap();
    let other = folder.path().join(".outlast-notes");
    std::fs::write(&other, "mine").unwrap();
    succeed(Command::new("mkfifo").arg(&path));
    let agent = world.start(&format!("[[file]]\npath = '{}'\nsecret = 'a'\n", path.display()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
    assert!(!left.exists() && other.exists());
    assert!(agent.0.log().contains("an unfinished file was removed"), "{}", agent.0.log());
}

#[test]
fn an_error_in_a_template_leaves_the_old_file() {
    let world = World::new();
    world.say("json", Says::Text(r#"{"user":"app"}"#));
    let folder = memory();
    let path = folder.path().join("conf");
    world.stub.write("t.j2", "{{ (secret('json') | from_json).user }}");
    let agent = world.start(&format!(
        "ttl_seconds = 1\n[[file]]\npath = '{}'\ntemplate = 't.j2'\n",
        path.display()
    ));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "app");
    world.say("json", Says::Text(r#"{"username":"hunter2"}"#));
    until("it is reported", || agent.0.log().contains("the old one stays"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "app");
    assert!(!agent.0.log().contains("hunter2"));
}

#[test]
fn a_file_may_stay_and_must_not_be_on_a_disk_by_accident() {
    let world = World::new();
    let folder = memory();
    let kept = folder.path().join("kept");
    let agent = world.start(&format!(
        "ttl_seconds = 1\n\
         [[file]]\npath = '{}'\nsecret = 'a'\nkeep_when_revoked = true\n\
         [[file]]\npath = 'on-disk'\nsecret = 'a'\n\
         [[file]]\npath = 'allowed'\nsecret = 'a'\nallow_disk = true\n",
        kept.display()
    ));
    if rustix::fs::statfs(world.stub.folder.path()).unwrap().f_type as i64 != 0x0102_1994 {
        assert!(!world.stub.path("on-disk").exists());
        assert!(agent.0.log().contains("is on a disk"), "{}", agent.0.log());
    }
    assert_eq!(std::fs::read_to_string(world.stub.path("allowed")).unwrap(), "one");
    world.say("a", Says::Error(400, "AccessDeniedException"));
    until("the file went", || !world.stub.path("allowed").exists());
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "one");
}

#[test]
fn memory_is_locked_and_not_for_debuggers() {
    let world = World::new();
    let agent = world.start("");
    assert_eq!(agent.secret("/v1/a"), ok("one"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.0.child.id())).unwrap();
    let locked = status.lines().find(|line| line.starts_with("VmLck:")).unwrap();
    let locked: u64 = locked.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(locked >= 64, "{locked} kB");
    // A process that may be dumped belongs to its user.
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", agent.0.child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
}

#[test]
fn the_token_may_be_in_a_file_or_a_credential_of_systemd() {
    let world = World::new();
    let file = world.stub.write("token", format!("{TOKEN}\n"));
    let folder = world.stub.folder.path();
    let mut by_file = world.command("");
    by_file.env("AWS_TOKEN", format!("file://{}", file.display()));
    let mut by_credential = world.command("");
    by_credential.env("AWS_TOKEN", "file://credential:token").env("CREDENTIALS_DIRECTORY", folder);
    let mut by_other =
        world.command("ssrf_env_variables = ['OTHER', 'MINE']\nssrf_headers = ['x-mine']");
    by_other.env("MINE", TOKEN).env_remove("AWS_TOKEN");
    for (command, header) in [
        (&mut by_file, "X-Vault-Token"),
        (&mut by_credential, "X-Aws-Parameters-Secrets-Token"),
        (&mut by_other, "X-Mine"),
    ] {
        let agent = Agent(Process::start(command, 1, folder));
        assert_eq!(agent.send("/v1/a", &format!("{header}: {TOKEN}\r\n")).0, 200, "{header}");
        assert_eq!(agent.send("/v1/a", "X-Vault-Token: x\r\n").0, 403);
    }
}

#[test]
fn metrics_count_what_happened() {
    let world = World::new();
    let mut command = world.command("metrics_listen = '127.0.0.1:0'");
    let agent = Agent(Process::start(&mut command, 2, world.stub.folder.path()));
    for target in ["/v1/a", "/v1/a", "/v1/none"] {
        agent.get(target);
    }
    let port = agent.0.port("metrics on http://127.0.0.1:");
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (_, _, page) = exchange(stream, request);
    for line in [
        "outlast_agent_reads_total{interface=\"http\",outcome=\"fetched\"} 1",
        "outlast_agent_reads_total{interface=\"http\",outcome=\"fresh\"} 1",
        "outlast_agent_reads_total{interface=\"http\",outcome=\"refused\"} 1",
        "outlast_agent_upstream_requests_total{outcome=\"ok\"} 1",
        "outlast_agent_cached_secrets 1",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn mistakes_are_told_at_the_start() {
    let world = World::new();
    for (configuration, part) in [
        ("unknown = 1", "unknown field"),
        ("http_port = 80", "http_port must be 1024 to 65535"),
        ("http_address = '0.0.0.0'", "other machines"),
        ("ttl_seconds = 3601", "ttl_seconds must be 0 to 3600"),
        ("max_conn = 0", "max_conn must be 1 to 1000"),
        ("max_roles = 21", "max_roles must be 1 to 20"),
        ("cache_size = '0'", "cache_size must be 1 to 1000"),
        ("path_prefix = 'v1'", "path_prefix must begin with /"),
        ("log_level = 'loud'", "log_level"),
        ("log_to_file = true", "logs to stderr only"),
        ("mode = 'off'", "mode"),
        ("http = false", "nothing to do"),
        ("socket = 'x'", "nobody may read"),
        ("socket = 'x'\n[[caller]]\nexecutable = '/bin/x'\nsecrets = ['*']", "give user or group"),
        ("cache_bytes = 1000", "more than the 1000"),
        ("[[file]]\npath = 'x'\ntemplate = 'none.j2'", "none.j2"),
        ("[roles_anywhere]\ncertificate = 'none.pem'", "--trust-anchor-arn is missing"),
    ] {
        let text = fail(&mut world.command(configuration), 1);
        assert!(text.contains(part), "{configuration}: {text}");
    }
    let mut no_token = world.command("");
    let text = fail(no_token.env_remove("AWS_TOKEN"), 1);
    assert!(
        text.contains("there is no token") && text.contains("hint: AWS_TOKEN=file://"),
        "{text}"
    );
    let mut broken = world.command("");
    let text = fail(broken.env("AWS_TOKEN", "with\nline"), 1);
    assert!(text.contains("not usable") && !text.contains("with"), "{text}");
    // Wrong credentials are found out at the start, too.
    world.stub.answer(Box::new(|_: &Parts, _: &[u8]| Some((403, Vec::new(), "<xml/>".into()))));
    let text = fail(&mut world.command(""), 1);
    assert!(text.contains("the credentials are refused"), "{text}");
    let output = world.command("validate_credentials = false").arg("--mode=off").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
