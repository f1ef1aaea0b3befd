//! Operators' mistakes, as a table, and the program's answers: docs/mistakes.md is written from it
//! (`OUTLAST_BLESS=1`), and the test fails when that is stale. Every answer says what to do next.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::pki::{New, issue};
use common::{Folder, SECRET, Server, outlast, run, stderr, stdout, succeed};
use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_testing::checkout;

/// A mistake of an operator.
struct Mistake {
    /// The mistake in a few words.
    what: &'static str,
    /// Arguments of `outlast`; names in braces are paths of [`World`].
    command: &'static str,
    /// The exit code; `None` if the server starts anyway, with a warning.
    code: Option<i32>,
    /// Another user than the owner of the folder runs the command.
    as_stranger: bool,
}

const fn mistake(what: &'static str, command: &'static str, code: i32) -> Mistake {
    Mistake { what, command, code: Some(code), as_stranger: false }
}

/// Exit code 1: it failed. 2: wrong usage.
const MISTAKES: &[Mistake] = &[
    mistake("the folder has no store in it", "server --data {empty}", 1),
    mistake("there is no such folder", "server --data {none}", 1),
    mistake("the folder is a file", "server --data {file}", 1),
    Mistake {
        as_stranger: true,
        ..mistake("the folder belongs to another user", "server --data {data}", 1)
    },
    Mistake {
        as_stranger: true,
        ..mistake("the folder is made where the user may not write", "init --data {data}/new", 1)
    },
    mistake("the port is in use", "server --data {data} --listen 127.0.0.1:{port}", 1),
    mistake(
        "the port of plain HTTP is in use",
        "server --data {data} --listen 127.0.0.1:0 --revocation-listen 127.0.0.1:{port}",
        1,
    ),
    mistake(
        "the address is not one of this machine",
        "server --data {data} --listen 192.0.2.1:8443",
        1,
    ),
    mistake("the address has no port", "server --data {data} --listen 127.0.0.1", 2),
    mistake(
        "a second server is started on a store",
        "server --data {served} --listen 127.0.0.1:0",
        1,
    ),
    mistake("the targets of events are tried, and there is none", "events test --data {data}", 1),
    mistake("others can read the root key's file", "store check --data {loose}", 0),
    mistake("the root key's file is gone", "server --data {keyless}", 1),
    mistake(
        "the root key's file is of another store",
        "server --data {data} --root-key file:{served}/root.key",
        1,
    ),
    mistake(
        "the root key's file is something else",
        "server --data {data} --root-key file:{file}",
        1,
    ),
    mistake(
        "the root key's place is not said rightly",
        "server --data {data} --root-key {file}",
        2,
    ),
    mistake(
        "a passphrase is given for a root key in a file",
        "server --data {data} --root-key passphrase:env:RIGHT",
        1,
    ),
    mistake("the passphrase is wrong", "server --data {pass} --root-key passphrase:env:WRONG", 1),
    mistake(
        "the passphrase is not there",
        "server --data {pass} --root-key passphrase:env:UNSET",
        1,
    ),
    mistake("the passphrase is too short", "init --data {none} --root-key passphrase:env:SHORT", 1),
    mistake("a folder is made where there is one", "init --data {data}", 1),
    mistake("the account has a name for a number", "init --data {none} --account acme", 2),
    mistake("the access key id has odd characters", "init --data {none} --access-key-id a/b", 2),
    mistake("a setting is misspelt", "server --data {data} --config {typo}", 1),
    mistake("a setting has a value of another kind", "server --data {data} --config {kind}", 1),
    mistake("a limit is misspelt", "server --data {data} --config {limit}", 1),
    mistake("the settings file is not there", "server --data {data} --config {none}", 1),
    mistake("an option is misspelt", "server --data {data} --polcy x", 2),
    mistake("a command is misspelt", "sevrer --data {data}", 2),
    mistake("the policy has another name", "server --data {data} --policy 2027-01", 2),
    mistake("the mode has another name", "server --data {data} --mode enforce", 2),
    mistake("the log's directives are not valid", "server --data {data} --log outlast=loud", 2),
    mistake(
        "OCSP answers are to be valid for ten seconds",
        "server --data {data} --ocsp-validity 10",
        2,
    ),
    mistake(
        "the service's URL is not of HTTPS",
        "server --data {data} --service-url http://a.example",
        2,
    ),
    mistake(
        "the certificate's file is not there",
        "server --data {data} --tls-cert-file {none} --tls-key-file {key}",
        1,
    ),
    mistake(
        "the certificate's file is a key",
        "server --data {data} --tls-cert-file {key} --tls-key-file {key}",
        1,
    ),
    mistake(
        "the certificate comes without its key",
        "server --data {data} --tls-cert-file {cert}",
        1,
    ),
    mistake(
        "the key belongs to another certificate",
        "server --data {data} --listen 127.0.0.1:0 --tls-cert-file {cert} --tls-key-file {otherkey}",
        1,
    ),
    Mistake {
        code: None,
        ..mistake(
            "the certificate has expired",
            "server --data {data} --listen 127.0.0.1:0 --tls-cert-file {expired} --tls-key-file {expiredkey}",
            0,
        )
    },
    mistake(
        "clients are to show certificates, but whose is not said",
        "server --data {data} --client-auth require",
        2,
    ),
    mistake(
        "the ledger's folder is a file",
        "server --data {data} --listen 127.0.0.1:0 --ledger {file}",
        2,
    ),
    mistake(
        "the database is of another kind",
        "server --data {data} --store mysql://root@localhost/outlast",
        2,
    ),
    mistake(
        "the database cannot be reached",
        "server --data {data} --store postgres://outlast@127.0.0.1:1/outlast",
        1,
    ),
    mistake("a backup is made over another", "backup --data {data} --out {backup}", 1),
    mistake(
        "a backup is restored over a store",
        "restore {backup} --data {data} --root-key file:{data}/root.key",
        1,
    ),
    mistake("a backup is restored without its root key", "restore {backup} --data {none}", 1),
    mistake(
        "a backup is restored with another store's root key",
        "restore {backup} --data {none} --root-key file:{served}/root.key",
        1,
    ),
    mistake(
        "a backup is cut off",
        "restore {cut} --data {none} --root-key file:{data}/root.key",
        1,
    ),
    mistake(
        "something else is restored",
        "restore {file} --data {none} --root-key file:{data}/root.key",
        1,
    ),
    mistake("a user is made twice", "principal create administrator --data {data}", 1),
    mistake("a user is deleted whom there is not", "principal delete nobody --data {data}", 1),
    mistake("a role is made that nobody may assume", "principal create r --role --data {data}", 1),
    mistake("the ledger is not named", "ledger summary", 1),
    mistake(
        "the ledger is asked about a time in words",
        "ledger summary --data {data} --since yesterday",
        2,
    ),
    mistake(
        "the proxy is not told where to forward",
        "proxy --listen 127.0.0.1:0 --tls-cert-file {cert} --tls-key-file {key}",
        2,
    ),
    mistake(
        "the proxy is not told where to listen",
        "proxy --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key}",
        2,
    ),
    mistake(
        "the proxy forwards to no URL",
        "proxy --listen 127.0.0.1:0 --to localhost:80 --tls-cert-file {cert} --tls-key-file {key}",
        2,
    ),
    mistake(
        "the proxy has no certificate",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80",
        2,
    ),
    mistake(
        "the proxy's policy allows none of its certificates",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --policy cnsa2-2026-11",
        1,
    ),
    mistake(
        "the proxy's mode leaves nothing of its policy",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --policy cnsa2-2026-11 --mode off",
        2,
    ),
    mistake(
        "the proxy is to speak a protocol that it does not know",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --protocol smtp",
        2,
    ),
    mistake(
        "the proxy is to choose backends in another way",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --balance fast",
        2,
    ),
    mistake(
        "the proxy is to send another PROXY protocol",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --send-proxy-protocol v3",
        2,
    ),
    mistake(
        "the proxy is to trust what is no address",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --trust-forwarded x",
        2,
    ),
    mistake(
        "the proxy is behind a network that there is not",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --proxy-protocol-from 10.0.0.0/33",
        2,
    ),
    mistake(
        "the proxy is to check backends in another way",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --health x",
        2,
    ),
    mistake(
        "the proxy is to check backends all the time",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --health tcp --health-interval 0",
        2,
    ),
    mistake(
        "the proxy gets names of protocols that it has anyway",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --alpn h2",
        2,
    ),
    mistake(
        "the proxy may have no connection",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --max-connections 0",
        2,
    ),
    mistake(
        "the proxy's log has a level that there is not",
        "proxy --listen 127.0.0.1:0 --to http://127.0.0.1:80 --tls-cert-file {cert} --tls-key-file {key} --log loud",
        2,
    ),
    mistake("a key of the proxy's settings file is misspelt", "proxy --config {proxytypo}", 1),
    mistake("the forwarder is to use no TLS", "forward --to http://localhost:80", 2),
    mistake("the ledger is to be kept for no time", "server --data {data} --ledger-days 0", 2),
    mistake("the ledger is to have no room", "server --data {data} --ledger-bytes 1", 2),
    mistake(
        "the ledger is asked about a time that ends before it begins",
        "ledger summary --data {data} --since 7d --until 30d",
        2,
    ),
    mistake("a number is a word", "ledger summary --data {data} --rows many", 2),
    mistake(
        "an export of the audit log ends before it begins",
        "audit export --data {data} --out {none} --from 9 --to 2",
        2,
    ),
    mistake("an audit event is to be proved, but not which", "audit prove --data {data}", 2),
    mistake(
        "a file is signed, and no server is there",
        "sign {file} --key alias/x --endpoint-url https://127.0.0.1:1 --region us-east-1 --ca-bundle {cert}",
        1,
    ),
    mistake("a file is signed without credentials", "sign {file} --key alias/x", 1),
    mistake("a digest is not one", "sign {file} --key alias/x --digest md5", 2),
    mistake(
        "a request is made for something that is not a name",
        "cert request --key alias/x --subject Release",
        2,
    ),
    mistake(
        "an alternative name of a request has no kind",
        "cert request --key alias/x --subject CN=Release --san example.com",
        2,
    ),
    mistake("the trust store is a server's certificate", "verify {file} --trust {cert}", 1),
];

