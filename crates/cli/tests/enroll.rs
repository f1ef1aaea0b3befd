//! `outlast credentials enroll` against the ACME endpoint of a real server.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use outlast_pki::certificate::Certificate;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::{object, pem};
use rustix::process::Signal;

use crate::acme_clients::{endpoint, role};
use crate::common::acme::free_port;
use crate::common::authority::{root, subordinate};
use crate::common::dns::Dns;
use crate::common::stub::Process;
use crate::common::{Folder, Server, fail, outlast, runtime, succeed};

const ALGORITHMS: (&str, &str) = ("ML_DSA_65", "ML_DSA_65");

struct World {
    folder: Folder,
    _server: Server,
    _dns: Dns,
    directory: String,
    binding: (String, PathBuf),
    root: Certificate,
    http_port: u16,
}

impl World {
    fn new() -> Self {
        let folder = Folder::new();
        role(&folder);
        let dns = Dns::start(folder.path("dns"));
        let http_port = free_port();
        let (address, port) = (dns.address.to_string(), http_port.to_string());
        let options =
            ["--acme-dns", &address, "--acme-http-port", &port, "--acme-network", "127.0.0.0/8"];
        let server = Server::start(&folder.data, &options);
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
        Self { folder, _server: server, _dns: dns, directory, binding, root, http_port }
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = outlast();
        command.args(["credentials", "enroll", "--directory", &self.directory]);
        command.args(["--name", "machine.example", "--name", "other.example"]);
        command.arg("--certificate").arg(self.folder.path("machine.pem"));
        command.arg("--private-key").arg(self.folder.path("machine.key"));
        command.arg("--ca-bundle").arg(self.folder.data.join("client/ca.pem"));
        command.args(["--listen", &format!("127.0.0.1:{}", self.http_port)]);
        command.args(more);
        command
    }

    fn bound(&self, more: &[&str]) -> Command {
        let mut command = self.command(more);
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
