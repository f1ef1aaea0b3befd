//! `outlast serve-echo`, and a server's setting for HTTP/3, as processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};

use common::{Folder, outlast};

/// The first lines that a process prints, and the process.
fn started(mut command: Command, lines: usize) -> (std::process::Child, Vec<String>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut out = Vec::new();
    for _ in 0..lines {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        out.push(line.trim_end().to_owned());
    }
    (child, out)
}

/// Sends an unknown version: a QUIC listener answers with those that it speaks (RFC 9000, section 6).
fn speaks_quic(port: u16) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    let mut packet = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8];
    packet.extend([7; 8]);
    packet.push(0);
    packet.resize(1200, 0);
    let mut answer = [0; 1500];
    match socket.send(&packet).and_then(|_| socket.recv(&mut answer)) {
        Ok(len) => len > 5 && answer[1..5] == [0; 4],
        Err(_) => false,
    }
}

#[test]
fn the_echo_listens_where_it_says_and_writes_its_root() {
    let folder = tempfile();
    let ca = folder.join("ca.pem");
    for (transport, tcp, quic) in
        [("both", true, true), ("tcp", true, false), ("quic", false, true)]
    {
        let mut command = outlast();
        command.args(["serve-echo", "--threads", "1", "--transport", transport, "--ca-out"]);
        command.arg(&ca);
        let (mut child, lines) = started(command, 1);
        let port = lines[0].strip_prefix("listening on 127.0.0.1:").unwrap().parse().unwrap();
        assert!(std::fs::read_to_string(&ca).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        assert_eq!(TcpStream::connect(("127.0.0.1", port)).is_ok(), tcp, "{transport}");
        if quic {
            outlast_testing::until("QUIC is spoken", || speaks_quic(port));
        } else {
            assert!(!speaks_quic(port), "{transport}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut command = outlast();
    command.args(["serve-echo", "--policy", "no-such-policy"]);
    let (mut child, _) = started(command, 1);
    assert!(!child.wait().unwrap().success());
}

#[test]
fn http3_is_at_the_same_port_unless_it_is_off() {
    let folder = Folder::new();
    let serve = |listen: &str, http3: &[&str]| {
        let mut command = outlast();
        command.args(["server", "--listen", listen, "--revocation-listen", "off", "--data"]);
        command.arg(&folder.data).args(http3);
        command
    };
    for (http3, quic) in [(&[][..], true), (&["--http3", "on"], true), (&["--http3", "off"], false)]
    {
        let (mut child, lines) = started(serve("127.0.0.1:0", http3), 1 + usize::from(quic));
        let port = lines[0].strip_prefix("listening on https://127.0.0.1:").unwrap();
        let speaks = || speaks_quic(port.parse().unwrap());
        if quic {
            outlast_testing::until("QUIC is spoken", speaks);
        } else {
            assert!(!speaks(), "{http3:?}");
        }
        if quic {
            assert_eq!(lines[1], format!("HTTP/3 on udp://127.0.0.1:{port}"));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // The port is taken for UDP: a server that does not require HTTP/3 runs without it.
    let (udp, listen) = loop {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = udp.local_addr().unwrap();
        if TcpListener::bind(address).is_ok() {
            break (udp, address.to_string());
        }
    };
    let (mut child, lines) = started(serve(&listen, &[]), 1);
    assert_eq!(lines[0], format!("listening on https://{listen}"));
    child.kill().unwrap();
    child.wait().unwrap();
    let (mut child, lines) = started(serve(&listen, &["--http3", "on"]), 1);
    assert_eq!(lines[0], "");
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(errors.contains("over UDP") && errors.contains("--http3 off"), "{errors}");
    drop(udp);
    std::io::stdout().flush().unwrap();
}

fn tempfile() -> std::path::PathBuf {
    std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}