/// The paths that rows name.
struct World {
    places: Vec<(&'static str, String)>,
    program: PathBuf,
    _folders: Vec<Folder>,
    _server: Server,
}

impl World {
    fn new() -> Self {
        let [data, served, loose, keyless] = [(); 4].map(|()| Folder::new());
        let server = served.serve();
        std::fs::set_permissions(loose.data.join("root.key"), Permissions::from_mode(0o644))
            .unwrap();
        std::fs::remove_file(keyless.data.join("root.key")).unwrap();
        let pass = data.path("pass");
        let mut init = outlast();
        init.args(["init", "--root-key", "passphrase:env:RIGHT", "--data"]).arg(&pass);
        succeed(init.env("RIGHT", RIGHT).env("OUTLAST_SECRET_ACCESS_KEY", SECRET));
        let backup = data.path("backup");
        succeed(outlast().args(["backup", "--data"]).arg(&data.data).arg("--out").arg(&backup));
        let bytes = std::fs::read(&backup).unwrap();
        let cut = data.write("cut", &bytes[..bytes.len() * 2 / 3]);
        let now = system_clock().div_euclid(1000);
        let pair = |name: &str, since: i64| {
            let new = New {
                dns: &["localhost"],
                ..New::of("EndEntityServerAuthCertificate", name, since)
            };
            let made = issue("ECC_NIST_P256", new, None);
            let certificate = data.write(&format!("{name}.pem"), made.pem().as_bytes());
            (certificate, data.write(&format!("{name}.key"), made.key_pem().as_bytes()))
        };
        let (cert, key) = pair("good", now);
        let (_, otherkey) = pair("other", now);
        let (expired, expiredkey) = pair("expired", now - 365 * 86_400);
        let empty = data.path("empty");
        std::fs::create_dir(&empty).unwrap();
        let text = |path: &Path| path.display().to_string();
        let places = vec![
            ("data", text(&data.data)),
            ("served", text(&served.data)),
            ("loose", text(&loose.data)),
            ("keyless", text(&keyless.data)),
            ("pass", text(&pass)),
            ("port", server.port.to_string()),
            ("empty", text(&empty)),
            ("none", text(&data.path("none"))),
            ("file", text(&data.write("file", b"something else\n"))),
            ("typo", text(&data.write("typo.toml", b"polcy = \"2026-11\"\n"))),
            ("limit", text(&data.write("limit.toml", b"[limits]\nkms-keys = 5\n"))),
            (
                "proxytypo",
                text(&data.write(
                    "proxy.toml",
                    b"[[listener]]\nlisten = \"127.0.0.1:0\"\nbackend_cas = \"x\"\n",
                )),
            ),
            ("kind", text(&data.write("kind.toml", b"ocsp_validity = \"an hour\"\n"))),
            ("backup", text(&backup)),
            ("cut", text(&cut)),
            ("cert", text(&cert)),
            ("key", text(&key)),
            ("otherkey", text(&otherkey)),
            ("expired", text(&expired)),
            ("expiredkey", text(&expiredkey)),
        ];
        // The other user must be able to reach the folder and the program.
        for folder in [&data, &served] {
            std::fs::set_permissions(folder.temporary.path(), Permissions::from_mode(0o755))
                .unwrap();
        }
        let program = data.path("outlast");
        outlast_testing::program::copy(outlast().get_program(), &program);
        let folders = vec![data, served, loose, keyless];
        Self { places, program, _folders: folders, _server: server }
    }

