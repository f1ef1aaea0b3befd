//! HTTP/3 with real clients: Chromium, quic-go and aioquic. Each gets what the server's policy says, and its own
//! report agrees.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use crate::common;

use std::process::Command;

use common::peers::{checkout, peer};
use common::{Folder, Server, succeed};
use serde_json::Value;

/// A server with HTTP/3, and these options.
fn serve(folder: &Folder, arguments: &[&str]) -> Server {
    Server::start(&folder.data, &[&["--http3", "on"], arguments].concat())
}

fn roots(folder: &Folder) -> String {
    folder.data.join("client/ca.pem").display().to_string()
}

fn json(command: &mut Command) -> Value {
    let text = succeed(command);
    println!("{}", text.trim());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The values in the browser's security panel.
#[test]
fn chromium_says_x25519mlkem768_over_http3() {
    let (Some(chromium), Some(openssl)) = (peer("chromium"), peer("openssl")) else { return };
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let picture = std::env::temp_dir().join(format!("outlast-http3-{}.png", server.port));
    let page = json(
        Command::new("python3")
            .arg(checkout().join("tests/interop/endpoints/chromium/page.py"))
            .arg(chromium.join("bin/chromium"))
            .arg(openssl.join("bin/openssl"))
            .arg(format!("https://127.0.0.1:{}", server.port))
            .arg(&picture),
    );
    let pixels = std::fs::read(&picture).unwrap();
    let _ = std::fs::remove_file(&picture);
    assert!(pixels.starts_with(b"\x89PNG"));
    assert_eq!(page["protocol"], "h3", "{page}");
    assert_eq!(page["tls"], "QUIC", "{page}");
    assert_eq!(page["group"], "X25519MLKEM768", "{page}");
    assert_eq!(page["security_state"], "secure", "{page}");
    assert_eq!(page["status"], 200, "{page}");
    assert_eq!(page["body"], "ok\n", "{page}");
}

fn quic_go(folder: &Folder, server: &Server, groups: Option<&str>) -> Option<Value> {
    let mut command = Command::new(peer("quicgo")?.join("bin/quicgo"));
    command.arg(format!("localhost:{}", server.port)).arg(roots(folder)).args(groups);
    Some(json(&mut command))
}

/// Go orders its groups itself; whatever the order, the policy's post-quantum groups come first.
#[test]
fn quic_go_gets_the_hybrid_whenever_it_names_one() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    for (groups, group) in [
        (None, "X25519MLKEM768"),
        (Some("X25519MLKEM768"), "X25519MLKEM768"),
        (Some("x25519,X25519MLKEM768"), "X25519MLKEM768"),
        (Some("SecP384r1MLKEM1024,x25519"), "SecP384r1MLKEM1024"),
        (Some("secp384r1,SecP256r1MLKEM768"), "SecP256r1MLKEM768"),
        (Some("x25519,secp256r1"), "x25519"),
        (Some("secp256r1"), "secp256r1"),
    ] {
        let Some(found) = quic_go(&folder, &server, groups) else { return };
        assert_eq!(found["group"], group, "{groups:?}: {found}");
        assert_eq!(found["protocol"], "HTTP/3.0", "{groups:?}: {found}");
        assert_eq!((&found["status"], &found["body"]), (&200.into(), &"ok\n".into()), "{found}");
    }
}

/// A policy that requires post-quantum refuses with the alert `handshake_failure`, which QUIC carries as error 0x128
/// (RFC 9001, section 4.8).
#[test]
fn classical_clients_are_refused_in_require_mode() {
    let folder = Folder::new();
    let server = serve(&folder, &["--mode", "require"]);
    if let Some(found) = quic_go(&folder, &server, Some("x25519")) {
        let error = found["error"].as_str().unwrap_or_default();
        assert!(error.contains("0x128") || error.contains("handshake failure"), "{found}");
    }
    if let Some(found) = quic_go(&folder, &server, None) {
        assert_eq!(found["group"], "X25519MLKEM768", "{found}");
    }
    if let Some(found) = aioquic(&folder, &server, 1) {
        assert_eq!(found["error"], "ConnectionError", "{found}");
        assert_eq!(found["error_code"], 0x128, "{found}");
    }
}

fn aioquic(folder: &Folder, server: &Server, count: usize) -> Option<Value> {
    let mut command = Command::new(peer("aioquic")?.join("bin/python"));
    command
        .arg(checkout().join("tests/interop/endpoints/aioquic/client.py"))
        .args(["127.0.0.1", &server.port.to_string(), &roots(folder), "/healthz"])
        .arg(count.to_string());
    Some(json(&mut command))
}

#[test]
fn aioquic_is_served_with_classical_groups() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let Some(found) = aioquic(&folder, &server, 20) else { return };
    assert_eq!(found["protocol"], "h3", "{found}");
    let answers = found["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 20);
    for answer in answers {
        assert_eq!((&answer["status"], &answer["body"]), (&200.into(), &"ok\n".into()), "{found}");
    }
}

/// Debian's curl has no HTTP/3: it comes over TCP, and is told where HTTP/3 is.
#[test]
fn curl_comes_over_tcp_and_is_told_of_http3() {
    if Command::new("curl").arg("--version").output().is_err() {
        outlast_testing::skip("there is no curl");
        return;
    }
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let text = succeed(Command::new("curl").args([
        "--silent",
        "--include",
        "--cacert",
        &roots(&folder),
        &format!("https://localhost:{}/healthz", server.port),
    ]));
    assert!(text.starts_with("HTTP/2 200"), "{text}");
    assert!(text.contains(&format!("alt-svc: h3=\":{}\"", server.port)), "{text}");
    assert!(text.ends_with("ok\n"), "{text}");
}
