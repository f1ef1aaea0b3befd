//! CRLs: those that are built are parsed again, by us and by x509-cert; malformed ones are refused or never trusted.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::authority;

use std::collections::HashSet;

use authority::{Authority, DAY, START, plan};
use der::{Decode, Encode};
use outlast_pki::crl::reason::{REASONS, UNSPECIFIED};
use outlast_pki::crl::{Content, Crl, Entry, Reason, Scope, pem};
use proptest::prelude::*;

fn content(issuer: &Authority) -> Content {
    Content {
        issuer: issuer.certificate.subject().clone(),
        issuer_key_id: issuer.certificate.subject_key_identifier().unwrap(),
        number: 7,
        this_update: START,
        next_update: START + 7 * DAY,
        distribution_points: Vec::new(),
        scope: Scope::All,
    }
}

fn build<S: AsRef<[u8]>>(
    issuer: &Authority,
    content: Content,
    entries: impl IntoIterator<Item = Entry<S>>,
) -> Vec<u8> {
    let unsigned = content.prepare(issuer.algorithm, entries).unwrap();
    let signature = issuer.sign(&unsigned.to_be_signed);
    unsigned.assemble(&signature).unwrap()
}

fn entry<S>(serial: S, reason: &'static Reason) -> Entry<S> {
    Entry { serial, revoked_at: START - DAY, reason }
}

const NONE: [Entry<[u8; 1]>; 0] = [];

#[test]
fn every_reason_comes_back_under_its_code() {
    let ca = plan("ECC_NIST_P256", "CA").ca(None).issue(None);
    let entries = REASONS.iter().map(|reason| entry([1, reason.code], reason));
    let der = build(&ca, content(&ca), entries);
    let crl = Crl::parse(&der).unwrap();
    assert_eq!(crl.len(), REASONS.len());
    for reason in REASONS {
        let found = crl.entry(&[0, 0, 1, reason.code]).unwrap();
        assert_eq!((found.reason, found.revoked_at), (reason, START - DAY));
        assert_eq!(Reason::by_code(reason.code), Some(reason));
        if let Some(name) = reason.aws_name {
            assert_eq!(Reason::by_aws_name(name), Some(reason));
        }
    }
    assert!(crl.entry(&[1, 99]).is_none());
    // As another implementation parses it. RFC 5280, section 5.3.1: an unspecified reason is left out.
    let parsed =
        x509_cert::crl::CertificateList::<x509_cert::certificate::Rfc5280>::from_der(&der).unwrap();
    let list = parsed.tbs_cert_list.revoked_certificates.unwrap();
    assert!(list[0].crl_entry_extensions.is_none());
    for (entry, reason) in list.iter().zip(REASONS).skip(1) {
        let extensions = entry.crl_entry_extensions.as_ref().unwrap();
        assert_eq!(extensions[0].extn_value.as_bytes(), [0x0a, 1, reason.code]);
        assert!(!extensions[0].critical);
    }
    assert_eq!(REASONS.iter().filter(|row| row.aws_name.is_some()).count(), 8);
}

#[test]
fn what_is_said_of_a_crl_comes_back() {
    for spec in ["ML_DSA_65", "ECC_NIST_P384", "RSA_2048"] {
        let root = plan(spec, "Root").ca(None).issue(None);
        let ca = plan(spec, "CA").ca(Some(0)).issue(Some(&root));
        let mut wanted = content(&ca);
        wanted.distribution_points = vec!["http://crl.example/1.crl".into()];
        wanted.scope = Scope::UserCertificates;
        let der = build(&ca, wanted, NONE);
        for crl in [Crl::parse(&der).unwrap(), Crl::parse(pem(&der).as_bytes()).unwrap()] {
            assert_eq!(crl.issuer(), ca.certificate.subject());
            assert_eq!((crl.this_update(), crl.next_update()), (START, Some(START + 7 * DAY)));
            assert_eq!(crl.number().unwrap(), [7]);
            // The issuer's own identifier, not that of the CA above.
            assert_eq!(
                crl.authority_key_identifier(),
                ca.certificate.subject_key_identifier(),
                "{spec}"
            );
            assert_ne!(crl.authority_key_identifier(), root.certificate.subject_key_identifier());
            assert_eq!(crl.distribution_urls(), ["http://crl.example/1.crl"]);
            let point = crl.issuing_distribution_point().unwrap();
            assert!(point.only_contains_user_certs && !point.only_contains_ca_certs);
            let critical = crl.extensions().iter().find(|one| one.critical).unwrap();
            assert_eq!(critical.extn_id.to_string(), "2.5.29.28");
            assert_eq!(crl.unusable(), None);
            assert!(crl.is_empty());
            assert!(crl.signed_by(&ca.certificate));
            assert!(!crl.signed_by(&root.certificate));
        }
        let two = pem(&der) + &pem(&der);
        assert_eq!(Crl::parse_all(two.as_bytes()).unwrap().len(), 2);
        assert_eq!(Crl::parse_all(&der).unwrap().len(), 1);
        assert!(Crl::parse_all(b"nothing").is_err());
        let mut broken = der.clone();
        *broken.last_mut().unwrap() ^= 1;
        assert!(!Crl::parse(&broken).unwrap().signed_by(&ca.certificate));
    }
}

