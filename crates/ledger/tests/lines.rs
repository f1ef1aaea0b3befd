//! Lines are read as they were written, and other bytes do no harm.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_crypto::{groups::GROUPS, schemes::SCHEMES, suites::SUITES};
use outlast_ledger::dry_run::dry_run;
use outlast_ledger::export::{Exporter, csv};
use outlast_ledger::limits::{MAX_LINE, MAX_VALUES};
use outlast_ledger::line::LineError;
use outlast_ledger::tally::{Filter, Tally};
use outlast_ledger::{End, Handshake, Line, Outcome, Served, plot, report};
use outlast_negotiate::{Offer, Refusal, Rules, Transport};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn values() -> impl Strategy<Value = Vec<u16>> {
    vec(any::<u16>(), 0..MAX_VALUES)
}

fn offer() -> impl Strategy<Value = Offer> {
    let lists = (values(), values(), values(), of(values()), values(), of(values()), values());
    let rest = (any::<bool>(), of("[ -~]{0,60}"), vec("[ -~]{0,20}", 0..5), any::<bool>());
    (lists, rest).prop_map(|(lists, rest)| {
        let (versions, suites, groups, shares, schemes, certificate_schemes, extensions) = lists;
        let (quic, sni, protocols, resumes) = rest;
        let transport = if quic { Transport::Quic } else { Transport::Tcp };
        Offer {
            transport,
            versions,
            suites,
            groups,
            shares,
            schemes,
            certificate_schemes,
            sni,
            protocols,
            extensions,
            resumes,
        }
    })
}

