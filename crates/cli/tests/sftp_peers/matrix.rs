//! Each algorithm of each client at the door, one at a time, under several security policies, and users' keys and certificates of
//! each kind. The expected outcome follows from the policy's lists as `outlast policy show` prints them, and from what the client
//! has; the audit trail must name the algorithm. The counts are a table in `docs/interop.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Output;

use outlast_api::ops::transfer::import_host_key::ImportHostKey;
use outlast_api::ops::transfer::import_ssh_public_key::ImportSshPublicKey;
use outlast_testing::program;
use serde_json::{Value, json};

use super::{Library, OpenSsh, Putty, libraries, openssh};
use crate::common::peers::hold_table;
use crate::common::{outlast, run, stderr, stdout, succeed};
use crate::sftp::{World, random};

const BEGIN: &str = "<!-- begin: ssh matrix -->";
const END: &str = "<!-- end: ssh matrix -->";

/// The first one is AWS's.
const POLICIES: [&str; 5] = [
    "TransferSecurityPolicy-2025-03",
    "2026-11",
    "2026-11-require-pq",
    "legacy-2026-11",
    "sftp-strict-2026-11",
];

const COMPOSITE: &str = "ssh-mldsa44-ed25519";

/// MACs are tried with this cipher, which all policies have.
const CIPHER_OF_MACS: &str = "aes256-ctr";

/// What is tried, by kind; the last of the key exchanges are in policies and not served here.
const TRIED: [(&str, &[&str]); 4] = [
    (
        "kex",
        &[
            "mlkem768x25519-sha256",
            "mlkem768nistp256-sha256",
            "mlkem1024nistp384-sha384",
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "ecdh-sha2-nistp256",
            "ecdh-sha2-nistp384",
            "ecdh-sha2-nistp521",
            "sntrup761x25519-sha512",
            "diffie-hellman-group16-sha512",
        ],
    ),
    (
        "key",
        &[
            COMPOSITE,
            "ssh-ed25519",
            "ecdsa-sha2-nistp256",
            "ecdsa-sha2-nistp384",
            "ecdsa-sha2-nistp521",
            "rsa-sha2-512",
            "rsa-sha2-256",
        ],
    ),
    (
        "cipher",
        &[
            "aes256-gcm@openssh.com",
            "aes128-gcm@openssh.com",
            "chacha20-poly1305@openssh.com",
            "aes256-ctr",
            "aes192-ctr",
            "aes128-ctr",
        ],
    ),
    (
        "mac",
        &[
            "hmac-sha2-256-etm@openssh.com",
            "hmac-sha2-512-etm@openssh.com",
            "hmac-sha2-256",
            "hmac-sha2-512",
        ],
    ),
];

/// Named by policies for clients that have nothing else, and left out here (decision 39).
const UNSERVED: [&str; 2] = ["sntrup761x25519-sha512", "diffie-hellman-group16-sha512"];

/// Keys of users and authorities: the algorithm that one signs with, and what `ssh-keygen` makes it from.
const KEYS: [(&str, &[&str]); 6] = [
    ("ssh-ed25519", &["-t", "ed25519"]),
    ("ecdsa-sha2-nistp256", &["-t", "ecdsa", "-b", "256"]),
    ("ecdsa-sha2-nistp384", &["-t", "ecdsa", "-b", "384"]),
    ("ecdsa-sha2-nistp521", &["-t", "ecdsa", "-b", "521"]),
    ("rsa-sha2-512", &["-t", "rsa", "-b", "2048"]),
    (COMPOSITE, &["-t", "mldsa44-ed25519"]),
];

/// Of what is tried, what a client has, by kind.
type Offers = BTreeMap<&'static str, Vec<String>>;

