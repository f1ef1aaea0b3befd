//! What the ledger and the metrics are told of connections.

use std::sync::Mutex;

use futures_util::FutureExt;
use outlast_ledger::report::laggards;
use outlast_ledger::tally::{Filter, Tally};
use outlast_ledger::verdict::Verdict;
use outlast_ledger::{End, Handshake, Line, SshHandshake, SshOutcome};
use outlast_negotiate::ssh::SshRefusal;
use tokio::io::AsyncReadExt;

use super::*;
use crate::metrics::scrape;

/// Keeps what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<Line>>);

impl Observe for Told {
    fn handshake(&self, handshake: &Handshake) {
        panic!("not of TLS: {handshake:?}");
    }

    fn ssh_handshake(&self, handshake: &SshHandshake) {
        self.0.lock().unwrap().push(Line::Ssh(Box::new(handshake.clone())));
    }

    fn end(&self, end: &End) {
        self.0.lock().unwrap().push(Line::End(end.clone()));
    }
}

impl Told {
    /// The handshakes, and the ends, since this was last asked.
    fn take(&self) -> (Vec<SshHandshake>, Vec<End>) {
        let (mut handshakes, mut ends) = (Vec::new(), Vec::new());
        for line in std::mem::take(&mut *self.0.lock().unwrap()) {
            match line {
                Line::Ssh(one) => handshakes.push(*one),
                Line::End(end) => ends.push(end),
                other => panic!("{other:?}"),
            }
        }
        (handshakes, ends)
    }
}

/// How many connections had this outcome.
fn count(metrics: &Arc<Metrics>, outcome: &str) -> u64 {
    let page = scrape::page(metrics);
    let name = format!("outlast_connector_connections_total{{outcome=\"{outcome}\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

/// A server with hybrids and one without, by the same connector: which of the two is the laggard is told, with its address.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_knows_what_was_negotiated_with_whom() {
    let (told, metrics) = (Arc::new(Told::default()), Arc::new(Metrics::new()));
    let both: Vec<Arc<dyn Observe>> = vec![told.clone(), metrics.clone()];
    let both = Arc::new(outlast_ledger::Observers(both));
    let outbound = watched(&["127.0.0.1"], Some(both), Some(&metrics));
    let hybrid = Served::start(Options::default()).await;
    let classical =
        Served::start(Options { exchanges: vec!["curve25519-sha256"], ..Options::default() }).await;
    let mut tally = Tally::new(Filter::default());
    for (served, exchange) in
        [(&hybrid, "mlkem768x25519-sha256"), (&classical, "curve25519-sha256")]
    {
        let to = endpoint(served.port, &[served.key()]);
        let session = outbound.connect(&to).await.unwrap();
        let (handshakes, ends) = told.take();
        let [one] = &handshakes[..] else { panic!("{handshakes:?}") };
        assert!(ends.is_empty(), "the session goes on");
        let SshOutcome::Served(negotiated) = &one.outcome else { panic!("{one:?}") };
        assert_eq!(negotiated.key_exchange, exchange);
        assert_eq!(negotiated.post_quantum, exchange.starts_with("mlkem"));
        assert_eq!((negotiated.host_key.as_str(), negotiated.strict), ("ssh-ed25519", true));
        assert!(!negotiated.cipher_to_server.is_empty() && one.micros > 0);
        let outgoing = one.outgoing.as_ref().unwrap();
        assert_eq!(outgoing.destination, format!("localhost:{}", served.port));
        assert_eq!(outgoing.principal, to.connector_arn);
        assert_eq!(one.peer.unwrap().port(), served.port);
        assert_eq!((one.listener.as_str(), one.policy.as_str()), ("connectors", "2026-11"));
        let offer = one.offer.as_ref().unwrap();
        assert!(offer.identification.starts_with("SSH-2.0-Outlast"), "{offer:?}");
        session.end().await;
        let (more, ends) = told.take();
        let [end] = &ends[..] else { panic!("{ends:?}") };
        assert_eq!((more.len(), end.connection), (0, one.connection));
        assert_eq!(end.principal.as_ref(), Some(&to.connector_arn));
        // The key exchange alone takes a kilobyte in each direction.
        assert!(end.received > 1000 && end.sent > 500, "{end:?}");
        tally.add(Line::Ssh(Box::new(one.clone())));
        tally.add(Line::End(end.clone()));
    }
    let tally = tally.finish();
    let verdict = |verdict| tally.total.verdicts.get(&verdict).copied().unwrap_or_default();
    assert_eq!((verdict(Verdict::Hybrid), verdict(Verdict::NeverOffers)), (1, 1));
    let found = laggards(&tally);
    let [laggard] = &found[..] else { panic!("{found:?}") };
    assert_eq!(laggard.client.destinations, [format!("localhost:{}", classical.port)]);
    assert_eq!(laggard.client.principal, Some(endpoint(1, &[]).connector_arn));
    assert_eq!(count(&metrics, "session"), 2);
    let page = scrape::page(&metrics);
    for (exchange, post_quantum) in [("mlkem768x25519-sha256", true), ("curve25519-sha256", false)]
    {
        let labels = format!("key_exchange=\"{exchange}\",post_quantum=\"{post_quantum}\"");
        let line = |line: &&str| {
            line.starts_with("outlast_ssh_handshakes_total{") && line.contains(&labels)
        };
        assert!(page.lines().find(line).is_some_and(|line| line.ends_with(" 1")), "{page}");
    }
    assert!(!page.contains("localhost"), "callers of the API choose destinations");
}

/// Whatever goes wrong is told once, with its cause.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fail_are_told_by_their_cause() {
    let (told, metrics) = (Arc::new(Told::default()), Arc::new(Metrics::new()));
    let outbound = watched(&["127.0.0.1"], Some(told.clone()), Some(&metrics));
    let good = Served::start(Options::default()).await;
    let classical =
        Served::start(Options { exchanges: vec!["curve25519-sha256"], ..Options::default() }).await;
    let no_sftp = Served::start(Options { trick: Trick::NoSubsystem, ..Options::default() }).await;
    let unused = outlast_testing::free_port();
    let trusting = |served: &Served| endpoint(served.port, &[served.key()]);
    let other = PrivateKey::generate(KeyKind::Ed25519).unwrap();
    let ecdsa = PrivateKey::generate(KeyKind::EcdsaP256).unwrap();
    let policy = |name: &str, endpoint| Endpoint { security_policy: name.to_owned(), ..endpoint };
    let secret = |text: &str| Some(Secret::new(text.as_bytes().to_vec()));
    let failed = |text: &str| Some(SshOutcome::Failed(text.to_owned()));
    let refused = |refusal| Some(SshOutcome::Refused(refusal));
    let cases = [
        // Cause; the endpoint; the handshake, unless there is none or it succeeds; whether the server has told what it offers.
        ("connector", policy("no such policy", trusting(&good)), None, false),
        (
            "destination",
            Endpoint { host: "203.0.113.1".to_owned(), ..trusting(&good) },
            failed("the host has no address that connectors may connect to"),
            false,
        ),
        ("unreachable", endpoint(unused, &[&other]), failed("nobody takes the connection"), false),
        (
            "policy",
            policy("2026-11-require-pq", trusting(&classical)),
            refused(SshRefusal::Classical),
            true,
        ),
        (
            "host_key",
            endpoint(good.port, &[&other]),
            failed("the server's host key is not trusted"),
            true,
        ),
        ("host_key", endpoint(good.port, &[&ecdsa]), refused(SshRefusal::HostKey), true),
        ("login", Endpoint { password: secret("wrong"), ..trusting(&good) }, None, true),
        ("sftp", trusting(&no_sftp), None, true),
    ];
    for (cause, endpoint, expected, has_offer) in cases {
        let before = count(&metrics, cause);
        assert!(outbound.connect(&endpoint).await.is_err(), "{cause}");
        assert_eq!(count(&metrics, cause), before + 1, "{cause}");
        let (handshakes, ends) = told.take();
        if cause == "connector" {
            assert!(handshakes.is_empty(), "no rules, no connection");
            continue;
        }
        let [one] = &handshakes[..] else { panic!("{cause}: {handshakes:?}") };
        assert_eq!(one.offer.is_some(), has_offer, "{cause}: {one:?}");
        let to = format!("{}:{}", endpoint.host, endpoint.port);
        assert_eq!(one.outgoing.as_ref().unwrap().destination, to);
        match expected {
            Some(outcome) => {
                assert_eq!(one.outcome, outcome, "{cause}");
                assert!(ends.is_empty(), "{cause}: {ends:?}");
            }
            // Keys were exchanged: it is a connection, which has ended.
            None => {
                assert!(matches!(one.outcome, SshOutcome::Served(_)), "{cause}: {one:?}");
                assert_eq!(ends.len(), 1, "{cause}");
            }
        }
    }
    assert_eq!(count(&metrics, "session"), 0);
}

