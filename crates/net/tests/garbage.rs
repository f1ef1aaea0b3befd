//! Arbitrary datagrams: a listener stays alive, its memory does not grow, and clients can still connect.
//!
//! `OUTLAST_GARBAGE` sets the number of datagrams; `OUTLAST_SEED` with the printed seed repeats a run.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]
#![allow(clippy::disallowed_methods, reason = "a test may read its environment")]

use crate::quic_support;

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use outlast_negotiate::Rules;
use outlast_net::certificate::KINDS;
use outlast_net::echo;
use outlast_net::policy::Policy;
use outlast_net::quic::Settings;
use quic_support::{World, connect, echoed, endpoint};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{Keys, Version};
use rustls::{Side, SupportedCipherSuite};

/// Repeatable, not secure.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len + 8);
        while out.len() < len {
            out.extend(self.next().to_le_bytes());
        }
        out.truncate(len);
        out
    }
}

/// The head of an Initial packet up to its packet number (RFC 9000, section 17.2.2).
fn initial_head(first: u8, version: u32, ids: [&[u8]; 2], token: &[u8], rest: usize) -> Vec<u8> {
    let mut head = vec![first];
    head.extend(version.to_be_bytes());
    for id in ids {
        head.push(id.len() as u8);
        head.extend(id);
    }
    head.push(token.len() as u8);
    head.extend(token);
    head.extend((0x4000 | rest as u16).to_be_bytes());
    head
}

/// An Initial packet with valid encryption and this content.
fn sealed_initial(random: &mut Random, frames: &[u8]) -> Vec<u8> {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else { panic!() };
    let id = random.bytes(8 + (random.0 % 13) as usize);
    let keys = Keys::initial(Version::V1, suite, suite.quic.unwrap(), &id, Side::Client);
    let mut content = frames.to_vec();
    content.resize(1150, 0);
    let rest = 4 + content.len() + keys.local.packet.tag_len();
    let mut packet = initial_head(0xc3, 1, [&id, &random.bytes(8)], &[], rest);
    let number = packet.len();
    packet.extend(0_u32.to_be_bytes());
    let tag = keys.local.packet.encrypt_in_place(0, &packet, &mut content).unwrap();
    packet.extend(&content);
    packet.extend(tag.as_ref());
    let sample = packet[number + 4..][..keys.local.header.sample_len()].to_vec();
    let (first, after) = packet.split_at_mut(1);
    let number = &mut after[number - 1..][..4];
    keys.local.header.encrypt_in_place(&sample, &mut first[0], number).unwrap();
    packet
}

const KINDS_OF_GARBAGE: usize = 9;

fn garbage(random: &mut Random, kind: usize) -> Vec<u8> {
    let len = random.below(1400);
    let ids = [random.bytes(8 + (len % 13)), random.bytes(len % 21)];
    let ids = [ids[0].as_slice(), ids[1].as_slice()];
    match kind {
        // Arbitrary bytes.
        0 => random.bytes(len),
        // An Initial packet that cannot be decrypted.
        1 => {
            let mut packet = initial_head(0xc0 | (len as u8 & 3), 1, ids, &[], 1180);
            packet.extend(random.bytes(1180));
            packet
        }
        // The same with a foreign token.
        2 => {
            let token = random.bytes(len % 64);
            let mut packet = initial_head(0xc0, 1, ids, &token, 1180);
            packet.extend(random.bytes(1180));
            packet
        }
        // Truncated.
        3 => {
            let mut packet = initial_head(0xc0, 1, ids, &[], 1180);
            packet.extend(random.bytes(1180));
            packet.truncate(len % packet.len());
            packet
        }
        // Of an unknown version: large ones are answered with the supported versions.
        4 => {
            let mut packet = initial_head(0xc0, 0x1a2a_3a4a, ids, &[], 1180);
            packet.extend(random.bytes(if len.is_multiple_of(2) { 1180 } else { 100 }));
            packet
        }
        // Other long headers, and short ones.
        5 => {
            let mut packet = initial_head(0xd0 | (len as u8 & 0x2f), 1, ids, &[], 200);
            packet.extend(random.bytes(200));
            packet
        }
        6 => {
            let mut packet = random.bytes(len + 1);
            packet[0] = 0x40 | packet[0] & 0x3f;
            packet
        }
        // Valid encryption, and the beginning of a ClientHello: a connection that will never be complete.
        7 => sealed_initial(random, &[6, 0, 0x40, 100, 1, 0, 0x10, 0, 3, 3]),
        // Valid encryption, but no ClientHello.
        _ => {
            let mut frames = vec![6, 0, 0x40, 100, 2, 0, 0, 96];
            frames.extend(random.bytes(96));
            sealed_initial(random, &frames)
        }
    }
}

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Datagrams that the kernel dropped because nobody read them in time.
fn dropped(address: SocketAddr) -> u64 {
    let slot = format!(":{:04X}", address.port());
    let table = std::fs::read_to_string("/proc/net/udp").unwrap();
    let line = table
        .lines()
        .find(|line| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&slot)));
    line.unwrap().split_whitespace().last().unwrap().parse().unwrap()
}

fn send(random: &mut Random, address: SocketAddr, count: usize) {
    let mut socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for index in 0..count {
        if index % 32 == 0 {
            // No more at a time than the kernel buffers for a listener.
            std::thread::sleep(Duration::from_micros(500));
        }
        if index % 5000 == 0 {
            socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        }
        let datagram = garbage(random, index % KINDS_OF_GARBAGE);
        // The listener's answers to a closed socket appear as an error of the next call.
        let _ = socket.send_to(&datagram, address);
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_costs_no_memory_and_keeps_nobody_out() {
    let count = setting("OUTLAST_GARBAGE", 100_000) as usize;
    let seed = setting("OUTLAST_SEED", 0x9e37_79b9_7f4a_7c15);
    println!("OUTLAST_GARBAGE={count} OUTLAST_SEED={seed}");
    let world = World::new(Rules::default(), &KINDS[0], echo::PROTOCOL);
    let listener = world.listen(Settings::default());
    let address = listener.address();
    let serving = tokio::spawn(echo::over_quic(listener, std::future::pending()));
    let client = endpoint(world.config(&Policy::default(), echo::PROTOCOL));
    let connection = connect(&client, address).await.unwrap();
    assert_eq!(echoed(&connection, b"before").await, b"before");
    let mut random = Random(seed);
    let sending = |mut random: Random, count| {
        tokio::task::spawn_blocking(move || {
            send(&mut random, address, count);
            random
        })
    };
    // A first round, so that permanent allocations have happened.
    random = sending(random, 20_000).await.unwrap();
    let before = resident();
    let mut most = before;
    let mut task = sending(random, count);
    let mut others = 0;
    loop {
        // Meanwhile connected clients stay connected, and new ones can connect.
        let waiting = tokio::time::timeout(Duration::from_millis(500), &mut task).await;
        most = most.max(resident());
        assert_eq!(echoed(&connection, b"during").await, b"during");
        let fresh = endpoint(world.config(&Policy::default(), echo::PROTOCOL));
        let other = connect(&fresh, address).await.unwrap();
        assert_eq!(echoed(&other, b"new").await, b"new");
        others += 1;
        other.close(0_u32.into(), b"");
        if waiting.is_ok() {
            break;
        }
    }
    let after = resident();
    println!(
        "{count} datagrams, {} of them dropped by the kernel: {before} KiB before, {most} at most, {after} after; \
         {others} clients came in meanwhile",
        dropped(address)
    );
    assert!(most < before + 16 * 1024, "{before} KiB became {most}");
    assert!(!serving.is_finished());
    serving.abort();
}
