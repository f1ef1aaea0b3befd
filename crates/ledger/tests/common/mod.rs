//! Events of real clients.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::net::SocketAddr;

use outlast_ledger::{End, Handshake, Line, Outcome, Served};
use outlast_negotiate::{Offer, Transport};

pub const NOW: i64 = 1_795_262_400_000; // 2026-11-21T12:00:00Z
pub const DAY: i64 = 86_400_000;

/// OpenSSL 3.5's offer with these groups and shares.
pub fn offer(groups: &[u16], shares: &[u16]) -> Offer {
    Offer {
        transport: Transport::Tcp,
        versions: vec![0x0304, 0x0303],
        suites: vec![
            0x1302, 0x1303, 0x1301, 0xc02c, 0xc030, 0x009f, 0xcca9, 0xcca8, 0xccaa, 0xc02b, 0xc02f,
            0x009e, 0xc024, 0xc028, 0x006b, 0xc023, 0xc027, 0x0067, 0xc00a, 0xc014, 0x0039, 0xc009,
            0xc013, 0x0033, 0x009d, 0x009c, 0x003d, 0x003c, 0x0035, 0x002f,
        ],
        groups: groups.to_vec(),
        shares: Some(shares.to_vec()),
        schemes: vec![
            0x0905, 0x0906, 0x0904, 0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x081a, 0x081b, 0x081c,
            0x0809, 0x080a, 0x080b, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601,
        ],
        certificate_schemes: None,
        sni: Some("outlast.example.com".into()),
        protocols: vec!["h2".into(), "http/1.1".into()],
        extensions: vec![0xff01, 0, 11, 10, 35, 16, 22, 23, 13, 43, 45, 51],
        resumes: false,
    }
}

/// A TLS 1.2 client's offer.
pub fn old_offer() -> Offer {
    Offer {
        versions: vec![0x0303],
        shares: None,
        extensions: vec![0, 10, 11, 13],
        ..offer(&[0x001d, 0x0017], &[])
    }
}

pub fn served(group: &str, hello_retry: bool) -> Outcome {
    let post_quantum = group.contains("MLKEM");
    Outcome::Served(Served {
        version: "TLSv1.3".into(),
        suite: "TLS_AES_256_GCM_SHA384".into(),
        group: Some(group.into()),
        post_quantum,
        hello_retry,
        resumed: false,
        scheme: Some("ecdsa_secp256r1_sha256".into()),
        certificate: Some("ecdsa-p256".into()),
        client: None,
    })
}

pub fn handshake(connection: u64, offer: Option<Offer>, outcome: Outcome) -> Handshake {
    Handshake {
        connection,
        time_ms: NOW,
        listener: "api".into(),
        peer: Some(SocketAddr::from(([192, 0, 2, 7], 50_000))),
        policy: "2026-11".into(),
        mode: "prefer".into(),
        ja4: offer.as_ref().map(outlast_negotiate::ja4::ja4),
        offer,
        outcome,
        micros: 1500,
    }
}

pub fn end(connection: u64, principal: Option<&str>) -> End {
    End {
        connection,
        time_ms: NOW + 5000,
        principal: principal.map(str::to_owned),
        received: 3000,
        sent: 5000,
    }
}

pub fn open(process: &str) -> Line {
    Line::Open { time_ms: NOW, process: process.into() }
}

pub fn begun(handshake: Handshake) -> Line {
    Line::Handshake(Box::new(handshake))
}
