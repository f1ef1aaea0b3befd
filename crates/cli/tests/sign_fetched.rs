//! What `outlast verify --fetch` makes of answers: which chains it asks about, and what it keeps.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_crypto::Secret;
use outlast_net::server::system_clock;
use outlast_pki::extensions::crl_distribution_points;
use outlast_pki::object::{Kind, Object};
use outlast_pki::time::rfc3339;

use crate::common::pki::{New, issue};
use crate::common::{Folder, outlast, run, stderr, stdout};
use crate::tsa_revoked::Forged;

const DAY: i64 = 86_400;

/// A server that gives each request this body, or ends the connection if there is none. Returns its URL, and how many
/// connections it had.
fn answering(listener: TcpListener, body: Option<Vec<u8>>) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let shared = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            shared.fetch_add(1, Ordering::SeqCst);
            let Some(body) = &body else { continue };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
                head.push(byte[0]);
            }
            let first = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            // The client may have seen enough.
            let _ = stream.write_all(&[first.as_bytes(), body].concat());
        }
    });
    count
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/ca.crl", listener.local_addr().unwrap());
    (listener, url)
}

fn now() -> i64 {
    system_clock().div_euclid(1000)
}

/// Files by the signer, verified together; returns the output. All are accepted.
fn verify(forged: &Forged, files: &[&str], more: &[&str]) -> String {
    let folder = Folder::new();
    folder.write("root.pem", forged.root.pem().as_bytes());
    for name in files {
        folder.write(name, name.as_bytes());
        folder.write(&format!("{name}.p7s"), &forged.sign(name.as_bytes()));
    }
    let mut command = folder.here(outlast());
    command.arg("verify").args(files).args(["--trust", "root.pem", "--fetch"]).args(more);
    let output = run(&mut command);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    said
}

/// A chain that holds only at the time that is judged: its CA was certified again after the signer was, the signer's
/// certificate has ended, and it claims a time before all of them.
#[test]
fn the_chain_of_the_time_that_is_judged_is_asked_about() {
    let (listener, url) = listen();
    let mut forged = Forged::new(&url);
    let again = New {
        not_before: now() - 10 * DAY,
        days: 365,
        ..New::of("SubordinateCACertificate_PathLen0", "Again", now())
    };
    let root = New {
        not_before: now() - 400 * DAY,
        days: 3650,
        ..New::of("RootCACertificate", "Old Root", now())
    };
    forged.root = issue("ECC_NIST_P256", root, None);
    let ca = issue("ECC_NIST_P256", again, Some(&forged.root));
    let leaf = New {
        authority: vec![crl_distribution_points(&[&url]).unwrap()],
        not_before: now() - 20 * DAY,
        days: 19,
        ..New::of("CodeSigningCertificate", "Ended", now())
    };
    forged.leaf = issue("ECC_NIST_P256", leaf, Some(&ca));
    forged.chain = vec![ca.der()];
    forged.signing_time = now() - 30 * DAY;
    let count = answering(listener, Some(ca.crl(1, &[], now())));
    let at = rfc3339(now() - 5 * DAY);
    verify(&forged, &["a"], &["--at", &at]);
    assert_eq!(count.load(Ordering::SeqCst), 1, "its CA was not asked");
}

#[test]
fn what_is_no_single_answer_of_the_ca_is_not_kept() {
    let pem = |der: Vec<u8>| {
        let object = Object { kind: Kind::Crl, der: Secret::new(der) };
        object.to_pem().unwrap().expose().to_vec()
    };
    for (case, says, requests) in [
        ("one CRL", "not revoked as of", 1),
        ("the same thrice", "not revoked as of", 1),
        ("very many", "more than 8 CRLs in one answer", 2),
        ("a certificate", "no CRL of the CA that names it", 2),
        // Who does not answer is asked once.
        ("nothing", "warning: ", 1),
    ] {
        let (listener, url) = listen();
        let forged = Forged::new(&url);
        let crl = forged.root.crl(1, &[], now());
        let body = match case {
            "one CRL" => Some(crl),
            "the same thrice" => Some(pem(crl).repeat(3)),
            "very many" => Some(pem(crl).repeat(9)),
            "a certificate" => Some(forged.root.pem().into_bytes()),
            _ => None,
        };
        let count = answering(listener, body);
        let said = verify(&forged, &["a", "b"], &[]);
        assert!(said.contains(says), "{case}: {said}");
        assert_eq!(count.load(Ordering::SeqCst), requests, "{case}: {said}");
    }
}