/// Kind and name of an algorithm, whether the client did its work with it, and what the client said.
type Outcome = (&'static str, String, bool, String);

/// What users log in with, made once for all servers. `key-NAME` is a key alone. `subject-NAME` has a certificate of an
/// authority with Ed25519; `issuer-NAME` is a key of Ed25519 with a certificate of an authority of this kind, and
/// `issuer-stranger` one of an authority that no server trusts.
struct Credentials {
    folder: tempfile::TempDir,
    names: Vec<&'static str>,
}

impl Credentials {
    fn new(clients: &[OpenSsh]) -> Self {
        let newest = clients.last().unwrap();
        let has_composite = newest.has("key").iter().any(|name| name == COMPOSITE);
        let folder = tempfile::tempdir().unwrap();
        let keygen = |arguments: &[&str]| {
            let mut command = program::command(newest.bin.join("ssh-keygen").to_str().unwrap());
            succeed(command.arg("-q").args(arguments).current_dir(folder.path()));
        };
        let make = |file: &str, kind: &[&str]| {
            keygen(&[&["-N", "", "-C", "", "-f", file][..], kind].concat());
        };
        let principals: Vec<_> = clients.iter().map(certified).collect();
        let principals = principals.join(",");
        let certify = |authority: &str, file: &str| {
            let public = format!("{file}.pub");
            keygen(&["-s", authority, "-I", file, "-n", &principals, &public]);
        };
        let kinds = KEYS.iter().filter(|(name, _)| has_composite || *name != COMPOSITE);
        let mut trusted = String::new();
        let mut names = Vec::new();
        for (name, kind) in kinds {
            let authority = format!("authority-{name}");
            make(&authority, kind);
            let public = folder.path().join(&authority).with_extension("pub");
            trusted += &std::fs::read_to_string(public).unwrap();
            make(&format!("key-{name}"), kind);
            make(&format!("subject-{name}"), kind);
            certify("authority-ssh-ed25519", &format!("subject-{name}"));
            make(&format!("issuer-{name}"), &["-t", "ed25519"]);
            certify(&authority, &format!("issuer-{name}"));
            names.push(*name);
        }
        make("stranger", &["-t", "ed25519"]);
        make("issuer-stranger", &["-t", "ed25519"]);
        certify("stranger", "issuer-stranger");
        std::fs::write(folder.path().join("trusted"), trusted).unwrap();
        Self { folder, names }
    }

    /// Path of one of the files.
    fn path(&self, file: &str) -> String {
        self.folder.path().join(file).display().to_string()
    }
}

/// The user whom certificates name.
fn certified(client: &OpenSsh) -> String {
    format!("{}-certified", client.name)
}

/// A row of the table, under one policy.
struct Row {
    name: String,
    cases: usize,
    served: usize,
}

impl Row {
    /// The cell of the table.
    fn cell(&self) -> String {
        format!("{} of {}", self.served, self.cases)
    }

    /// The sum of rows.
    fn sum<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut sum = Self { name: "all".to_owned(), cases: 0, served: 0 };
        for row in rows {
            sum.cases += row.cases;
            sum.served += row.served;
        }
        sum
    }
}

/// A policy's lists, and a server with it.
struct Ground<'a> {
    policy: &'static str,
    shown: Value,
    world: World,
    credentials: &'a Credentials,
    rows: Vec<Row>,
}

impl<'a> Ground<'a> {
    /// A server with a host key of each kind that is tried.
    fn new(policy: &'static str, credentials: &'a Credentials) -> Self {
        let shown = succeed(outlast().args(["policy", "show", policy, "--output", "json"]));
        let trusted = credentials.path("trusted");
        let arguments = ["--sftp-trusted-user-ca-keys", &trusted];
        let world = World::new(&PathBuf::from("/usr/bin"), policy, &arguments);
        // The server has made those of the other kinds itself.
        for (name, kind) in [
            ("rsa", &["-t", "rsa", "-b", "2048"][..]),
            ("p384", &["-t", "ecdsa", "-b", "384"]),
            ("p521", &["-t", "ecdsa", "-b", "521"]),
        ] {
            world.key(name, kind);
            let body = std::fs::read_to_string(world.folder.path(name)).unwrap();
            let import = json!({ "ServerId": world.id, "HostKeyBody": body });
            world.call(async |session| {
                session.call::<ImportHostKey>(import).await.unwrap().unwrap();
            });
        }
        world.folder.write("x", &random(200_000));
        // The new host keys are in use within a second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let shown = serde_json::from_str(&shown).unwrap();
        Self { policy, shown, world, credentials, rows: Vec::new() }
    }

    fn lists(&self, kind: &str, name: &str) -> bool {
        let list = match kind {
            "kex" => "ssh_key_exchanges",
            "key" => "ssh_host_keys",
            "cipher" => "ssh_ciphers",
            _ => "ssh_macs",
        };
        self.shown[list].as_array().unwrap().iter().any(|one| one == name)
    }

