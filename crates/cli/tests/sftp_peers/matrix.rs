//! Each algorithm of each client at the door, one at a time, under security policies. The expected outcome follows from the
//! policy's lists as `outlast policy show` prints them, and from what the client has; the audit trail must name the algorithm.

use std::path::PathBuf;
use std::process::Output;

use outlast_api::ops::transfer::import_host_key::ImportHostKey;
use outlast_api::ops::transfer::import_ssh_public_key::ImportSshPublicKey;
use outlast_testing::program;
use serde_json::{Value, json};

use super::{Library, OpenSsh, Putty, libraries, openssh};
use crate::common::{outlast, run, stderr, stdout, succeed};
use crate::sftp::{World, random};

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
            "ssh-mldsa44-ed25519",
            "ssh-ed25519",
            "ecdsa-sha2-nistp256",
            "ecdsa-sha2-nistp384",
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

/// A policy's lists, and a server with it.
struct Ground {
    policy: &'static str,
    shown: Value,
    world: World,
    cases: usize,
    served: usize,
}

impl Ground {
    /// A server with a host key of each kind that is tried.
    fn new(policy: &'static str) -> Self {
        let shown = succeed(outlast().args(["policy", "show", policy, "--output", "json"]));
        let world = World::new(&PathBuf::from("/usr/bin"), policy, &[]);
        for (name, kind) in
            [("rsa", &["-t", "rsa", "-b", "2048"][..]), ("p384", &["-t", "ecdsa", "-b", "384"])]
        {
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
        Self { policy, shown: serde_json::from_str(&shown).unwrap(), world, cases: 0, served: 0 }
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

    /// Whether a client that offers nothing else of this kind gets in.
    fn predicts(&self, kind: &str, name: &str) -> bool {
        let required = self.shown["mode"] == "require" && kind == "kex";
        self.lists(kind, name)
            && !UNSERVED.contains(&name)
            && (!required || name.starts_with("mlkem"))
            // MACs are tried with this cipher.
            && (kind != "mac" || self.lists("cipher", "aes128-ctr"))
    }

    /// Compares what a client says of its cases with the prediction and with the audit trail.
    fn compare(&mut self, user: &str, outcomes: &[(&str, String, bool, String)]) {
        for (kind, name, worked, text) in outcomes {
            let expected = self.predicts(kind, name);
            assert_eq!(*worked, expected, "{}: {user} {kind} {name}: {text}", self.policy);
        }
        let worked: Vec<_> = outcomes.iter().filter(|(_, _, worked, _)| *worked).collect();
        let events = self.world.events();
        let is_it = |event: &&Value| event["user"] == user && event["activity-type"] == "CONNECTED";
        let connected: Vec<_> = events.iter().filter(is_it).collect();
        assert_eq!(connected.len(), worked.len(), "{}: {user}: {connected:?}", self.policy);
        for ((kind, name, ..), event) in worked.iter().zip(connected) {
            let both = format!("{name},{name}");
            let (member, expected) = match *kind {
                "kex" => ("kex", name),
                "key" => ("host-key", name),
                "cipher" => ("ciphers", &both),
                _ => ("macs", &both),
            };
            assert_eq!(event[member], *expected, "{}: {user}: {event}", self.policy);
        }
        self.cases += outcomes.len();
        self.served += worked.len();
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
        let mut lacks = Vec::new();
        for line in text.lines() {
            let words: Vec<_> = line.splitn(4, ' ').collect();
            let kind = TRIED.iter().map(|(kind, _)| *kind).find(|kind| *kind == words[1]).unwrap();
            match words[3] {
                "unsupported" => lacks.push(words[2]),
                said => {
                    outcomes.push((kind, words[2].to_owned(), said == "ok", line.to_owned()));
                }
            }
        }
        // Nothing is left out unnoticed.
        assert_eq!(lacks, lacking(user), "{user}");
        self.compare(user, &outcomes);
    }

    /// All algorithms that an OpenSSH has.
    fn openssh(&mut self, client: &OpenSsh) {
        self.world.at_home(client.name, "all");
        let mut outcomes = Vec::new();
        for (kind, names) in TRIED {
            let (option, query) = match kind {
                "kex" => ("KexAlgorithms", "kex"),
                "key" => ("HostKeyAlgorithms", "sig"),
                "cipher" => ("Ciphers", "cipher"),
                _ => ("MACs", "mac"),
            };
            let has = client.has(query);
            for name in names.iter().filter(|name| has.iter().any(|one| one == *name)) {
                let mut options = vec!["-o".to_owned(), format!("{option}={name}")];
                if kind == "mac" {
                    options.extend(["-o".to_owned(), "Ciphers=aes128-ctr".to_owned()]);
                }
                let output = run(&mut client.sftp(&self.world, client.name, client.name, &options));
                outcomes.push((kind, (*name).to_owned(), output.status.success(), said(&output)));
            }
        }
        self.compare(client.name, &outcomes);
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
        self.compare("psftp", &outcomes);
    }

    /// Keys of users: each kind that the clients have gets in, whatever the policy says of host keys, and nobody else's does.
    fn users(&mut self, clients: &[OpenSsh]) {
        for client in clients {
            let user = format!("{}-keys", client.name);
            self.world.at_home(&user, "all");
            let has = client.has("key");
            for kind in
                ["ssh-ed25519", "ecdsa-256", "ecdsa-384", "ecdsa-521", "rsa", "ssh-mldsa44-ed25519"]
            {
                if kind == "ssh-mldsa44-ed25519" && !has.iter().any(|name| name == kind) {
                    continue;
                }
                let name = format!("{user}-{kind}");
                let (kind, bits) = match kind.split_once('-') {
                    Some(("ecdsa", bits)) => ("ecdsa", bits),
                    _ => (kind.trim_start_matches("ssh-"), ""),
                };
                let path = self.world.folder.path(&name);
                let mut generate =
                    program::command(client.bin.join("ssh-keygen").to_str().unwrap());
                generate.args(["-q", "-N", "", "-C", "", "-t", kind, "-f"]).arg(&path);
                if !bits.is_empty() {
                    generate.args(["-b", bits]);
                }
                succeed(&mut generate);
                let login = || run(&mut client.sftp(&self.world, &user, &name, &[]));
                let stranger = login();
                assert!(!stranger.status.success(), "{name}: {}", said(&stranger));
                let line = std::fs::read_to_string(path.with_extension("pub")).unwrap();
                let import = json!({
                    "ServerId": self.world.id, "UserName": user, "SshPublicKeyBody": line.trim(),
                });
                self.world.call(async |session| {
                    session.call::<ImportSshPublicKey>(import).await.unwrap().unwrap();
                });
                let output = login();
                assert!(output.status.success(), "{}: {name}: {}", self.policy, said(&output));
                self.cases += 2;
                self.served += 1;
            }
        }
    }

    fn all(mut self) -> (usize, usize) {
        let clients = openssh();
        for library in libraries() {
            self.library(library);
        }
        for client in &clients {
            self.openssh(client);
        }
        if let Some(putty) = Putty::find() {
            self.putty(&putty);
        }
        self.users(&clients);
        println!("{}: {} cases, {} served, all as predicted", self.policy, self.cases, self.served);
        (self.cases, self.served)
    }
}

fn said(output: &Output) -> String {
    stdout(output) + &stderr(output)
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

#[test]
fn each_algorithm_of_each_client_under_awss_policy() {
    if openssh().is_empty() {
        return;
    }
    let (cases, served) = Ground::new("TransferSecurityPolicy-2025-03").all();
    assert!(cases > 80 && served > 50, "{cases} {served}");
}
