//! `outlast credentials enroll` against the ACME endpoint of a real server.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use outlast_pki::certificate::Certificate;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::{object, pem};
use rustix::process::Signal;

use crate::acme_clients::{endpoint, role};
use crate::common::authority::{root, subordinate};
use crate::common::dns::Dns;
use crate::common::stub::Process;
use crate::common::{Folder, Server, fail, outlast, runtime, succeed};

const ALGORITHMS: (&str, &str) = ("ML_DSA_65", "ML_DSA_65");

struct World {
    folder: Folder,
    _server: Server,
    dns: Dns,
    directory: String,
    binding: (String, PathBuf),
    root: Certificate,
    http_port: u16,
    tls_port: u16,
}

impl World {
    fn new() -> Self {
        let folder = Folder::new();
        role(&folder);
        let dns = Dns::start(folder.path("dns"));
        let (http_port, tls_port) = (outlast_testing::free_port(), outlast_testing::free_port());
        let (address, http, tls) =
            (dns.address.to_string(), http_port.to_string(), tls_port.to_string());
        let ports = ["--acme-http-port", &http, "--acme-tls-port", &tls];
        let network = ["--acme-dns", &address, "--acme-network", "127.0.0.0/8"];
        let server = Server::start(&folder.data, &[ports, network].concat());
        let (root, directory, binding) = runtime().block_on(async {
            let mut session = server.session().await.unwrap();
            let root = root(&mut session, ALGORITHMS, "Root", None).await;
            let sub = subordinate(&mut session, &root, ALGORITHMS, "Sub", None).await;
            let (_, directory, binding) = endpoint(&mut session, &sub, "CHALLENGE").await;
            (root.certificate, directory, binding)
        });
        let root = Certificate::parse_one(root.as_bytes()).unwrap();
        let key = folder.write("eab", format!("{}\n", binding.1).as_bytes());
        let binding = (binding.0, key);
        Self { folder, _server: server, dns, directory, binding, root, http_port, tls_port }
    }

    /// By http-01, for two names.
    fn command(&self, more: &[&str]) -> Command {
        let mut command = self.plain(&["--name", "machine.example", "--name", "other.example"]);
        command.args(["--listen", &format!("127.0.0.1:{}", self.http_port)]);
        command.args(more);
        command
    }

    /// Without names, and without a way to validate them.
    fn plain(&self, more: &[&str]) -> Command {
        let mut command = outlast();
        command.args(["credentials", "enroll", "--directory", &self.directory]);
        command.arg("--certificate").arg(self.folder.path("machine.pem"));
        command.arg("--private-key").arg(self.folder.path("machine.key"));
        command.arg("--ca-bundle").arg(self.folder.data.join("client/ca.pem"));
        command.args(more);
        command
    }

    fn bound(&self, more: &[&str]) -> Command {
        self.bind(self.command(more))
    }

    fn bind(&self, mut command: Command) -> Command {
        command.args(["--eab-kid", &self.binding.0, "--eab-key-file"]).arg(&self.binding.1);
        command
    }

    fn chain(&self) -> Vec<Certificate> {
        let text = std::fs::read(self.folder.path("machine.pem")).unwrap();
        let ders = pem::read_certificates(&text).unwrap();
        ders.iter().map(|der| Certificate::parse(der).unwrap()).collect()
    }
}

#[test]
fn a_machine_enrols_once_and_renews_with_its_account() {
    let world = World::new();
    // Without the binding there is no account.
    let text = fail(&mut world.command(&["--once"]), 1);
    assert!(text.contains("accountDoesNotExist") && text.contains("--eab-kid"), "{text}");
    let text = succeed(&mut world.bound(&["--once"]));
    assert!(text.contains("machine.pem, valid until"), "{text}");
    let chain = world.chain();
    assert!(chain.len() >= 2 && chain[0].signed_by(&chain[1]) && chain[1].signed_by(&world.root));
    assert_eq!(chain[0].subject_alternative_names(), ["DNS:machine.example", "DNS:other.example"]);
    assert!(chain[0].subject().to_string().contains("machine.example"));
    let key = world.folder.path("machine.key");
    for path in [&key, &world.folder.path("machine.key.account")] {
        assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    }
    // ML-DSA, in the form that AWS's helper reads.
    let objects = object::read(&std::fs::read(&key).unwrap()).unwrap();
    let key = PrivateKey::read(&objects[0]).unwrap();
    assert_eq!((key.spec.name, key.form_name()), ("ML_DSA_65", "both"));
    assert_eq!(chain[0].public_key().unwrap(), key.public_key);
    // Not time yet; then by force, without the binding, with the same key.
    let text = succeed(&mut world.command(&["--once"]));
    assert!(text.contains("is renewed at"), "{text}");
    assert_eq!(world.chain()[0].serial(), chain[0].serial());
    succeed(&mut world.command(&["--once", "--force"]));
    let renewed = world.chain();
    assert_ne!(renewed[0].serial(), chain[0].serial());
    assert_eq!(renewed[0].public_key().unwrap(), key.public_key);
    // Without --once it stays.
    let mut process = Process::start(&mut world.command(&[]), 1, world.folder.temporary.path());
    assert!(process.lines[0].contains("is renewed at"), "{:?}", process.lines);
    process.signal(Signal::TERM);
    assert!(process.child.wait().unwrap().success());
}

