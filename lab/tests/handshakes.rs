//! Handshakes in memory: every algorithm, every kind, and the bytes of their flights.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use outlast_lab::subject::{KeyExchange, Kind, Subject, authentications, key_exchanges};
use outlast_lab::tls::rounds::{self, Part};
use outlast_lab::tls::rustls::Rustls;
use outlast_lab::tls::{Stack, chain, typical};
use outlast_lab::trace::{Side, Trace};
use outlast_pki::whatif::flight;

const KINDS: [Kind; 4] = [Kind::Full, Kind::HelloRetry, Kind::Resumed, Kind::Mutual];

fn once(stack: &dyn Stack, subject: &Subject) -> Trace {
    let mut handshaker =
        stack.prepare(subject).unwrap_or_else(|error| panic!("{}: {error}", subject.name()));
    handshaker.handshake().unwrap();
    handshaker.handshake().unwrap_or_else(|error| panic!("{}: {error}", subject.name()))
}

fn subject(key_exchange: &str, authentication: &str, certificates: u8) -> Subject {
    Subject::new(key_exchange, authentication, certificates).unwrap()
}

/// The sides take turns, and the client's flight that completes its handshake is not the last one.
fn is_well_formed(trace: &Trace, kind: Kind) {
    let sides: Vec<_> = trace.steps.iter().map(|step| step.from).collect();
    let (client, server) = (Side::Client, Side::Server);
    let expected: &[_] = match kind {
        Kind::HelloRetry => &[client, server, client, server, client, server],
        _ => &[client, server, client, server],
    };
    // s2n-tls sends no ticket to a client with a certificate.
    let expected_sides =
        if kind == Kind::Mutual { &expected[..sides.len().max(3)] } else { expected };
    assert_eq!(sides, expected_sides);
    assert_eq!(trace.client_done, expected.len() - 2);
    assert!(trace.steps.iter().all(|step| step.bytes > 0));
    assert!(trace.cpu_ns(Side::Client) > 0 && trace.server_after_ns > 0);
}

#[test]
fn every_key_exchange_shakes_hands_in_every_kind() {
    for row in key_exchanges() {
        for kind in KINDS {
            let subject = subject(row.name, "ECDSA P-256", 1).kind(kind);
            let trace = once(&Rustls, &subject);
            is_well_formed(&trace, kind);
            assert_eq!(trace.hello_retry, kind == Kind::HelloRetry);
            assert_eq!(trace.resumed, kind == Kind::Resumed);
        }
    }
}

#[test]
fn every_signature_shakes_hands_in_every_kind() {
    for row in authentications().iter().filter(|row| row.name != "RSA 4096") {
        for kind in KINDS {
            let subject = subject("X25519MLKEM768", row.name, 2).kind(kind);
            is_well_formed(&once(&Rustls, &subject), kind);
        }
    }
}

#[test]
fn flights_weigh_what_the_model_of_certificates_says() {
    for row in authentications().iter().filter(|row| !row.name.starts_with("RSA")) {
        for key_exchange in ["X25519MLKEM768", "secp384r1"] {
            for certificates in [1, 3, 5] {
                let subject = subject(key_exchange, row.name, certificates);
                let chain = chain::server(row, certificates).unwrap();
                let shape = flight::Shape {
                    chain: &chain.certificates,
                    signature: row.signature_len,
                    share: subject.key_exchange.server_share_len,
                    protocol: None,
                    staple: None,
                    request: None,
                };
                let trace = once(&Rustls, &subject);
                let model = flight::server(&shape).bytes();
                assert_eq!(trace.steps[1].bytes as usize, model, "{}", subject.name());
            }
        }
    }
}

#[test]
fn a_hybrid_adds_exactly_2272_bytes() {
    for kind in [Kind::Full, Kind::Mutual] {
        for authentication in ["ECDSA P-256", "ML-DSA-65"] {
            let hybrid = once(&Rustls, &subject("X25519MLKEM768", authentication, 2).kind(kind));
            let classical = once(&Rustls, &subject("x25519", authentication, 2).kind(kind));
            let more = |side| hybrid.bytes(side) - classical.bytes(side);
            assert_eq!((more(Side::Client), more(Side::Server)), (1184, 1088));
        }
    }
}

fn typical_of(stack: &dyn Stack, subject: Subject, rounds: usize) -> Trace {
    let traces = typical(stack, &[subject], rounds, &|| false).unwrap().unwrap();
    traces.into_iter().next().unwrap()
}

#[test]
fn sizes_repeat_and_times_are_typical() {
    let subject = subject("x25519", "ECDSA P-256", 2);
    let first = typical_of(&Rustls, subject, 30);
    let second = typical_of(&Rustls, subject, 30);
    let bytes = |trace: &Trace| trace.steps.iter().map(|step| step.bytes).collect::<Vec<_>>();
    assert_eq!(bytes(&first), bytes(&second));
    assert!(first.cpu_ns(Side::Server) > 10_000);
}

#[test]
fn names_are_those_of_the_field_and_no_row_is_missing() {
    for name in ["ECDSA P-256", "ECDSA P-384", "ECDSA P-521", "Ed25519", "RSA 2048", "ML-DSA-44"] {
        assert!(authentications().iter().any(|row| row.name == name), "{name}");
    }
    assert_eq!(KeyExchange::by_name("X25519").unwrap().code_point, 0x001d);
    assert!(Subject::new("x25519", "ECDSA P-257", 1).is_err());
    // Every scheme of TLS 1.3's handshakes has a row, RSA-PSS one for its three hashes.
    for scheme in outlast_crypto::schemes::SCHEMES.iter().filter(|row| !row.name.starts_with("rsa"))
    {
        let found = authentications().iter().filter(|row| row.code_point == scheme.code_point);
        assert_eq!(found.count(), 1, "{}", scheme.name);
    }
    assert_eq!(
        key_exchanges().iter().filter(|row| !row.legacy).count(),
        outlast_crypto::groups::GROUPS.len()
    );
}