/// A server that says nothing, and a caller that waits no longer.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_nobody_waits_for_is_told_too() {
    let (told, metrics) = (Arc::new(Told::default()), Arc::new(Metrics::new()));
    let outbound = watched(&["127.0.0.1"], Some(told.clone()), Some(&metrics));
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let to = endpoint(port, &[]);
    // Its caller goes when the client has said something.
    let greeted = async {
        let (mut stream, _) = silent.accept().await.unwrap();
        stream.read_exact(&mut [0; 4]).await.unwrap();
        stream
    };
    tokio::select! {
        _ = outbound.connect(&to) => panic!("there was no answer"),
        _stream = greeted => {}
    }
    let (handshakes, ends) = told.take();
    let [one] = &handshakes[..] else { panic!("{handshakes:?}") };
    let reason = "the connection ended before the keys were exchanged";
    assert_eq!((&one.outcome, ends.len()), (&SshOutcome::Failed(reason.to_owned()), 0));
    assert_eq!((one.offer.as_ref(), count(&metrics, "abandoned")), (None, 1));
}

/// Nor is one told as a connection that was never made.
#[tokio::test]
async fn an_attempt_that_nobody_waits_for_is_no_connection() {
    let (told, metrics) = (Arc::new(Told::default()), Arc::new(Metrics::new()));
    let outbound = watched(&["127.0.0.1"], Some(told.clone()), Some(&metrics));
    // The socket cannot be ready before this thread waits.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = Endpoint { host: "127.0.0.1".to_owned(), ..endpoint(port, &[]) };
    assert!(outbound.connect(&to).now_or_never().is_none());
    let (handshakes, ends) = told.take();
    let [one] = &handshakes[..] else { panic!("{handshakes:?}") };
    let reason = "the attempt to connect was abandoned";
    assert_eq!((&one.outcome, one.peer), (&SshOutcome::Failed(reason.to_owned()), None));
    assert_eq!((ends.len(), count(&metrics, "abandoned")), (0, 1));
}