#[test]
fn a_machine_proves_its_name_by_tls() {
    let world = World::new();
    let listen = format!("127.0.0.1:{}", world.tls_port);
    let names = ["--once", "--name", "machine.example", "--name", "other.example"];
    let tls = ["--challenge", "tls-alpn-01", "--listen", &listen];
    succeed(&mut world.bind(world.plain(&[&names[..], &tls].concat())));
    let names = world.chain()[0].subject_alternative_names();
    assert_eq!(names, ["DNS:machine.example", "DNS:other.example"]);
    // Nothing listens any more.
    assert!(std::net::TcpStream::connect(&listen).is_err());
    // At a port where the server does not look.
    let listen = format!("127.0.0.1:{}", outlast_testing::free_port());
    let wrong =
        ["--once", "--name", "new.example", "--challenge", "tls-alpn-01", "--listen", &listen];
    std::fs::remove_file(world.folder.path("machine.pem")).unwrap();
    let text = fail(&mut world.plain(&wrong), 1);
    assert!(text.contains("new.example was not validated") && text.contains("port 443"), "{text}");
}

/// The hook is called as lego calls its own, and the record is taken away whatever happens.
#[test]
fn a_machine_proves_its_name_by_dns() {
    let world = World::new();
    let hook = outlast_testing::checkout().join("tests/interop/acme/dns-hook.sh");
    let records = || std::fs::read_dir(&world.dns.records).unwrap().count();
    let enroll = |hook: &std::path::Path, more: &[&str]| {
        let mut command = world.bind(world.plain(more));
        command.arg("--dns-hook").arg(hook).env("DNS_RECORDS", &world.dns.records);
        command.arg("--once");
        command
    };
    // A wildcard has no other proof.
    let names = ["--name", "*.machine.example", "--name", "machine.example"];
    let text = succeed(&mut enroll(&hook, &names));
    assert!(text.lines().count() == 1 && text.contains("valid until"), "{text}");
    let mut names = world.chain()[0].subject_alternative_names();
    names.sort_unstable();
    assert_eq!(names, ["DNS:*.machine.example", "DNS:machine.example"]);
    assert_eq!(records(), 0);
    std::fs::remove_file(world.folder.path("machine.pem")).unwrap();
    // A hook that writes something else, and notes how it is called.
    let script = "#!/bin/sh\necho \"$@\" >> \"$DNS_RECORDS/../calls\"\n\
                  echo x > \"$DNS_RECORDS/TXT.${2%.}\"\n\
                  [ $1 = present ] || rm -f \"$DNS_RECORDS/TXT.${2%.}\"\n";
    let liar = world.folder.write("liar", script.as_bytes());
    std::fs::set_permissions(&liar, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = fail(&mut enroll(&liar, &["--name", "new.example"]), 1);
    assert!(
        text.contains("new.example was not validated") && text.contains("TXT record"),
        "{text}"
    );
    let calls = std::fs::read_to_string(world.dns.records.join("../calls")).unwrap();
    let calls: Vec<Vec<&str>> = calls.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert_eq!((calls[0][0], calls[1][0]), ("present", "cleanup"));
    assert_eq!(calls[0][1..], calls[1][1..]);
    assert_eq!((calls[0][1], calls[0][2].len()), ("_acme-challenge.new.example.", 43));
    assert_eq!(records(), 0);
    // One that fails, and none.
    let text = fail(&mut enroll(std::path::Path::new("/bin/false"), &["--name", "new.example"]), 1);
    assert!(
        text.contains("/bin/false present") && text.contains("PROGRAM present|cleanup"),
        "{text}"
    );
    let text = fail(&mut enroll(&world.folder.path("none"), &["--name", "new.example"]), 1);
    assert!(text.contains("No such file"), "{text}");
}

#[test]
fn mistakes_are_told() {
    let world = World::new();
    let mut wrong = world.command(&["--once", "--eab-kid", &world.binding.0, "--eab-key-file"]);
    let text =
        fail(wrong.arg(world.folder.write("wrong", b"c3RyYW5nZXItc3RyYW5nZXItc3RyYW5nZXItMTI")), 1);
    assert!(text.contains("the ACME server refused"), "{text}");
    assert!(!world.folder.path("machine.pem").exists());
    let mut other = world.bound(&["--once"]);
    let text = fail(other.args(["--listen", "127.0.0.1:1"]).env("OUTLAST_MODE", "prefer"), 2);
    assert!(text.contains("--listen"), "{text}");
    let mut hookless = world.bound(&["--once", "--challenge", "dns-01"]);
    let text = fail(&mut hookless, 2);
    assert!(text.contains("give --dns-hook PROGRAM"), "{text}");
    let both = ["--once", "--name", "x.example", "--challenge", "http-01", "--dns-hook", "x"];
    let text = fail(&mut world.plain(&both), 2);
    assert!(text.contains("--dns-hook is not for http-01"), "{text}");
    let wildcard = ["--once", "--name", "*.x.example"];
    let mut wildcard = world.bind(world.plain(&wildcard));
    let text = fail(&mut wildcard, 1);
    assert!(
        text.contains("cannot be validated by http-01") && text.contains("offers dns-01"),
        "{text}"
    );
    world.folder.write("machine.key", b"no key");
    let text = fail(&mut world.bound(&["--once"]), 1);
    assert!(text.contains("machine.key"), "{text}");
    let mut command = outlast();
    command.args(["credentials", "enroll", "--directory", "http://x", "--name", "x", "--once"]);
    command
        .args(["--certificate", "c", "--private-key", "k", "--ca-bundle", "x"])
        .current_dir(world.folder.temporary.path());
    let text = fail(&mut command, 1);
    assert!(text.contains("does not begin with https://"), "{text}");
}
