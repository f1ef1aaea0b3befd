//! Certificate requests: what is copied into certificates must be well-formed, keys strong, possession proven.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use common::{Party, issue};
use outlast_crypto::keys::{KEY_SPECS, Key, KeySpec};
use outlast_crypto::signatures::{ECDSA_SHA_256, ML_DSA_44, Message, SignatureAlgorithm};
use outlast_pki::certificate::Certificate;
use outlast_pki::csr::{CertificateRequest, MAX_LEN, Possession, Received, Unsigned};
use outlast_pki::extension::extension;
use outlast_pki::extensions::{self, Extension, SUBJECT_ALT_NAME};
use outlast_pki::general_name::GeneralName;
use outlast_pki::name::common_name;
use outlast_pki::{PkiError, pem};
use x509_cert::der::asn1::OctetString;
use x509_cert::ext::pkix::SubjectAltName;

fn key(spec: &str) -> Box<dyn Key> {
    let spec = KeySpec::by_name(spec).unwrap();
    spec.load(&spec.generate().unwrap()).unwrap()
}

fn sign(unsigned: Unsigned, key: &dyn Key, algorithm: &SignatureAlgorithm) -> Vec<u8> {
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    unsigned.assemble(algorithm, &signature).unwrap()
}

fn request(extensions: Vec<Extension>) -> Vec<u8> {
    let key = key("ML_DSA_44");
    let subject = common_name("x").unwrap();
    let unsigned = Unsigned::new(subject, key.public_key().unwrap(), extensions).unwrap();
    sign(unsigned, key.as_ref(), &ML_DSA_44)
}

fn names(list: &[GeneralName]) -> Extension {
    extensions::subject_alternative_names(list, false).unwrap()
}

fn dns(name: &str) -> GeneralName {
    GeneralName::DnsName(name.into())
}

#[test]
fn alternative_names_are_read_and_checked() {
    let one = || names(&[dns("a.example")]);
    let parsed = CertificateRequest::parse_and_verify(&request(vec![one()])).unwrap();
    assert_eq!(parsed.extensions.len(), 1);
    let raw = |value: &[u8]| Extension {
        extn_id: SUBJECT_ALT_NAME,
        critical: false,
        extn_value: OctetString::new(value).unwrap(),
    };
    let empty = extension(SUBJECT_ALT_NAME, false, &SubjectAltName(Vec::new())).unwrap();
    let space = raw(&[0x30, 3, 0x82, 1, b' ']);
    for wrong in [vec![one(), one()], vec![empty], vec![raw(b"garbage")], vec![space]] {
        let outcome = CertificateRequest::parse_and_verify(&request(wrong));
        assert!(
            matches!(
                outcome,
                Err(PkiError::Malformed { .. }
                    | PkiError::Extension { .. }
                    | PkiError::Name { .. })
            ),
            "{outcome:?}"
        );
    }
}

#[test]
fn both_pem_labels_are_read() {
    let text = pem::certificate_request(&request(Vec::new()));
    CertificateRequest::parse_and_verify(text.as_bytes()).unwrap();
    let older = text.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST");
    CertificateRequest::parse_and_verify(older.as_bytes()).unwrap();
}

/// Every algorithm with an identifier signs a request that is parsed again.
#[test]
fn every_algorithm_signs_requests() {
    for spec in KEY_SPECS.iter().filter(|spec| !spec.signing.is_empty()) {
        let key = key(spec.name);
        for algorithm in spec.signing.iter().filter(|row| row.oid.is_some()) {
            let subject = common_name("x").unwrap();
            let unsigned = Unsigned::new(subject, key.public_key().unwrap(), Vec::new()).unwrap();
            let mut der = sign(unsigned, key.as_ref(), algorithm);
            assert!(der.len() < MAX_LEN && pem::certificate_request(&der).len() < 65_536);
            CertificateRequest::parse_and_verify(&der)
                .unwrap_or_else(|error| panic!("{} {algorithm:?}: {error}", spec.name));
            *der.last_mut().unwrap() ^= 1;
            let outcome = CertificateRequest::parse_and_verify(&der);
            assert!(matches!(outcome, Err(PkiError::RequestSignature)), "{outcome:?}");
        }
    }
}

#[test]
fn too_much_is_refused() {
    let list: Vec<_> = (0..1000).map(|n| dns(&format!("{n:060}.example"))).collect();
    let outcome = CertificateRequest::parse_and_verify(&request(vec![names(&list)]));
    assert!(matches!(outcome, Err(PkiError::Malformed { .. })), "{outcome:?}");
    let megabyte = vec![b'a'; 1 << 20];
    assert!(CertificateRequest::parse_and_verify(&megabyte).is_err());
    let many: Vec<_> = (0..101)
        .map(|n| {
            let oid = format!("1.3.6.1.4.1.32473.{n}").parse().unwrap();
            extensions::custom(oid, false, &[0x05, 0x00]).unwrap()
        })
        .collect();
    CertificateRequest::parse_and_verify(&request(many[..100].to_vec())).unwrap();
    let outcome = CertificateRequest::parse_and_verify(&request(many));
    assert!(matches!(outcome, Err(PkiError::Malformed { .. })), "{outcome:?}");
}

