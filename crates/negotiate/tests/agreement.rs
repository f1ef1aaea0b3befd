//! Our parser of a ClientHello compared with rustls's: both accept the same, or there is a listed reason.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::io::Cursor;
use std::sync::{Arc, LazyLock};

use outlast_negotiate::offer::{Collected, OfferError, collect};
use outlast_negotiate::policy::{Mode, Rules};
use outlast_negotiate::{Offer, Transport, decide};
use proptest::prelude::*;
use rustls::crypto::aws_lc_rs;
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// Extensions that rustls reads and we do not: no decision depends on them, and rustls answers what is wrong in them.
/// status_request, ec_point_formats, certificate types, extended_master_secret, compress_certificate, ticket_request,
/// pre_shared_key, cookie, psk_key_exchange_modes, certificate_authorities, ECH, renegotiation_info.
const UNREAD: &[u16] =
    &[5, 11, 19, 20, 23, 27, 58, 41, 44, 45, 47, 57, 0xfd00, 0xfe0d, 0xff01, 0xffa5];

/// What we refuse and rustls's acceptor accepts: rustls checks later, or never, or RFC 8446 allows the check.
fn is_listed(error: OfferError) -> bool {
    match error {
        // Sections 4.1.2, 4.2.8 and 9.2 of RFC 8446.
        OfferError::Duplicate | OfferError::Illegal(_) | OfferError::Missing(_) => true,
        // rustls does not read signature_algorithms_cert and the size of early_data, so a length inside may be wrong;
        // and our limit is 60 KiB.
        OfferError::TooLong => true,
        _ => false,
    }
}

fn rustls_takes(records: &[u8]) -> Option<bool> {
    let mut acceptor = Acceptor::default();
    let mut bytes = Cursor::new(records);
    loop {
        match acceptor.read_tls(&mut bytes) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(_) => return Some(false),
        }
        match acceptor.accept() {
            Ok(Some(_)) => return Some(true),
            Ok(None) => {}
            Err(_) => return Some(false),
        }
    }
}

fn we_take(records: &[u8]) -> Option<Result<Offer, OfferError>> {
    match collect(records) {
        Collected::Complete(message) => Some(Offer::parse(&message, Transport::Tcp)),
        Collected::Incomplete => None,
        Collected::Malformed(error) => Some(Err(error)),
    }
}

/// The hello without what we do not read; `None` if it cannot be parsed.
fn without(records: &[u8], kinds: &[u16]) -> Option<Vec<u8>> {
    let Collected::Complete(message) = collect(records) else { return None };
    let body = message.get(4..)?;
    let mut at = 34;
    at += 1 + usize::from(*body.get(at)?);
    at += 2 + usize::from(u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?]));
    at += 1 + usize::from(*body.get(at)?);
    let fixed = body.get(..at)?;
    let mut rest = body.get(at + 2..)?;
    let mut kept = Vec::new();
    while let Some([a, b, c, d]) = rest.first_chunk::<4>() {
        let len = usize::from(u16::from_be_bytes([*c, *d]));
        let whole = rest.get(..4 + len)?;
        if !kinds.contains(&u16::from_be_bytes([*a, *b])) {
            kept.extend_from_slice(whole);
        }
        rest = rest.get(4 + len..)?;
    }
    let len = u16::try_from(kept.len()).ok()?.to_be_bytes();
    let body = [fixed, &len, &kept].concat();
    let len = u32::try_from(body.len()).ok()?.to_be_bytes();
    let message = [&[1], &len[1..], &body].concat();
    Some(message.chunks(1 << 14).flat_map(record).collect())
}

fn record(body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[22, 3, 1], &len[..], body].concat()
}

/// The difference, if nothing explains it.
fn disagreement(records: &[u8]) -> Option<String> {
    match (we_take(records), rustls_takes(records)) {
        (None, Some(true)) => Some("rustls sees a whole hello where we see a part".into()),
        // rustls checks a record when all of it is there, we check as soon as it begins.
        (None, _) | (Some(Err(_)), None | Some(false)) | (Some(Ok(_)), Some(true)) => None,
        (Some(Err(error)), Some(true)) if is_listed(error) => None,
        (Some(Err(error)), Some(true)) => {
            // Only we read the list of schemes for certificates.
            let rest = without(records, &[50, 42])?;
            let listed = matches!(we_take(&rest), Some(Ok(_)));
            (!listed).then(|| format!("we refuse what rustls takes: {error}"))
        }
        (Some(Ok(_)), None) => Some("we see a whole hello where rustls sees a part".into()),
        (Some(Ok(offer)), Some(false)) => {
            if !offer.extensions.contains(&13) {
                // rustls requires signature_algorithms of every client; a TLS 1.2 client without it is refused at the
                // decision.
                return None;
            }
            let rest = without(records, UNREAD)?;
            let explained = rest != records && rustls_takes(&rest) == Some(true);
            (!explained).then(|| "we take what rustls refuses".into())
        }
    }
}

