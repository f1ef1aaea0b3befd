//! Clients with their defaults: what each negotiates under which policy. The table in `docs/interop.md` is compared
//! with the results; `OUTLAST_BLESS=1` writes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_ledger::Outcome;
use outlast_negotiate::Rules;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use serde_json::json;

use crate::common::peers::{checkout, hold_table, peer};
use crate::common::succeed;
use crate::endpoints::clients::{Program, said_on};
use crate::endpoints::in_process::{quinn_as_it_is, rustls};
use crate::endpoints::matrix::Report;
use crate::endpoints::s2n::s2n;
use crate::endpoints::world::{DOMAIN, Listener, World};
use crate::endpoints::{in_thread, scenes};

const POLICIES: &[&str] =
    &["2026-11", "2026-11-require-pq", "fips-2026-11", "bsi-2026-11", "cnsa2-2026-11"];

/// Paths of the clients.
struct Peers {
    openssl: PathBuf,
    old_openssl: PathBuf,
    python: PathBuf,
    node: PathBuf,
    jdk: PathBuf,
    go: Program,
    s2n: Program,
    classes: tempfile::TempDir,
}

impl Peers {
    fn find() -> Option<Self> {
        let classes = tempfile::tempdir().unwrap();
        let found = Self {
            openssl: peer("openssl")?,
            old_openssl: scenes::old_openssl()?,
            python: peer("python")?.join("bin/python"),
            node: peer("javascript")?.join("bin/node"),
            jdk: peer("jdk")?.join("bin/java"),
            go: Program::new(peer("go127")?.join("bin/endpoints"), &[]),
            s2n: s2n()?,
            classes,
        };
        let mut javac = Command::new("javac");
        succeed(javac.arg("-d").arg(found.classes.path()).arg(plain("Connect.java")));
        Some(found)
    }
}

/// A client of the table.
struct Client {
    name: &'static str,
    connect: Connect,
}