#[test]
fn sizes_of_the_rows_are_those_of_real_keys() {
    use der::Decode;
    for row in authentications().iter().filter(|row| row.name != "RSA 4096") {
        let pair = row.maker.generate().unwrap();
        let key = spki::SubjectPublicKeyInfoRef::from_der(pair.public_key()).unwrap();
        assert_eq!(key.subject_public_key.raw_bytes().len(), row.public_key_len, "{}", row.name);
        let longest = (0..60).map(|_| pair.sign(b"message").unwrap().len()).max();
        // Falcon's signatures have many lengths, and the longest hardly ever occurs.
        if row.legacy {
            assert!(longest <= Some(row.signature_len), "{}", row.name);
        } else {
            assert_eq!(longest, Some(row.signature_len), "{}", row.name);
        }
    }
}

#[test]
fn a_chain_is_asked_for_in_reason() {
    for certificates in [0, 6] {
        assert!(Rustls.prepare(&subject("x25519", "Ed25519", certificates)).is_err());
    }
}

#[test]
fn rounds_compare_what_they_measured() {
    let [hybrid, classical] =
        ["X25519MLKEM768", "x25519"].map(|name| subject(name, "ECDSA P-256", 1));
    let measured = rounds::in_process("rustls", &[hybrid, classical, classical], 60, 7).unwrap();
    assert_eq!(measured.samples[0].len(), 60);
    assert!(measured.cold[0].entropy_ns > 0 && measured.cold[0].first.len() == 3);
    let cost = measured.cost(1, Part::Both, 7);
    assert!(cost.low <= cost.value && cost.value > 20.0, "{cost:?}");
    // Generous: other tests run at the same time, and the lab itself is not optimised here.
    let control = measured.control("x25519", 1, 2, Part::Both, 7);
    assert!((0.7..1.4).contains(&control.ratio), "{control:?}");
    let ratio = measured.ratio(0, 1, Part::Server, 7);
    assert!((0.9..2.0).contains(&ratio.value), "{ratio:?}");
    let text = serde_json::to_string(&measured).unwrap();
    assert_eq!(serde_json::from_str::<rounds::Measured>(&text).unwrap(), measured);
}

/// Each stack with every key exchange, signature and kind that it supports.
fn stack_does_what_it_supports(stack: &dyn Stack, at_least: usize) {
    let mut done = 0;
    let all = key_exchanges().iter().map(|row| (row.name, "ECDSA P-256"));
    let signatures = authentications().iter().map(|row| ("x25519", row.name));
    let hybrid = authentications().iter().map(|row| ("X25519MLKEM768", row.name));
    for (key_exchange, authentication) in all.chain(signatures).chain(hybrid) {
        if authentication == "RSA 4096" {
            continue;
        }
        for kind in KINDS {
            let subject = subject(key_exchange, authentication, 2).kind(kind);
            if !stack.supports(&subject) {
                continue;
            }
            is_well_formed(&once(stack, &subject), kind);
            done += 1;
        }
    }
    assert!(done >= at_least, "{}: only {done}", stack.name());
}

/// If the system's OpenSSL is older, the one of the checkout is used, which may need its own loader: then this test
/// runs itself with it.
#[test]
fn openssl_shakes_hands_where_it_is_there() {
    const AGAIN: &str = "OUTLAST_LAB_UNDER_LOADER";
    // Tests run in their crate's folder; the libraries are found from the checkout's.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
    let stack = outlast_lab::tls::stack("openssl").unwrap();
    match stack.version() {
        Ok(version) => assert!(version.starts_with('3') || version.starts_with('4'), "{version}"),
        Err(error) => {
            assert!(error.to_string().contains("OUTLAST_OPENSSL_LIB"), "{error}");
            assert!(std::env::var_os(AGAIN).is_none(), "{error}");
            let this = std::env::current_exe().unwrap();
            let mut command = stack.command(&this);
            if command.get_program() != this {
                command.args(["--exact", "handshakes::openssl_shakes_hands_where_it_is_there"]);
                assert!(command.status().unwrap().success());
            }
            return;
        }
    }
    stack_does_what_it_supports(stack, 60);
    let [hybrid, classical] = ["X25519MLKEM768", "x25519"].map(|name| {
        let trace = typical_of(stack, subject(name, "ECDSA P-256", 1), 60);
        (trace.bytes(Side::Client), trace.bytes(Side::Server))
    });
    // Its client leaves out ec_point_formats, 8 bytes, if it offers no curve alone.
    assert_eq!((hybrid.0 - classical.0, hybrid.1 - classical.1), (1184 - 8, 1088));
}

#[test]
fn s2n_shakes_hands() {
    let stack = outlast_lab::tls::stack("s2n-tls").unwrap();
    assert!(stack.version().unwrap().starts_with("0.3"));
    stack_does_what_it_supports(stack, 30);
    let trace = typical_of(stack, subject("X25519MLKEM768", "ECDSA P-256", 1), 5);
    assert!(trace.cpu_ns(Side::Server) > 10_000);
}
