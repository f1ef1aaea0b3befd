//! What lists revoke, what they look like, and which ones are refused.

use proptest::prelude::*;

use super::*;
use crate::{CertificateFields, CertificateKind, KeyKind, PrivateKey};

fn key() -> PrivateKey {
    PrivateKey::generate(KeyKind::Ed25519).unwrap()
}

fn issued(authority: &PrivateKey, serial: u64, key_id: &str) -> Certificate {
    let fields = CertificateFields {
        serial,
        kind: CertificateKind::User,
        key_id: key_id.to_owned(),
        principals: vec!["alice".to_owned()],
        valid_after_s: 0,
        valid_before_s: u64::MAX,
        critical_options: Vec::new(),
        extensions: Vec::new(),
    };
    Certificate::issue(key().public_key(), &fields, authority).unwrap()
}

/// A list with one section.
fn list(kind: u8, section: &[u8]) -> Vec<u8> {
    use crate::wire::Writer as _;
    let mut out = Krl::default().to_bytes();
    out.put_byte(kind);
    out.put_string(section);
    out
}

/// A section about all authorities' certificates.
fn of_all(kind: u8, part: &[u8]) -> Vec<u8> {
    use crate::wire::Writer as _;
    let mut section = Vec::new();
    section.put_string(b"");
    section.put_string(b"");
    section.put_byte(kind);
    section.put_string(part);
    list(1, &section)
}