    /// Whether the server must have an algorithm: the policy names it, it is not left out, and it is a hybrid if the policy
    /// requires one.
    fn serves(&self, kind: &str, name: &str) -> bool {
        let required = self.shown["mode"] == "require" && kind == "kex";
        self.lists(kind, name)
            && !UNSERVED.contains(&name)
            && (!required || name.starts_with("mlkem"))
    }

    /// Whether the server has one of what a client offers of a kind.
    fn shares(&self, kind: &str, has: &Offers) -> bool {
        has[kind].iter().any(|name| self.serves(kind, name))
    }

    /// Whether a client gets in that offers this name and nothing else of its kind, and all that it has of the other kinds: one of
    /// each kind must be common (RFC 4253, section 7.1).
    fn predicts(&self, kind: &str, name: &str, has: &Offers) -> bool {
        TRIED.iter().all(|(other, _)| match (kind, *other) {
            (kind, other) if kind == other => self.serves(kind, name),
            ("mac", "cipher") => self.serves("cipher", CIPHER_OF_MACS),
            (_, other) => self.shares(other, has),
        })
    }

    /// The CONNECTED events of a user.
    fn connected(&self, user: &str) -> Vec<Value> {
        let is_it = |event: &Value| event["user"] == user && event["activity-type"] == "CONNECTED";
        self.world.events().into_iter().filter(is_it).collect()
    }

    /// Compares what a client says of its cases with the prediction and with the audit trail.
    fn compare(&mut self, user: &str, has: &Offers, outcomes: &[Outcome]) {
        for (kind, name, worked, text) in outcomes {
            let expected = self.predicts(kind, name, has);
            assert_eq!(*worked, expected, "{}: {user} {kind} {name}: {text}", self.policy);
        }
        let worked: Vec<_> = outcomes.iter().filter(|(_, _, worked, _)| *worked).collect();
        let connected = self.connected(user);
        assert_eq!(connected.len(), worked.len(), "{}: {user}: {connected:?}", self.policy);
        for ((kind, name, ..), event) in worked.iter().zip(&connected) {
            let both = format!("{name},{name}");
            let (member, expected) = match *kind {
                "kex" => ("kex", name),
                "key" => ("host-key", name),
                "cipher" => ("ciphers", &both),
                _ => ("macs", &both),
            };
            assert_eq!(event[member], *expected, "{}: {user}: {event}", self.policy);
        }
        let name = label(user).to_owned();
        self.rows.push(Row { name, cases: outcomes.len(), served: worked.len() });
    }

    /// All algorithms with a program that tries them one after the other.
    fn library(&mut self, mut library: Library) {
        let user = library.name;
        self.world.at_home(user, "all");
        let port = self.world.server.sftp.unwrap().to_string();
        library.command.args([&port, user]).arg(self.world.folder.path(user));
        for (kind, names) in TRIED {
            library.command.args(names.iter().map(|name| format!("{kind}={name}")));
        }
        let text = succeed(&mut library.command);
        let mut outcomes = Vec::new();
        let mut has = Offers::new();
        let mut lacks = Vec::new();
        for line in text.lines() {
            let words: Vec<_> = line.splitn(4, ' ').collect();
            let kind = TRIED.iter().map(|(kind, _)| *kind).find(|kind| *kind == words[1]).unwrap();
            match words[3] {
                "unsupported" => lacks.push(words[2]),
                said => {
                    has.entry(kind).or_default().push(words[2].to_owned());
                    outcomes.push((kind, words[2].to_owned(), said == "ok", line.to_owned()));
                }
            }
        }
        // Nothing is left out unnoticed.
        assert_eq!(lacks, lacking(user), "{user}");
        self.compare(user, &has, &outcomes);
    }

    /// All algorithms that an OpenSSH has.
    fn openssh(&mut self, client: &OpenSsh) -> Offers {
        self.world.at_home(client.name, "all");
        let mut has = Offers::new();
        for (kind, names) in TRIED {
            let query = if kind == "key" { "sig" } else { kind };
            let all = client.has(query);
            let tried = names.iter().filter(|name| all.iter().any(|one| one == *name));
            has.insert(kind, tried.map(|name| (*name).to_owned()).collect());
        }
        let mut outcomes = Vec::new();
        for (kind, names) in &has {
            let option = match *kind {
                "kex" => "KexAlgorithms",
                "key" => "HostKeyAlgorithms",
                "cipher" => "Ciphers",
                _ => "MACs",
            };
            for name in names {
                let mut options = vec!["-o".to_owned(), format!("{option}={name}")];
                if *kind == "mac" {
                    options.extend(["-o".to_owned(), format!("Ciphers={CIPHER_OF_MACS}")]);
                }
                let output = run(&mut client.sftp(&self.world, client.name, client.name, &options));
                outcomes.push((*kind, name.clone(), output.status.success(), said(&output)));
            }
        }
        self.compare(client.name, &has, &outcomes);
        has
    }