#[test]
fn an_issuer_without_crl_sign_is_not_believed() {
    use x509_cert::ext::pkix::KeyUsages;
    let ca = plan("ECC_NIST_P256", "CA").usage(&[KeyUsages::KeyCertSign]).issue(None);
    let crl = Crl::parse(&build(&ca, content(&ca), NONE)).unwrap();
    assert!(!crl.signed_by(&ca.certificate));
    assert!(crl.signed_with(&ca.certificate.public_key().unwrap()));
}

#[test]
fn entries_are_ordered_and_the_first_of_several_stays() {
    let ca = plan("ECC_NIST_P256", "CA").ca(None).issue(None);
    let compromised = Reason::by_code(1).unwrap();
    let entries = [
        entry(vec![9, 9], UNSPECIFIED),
        entry(vec![200], compromised),
        entry(vec![0, 0, 200], UNSPECIFIED),
        entry(vec![3], UNSPECIFIED),
        entry(vec![0], UNSPECIFIED),
    ];
    let crl = Crl::parse(&build(&ca, content(&ca), entries)).unwrap();
    let serials: Vec<_> = crl.entries().map(|entry| entry.serial).collect();
    assert_eq!(serials, [vec![0], vec![3], vec![200], vec![9, 9]]);
    assert_eq!(crl.entry(&[200]).unwrap().reason, compromised);
    for bad in [vec![], vec![1; 21]] {
        assert!(content(&ca).prepare(ca.algorithm, [entry(bad, UNSPECIFIED)]).is_err());
    }
}

/// Negative serial numbers exist, and differ from the positive ones with the same bytes.
#[test]
fn serial_numbers_keep_their_sign() {
    let ca = plan("ECC_NIST_P256", "CA").ca(None).issue(None);
    let der = build(&ca, content(&ca), [entry([0x7f], UNSPECIFIED)]);
    let positive = Crl::parse(&der).unwrap();
    assert!(positive.entry(&[0x7f]).is_some() && positive.entry(&[0xff]).is_none());
    let place = der.windows(3).position(|part| part == [2, 1, 0x7f]).unwrap();
    let mut other = der.clone();
    other[place + 2] = 0xff;
    let negative = Crl::parse(&other).unwrap();
    assert_eq!(negative.entries().count(), 1);
    assert!(negative.entry(&[0xff]).is_none() && negative.entry(&[0x7f]).is_none());
    let positive = Crl::parse(&build(&ca, content(&ca), [entry([0xff], UNSPECIFIED)])).unwrap();
    assert!(positive.entry(&[0xff]).is_some() && positive.entry(&[0, 0xff]).is_some());
}