enum Connect {
    Rustls,
    Quinn,
    OpenSsl,
    OldOpenSsl,
    Python,
    Node,
    /// The machine's JDK.
    Java,
    NewJava,
    Go,
    /// A security policy.
    S2n(&'static str),
}

const CLIENTS: &[Client] = &[
    Client { name: "rustls 0.23 with AWS-LC", connect: Connect::Rustls },
    Client { name: "rustls 0.23 by quinn, QUIC", connect: Connect::Quinn },
    Client { name: "OpenSSL 3.5", connect: Connect::OpenSsl },
    Client { name: "Node 26", connect: Connect::Node },
    Client { name: "Go 1.27", connect: Connect::Go },
    Client { name: "s2n-tls 0.3.47, `default`", connect: Connect::S2n("default") },
    Client { name: "s2n-tls 0.3.47, `default_pq`", connect: Connect::S2n("default_pq") },
    Client { name: "s2n-tls 0.3.47, `cnsa_2`", connect: Connect::S2n("cnsa_2") },
    Client {
        name: "s2n-tls 0.3.47, `AWS-CRT-SDK-TLSv1.2-2025-PQ`",
        connect: Connect::S2n("AWS-CRT-SDK-TLSv1.2-2025-PQ"),
    },
    Client { name: "s2n-tls 0.3.47, `default_tls13`", connect: Connect::S2n("default_tls13") },
    Client { name: "OpenSSL 3.0", connect: Connect::OldOpenSsl },
    Client { name: "Python's ssl, with OpenSSL 3.0", connect: Connect::Python },
    Client { name: "JSSE of JDK 17", connect: Connect::Java },
    Client { name: "JSSE of JDK 25", connect: Connect::NewJava },
];

fn plain(name: &str) -> PathBuf {
    checkout().join("tests/interop/endpoints/plain").join(name)
}

/// rustls in an application that leaves everything at its defaults.
fn config(world: &World) -> ClientConfig {
    ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(world.roots.clone())
        .with_no_client_auth()
}

async fn connect(
    client: &Client,
    peers: &Peers,
    world: &World,
    listener: &Listener,
    name: &str,
) -> Report {
    let address = listener.address;
    let case = json!({ "address": address.to_string(), "name": name, "ca": world.ca });
    let once =
        |mut command: Command| said_on(command.arg(address.to_string()).arg(name).arg(&world.ca));
    let script = |program: &Path, file: &str| {
        let mut command = Command::new(program);
        command.arg(plain(file));
        once(command)
    };
    let java = |program: &Path| {
        let mut command = Command::new(program);
        command.arg("-cp").arg(peers.classes.path()).arg("Connect");
        once(command)
    };
    match client.connect {
        Connect::Rustls => rustls(address, name, config(world)).await,
        Connect::Quinn => quinn_as_it_is(address, name, config(world)).await,
        Connect::OpenSsl => in_thread(&peers.openssl, address, name, &world.ca, Vec::new()).await,
        Connect::OldOpenSsl => {
            in_thread(&peers.old_openssl, address, name, &world.ca, Vec::new()).await
        }
        Connect::Python => script(&peers.python, "connect.py"),
        Connect::Node => script(&peers.node, "connect.mjs"),
        Connect::Java => java(Path::new("java")),
        Connect::NewJava => java(&peers.jdk),
        Connect::Go => peers.go.run(&[case]).remove(0),
        Connect::S2n(policy) => {
            let mut case = case;
            case["policy"] = json!(policy);
            peers.s2n.run(&[case]).remove(0)
        }
    }
}

/// A cell of the table, if client and listener agree.
async fn cell(listener: &Listener, name: &str, report: &Report) -> String {
    let recorded = listener.recorded(name, 1).await.unwrap();
    match recorded.outcome {
        Outcome::Served(served) => {
            assert!(report.ok, "{name}: {report:?}");
            assert_eq!(report.version.as_deref(), Some(&*served.version), "{name}");
            if report.group.is_some() {
                assert_eq!(report.group, served.group, "{name}");
            }
            let group = served.group.unwrap_or_default();
            let retry = if served.hello_retry { " (retry)" } else { "" };
            let mark = if served.post_quantum { "**" } else { "" };
            format!("{mark}{group}{mark}{retry}")
        }
        Outcome::Refused(refusal) => {
            assert!(!report.ok, "{name}: {report:?}");
            if let Some(alert) = &report.alert {
                assert_eq!(*alert, crate::endpoints::matrix::alert(refusal), "{name}");
            }
            "refused".into()
        }
        Outcome::Failed(reason) => panic!("{name}: {reason}: {report:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_clients_is_what_they_negotiate() {
    let Some(peers) = Peers::find() else { return };
    let world = World::new();
    let names: Vec<_> = POLICIES.iter().map(|name| format!("`{name}`")).collect();
    let mut table = format!("| client | {} |\n", names.join(" | "));
    table += &format!("|---|{}\n", "---|".repeat(POLICIES.len()));
    let mut listeners = Vec::new();
    for policy in POLICIES {
        let rules = Rules::named(policy).unwrap();
        let kind = World::kind_for(&rules);
        listeners.push((world.listen(rules, &[kind]).await, world.listen_quic(rules, &[kind])));
    }
    for (row, client) in CLIENTS.iter().enumerate() {
        table += &format!("| {} |", client.name);
        for (column, (tcp, quic)) in listeners.iter().enumerate() {
            let listener = if matches!(client.connect, Connect::Quinn) { quic } else { tcp };
            let name = format!("r{row}c{column}.{DOMAIN}");
            let report = connect(client, &peers, &world, listener, &name).await;
            table += &format!(" {} |", cell(listener, &name, &report).await);
        }
        table += "\n";
    }
    hold_table(BEGIN, END, &table);
}

const BEGIN: &str = "<!-- begin: clients as they are -->";
const END: &str = "<!-- end -->";