fn served() -> impl Strategy<Value = Served> {
    let names = (
        prop::sample::select(vec!["TLSv1.3", "TLSv1.2", "something else"]),
        0..SUITES.len(),
        of(0..GROUPS.len()),
        of(0..SCHEMES.len()),
    );
    let rest = (any::<[bool; 3]>(), of("[a-z0-9-]{1,20}"), of(".{0,60}"));
    (names, rest).prop_map(|((version, suite, group, scheme), (flags, certificate, client))| {
        let [post_quantum, hello_retry, resumed] = flags;
        Served {
            version: version.into(),
            suite: SUITES[suite].name.into(),
            group: group.map(|index| GROUPS[index].name.into()),
            post_quantum,
            hello_retry,
            resumed,
            scheme: scheme.map(|index| SCHEMES[index].name.into()),
            certificate,
            client,
        }
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let refusal = prop::sample::select(vec![
        Refusal::Version,
        Refusal::Group,
        Refusal::Classical,
        Refusal::Suite,
        Refusal::Scheme,
    ]);
    prop_oneof![
        served().prop_map(Outcome::Served),
        refusal.prop_map(Outcome::Refused),
        ".{0,80}".prop_map(Outcome::Failed),
    ]
}

prop_compose! {
    fn handshake()(
        connection: u64,
        time_ms: i64,
        listener in "[a-z]{1,10}",
        peer in of((any::<std::net::IpAddr>(), any::<u16>())),
        policy in "[a-z0-9-]{1,30}",
        mode in "[a-z]{1,8}",
        offer in of(offer()),
        ja4 in of("[a-z0-9_]{36}"),
        outcome in outcome(),
        micros: u64,
    ) -> Handshake {
        let peer = peer.map(std::net::SocketAddr::from);
        Handshake { connection, time_ms, listener, peer, policy, mode, offer, ja4, outcome, micros }
    }
}

prop_compose! {
    fn end()(
        connection: u64,
        time_ms: i64,
        principal in of(".{0,100}"),
        received: u64,
        sent: u64,
    ) -> End {
        End { connection, time_ms, principal, received, sent }
    }
}

fn check(line: &Line) {
    let mut bytes = Vec::new();
    line.encode(&mut bytes);
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(bytes.len() <= MAX_LINE, "{} bytes", bytes.len());
    assert_eq!(&Line::parse(&bytes).unwrap(), line);
}

proptest! {
    #[test]
    fn handshakes_are_read_as_they_are_written(handshake in handshake()) {
        check(&Line::Handshake(Box::new(handshake)));
    }

    #[test]
    fn ends_are_read_as_they_are_written(end in end()) {
        check(&Line::End(end));
    }

    #[test]
    fn what_is_cut_anywhere_is_an_error(handshake in handshake(), at: prop::sample::Index) {
        let mut bytes = Vec::new();
        Line::Handshake(Box::new(handshake)).encode(&mut bytes);
        let bytes = &bytes[..bytes.len() - 1];
        prop_assert!(Line::parse(&bytes[..at.index(bytes.len())]).is_err());
    }

    /// As in the fuzz target: whatever can be read is written in the same way, and reports accept it.
    #[test]
    fn mutated_lines_never_break_a_report(
        handshake in handshake(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = Vec::new();
        Line::Handshake(Box::new(handshake)).encode(&mut bytes);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(line) = Line::parse(&bytes) {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            line.encode(&mut first);
            Line::parse(&first).unwrap().encode(&mut second);
            prop_assert_eq!(&first, &second);
            let mut exporter = Exporter::new(Filter::default());
            let mut records = exporter.add(line.clone());
            records.extend(exporter.finish());
            prop_assert!(records.iter().all(|record| !csv(record).is_empty()));
            let mut tally = Tally::new(Filter::default());
            tally.add(line);
            let tally = tally.finish();
            prop_assert!(serde_json::to_string(&report::summary(&tally)).is_ok());
            report::laggards(&tally);
            dry_run(&tally, &Rules::default(), &[]);
            prop_assert!(plot::svg(&tally).is_some());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = Line::parse(&bytes);
    }

    /// A client decides the length of its lists.
    #[test]
    fn a_line_is_never_too_long(
        n in 0_usize..2000,
        sni in "\\PC{0,700}",
        names in vec("[\u{0}-\u{1f}\"\\\\]{0,300}", 0..40),
    ) {
        let list = vec![0xffff_u16; n];
        let offer = Offer {
            transport: Transport::Quic,
            versions: list.clone(),
            suites: list.clone(),
            groups: list.clone(),
            shares: Some(list.clone()),
            schemes: list.clone(),
            certificate_schemes: Some(list.clone()),
            sni: Some(sni),
            protocols: names,
            extensions: list,
            resumes: true,
        };
        let long = "\u{1}".repeat(4000);
        let handshake = Handshake {
            connection: u64::MAX,
            time_ms: i64::MIN,
            listener: "l".repeat(200),
            peer: Some("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535".parse().unwrap()),
            policy: "p".repeat(200),
            mode: "m".repeat(200),
            offer: Some(offer),
            ja4: Some("j".repeat(200)),
            outcome: Outcome::Failed(long.clone()),
            micros: u64::MAX,
        };
        for outcome in [
            Outcome::Failed(long.clone()),
            Outcome::Served(Served {
                version: long.clone(),
                suite: long.clone(),
                group: Some(long.clone()),
                post_quantum: true,
                hello_retry: true,
                resumed: true,
                scheme: Some(long.clone()),
                certificate: Some(long.clone()),
                client: Some(long),
            }),
        ] {
            let mut bytes = Vec::new();
            Line::Handshake(Box::new(Handshake { outcome, ..handshake.clone() })).encode(&mut bytes);
            prop_assert!(bytes.len() <= MAX_LINE, "{} bytes", bytes.len());
            let Ok(Line::Handshake(read)) = Line::parse(&bytes) else { panic!("unreadable") };
            let read = read.offer.unwrap();
            prop_assert_eq!(read.groups.len(), n.min(MAX_VALUES));
        }
    }
}

#[test]
fn unknown_keys_are_passed_over_and_types_are_not() {
    let parse = |text: &str| Line::parse(text.as_bytes());
    let end = r#"{"v":1,"k":"e","c":1,"t":2,"i":3,"o":4,"later":{"a":[1]}}"#;
    assert!(matches!(parse(end), Ok(Line::End(End { sent: 4, .. }))));
    for wrong in [
        r#"{"v":1,"k":"e","c":"1","t":2,"i":3,"o":4}"#,
        r#"{"v":1,"k":"e","c":-1,"t":2,"i":3,"o":4}"#,
        r#"{"v":1,"k":"e","c":1,"c":1,"t":2,"i":3,"o":4}"#,
        r#"{"v":1,"k":"e","c":1,"t":2,"i":3}"#,
        r#"{"v":1,"k":"z"}"#,
        r#"{"k":"e"}"#,
        "[]",
        "",
        r#"{"v":1,"k":"h","c":1,"t":1,"l":"a","p":"p","m":"m","u":1}"#,
        r#"{"v":1,"k":"h","c":1,"t":1,"l":"a","p":"p","m":"m","u":1,"f":"x","r":"group"}"#,
        r#"{"v":1,"k":"h","c":1,"t":1,"l":"a","p":"p","m":"m","u":1,"r":"weather"}"#,
        r#"{"v":1,"k":"h","c":1,"t":1,"l":"a","p":"p","m":"m","u":1,"f":"","o":{"v":"030","s":"","g":"","a":"","x":""}}"#,
        r#"{"v":1,"k":"h","c":1,"t":1,"l":"a","p":"p","m":"m","u":1,"f":"","o":{"v":"03g4","s":"","g":"","a":"","x":""}}"#,
    ] {
        assert!(matches!(parse(wrong), Err(LineError::Malformed(_))), "{wrong}");
    }
    assert_eq!(parse(r#"{"v":2,"k":"e","c":[]}"#), Err(LineError::Newer(2)));
    assert_eq!(parse(&" ".repeat(MAX_LINE + 1)), Err(LineError::TooLong));
}

#[test]
fn controls_are_escaped_and_read_again() {
    let line = Line::End(End {
        connection: 1,
        time_ms: 0,
        principal: Some("a\u{7f}\u{9b}31m\u{1b}\u{9f}\u{a0}\u{fc}".into()),
        received: 0,
        sent: 0,
    });
    let mut out = Vec::new();
    line.encode(&mut out);
    let text = std::str::from_utf8(&out[..out.len() - 1]).unwrap();
    assert!(!text.contains(char::is_control), "{text:?}");
    assert_eq!(Line::parse(&out[..out.len() - 1]).unwrap(), line);
}