    fn command(&self, row: &Mistake) -> Command {
        let mut command = outlast();
        if row.as_stranger {
            command = Command::new(&self.program);
            command.env_clear();
            if rustix::process::geteuid().is_root() {
                command.uid(65_534).gid(65_534);
            }
        }
        for word in row.command.split(' ') {
            let mut word = word.to_owned();
            for (name, place) in &self.places {
                word = word.replace(&format!("{{{name}}}"), place);
            }
            command.arg(word);
        }
        for (name, value) in [
            ("RIGHT", RIGHT),
            ("WRONG", "another passphrase"),
            ("SHORT", "short"),
            ("HOME", "/none"),
        ] {
            command.env(name, value);
        }
        if row.command.starts_with("server ") {
            // Another test's server may have the usual port.
            command.env("OUTLAST_LISTEN", "127.0.0.1:0");
        }
        if row.command.contains("--endpoint-url") {
            command.env("AWS_ACCESS_KEY_ID", "X").env("AWS_SECRET_ACCESS_KEY", SECRET);
        }
        command
    }

    /// The output, with paths replaced by their names, the longest first.
    fn shown(&self, text: &str) -> String {
        let mut places = self.places.clone();
        places.sort_by_key(|(_, place)| std::cmp::Reverse(place.len()));
        let mut text = text.to_owned();
        for (name, place) in places.iter().filter(|(name, _)| *name != "port") {
            text = text.replace(place, &name.to_uppercase());
        }
        // Replaces what differs between runs.
        let mut text: String = text.split_inclusive(char::is_whitespace).map(steady).collect();
        for (_, port) in self.places.iter().filter(|(name, _)| *name == "port") {
            text = text.replace(&format!(":{port}"), ":PORT");
        }
        text
    }
}

/// A word, or its kind if it differs between runs: a fingerprint, a time.
fn steady(word: &str) -> String {
    let core = word.trim_end().trim_end_matches([',', ')', ';']);
    let rest = &word[core.len()..];
    let is_hex = core.len() == 16 && core.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_time = core.ends_with('Z') && core.contains('.') && core.starts_with("20");
    match (is_hex, is_time) {
        (true, _) => format!("FINGERPRINT{rest}"),
        (_, true) => format!("TIME{rest}"),
        _ => word.to_owned(),
    }
}

const RIGHT: &str = "a passphrase of the tests";

/// Exit code and stderr; of a server that starts anyway, its output before it serves.
fn answer(mut command: Command, serves: bool) -> (Option<i32>, String) {
    if !serves {
        let output = run(&mut command);
        return (output.status.code(), stderr(&output));
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    (None, stderr(&output))
}

#[test]
fn every_mistake_is_answered_with_what_to_do() {
    let world = World::new();
    let mut text = String::from(HEAD);
    let (mut silent, mut other_codes) = (Vec::new(), Vec::new());
    for row in MISTAKES {
        let (code, said) = answer(world.command(row), row.code.is_none());
        let said = world.shown(said.trim());
        assert!(!said.contains(SECRET) && !said.contains(RIGHT), "{}: {said}", row.what);
        if code != row.code {
            other_codes.push(format!("{}: {code:?}: outlast {}\n{said}", row.what, row.command));
        }
        // The command line parser has its own form for hints.
        let says_what = ["hint: ", "tip: ", "For more information, try", "warning: ", "WARN"];
        if !says_what.iter().any(|mark| said.contains(mark)) {
            silent.push(format!("{}: {said}", row.what));
        }
        let shown = row.command.split(' ').map(|word| match word.split_once('{') {
            Some(_) => world.shown(&world.filled(word)),
            None => word.to_owned(),
        });
        let command = shown.collect::<Vec<_>>().join(" ");
        let code = code.map_or("it serves".to_owned(), |code| format!("exit code {code}"));
        let by = if row.as_stranger { ", as another user" } else { "" };
        text.push_str(&format!(
            "\n## {}\n\n`outlast {command}`{by}: {code}\n\n```text\n{said}\n```\n",
            capitalised(row.what)
        ));
    }
    assert!(other_codes.is_empty(), "{}", other_codes.join("\n\n"));
    println!("{} mistakes", MISTAKES.len());
    assert!(silent.is_empty(), "{}", silent.join("\n"));
    let place = checkout().join("docs/mistakes.md");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&place, &text).unwrap();
    }
    let found = std::fs::read_to_string(&place).unwrap_or_default();
    let other = found.lines().zip(text.lines()).find(|(one, other)| one != other);
    assert!(
        found == text,
        "docs/mistakes.md is stale: run the test with OUTLAST_BLESS=1: {other:?}"
    );
}

