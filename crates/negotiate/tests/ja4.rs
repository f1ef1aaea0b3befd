//! JA4 against published fingerprints and captured ClientHellos.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_negotiate::ja4::{LEN, ja4};
use outlast_negotiate::offer::{Collected, collect};
use outlast_negotiate::{Offer, Transport};

fn offer(suites: &[u16], extensions: &[u16], schemes: &[u16]) -> Offer {
    Offer {
        transport: Transport::Tcp,
        versions: vec![0x0304, 0x0303],
        suites: suites.to_vec(),
        groups: vec![],
        shares: None,
        schemes: schemes.to_vec(),
        certificate_schemes: None,
        sni: None,
        protocols: vec!["h2".into(), "http/1.1".into()],
        extensions: extensions.to_vec(),
        resumes: false,
    }
}

const CHROME_SUITES: &[u16] = &[
    0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c,
    0x009d, 0x002f, 0x0035,
];
const CHROME_SCHEMES: &[u16] = &[0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];

/// The example of FoxIO's technical_details/JA4.md.
fn example() -> Offer {
    let extensions = [
        0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005, 0x0023, 0x0012,
        0x002b, 0xff01, 0x000b, 0x000a, 0x0015,
    ];
    offer(CHROME_SUITES, &extensions, CHROME_SCHEMES)
}

#[test]
fn published_fingerprints_come_out() {
    assert_eq!(ja4(&example()), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    // Chrome 143 with X25519MLKEM768 and ECH, as reported in FoxIO-LLC/ja4-nginx-module issue 40.
    let chrome_143 = [
        0x002d, 0x0033, 0x0010, 0xfe0d, 0x0017, 0x44cd, 0x0000, 0x000b, 0x000a, 0x002b, 0xff01,
        0x0023, 0x0012, 0x0005, 0x000d, 0x001b,
    ];
    let chrome_143 = offer(CHROME_SUITES, &chrome_143, CHROME_SCHEMES);
    assert_eq!(ja4(&chrome_143), "t13d1516h2_8daaf6152771_d8a2da3f94cd");
}

#[test]
fn grease_does_not_count_anywhere() {
    let mut offer = example();
    offer.suites.insert(0, 0x9a9a);
    offer.extensions.insert(0, 0xcaca);
    offer.extensions.push(0x1a1a);
    offer.versions.insert(0, 0xfafa);
    offer.schemes.insert(3, 0x2a2a);
    assert_eq!(ja4(&offer), ja4(&example()));
}

#[test]
fn order_counts_for_signature_schemes_only() {
    let mut offer = example();
    offer.suites.reverse();
    offer.extensions.reverse();
    offer.versions.reverse();
    assert_eq!(ja4(&offer), ja4(&example()));
    offer.schemes.reverse();
    assert_ne!(ja4(&offer), ja4(&example()));
    assert_eq!(ja4(&offer)[..23], ja4(&example())[..23]);
}

#[test]
fn the_readable_part_follows_the_offer() {
    let with = |change: fn(&mut Offer)| {
        let mut offer = example();
        change(&mut offer);
        let found = ja4(&offer);
        assert_eq!(found.len(), LEN, "{found}");
        found[..10].to_owned()
    };
    assert_eq!(with(|offer| offer.transport = Transport::Quic), "q13d1516h2");
    assert_eq!(with(|offer| offer.extensions.retain(|kind| *kind != 0)), "t13i1515h2");
    assert_eq!(with(|offer| offer.versions = vec![0x0303]), "t12d1516h2");
    assert_eq!(with(|offer| offer.versions = vec![0x0302]), "t11d1516h2");
    assert_eq!(with(|offer| offer.versions = vec![0x0301]), "t10d1516h2");
    assert_eq!(with(|offer| offer.versions = vec![0x0300]), "ts3d1516h2");
    assert_eq!(with(|offer| offer.versions = vec![0x7f1c]), "t00d1516h2");
    assert_eq!(with(|offer| offer.versions = vec![]), "t00d1516h2");
    assert_eq!(with(|offer| offer.suites = vec![0x1301; 250]), "t13d9916h2");
    assert_eq!(with(|offer| offer.suites = vec![0x1301; 7]), "t13d0716h2");
    assert_eq!(with(|offer| offer.protocols = vec!["http/1.1".into()]), "t13d1516h1");
    assert_eq!(with(|offer| offer.protocols = vec!["h".into()]), "t13d1516hh");
    assert_eq!(with(|offer| offer.protocols = vec![]), "t13d151600");
    assert_eq!(with(|offer| offer.protocols = vec![String::new()]), "t13d151600");
    // FoxIO's examples for bytes that are not alphanumeric: 0xab, 0xab 0xcd, 0x30 0xab, 0x30 0x31 0xab 0xcd, 0x30
    // 0xab 0xcd 0x31.
    for (bytes, shown) in [
        (&[0xab_u8][..], "ab"),
        (&[0xab, 0xcd], "ad"),
        (&[0x30, 0xab], "3b"),
        (&[0x30, 0x31, 0xab, 0xcd], "3d"),
        (&[0x30, 0xab, 0xcd, 0x31], "01"),
    ] {
        let mut offer = example();
        offer.protocols = vec![bytes.escape_ascii().to_string()];
        assert_eq!(&ja4(&offer)[8..10], shown);
    }
}

#[test]
fn what_is_empty_is_zeros() {
    let mut bare = offer(&[], &[], &[]);
    bare.protocols.clear();
    assert_eq!(ja4(&bare), "t13i000000_000000000000_000000000000");
    // Nothing is left to hash: no schemes, and only extensions that are not hashed.
    bare.extensions = vec![0, 16];
    assert_eq!(ja4(&bare), "t13d000200_000000000000_000000000000");
    // Without schemes there is no underscore: the hash of "000a".
    bare.extensions = vec![10];
    assert_eq!(ja4(&bare), "t13i000100_000000000000_a8f3e973773c");
}

/// Captured from `openssl s_client`; the fingerprints were worked out by another program.
#[test]
fn real_client_hellos_have_their_fingerprints() {
    for (hex, expected) in [
        (include_str!("data/openssl-3.5.hex"), "t13d3013h2_1d37bd780c83_ecd0401ec68b"),
        (include_str!("data/openssl-3.0.hex"), "t13d311000_e8f1e7e78f70_1f22a2ca17c4"),
        (include_str!("data/openssl-3.0-tls12.hex"), "t12i280600_d943125447b4_e7e480e5a997"),
    ] {
        let records = hex::decode(hex.split_whitespace().collect::<String>()).unwrap();
        let Collected::Complete(hello) = collect(&records) else { panic!("no ClientHello") };
        let offer = Offer::parse(&hello, Transport::Tcp).unwrap();
        assert_eq!(ja4(&offer), expected);
    }
}