    /// What `psftp` can be told to want before it warns, which ends a batch: its settings name groups of algorithms.
    fn putty(&mut self, putty: &Putty) {
        // Settings leave out nothing: what a list lacks is put where PuTTY has it by default.
        let settings = [
            (
                "KEX=mlkem-curve25519,WARN,ntru-curve25519,mlkem-nist,ecdh,dh-gex-sha1,dh-group18-sha512,dh-group17-sha512,\
                 dh-group16-sha512,dh-group15-sha512,dh-group14-sha1,rsa,dh-group1-sha1",
                "kex",
                "mlkem768x25519-sha256",
            ),
            (
                "Cipher=chacha20,WARN,aesgcm,aes,blowfish,3des,arcfour,des",
                "cipher",
                "chacha20-poly1305@openssh.com",
            ),
            ("Cipher=aes,WARN,aesgcm,chacha20,blowfish,3des,arcfour,des", "cipher", "aes256-ctr"),
            ("HostKey=ed25519,WARN,ed448,ecdsa,dsa,rsa", "key", "ssh-ed25519"),
            ("HostKey=ecdsa,WARN,ed25519,ed448,dsa,rsa", "key", "ecdsa-sha2-nistp256"),
            ("HostKey=rsa,WARN,ed25519,ed448,ecdsa,dsa", "key", "rsa-sha2-512"),
        ];
        self.world.at_home("psftp", "all");
        let key = putty.key(&self.world.folder.path("psftp"));
        let mut outcomes = Vec::new();
        for (setting, kind, name) in settings {
            let settings = format!("{setting}\n");
            let mut command = putty.psftp(&self.world, "psftp", &key, &settings);
            let output = run(&mut command);
            outcomes.push((kind, name.to_owned(), output.status.success(), said(&output)));
        }
        // Of each kind that a setting leaves alone, what PuTTY wants without a warning.
        let has = [
            ("kex", "mlkem768x25519-sha256"),
            ("key", "ssh-ed25519"),
            ("cipher", "aes256-ctr"),
            ("mac", "hmac-sha2-256-etm@openssh.com"),
        ];
        let has = Offers::from(has.map(|(kind, name)| (kind, vec![name.to_owned()])));
        self.compare("psftp", &has, &outcomes);
    }

    /// Users of a client: each kind of key gets in once it is the user's, whatever the policy says of host keys, and nobody else's
    /// does. A certificate does if its authority is trusted, and signs with an algorithm of the policy's list.
    fn users(&mut self, client: &OpenSsh, has: &Offers) {
        // Without keys for the connection nobody says who they are.
        if !TRIED.iter().all(|(kind, _)| self.shares(kind, has)) {
            return;
        }
        let has_composite = client.has("key").iter().any(|name| name == COMPOSITE);
        let credentials = self.credentials;
        let names = credentials.names.iter().copied();
        let names: Vec<_> = names.filter(|name| has_composite || *name != COMPOSITE).collect();
        let (keys, certified) = (format!("{}-keys", client.name), certified(client));
        self.world.at_home(&keys, "all");
        self.world.at_home(&certified, "all");
        let mut cases = Vec::new();
        for name in &names {
            let file = format!("key-{name}");
            cases.push(self.login(client, &keys, &file, false));
            let public = std::fs::read_to_string(credentials.path(&format!("{file}.pub"))).unwrap();
            let import = json!({
                "ServerId": self.world.id, "UserName": keys, "SshPublicKeyBody": public.trim(),
            });
            self.world.call(async |session| {
                session.call::<ImportSshPublicKey>(import).await.unwrap().unwrap();
            });
            cases.push(self.login(client, &keys, &file, true));
        }
        let of_ed25519 = self.lists("key", "ssh-ed25519");
        for name in &names {
            let file = format!("subject-{name}");
            cases.push(self.login(client, &certified, &file, of_ed25519));
            let listed = self.lists("key", name);
            cases.push(self.login(client, &certified, &format!("issuer-{name}"), listed));
        }
        cases.push(self.login(client, &certified, "issuer-stranger", false));
        let served = cases.iter().filter(|served| **served).count();
        let connected = self.connected(&keys).len() + self.connected(&certified).len();
        assert_eq!(connected, served, "{}: {keys}, {certified}", self.policy);
        let name = format!("{}, users", label(client.name));
        self.rows.push(Row { name, cases: cases.len(), served });
    }