#[test]
fn what_a_list_names_is_revoked_and_nothing_else() {
    let (ours, other) = (key(), key());
    let of = Some(ours.public_key());
    type Row = (&'static str, fn(&mut Krl, &Certificate), Option<Revoked>);
    let rows: [Row; 8] = [
        ("nothing", |_, _| (), None),
        (
            "key",
            |list, certificate| list.revoke_key(certificate.key()).unwrap(),
            Some(Revoked::Key),
        ),
        (
            "authority",
            |list, certificate| list.revoke_key(certificate.authority()).unwrap(),
            Some(Revoked::Authority),
        ),
        ("serial", |list, one| list.revoke_certificate(one).unwrap(), Some(Revoked::Serial)),
        ("range", |list, _| list.revoke_serials(None, 1, 7).unwrap(), Some(Revoked::Serial)),
        ("range above", |list, _| list.revoke_serials(None, 8, u64::MAX).unwrap(), None),
        ("key id", |list, _| list.revoke_key_id(None, "alice").unwrap(), Some(Revoked::KeyId)),
        ("another key id", |list, _| list.revoke_key_id(None, "alic").unwrap(), None),
    ];
    let certificate = issued(&ours, 7, "alice");
    for (what, revoke, expected) in rows {
        let mut list = Krl::default();
        revoke(&mut list, &certificate);
        assert_eq!(list.revokes(&certificate), expected, "{what}");
        let again = Krl::parse(&list.to_bytes()).unwrap();
        assert_eq!(again.revokes(&certificate), expected, "{what}, read back");
        assert_eq!(again, list, "{what}");
    }
    // Serial numbers and key ids are those of one authority.
    let mut list = Krl::default();
    list.revoke_serials(of, 7, 7).unwrap();
    list.revoke_key_id(of, "bob").unwrap();
    assert_eq!(list.revokes(&issued(&other, 7, "bob")), None);
    assert_eq!(list.revokes(&issued(&ours, 8, "bob")), Some(Revoked::KeyId));
    // A certificate without a number is revoked by its key id alone.
    let mut list = Krl::default();
    list.revoke_serials(None, 1, u64::MAX).unwrap();
    assert_eq!(list.revokes(&issued(&ours, 0, "carol")), None);
    list.revoke_certificate(&issued(&ours, 0, "carol")).unwrap();
    assert_eq!(list.revokes(&issued(&ours, 0, "carol")), Some(Revoked::KeyId));
}

#[test]
fn key_ids_are_compared_as_they_are() {
    let ours = key();
    let long = "x".repeat(300);
    let mut list = Krl::default();
    list.revoke_key_id(None, &long).unwrap();
    let list = Krl::parse(&list.to_bytes()).unwrap();
    assert_eq!(list.revokes(&issued(&ours, 1, &long)), Some(Revoked::KeyId));
    assert_eq!(list.revokes(&issued(&ours, 1, &format!("{long}y"))), None);
}

#[test]
fn bitmaps_and_fingerprints_are_read() {
    let ours = key();
    // Bits 0, 1 and 9 from 5 on: 5, 6 and 14.
    let bitmap = [&5_u64.to_be_bytes()[..], &[0, 0, 0, 2, 0b10, 0b11]].concat();
    let list_of = Krl::parse(&of_all(0x22, &bitmap)).unwrap();
    for serial in 1..20 {
        let expected = [5, 6, 14].contains(&serial).then_some(Revoked::Serial);
        assert_eq!(list_of.revokes(&issued(&ours, serial, "a")), expected, "{serial}");
    }
    let certificate = issued(&ours, 1, "a");
    for (kind, hash) in [
        (3, digest(&SHA1_FOR_LEGACY_USE_ONLY, certificate.key().blob())),
        (5, digest(&SHA256, certificate.key().blob())),
    ] {
        let section = [&(hash.as_ref().len() as u32).to_be_bytes(), hash.as_ref()].concat();
        let read = Krl::parse(&list(kind, &section)).unwrap();
        assert_eq!(read.revokes(&certificate), Some(Revoked::Key));
        assert_eq!(Krl::parse(&read.to_bytes()).unwrap(), read);
    }
}

#[test]
fn text_is_a_list_of_keys() {
    let (one, other) = (key(), key());
    let text = format!("# two\n\n{} a comment\n", one.public_key().to_openssh_line());
    let list = Krl::parse(text.as_bytes()).unwrap();
    assert!(list.revokes_key(one.public_key()) && !list.revokes_key(other.public_key()));
    assert!(matches!(Krl::parse(b"# a\nssh-ed25519 AAAA\n"), Err(KrlError::Line(2, _))));
    assert!(Krl::parse(b"\xff\xfe").is_err());
    assert_eq!(Krl::parse(b"").unwrap().counts(), KrlCounts::default());
}

#[test]
fn what_is_not_understood_is_refused() {
    use KrlError::*;
    let range = |first: u64, last: u64| [first.to_be_bytes(), last.to_be_bytes()].concat();
    let critical = b"\0\0\0\x01x\x01\0\0\0\0";
    let optional = b"\0\0\0\x01x\0\0\0\0\0";
    let overflow = [&u64::MAX.to_be_bytes()[..], &[0, 0, 0, 1, 0b10]].concat();
    for (what, bytes, expected) in [
        ("a signature", list(4, b""), Unsupported("a signature")),
        ("an unknown section", list(9, b""), Unsupported("a section of an unknown type")),
        ("an unknown part", of_all(0x24, b""), Unsupported("a section of an unknown type")),
        ("a critical extension", list(255, critical), Unsupported("a critical extension")),
        ("one of certificates", of_all(0x39, critical), Unsupported("a critical extension")),
        ("number 0", of_all(0x20, &0_u64.to_be_bytes()), Serial),
        ("a range from 0", of_all(0x21, &range(0, 5)), Serial),
        ("a range backwards", of_all(0x21, &range(5, 4)), Serial),
        ("a bitmap that overflows", of_all(0x22, &overflow), Serial),
        ("a bitmap with 0", of_all(0x22, &[&[0; 8][..], &[0, 0, 0, 1, 1]].concat()), Serial),
        (
            "a short fingerprint",
            list(5, b"\0\0\0\x01x"),
            Malformed("a fingerprint has a wrong length"),
        ),
    ] {
        assert_eq!(Krl::parse(&bytes), Err(expected), "{what}");
    }
    assert!(
        Krl::parse(&list(255, optional)).is_ok() && Krl::parse(&of_all(0x39, optional)).is_ok()
    );
    let whole = of_all(0x21, &range(1, 5));
    for len in 8..whole.len() {
        let cut = Krl::parse(&whole[..len]);
        // Between sections a list may end.
        assert!(cut.is_err() || cut.is_ok_and(|list| list.counts().serial_ranges == 0), "{len}");
    }
    let mut other = whole;
    other[11] = 2;
    assert!(matches!(Krl::parse(&other), Err(Unsupported(_))));
    assert_eq!(Krl::parse(&vec![b'#'; MAX_KRL_LEN + 1]), Err(TooLong));
    // 8 MiB of every other bit would become millions of ranges.
    let bits = vec![0x55; 8 << 20];
    let part = [&1_u64.to_be_bytes()[..], &(bits.len() as u32).to_be_bytes(), &bits].concat();
    assert_eq!(Krl::parse(&of_all(0x22, &part)), Err(TooLong));
}

proptest! {
    /// Ranges against a set of numbers.
    #[test]
    fn ranges_are_sets(ranges in prop::collection::vec((1_u64..60, 0_u64..12), 0..20)) {
        let ours = key();
        let mut list = Krl::default();
        let mut expected = BTreeSet::new();
        for (first, more) in ranges {
            list.revoke_serials(Some(ours.public_key()), first, first + more).unwrap();
            expected.extend(first..=first + more);
        }
        let list = Krl::parse(&list.to_bytes()).unwrap();
        let of = list.certificates.get(ours.public_key().blob());
        let ranges: Vec<_> = of.iter().flat_map(|of| &of.serials).collect();
        let found: BTreeSet<u64> =
            ranges.iter().flat_map(|(first, last)| **first..=**last).collect();
        prop_assert_eq!(&found, &expected);
        // As few as there can be.
        let gaps = expected.iter().filter(|serial| !expected.contains(&(**serial - 1))).count();
        prop_assert_eq!(ranges.len(), gaps);
    }
}