/// The key is checked before the signature, so that a key that cannot be certified is named as the reason.
#[test]
fn keys_that_cannot_be_certified_are_named() {
    // RSA, 1024 bits, exponent 3; EC on P-224; X25519.
    let mut rsa = hex::decode(
        "30819d300d06092a864886f70d010101050003818b00308187028181\
         00",
    )
    .unwrap();
    rsa.extend([0xc1; 128]);
    rsa.extend([2, 1, 3]);
    let mut p224 = hex::decode("304e301006072a8648ce3d020106052b81040021033a0004").unwrap();
    p224.extend([7; 56]);
    let mut x25519 = hex::decode("302a300506032b656e032100").unwrap();
    x25519.extend([9; 32]);
    for (spki, reason) in [(rsa, "1024 bits"), (p224, "1.3.132.0.33"), (x25519, "1.3.101.110")] {
        let unsigned = Unsigned::new(common_name("x").unwrap(), &spki, Vec::new()).unwrap();
        let der = sign(unsigned, key("ECC_NIST_P256").as_ref(), &ECDSA_SHA_256);
        let error = CertificateRequest::parse_and_verify(&der).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

struct Owner {
    party: Party,
    other: Party,
}

fn owner() -> Owner {
    let root = issue("ML_DSA_44", "Root", "RootCACertificate", 10, None);
    let party = issue("ECC_NIST_P256", "x", "EndEntityCertificate", 1, Some(&root));
    let other = issue("ECC_NIST_P256", "x", "RootCACertificate", 1, None);
    Owner { party, other }
}

fn kem_request(owner: &Owner, subject: &str, possession: Option<&Possession>) -> Vec<u8> {
    let kem = key("ML_KEM_768");
    let spki = kem.public_key().unwrap();
    let subject = common_name(subject).unwrap();
    let unsigned = Unsigned::with_statement(subject, spki, Vec::new(), possession).unwrap();
    sign(unsigned, owner.party.key.as_ref(), &ECDSA_SHA_256)
}

fn statement(der: &[u8]) -> Box<outlast_pki::csr::WithStatement> {
    match Received::read(der).unwrap() {
        Received::Statement(request) => request,
        Received::Verified(request) => panic!("{request:?}"),
    }
}

/// RFC 9883: the key of a signature certificate signs the request for an ML-KEM key.
#[test]
fn possession_is_stated_by_another_certificate() {
    let owner = owner();
    let certificate = &owner.party.certificate;
    for enclosed in [true, false] {
        let der = kem_request(&owner, "x", Some(&Possession::by(certificate, enclosed)));
        let request = statement(&der);
        let found = request.possession();
        assert_eq!(found.certificate.is_some(), enclosed);
        assert!(found.names(certificate));
        let request = request.verify_with(certificate).unwrap();
        assert_eq!(request.possession.unwrap().serial, certificate.serial());
        assert!(matches!(CertificateRequest::parse_and_verify(&der), Err(PkiError::Possession(_))));
        let mut forged = der;
        *forged.last_mut().unwrap() ^= 1;
        let outcome = statement(&forged).verify_with(certificate);
        assert!(matches!(outcome, Err(PkiError::RequestSignature)), "{outcome:?}");
    }
}

#[test]
fn statements_that_do_not_hold_are_refused() {
    let owner = owner();
    let certificate = &owner.party.certificate;
    let by = Possession::by(certificate, false);
    // Without a statement; and with a statement for a key that can sign.
    let error = Received::read(&kem_request(&owner, "x", None)).unwrap_err();
    assert!(matches!(error, PkiError::Possession(_)), "{error}");
    let own = owner.party.key.public_key().unwrap();
    let subject = common_name("x").unwrap();
    let unsigned = Unsigned::with_statement(subject, own, Vec::new(), Some(&by)).unwrap();
    let der = sign(unsigned, owner.party.key.as_ref(), &ECDSA_SHA_256);
    assert!(matches!(Received::read(&der), Err(PkiError::Possession(_))));
    // Another certificate than the one that is named: enclosed, and looked up.
    let mixed = Possession { certificate: Some(owner.other.certificate.clone()), ..by.clone() };
    let outcome = Received::read(&kem_request(&owner, "x", Some(&mixed)));
    assert!(matches!(outcome, Err(PkiError::Possession(_))), "{outcome:?}");
    let refused = |der: &[u8], signer: &Certificate| {
        let outcome = statement(der).verify_with(signer);
        assert!(matches!(outcome, Err(PkiError::Possession(_))), "{outcome:?}");
    };
    refused(&kem_request(&owner, "x", Some(&by)), &owner.other.certificate);
    // Another subject; an alternative name that the certificate lacks.
    refused(&kem_request(&owner, "y", Some(&by)), certificate);
    let kem = key("ML_KEM_768");
    let unsigned = Unsigned::with_statement(
        common_name("x").unwrap(),
        kem.public_key().unwrap(),
        vec![names(&[dns("a.example")])],
        Some(&by),
    )
    .unwrap();
    refused(&sign(unsigned, owner.party.key.as_ref(), &ECDSA_SHA_256), certificate);
}
