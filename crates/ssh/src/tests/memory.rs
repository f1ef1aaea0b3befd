//! Memory of connections that are not authenticated, measured in a process of its own.

use std::process::Command;

use super::pair::server_config;
use crate::kexinit::{self, STRICT_CLIENT};
use crate::packet::Sender;
use crate::wire::Writer;
use crate::*;

const CONNECTIONS: usize = 2000;

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_connection_before_authentication_takes_less_than_32_kib() {
    let test = "tests::memory::connections";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = text.lines().find_map(|line| line.split_once("bytes by connection: "));
    let (_, bytes) = bytes.unwrap_or_else(|| panic!("{text}"));
    let bytes: usize = bytes.trim().parse().unwrap();
    println!("{bytes} bytes by connection");
    assert!(bytes < 32 * 1024, "{bytes}");
}

/// Holds connections at their largest: an exchange is over, and a packet of the largest size is all but complete.
#[test]
#[ignore = "run by the test above"]
fn connections() {
    let config = std::sync::Arc::new(server_config());
    let exchange = exchange::Exchange::by_name("mlkem1024nistp384-sha384").unwrap();
    let lists = Algorithms { key_exchanges: vec![exchange.name], ..Algorithms::all() };
    let init = kexinit::write(&lists, &["ssh-ed25519"], &[STRICT_CLIENT]).unwrap();
    let mut share = vec![message::KEX_ECDH_INIT];
    share.put_string(exchange.start().unwrap().share());
    let mut hello = b"SSH-2.0-many\r\n".to_vec();
    let mut sender = Sender::new();
    for payload in [&init[..], &share, &[message::NEWKEYS]] {
        sender.seal(&[payload], &mut hello).unwrap();
    }
    let connect = || {
        let mut server = Server::new(config.clone(), 0);
        server.receive(&hello, 0);
        while server.poll().is_some() {}
        assert!(server.outgoing().len() > 2000);
        server.sent(usize::MAX);
        // A packet under GCM whose length is in the clear.
        server.receive(&(16 * 1024_u32).to_be_bytes(), 0);
        // All but the last byte of the packet with its tag, in as large pieces as it takes.
        let mut left = 16 * 1024 + 15;
        while left > 0 {
            assert!(server.wants_input());
            let most = server.room().min(left);
            server.receive(&vec![0; most], 0);
            assert!(server.poll().is_none());
            left -= most;
        }
        server
    };
    drop(connect());
    let before = resident();
    let held: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    let after = resident();
    let own = held.iter().map(Server::memory).max().unwrap();
    println!("{own} bytes of its own");
    println!("bytes by connection: {}", (after - before) / CONNECTIONS);
}

/// While the answer to a try is awaited, its packet takes no place beside what comes next.
#[test]
fn a_question_keeps_no_packet() {
    let mut server = Server::new(std::sync::Arc::new(server_config()), 0);
    let mut client = Client::new(std::sync::Arc::new(ClientConfig::default()), 0);
    let mut is_asked = false;
    for _ in 0..100 {
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::HostKey(_) => client.answer(true),
                ClientEvent::Ready => {
                    let mut long = vec![message::USERAUTH_REQUEST];
                    for field in ["alice", "ssh-connection", "publickey"] {
                        long.put_string(field.as_bytes());
                    }
                    long.put_bool(false);
                    long.put_string(b"ssh-ed25519");
                    long.put_string(&[1; 16_000]);
                    client.transport.send(&[&long]).unwrap();
                }
                ClientEvent::Disconnected(end) => panic!("{end:?}"),
                _ => {}
            }
        }
        let sent = client.outgoing().to_vec();
        client.sent(sent.len());
        for piece in sent.chunks(server.room()) {
            server.receive(piece, 0);
            while let Some(event) = server.poll() {
                is_asked |= matches!(event, ServerEvent::Authenticate(_));
            }
        }
        let sent = server.outgoing().to_vec();
        server.sent(sent.len());
        client.receive(&sent, 0);
        if is_asked {
            break;
        }
    }
    assert!(is_asked);
    while server.room() > 0 {
        server.receive(&vec![0; server.room()], 0);
        assert!(server.poll().is_none());
    }
    let own = server.memory() - size_of::<Server>();
    assert!(own < 24 * 1024, "{own}");
}