    /// One login, which must have this outcome.
    fn login(&self, client: &OpenSsh, user: &str, file: &str, expected: bool) -> bool {
        let key = self.credentials.path(file);
        let output = run(&mut client.sftp(&self.world, user, &key, &[]));
        let worked = output.status.success();
        assert_eq!(worked, expected, "{}: {user} {file}: {}", self.policy, said(&output));
        worked
    }

    fn all(mut self, clients: &[OpenSsh]) -> Vec<Row> {
        for library in libraries() {
            self.library(library);
        }
        let newest = clients.last().map(|client| client.name);
        for client in clients {
            let has = self.openssh(client);
            // What counts at a login depends on the policy more than on the client: AWS's policy meets all of them.
            if self.policy == POLICIES[0] || newest == Some(client.name) {
                self.users(client, &has);
            }
        }
        if let Some(putty) = Putty::find() {
            self.putty(&putty);
        }
        self.rows
    }
}

fn said(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// A client's name in the table.
fn label(client: &str) -> &str {
    match client {
        "openssh-of-the-machine" => "OpenSSH 9.2",
        "openssh-10-0" => "OpenSSH 10.0",
        "openssh-10-6" => "OpenSSH 10.6",
        "psftp" => "PuTTY's `psftp`",
        "go-sftp" => "Go's `pkg/sftp`",
        "mina" => "Apache MINA SSHD",
        "jsch" => "JSch",
        library => library,
    }
}

/// What a library does not have, of what is tried.
fn lacking(library: &str) -> &'static [&'static str] {
    match library {
        "asyncssh" => &["sntrup761x25519-sha512", "ssh-mldsa44-ed25519"],
        "paramiko" => &[
            "mlkem768nistp256-sha256",
            "mlkem1024nistp384-sha384",
            "curve25519-sha256",
            "sntrup761x25519-sha512",
            "ssh-mldsa44-ed25519",
            "chacha20-poly1305@openssh.com",
        ],
        "go-sftp" => &[
            "mlkem768nistp256-sha256",
            "mlkem1024nistp384-sha384",
            "curve25519-sha256@libssh.org",
            "sntrup761x25519-sha512",
            "ssh-mldsa44-ed25519",
        ],
        _ => &["ssh-mldsa44-ed25519"],
    }
}

/// The rows of each policy side by side. Those of the first policy are all that there are.
fn table(grounds: &[Vec<Row>]) -> String {
    let mut table = format!("| client | `{}` |\n", POLICIES.join("` | `"));
    let _ = writeln!(table, "|{}", "---|".repeat(POLICIES.len() + 1));
    for first in &grounds[0] {
        let _ = write!(table, "| {} |", first.name);
        for rows in grounds {
            let row = rows.iter().find(|row| row.name == first.name);
            let _ = write!(table, " {} |", row.map_or_else(|| "-".to_owned(), Row::cell));
        }
        table.push('\n');
    }
    let sums: Vec<_> = grounds.iter().map(|rows| Row::sum(rows.iter()).cell()).collect();
    let _ = writeln!(table, "| all | {} |", sums.join(" | "));
    table
}

#[test]
fn each_algorithm_of_each_client_under_each_policy() {
    let clients = openssh();
    if clients.is_empty() {
        return;
    }
    let credentials = Credentials::new(&clients);
    let (of_all, clients) = (&credentials, &clients[..]);
    let grounds = std::thread::scope(|scope| {
        POLICIES
            .map(|policy| scope.spawn(move || Ground::new(policy, of_all).all(clients)))
            .map(|running| running.join().unwrap())
    });
    let sum = Row::sum(grounds.iter().flatten());
    let table = table(&grounds);
    println!("{table}{} cases, {} served, all as predicted", sum.cases, sum.served);
    // Nine clients, and the users of three of them, if all are installed.
    if grounds[0].len() == 12 {
        assert!(sum.cases >= 300 && sum.served >= 150, "{} {}", sum.cases, sum.served);
        hold_table(BEGIN, END, &table);
    }
}