#[test]
fn what_must_not_be_used_says_why() {
    let ca = plan("ECC_NIST_P256", "CA").ca(None).issue(None);
    let crl = build(&ca, content(&ca), [entry([5], Reason::by_code(1).unwrap())]);
    // (replaced bytes, replacement, message)
    let cases: &[(&[u8], &[u8], &str)] = &[
        // The CRL number, turned into an unknown critical extension or a delta indicator.
        (
            &[0x30, 0x0a, 0x06, 0x03, 0x55, 0x1d, 0x14, 0x04, 0x03, 0x02, 0x01, 0x07],
            &[0x30, 0x0a, 0x06, 0x03, 0x55, 0x1d, 0x1b, 0x04, 0x03, 0x02, 0x01, 0x07],
            "delta",
        ),
        (
            &[0x06, 0x03, 0x55, 0x1d, 0x14, 0x04, 0x03, 0x02, 0x01, 0x07],
            &[0x06, 0x03, 0x55, 0x1d, 0x7f, 0x01, 0x01, 0xff, 0x04, 0x00],
            "2.5.29.127",
        ),
        // The entry's reason.
        (
            &[0x06, 0x03, 0x55, 0x1d, 0x15, 0x04, 0x03, 0x0a, 0x01, 0x01],
            &[0x06, 0x03, 0x55, 0x1d, 0x7f, 0x01, 0x01, 0xff, 0x04, 0x00],
            "entry extension 2.5.29.127",
        ),
        (
            &[0x06, 0x03, 0x55, 0x1d, 0x15, 0x04, 0x03, 0x0a, 0x01, 0x01],
            &[0x06, 0x03, 0x55, 0x1d, 0x1d, 0x01, 0x01, 0xff, 0x04, 0x00],
            "indirect",
        ),
    ];
    for (old, new, text) in cases {
        let place = crl.windows(old.len()).position(|part| part == *old).expect(text);
        let mut other = crl.clone();
        other[place..place + new.len()].copy_from_slice(new);
        let other = Crl::parse(&other).unwrap();
        assert!(other.unusable().is_some_and(|said| said.contains(text)), "{:?}", other.unusable());
    }
}

#[test]
fn ten_thousand_entries_are_quick() {
    let ca = plan("ECC_NIST_P256", "CA").ca(None).issue(None);
    let serial = |n: u32| {
        let mut serial = [0x40; 16];
        // Not sorted, all different.
        serial[1..5].copy_from_slice(&n.wrapping_mul(2_654_435_761).to_be_bytes());
        serial
    };
    let count = 10_000;
    let build = || {
        let entries = (0..count).map(|n| entry(serial(n), &REASONS[n as usize % 6]));
        content(&ca).prepare(ca.algorithm, entries).unwrap()
    };
    let begin = std::time::Instant::now();
    let unsigned = build();
    println!("10,000 entries built in {:?}", begin.elapsed());
    let signature = ca.sign(&unsigned.to_be_signed);
    let der = unsigned.assemble(&signature).unwrap();
    let begin = std::time::Instant::now();
    let crl = Crl::parse(&der).unwrap();
    println!("{} bytes read in {:?}", der.len(), begin.elapsed());
    assert!(crl.signed_by(&ca.certificate));
    assert_eq!(crl.len(), count as usize);
    assert!((0..count).all(|n| crl.entry(&serial(n)).is_some()));
    assert!(crl.entry(&[0x40; 15]).is_none());
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Crl::parse(&bytes);
        bytes.insert(0, 0x30);
        let _ = Crl::parse(&bytes);
    }

    #[test]
    fn serials_come_back(serials in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..40)) {
        let issuer = outlast_pki::name::common_name("CA").unwrap();
        let unsigned = Content {
            issuer, issuer_key_id: vec![1; 20], number: u64::MAX, this_update: 0,
            next_update: 4_000_000_000, distribution_points: Vec::new(), scope: Scope::All,
        }
        .prepare(&outlast_crypto::signatures::ML_DSA_44, serials.iter().map(|serial| entry(serial, UNSPECIFIED)))
        .unwrap();
        let crl = Crl::parse(&unsigned.assemble(&[0; 4]).unwrap()).unwrap();
        for serial in &serials {
            prop_assert!(crl.entry(serial).is_some());
        }
        let distinct: HashSet<Vec<u8>> = serials
            .iter()
            .map(|serial| der::asn1::Uint::new(serial).unwrap().to_der().unwrap())
            .collect();
        prop_assert_eq!(crl.len(), distinct.len());
    }

    #[test]
    fn flipped_bytes_do_not_panic(place in 0usize..500, value in any::<u8>()) {
        let issuer = outlast_pki::name::common_name("CA").unwrap();
        let mut der = Content {
            issuer, issuer_key_id: vec![1; 20], number: 3, this_update: 0, next_update: 4_000_000_000,
            distribution_points: vec!["http://a.example/".into()], scope: Scope::CaCertificates,
        }
        .prepare(&outlast_crypto::signatures::ML_DSA_44, REASONS.iter().map(|reason| entry([reason.code], reason)))
        .unwrap().assemble(&[0; 4]).unwrap();
        let place = place % der.len();
        der[place] = value;
        if let Ok(crl) = Crl::parse(&der) {
            let _ = (crl.entries().count(), crl.entry(&[1]), crl.number(), crl.distribution_urls());
        }
    }
}
