//! Names of a certificate to be issued below a CA with name constraints, where the name is not in its usual place;
//! and the places where a certificate names its revocation information.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail, and shares helpers with others"
)]

use crate::common;

use common::issue;
use common::raw::{Raw, dn, seq, tlv};
use outlast_pki::certificate::Certificate;
use outlast_pki::describe::{RevocationUrls, revocation_urls};
use outlast_pki::extensions::{authority_information_access, crl_distribution_points};
use outlast_pki::general_name::{GeneralName, encode_names};
use outlast_pki::validate::check_names;

const SAN: &str = "2.5.29.17";
const NC: &str = "2.5.29.30";
const CN: &str = "2.5.4.3";

fn leaf() -> Raw {
    let root = issue("ECC_NIST_P256", "Root", "RootCACertificate", 10, None);
    let leaf = issue("ECC_NIST_P256", "Leaf", "EndEntityCertificate", 1, Some(&root));
    Raw::of(leaf.certificate.der())
}

/// A CA that may certify only names in this subtree, or all others.
fn constrained(permitted: bool, base: &[u8]) -> Certificate {
    let root = issue("ECC_NIST_P256", "Root", "RootCACertificate", 10, None);
    let subtrees = tlv(if permitted { 0xa0 } else { 0xa1 }, &seq(&[base]));
    let raw = Raw::of(root.certificate.der()).set(NC, true, &seq(&[&subtrees]));
    Certificate::parse(&raw.der()).unwrap()
}

fn alternative(leaf: &Raw, name: GeneralName) -> Raw {
    leaf.clone().set(SAN, false, &encode_names(&[name]).unwrap())
}

#[test]
fn host_like_common_names_are_constrained() {
    let leaf = leaf();
    let permitted = constrained(true, &tlv(0x82, b"example.com"));
    let excluded = constrained(false, &tlv(0x82, b"example.com"));
    let named = |name: &str| Raw { subject: dn(CN, 0x0c, name.as_bytes()), ..leaf.clone() };
    for (name, in_permitted, in_excluded) in [
        ("www.example.com", true, false),
        ("www.EXAMPLE.com", true, false),
        ("*.example.com", true, false),
        ("www.example.com.", true, false),
        ("www.example.org", false, true),
        ("*.example.org", false, true),
        ("A device", true, true),
        ("localhost", true, true),
    ] {
        let raw = named(name);
        let check = |above: &Certificate| check_names(&raw.tbs(), std::slice::from_ref(above));
        assert_eq!(check(&permitted).is_ok(), in_permitted, "{name}");
        assert_eq!(check(&excluded).is_ok(), in_excluded, "{name}");
    }
    // With a host name in its place, nobody uses the common name.
    let raw = alternative(&named("www.example.org"), GeneralName::DnsName("a.example.com".into()));
    check_names(&raw.tbs(), &[permitted]).unwrap();
}

#[test]
fn internationalized_mailboxes_are_constrained_as_mailboxes() {
    let leaf = leaf();
    let permitted = constrained(true, &tlv(0x81, b"example.com"));
    let excluded = constrained(false, &tlv(0x81, b"example.com"));
    let id = "1.3.6.1.5.5.7.8.9".parse().unwrap();
    for (mailbox, in_permitted, in_excluded) in
        [("jürgen@example.com", true, false), ("jürgen@example.org", false, true)]
    {
        let raw = alternative(&leaf, GeneralName::other_name(id, mailbox).unwrap());
        let check = |above: &Certificate| check_names(&raw.tbs(), std::slice::from_ref(above));
        assert_eq!(check(&permitted).is_ok(), in_permitted, "{mailbox}");
        assert_eq!(check(&excluded).is_ok(), in_excluded, "{mailbox}");
    }
    // A value that is not text is in no permitted subtree and in every excluded one.
    let value = vec![0x04, 1, 7];
    let raw = alternative(&leaf, GeneralName::OtherName { type_id: id, value });
    assert!(check_names(&raw.tbs(), &[permitted]).is_err());
    assert!(check_names(&raw.tbs(), &[excluded]).is_err());
}

#[test]
fn revocation_is_looked_up_where_extensions_say() {
    let urls = |raw: &Raw| revocation_urls(&Certificate::parse(&raw.der()).unwrap());
    assert_eq!(urls(&leaf()), RevocationUrls::default());
    let points = ["http://a.example/1.crl", "HTTP://a.example/2.crl", "ldap://a.example/x"];
    let raw = leaf().set_extension(&crl_distribution_points(&points).unwrap()).set_extension(
        &authority_information_access(
            &["http://a.example/ocsp", "https://a.example/ocsp"],
            &["http://a.example/ca.cer"],
        )
        .unwrap(),
    );
    let expected = RevocationUrls {
        ocsp: vec!["http://a.example/ocsp".into()],
        crl: points[..2].iter().map(|url| (*url).to_owned()).collect(),
    };
    assert_eq!(urls(&raw), expected);
    // A point relative to the issuer's name, and one without a name, have no URL.
    let attribute = &dn(CN, 0x0c, b"x")[4..];
    let relative = seq(&[&tlv(0xa0, &tlv(0xa1, attribute))]);
    let nameless = seq(&[&tlv(0x81, &[1, 0xfe])]);
    let raw = leaf().set("2.5.29.31", false, &seq(&[&relative, &nameless]));
    assert_eq!(urls(&raw), RevocationUrls::default());
    let raw = leaf().set("2.5.29.31", false, &[5, 0]);
    assert_eq!(urls(&raw), RevocationUrls::default());
}
