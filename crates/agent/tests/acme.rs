//! What answers ACME's challenges. The enrolment itself is tested against a server, in `crates/cli/tests/enroll.rs`.

use der::asn1::OctetString;
use der::{Decode, Encode};
use outlast_agent::acme::{dns_answer, tls_answer};
use outlast_crypto::digests;
use x509_cert::Certificate;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

const KEY_AUTHORIZATION: &str = "token.thumbprint";

/// RFC 8555, section 8.4; the digest is that of `openssl dgst -sha256`.
#[test]
fn the_record_has_the_digest_and_the_whole_name() {
    let (name, value) = dns_answer("web1.example", KEY_AUTHORIZATION);
    assert_eq!(name, "_acme-challenge.web1.example.");
    assert_eq!(value, "61rBZ_4knHblO0MNoxFsXZ_eTFUHum0B6IVRbhvUn5I");
}

/// RFC 8737, section 3: one DNS name, and a critical acmeIdentifier with the digest.
#[test]
fn the_certificate_has_the_name_and_the_digest() {
    let now = 1_790_000_000;
    let answer = tls_answer("web1.example", KEY_AUTHORIZATION, now).unwrap();
    let certificate = Certificate::from_der(&answer.certificate).unwrap();
    let certificate = certificate.tbs_certificate();
    let seconds = |time: x509_cert::time::Time| time.to_unix_duration().as_secs();
    let (begin, end) = (certificate.validity().not_before, certificate.validity().not_after);
    assert!(seconds(begin) < 1_790_000_000 && seconds(end) > 1_790_000_000);
    let extension = |oid: &str| {
        let found = certificate.extensions().unwrap().iter();
        let found: Vec<_> = found.filter(|row| row.extn_id.to_string() == oid).collect();
        assert_eq!(found.len(), 1, "{oid}");
        found[0].clone()
    };
    let names = SubjectAltName::from_der(extension("2.5.29.17").extn_value.as_bytes()).unwrap();
    let [GeneralName::DnsName(name)] = names.0.as_slice() else { panic!("{names:?}") };
    assert_eq!(name.as_str(), "web1.example");
    let identifier = extension("1.3.6.1.5.5.7.1.31");
    assert!(identifier.critical);
    let digest = digests::sha256(KEY_AUTHORIZATION.as_bytes());
    let expected = OctetString::new(digest).unwrap().to_der().unwrap();
    assert_eq!(identifier.extn_value.as_bytes(), expected);
}
