//! A plan's grid and endpoint, small.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::result::Findings;
use crate::run::Progress;
use crate::subject::Subject;
use crate::tls::{chain, server_config};

struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &'static str, _: Duration) {}
    fn measuring(&self, _: &str) {}
    fn done(&self, _: Duration, _: bool) {}
    fn say(&self, _: &str) {}
    fn end(&self, _: &'static str, _: &Result<(), LabError>) {}
}

pub(super) fn perform(folder: &Path, plan: Plan) -> Result<Findings, LabError> {
    let settings = Settings {
        quick: true,
        seed: 1,
        plan: Some(plan),
        version: "test".into(),
        executable: "none".into(),
    };
    let stop = AtomicBool::new(false);
    let mut run = Run::open(folder, EXPERIMENT.name, &settings, &Silent, &stop)?;
    (EXPERIMENT.run)(&mut run)?;
    Ok(run.into_findings())
}

/// Before it begins, a run says that its live points with loss will have no verdict.
#[test]
fn too_few_live_connections_are_told_before_the_run() {
    let start = "title = \"Ours\"\nrtt_ms = [5]";
    let plan = |rest: &str| Plan::parse(&format!("{start}\n{rest}")).unwrap();
    let few = plan("engines = [\"live\"]\nloss = [0, 0.02]\nlive_count = 40");
    let said = hint(&few, false).unwrap();
    assert!(said.contains("needs 1000 connections, and this run makes 40"), "{said}");
    let enough = plan("engines = [\"live\"]\nloss = [0, 0.02]\nlive_count = 1000");
    assert_eq!(hint(&enough, false), None);
    assert!(hint(&enough, true).unwrap().contains("leave `--quick` out"));
    for rest in ["engines = [\"live\"]\nloss = [0]\nlive_count = 40", "loss = [0.02]"] {
        assert_eq!(hint(&plan(rest), false), None, "{rest}");
    }
}

#[test]
fn a_small_grid_is_told_and_told_again_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let text = "title = \"Ours\"\nrtt_ms = [5, 30]\nloss = [0, 0.05]\nbodies = [1, 20000]\ncount = 100\n\
                kinds = [\"full\", \"resumed\"]\ngroups = [\"x25519\", \"X25519MLKEM768\"]";
    let plan = Plan::parse(text).unwrap();
    let first = perform(folder.path(), plan.clone()).unwrap();
    assert_eq!(
        first,
        perform(folder.path(), plan).unwrap(),
        "points are kept, and the rest follows"
    );
    assert_eq!(first.tables.len(), 4, "handshakes and bytes of two kinds");
    assert_eq!(first.tables[0].rows.len(), 2 * 2 * 2 * 2);
    let charts: Vec<&str> = first.charts.iter().map(|chart| chart.name.as_str()).collect();
    for name in [
        "fans-full-x2",
        "heat-full-x2-0",
        "heat-full-x2-5",
        "differences-full-x2",
        "bodies-resumed-x2",
    ] {
        assert!(charts.contains(&name), "{name} of {charts:?}");
    }
    assert!(first.summary[0].contains("100 connections a point in the model; seed 1"));
    assert!(first.summary[1].contains("X25519MLKEM768"), "{:?}", first.summary);
    assert_eq!(first.controls.len(), 2);
}

#[test]
fn without_a_plan_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        quick: true,
        seed: 1,
        plan: None,
        version: "test".into(),
        executable: "none".into(),
    };
    let stop = AtomicBool::new(false);
    let mut run = Run::open(folder.path(), EXPERIMENT.name, &settings, &Silent, &stop).unwrap();
    let error = (EXPERIMENT.run)(&mut run).unwrap_err();
    assert!(error.to_string().contains("--plan"), "{error}");
}

/// A server that answers so many connections and then goes away.
fn server(connections: usize) -> (u16, std::thread::JoinHandle<()>, String) {
    let subject = Subject::new("x25519", "ECDSA P-256", 2).unwrap();
    let mut config = server_config(&subject).unwrap();
    let groups = ["x25519", "X25519MLKEM768"];
    let mut provider = (**config.crypto_provider()).clone();
    provider.kx_groups =
        groups.map(|name| crate::subject::KeyExchange::by_name(name).unwrap().group).to_vec();
    let mut fresh = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(config.cert_resolver.clone());
    fresh.ticketer = config.ticketer.clone();
    config = fresh;
    let root = chain::server(subject.authentication, 2).unwrap().root_pem();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = Arc::new(config);
    let thread = std::thread::spawn(move || {
        for _ in 0..connections {
            let (mut socket, _) = listener.accept().unwrap();
            let mut tls = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::Stream::new(&mut tls, &mut socket);
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            while !request.ends_with(b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
                    _ => break,
                }
            }
            assert!(request.starts_with(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n"));
            let answer = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &[b'x'; 3000]].concat();
            stream.write_all(&answer).unwrap();
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (port, thread, root)
}

fn endpoint_plan(folder: &Path, port: u16, root: &str) -> Plan {
    std::fs::write(folder.join("ca.pem"), root).unwrap();
    let text = format!(
        "title = \"Ours\"\nlive_count = 20\nkinds = [\"full\", \"resumed\"]\n\
         [endpoint]\naddress = \"127.0.0.1:{port}\"\nserver_name = \"localhost\"\nca_file = \"ca.pem\"\n\
         [request]\npath = \"/ping\"\n"
    );
    std::fs::write(folder.join("plan.toml"), text).unwrap();
    Plan::load(&folder.join("plan.toml"), false).unwrap()
}

#[test]
fn endpoint_is_measured_per_group_with_a_control() {
    let folder = tempfile::tempdir().unwrap();
    // Two groups, full and resumed, and the control; 20 rounds and one unmeasured.
    let (port, thread, root) = server(5 * 21);
    let plan = endpoint_plan(folder.path(), port, &root);
    let findings = perform(&folder.path().join("results"), plan).unwrap();
    thread.join().unwrap();
    let table = &findings.tables[0];
    assert_eq!(table.rows.len(), 4);
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    let names: Vec<String> = table.rows.iter().map(|row| format!("{:?}", row[0])).collect();
    assert!(names[3].contains("X25519MLKEM768, resumed"), "{names:?}");
    assert_eq!(findings.controls.len(), 1);
    let sentence = findings
        .summary
        .iter()
        .find(|text| text.contains("a handshake of X25519MLKEM768 less one of x25519: "));
    assert!(sentence.is_some(), "{:?}", findings.summary);
    assert!(
        !findings.notes.iter().any(|note| note.contains("could resume")),
        "{:?}",
        findings.notes
    );
}

#[test]
fn dead_or_wrong_endpoint_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let (port, thread, root) = server(3);
    let plan = endpoint_plan(folder.path(), port, &root);
    let error = perform(&folder.path().join("one"), plan.clone()).unwrap_err();
    thread.join().unwrap();
    assert!(matches!(error, LabError::Peer { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
    let empty = endpoint_plan(folder.path(), port, "nothing");
    let error = perform(&folder.path().join("two"), empty).unwrap_err();
    assert!(error.to_string().contains("no certificate"), "{error}");
}
