//! Reports in, metrics pages out.

mod ssh_tests;

use super::*;
use crate::limits;

fn handshake(connection: u64, listener: &str, outcome: Outcome) -> Handshake {
    Handshake {
        connection,
        time_ms: 0,
        listener: listener.into(),
        peer: None,
        policy: "2026-11".into(),
        mode: "prefer".into(),
        offer: None,
        ja4: None,
        outcome,
        micros: 1_500,
    }
}

fn served(group: &str, certificate: &str) -> Outcome {
    Outcome::Served(Served {
        version: "TLSv1.3".into(),
        suite: "TLS_AES_256_GCM_SHA384".into(),
        group: Some(group.into()),
        post_quantum: true,
        hello_retry: false,
        resumed: false,
        scheme: None,
        certificate: Some(certificate.into()),
        client: None,
    })
}

#[test]
fn connections_are_open_until_they_end() {
    let metrics = Arc::new(Metrics::new());
    for connection in 1..=40 {
        metrics.handshake(&handshake(connection, "a", served("X25519MLKEM768", "ecdsa-p256")));
    }
    for connection in 1..=30 {
        metrics.end(&End { connection, time_ms: 0, principal: None, received: 2, sent: 3 });
        // An end that is reported twice, and one of an unknown connection.
        metrics.end(&End { connection, time_ms: 0, principal: None, received: 2, sent: 3 });
    }
    let page = scrape::page(&metrics);
    // Another name if other tests have used up those of the process.
    let a = named("a");
    for line in [
        &*format!("outlast_tls_open_connections{{listener=\"{a}\",transport=\"none\"}} 10\n"),
        &*format!("outlast_tls_received_bytes_total{{listener=\"{a}\",transport=\"none\"}} 60\n"),
        &*format!("outlast_tls_sent_bytes_total{{listener=\"{a}\",transport=\"none\"}} 90\n"),
        "# EOF\n",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    assert!(metrics.connections.iter().all(|part| part.lock().unwrap().len() <= 1));
}

#[test]
fn a_post_quantum_group_is_offered_in_tls_1_3_only() {
    let hello = |versions: &[u16], extensions: &[u16], group| Offer {
        transport: Transport::Tcp,
        versions: versions.to_vec(),
        suites: vec![0x1301, 0xc02b],
        groups: vec![group, 0x001d],
        shares: None,
        schemes: vec![0x0403],
        certificate_schemes: None,
        sni: None,
        protocols: Vec::new(),
        extensions: extensions.to_vec(),
        resumes: false,
    };
    assert_eq!(offered(&hello(&[0x0304, 0x0303], &[10, 43], 0x11ec)), "post-quantum");
    assert_eq!(offered(&hello(&[0x0303], &[10], 0x11ec)), "classical");
    assert_eq!(offered(&hello(&[0x0304], &[10, 43], 0x0017)), "classical");
}

#[test]
fn times_fall_in_their_buckets() {
    let metrics = Arc::new(Metrics::new());
    for (micros, times) in [(499, 1), (500, 1), (501, 1), (9_999_999, 1), (10_000_001, 2)] {
        for _ in 0..times {
            metrics.request(Some("s"), Some("o"), 200, Duration::from_micros(micros));
        }
    }
    let page = scrape::page(&metrics);
    let bucket = |le: &str| {
        let start =
            format!("outlast_api_request_duration_seconds_bucket{{le=\"{le}\",service=\"s\"");
        let start = page.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| {
            panic!("no bucket {le} in\n{page}");
        });
        start.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()
    };
    assert_eq!(bucket("0.0005"), 2);
    assert_eq!(bucket("0.001"), 3);
    assert_eq!(bucket("5.0"), 3);
    assert_eq!(bucket("10.0"), 4);
    assert_eq!(bucket("+Inf"), 6);
}