impl World {
    fn filled(&self, word: &str) -> String {
        self.places.iter().fold(word.to_owned(), |word, (name, place)| {
            word.replace(&format!("{{{name}}}"), place)
        })
    }
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

const HEAD: &str = "# What goes wrong, and what the program says

Each command below is wrong in one way. It was run, and this is its answer: the exit code, the error, and what to do next. Words
in capitals stand for places: DATA is a data folder, SERVED one that a server serves, NONE a place where there is nothing, FILE
a file with something else in it. `crates/cli/tests/mistakes.rs` runs them all and fails if an answer is not the one below;
`OUTLAST_BLESS=1 cargo test -p outlast --test all mistakes::` writes this page.
";

#[test]
fn init_prints_commands_that_work_as_printed() {
    let temporary = tempfile::tempdir().unwrap();
    let data = temporary.path().join("it's the data");
    let port = outlast_testing::free_port();
    let printed =
        succeed(outlast().args(["init", "--port", &port.to_string(), "--data"]).arg(&data));
    let line = |mark: &str| {
        let found = printed.lines().find_map(|line| line.strip_prefix(mark));
        found.unwrap_or_else(|| panic!("{printed}")).trim().to_owned()
    };
    // A shell with `outlast` in its path, as printed; it is stopped with its process group.
    let program = outlast().get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec {} --revocation-listen off", line("start it:")));
    let folder = Path::new(&program).parent().unwrap().display().to_string();
    shell.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()));
    let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 64];
    let mut output = child.stdout.take().unwrap();
    let read = output.read(&mut said).unwrap();
    let first = String::from_utf8_lossy(&said[..read]).into_owned();
    assert!(first.starts_with(&format!("listening on https://127.0.0.1:{port}")), "{first}");
    let mut shell = Command::new("sh");
    let export = line("use it with:");
    shell.arg("-c").arg(format!(
        "{export}; test -f \"$AWS_CONFIG_FILE\" && grep -q :{port} \"$AWS_CONFIG_FILE\""
    ));
    let worked = shell.status().unwrap().success();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(worked, "{export}");
}