/// Hellos of rustls' client: TLS 1.3 with and without hybrids, both versions, TLS 1.2.
static HELLOS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let versions: [&[&rustls::SupportedProtocolVersion]; 3] = [
        &[&rustls::version::TLS13],
        &[&rustls::version::TLS12, &rustls::version::TLS13],
        &[&rustls::version::TLS12],
    ];
    let mut out = Vec::new();
    for versions in versions {
        for first in [0, 1] {
            let mut provider = aws_lc_rs::default_provider();
            provider.kx_groups.rotate_left(first);
            let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
                .with_protocol_versions(versions)
                .unwrap()
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth();
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            let name = "localhost".try_into().unwrap();
            let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            out.push(hello);
        }
    }
    out
});

/// A change of a hello.
#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Flip(usize, u8),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0..2000_usize;
    prop_oneof![
        (at.clone(), any::<u8>()).prop_map(|(at, value)| Change::Set(at, value)),
        (at.clone(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, 1 << bit)),
        (at.clone(), prop::collection::vec(any::<u8>(), 1..5))
            .prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (at.clone(), 1..6_usize).prop_map(|(at, len)| Change::Remove(at, len)),
        (at, 1..40_usize).prop_map(|(at, len)| Change::Repeat(at, len)),
    ]
}

/// Changes the message, not the records around it, and corrects its length.
fn apply(hello: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut body = hello[9..].to_vec();
    for change in changes {
        let len = body.len().max(1);
        match change {
            Change::Set(at, value) => body[at % len] = *value,
            Change::Flip(at, bit) => body[at % len] ^= bit,
            Change::Insert(at, bytes) => {
                let at = at % len;
                body.splice(at..at, bytes.iter().copied());
            }
            Change::Remove(at, count) => {
                let at = at % len;
                body.drain(at..(at + count).min(len));
            }
            Change::Repeat(at, count) => {
                let at = at % len;
                let piece = body[at..(at + count).min(len)].to_vec();
                body.splice(at..at, piece);
            }
        }
        if body.is_empty() {
            body.push(0);
        }
    }
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    record(&[&[1], &len[1..], &body].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_one_takes_the_other_does(
        which in 0..6_usize,
        changes in prop::collection::vec(change(), 0..4),
    ) {
        let records = apply(&HELLOS[which], &changes);
        prop_assert_eq!(disagreement(&records), None);
        // Nothing panics, whatever is offered.
        if let Some(Ok(offer)) = we_take(&records) {
            for policy in outlast_negotiate::catalogue::POLICIES {
                for mode in Mode::ALL {
                    decide(&Rules { policy, mode }, &offer, &[]);
                }
            }
        }
    }

    #[test]
    fn neither_is_fooled_by_records(
        which in 0..6_usize,
        changes in prop::collection::vec(change(), 1..3),
        at in 1..1000_usize,
    ) {
        let hello = &HELLOS[which];
        let at = 5 + at % (hello.len() - 6);
        let mut records = [record(&hello[5..at]), record(&hello[at..])].concat();
        for change in &changes {
            if let Change::Set(at, value) = change {
                let at = at % records.len();
                records[at] = *value;
            }
        }
        prop_assert_eq!(disagreement(&records), None);
    }

    #[test]
    fn bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Offer::parse(&bytes, Transport::Quic);
        let _ = we_take(&bytes);
        let _ = we_take(&record(&bytes));
    }
}

/// Each extension of each hello, cut, lengthened, doubled and changed in every byte.
#[test]
fn every_byte_of_every_hello_counts_alike() {
    for hello in HELLOS.iter() {
        for at in 0..hello.len() - 9 {
            // The shares and the random have no meaning here.
            let far = hello.len() > 600 && at > 500;
            if far && at % 41 != 0 {
                continue;
            }
            for value in [0, 1, 2, 3, 0xff, hello[9 + at].wrapping_add(1)] {
                let records = apply(hello, &[Change::Set(at, value)]);
                assert_eq!(disagreement(&records), None, "byte {at} of {value}: {records:?}");
            }
        }
    }
}