/// Whatever a peer makes us report, the tables stay within their limits.
#[test]
fn labels_are_bounded() {
    let metrics = Arc::new(Metrics::new());
    for number in 0..20_000_u64 {
        let name = format!("name-{number}");
        let outcome = match number % 3 {
            0 => served(&name, &name),
            1 => Outcome::Failed(name.clone()),
            _ => served("X25519MLKEM768", &name),
        };
        metrics.handshake(&handshake(number, &name, outcome));
        metrics.end(&End {
            connection: number,
            time_ms: 0,
            principal: Some(name),
            received: 1,
            sent: 1,
        });
    }
    let page = scrape::page(&metrics);
    let rows = |name: &str| page.lines().filter(|line| line.starts_with(name)).count();
    let handshakes = rows("outlast_tls_handshakes_total{");
    assert!(handshakes > 100 && handshakes <= limits::MAX_METRIC_ROWS + 1, "{handshakes} rows");
    assert!(rows("outlast_tls_open_connections{") <= limits::MAX_METRIC_NAMES + 1);
    // Groups that are not in the table and error texts never become labels.
    assert!(!page.contains("group=\"name-"), "a made-up group became a label");
    assert!(page.contains("group=\"other\""));
    // No event is lost.
    let total: u64 = page
        .lines()
        .filter(|line| line.starts_with("outlast_tls_handshakes_total{"))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    assert_eq!(total, 20_000);
    // A long name is not kept.
    assert_eq!(named(&"x".repeat(limits::MAX_METRIC_NAME + 1)), OTHER);
}

#[test]
fn a_table_that_is_full_counts_on() {
    static WIDE: Instrument<1> =
        Instrument { name: "wide", help: "Wide", unit: None, labels: ["one"] };
    let table: Table<1, Counter> = Table::new(&WIDE);
    for number in 0..limits::MAX_METRIC_ROWS + 500 {
        // Not names from `named`, which has another limit.
        table.row([Box::leak(format!("n{number}").into_boxed_str())]).add(1);
    }
    let Samples::Counts(rows) = table.samples() else { panic!("not counts") };
    assert_eq!(rows.len(), limits::MAX_METRIC_ROWS + 1);
    assert!(rows.contains(&(vec![("one", OTHER)], 500)));
}

/// Every metric in the documentation, its dashboard and its alerts exists, and every metric is documented.
#[test]
fn the_documentation_names_what_there_is() {
    let metrics = Arc::new(Metrics::new());
    metrics.watch_ledger(|| 0);
    metrics.watch_backups(|| 0);
    let events = EventCounts::new(Some(&metrics));
    events.delivered("a");
    events.waiting("a", 1);
    ConnectorCounts::new(Some(&metrics)).add("session");
    metrics.handshake(&handshake(1, "a", served("X25519MLKEM768", "ecdsa-p256")));
    metrics.ssh_handshake(&ssh_tests::handshake(2, "sftp", ssh_tests::served()));
    metrics.request(Some("kms"), Some("Sign"), 200, Duration::ZERO);
    Tally::new(Some(metrics.clone()), "a").count(Limit::Bodies, Action::Refused);
    let page = scrape::page(&metrics);
    let known: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let known: Vec<_> = known.iter().filter_map(|line| line.split(' ').next()).collect();
    let documentation = include_str!("../../../../docs/metrics.md");
    let dashboard = include_str!("../../../../docs/metrics-dashboard.json");
    for name in &known {
        assert!(documentation.contains(name), "{name} is not documented");
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for text in [documentation, dashboard] {
        for (at, _) in text.match_indices("outlast_") {
            let name: &str = text[at..].split(|c| !is_part(c)).next().unwrap();
            // The agent's are another program's, with tests of its own.
            if name.starts_with("outlast_agent_") {
                continue;
            }
            let base = ["_total", "_bucket"]
                .iter()
                .find_map(|ending| name.strip_suffix(ending))
                .unwrap_or(name);
            assert!(known.contains(&base), "there is no {name}");
        }
    }
    let tables = [
        HANDSHAKES.labels.as_slice(),
        &HANDSHAKE_SECONDS.labels,
        &REQUESTS.labels,
        &LIMITED.labels,
        &ssh::HANDSHAKES.labels,
        &ssh::HANDSHAKE_SECONDS.labels,
    ];
    for table in tables {
        for label in table {
            assert!(documentation.contains(&format!("`{label}`")), "{label} is not documented");
        }
    }
}

#[test]
fn offers_are_counted_by_what_the_ledger_says_of_them() {
    let offer = |groups: &[u16]| Offer {
        transport: Transport::Tcp,
        versions: vec![0x0304],
        suites: vec![0x1301],
        groups: groups.to_vec(),
        shares: Some(groups.to_vec()),
        schemes: vec![0x0403],
        certificate_schemes: None,
        sni: None,
        protocols: Vec::new(),
        extensions: vec![10, 13, 43, 51],
        resumes: false,
    };
    assert_eq!(offered(&offer(&[0x11ec, 0x1d])), "post-quantum");
    assert_eq!(offered(&offer(&[0x0200])), "unsupported");
    assert_eq!(offered(&offer(&[0x1d])), "classical");
}