#[test]
fn empty_ledger_says_that_it_is_empty() {
    let folder = Folder::new();
    folder.serve().terminate();
    for command in ["laggards", "summary", "dry-run"] {
        let said = stdout(&run(outlast().args(["ledger", command, "--data"]).arg(&folder.data)));
        assert!(said.contains("no connection is recorded"), "{command}: {said}");
        assert!(!said.contains("every client"), "{command}: {said}");
    }
}

#[test]
fn proxy_says_where_it_forwards_and_what_it_records() {
    let folder = Folder::new();
    let now = system_clock().div_euclid(1000);
    let new =
        New { dns: &["localhost"], ..New::of("EndEntityServerAuthCertificate", "proxy", now) };
    let made = issue("ECC_NIST_P256", new, None);
    let (cert, key) = (
        folder.write("proxy.pem", made.pem().as_bytes()),
        folder.write("proxy.key", made.key_pem().as_bytes()),
    );
    let ledger = folder.path("ledger").display().to_string();
    for (more, told) in [
        (vec![], "no ledger: connections are not recorded (--ledger DIR)".to_owned()),
        (vec!["--ledger", &ledger], format!("ledger in {ledger}")),
    ] {
        let mut command = outlast();
        command.args(["proxy", "--listen", "127.0.0.1:0", "--to", "http://127.0.0.1:1"]);
        command.args(["--to", "http://127.0.0.1:2", "--mode", "require", "--tls-cert-file"]);
        command.arg(&cert).arg("--tls-key-file").arg(&key).args(more);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .take(3)
            .map(Result::unwrap)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let expected =
            "proxy forwards to 127.0.0.1:1, 127.0.0.1:2 under policy 2026-11 in mode require";
        assert_eq!(lines[1..], [expected.to_owned(), told], "{lines:?}");
    }
}

#[test]
fn refusals_are_logged_some_times() {
    let folder = Folder::new();
    let mut command = outlast();
    command.args(["server", "--listen", "127.0.0.1:0", "--mode", "require", "--data"]);
    let mut child =
        command.arg(&folder.data).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = said.next().unwrap().unwrap();
    let port: u16 = line.rsplit_once(':').unwrap().1.parse().unwrap();
    let roots = std::fs::read(folder.data.join("client/ca.pem")).unwrap();
    let roots = outlast_pki::pem::read_certificates(&roots).unwrap();
    let connector = Connector::new(&Policy::classical(), &roots).unwrap();
    common::runtime().block_on(async {
        for _ in 0..20 {
            assert!(connector.connect("localhost", port).await.is_err());
        }
    });
    // It stops in an orderly way, so that everything is written.
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = stderr(&output);
    let count = text.lines().filter(|line| line.contains("a client was refused")).count();
    println!("{count} of 20 refusals are in the log");
    // A limited number a minute; if the twenty take longer than a minute, a few more.
    assert!((1..20).contains(&count), "{text}");
    assert!(text.contains("the client has no post-quantum group"), "{text}");
}
