//! Certificate requests: what is copied into certificates must be well-formed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{ML_DSA_44, Message};
use outlast_pki::certificate::extension;
use outlast_pki::csr::{CertificateRequest, Unsigned};
use outlast_pki::name::common_name;
use outlast_pki::templates::SUBJECT_ALT_NAME;
use outlast_pki::{PkiError, pem};
use x509_cert::der::asn1::{Ia5String, OctetString};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

fn request(extensions: Vec<Extension>) -> Vec<u8> {
    let spec = KeySpec::by_name("ML_DSA_44").unwrap();
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    let subject = common_name("x").unwrap();
    let unsigned = Unsigned::new(subject, key.public_key().unwrap(), extensions).unwrap();
    let signature = key.sign(&ML_DSA_44, Message::Raw(&unsigned.to_be_signed)).unwrap();
    unsigned.assemble(&ML_DSA_44, &signature).unwrap()
}

fn names(list: Vec<GeneralName>) -> Extension {
    extension(SUBJECT_ALT_NAME, false, &SubjectAltName(list)).unwrap()
}

#[test]
fn alternative_names_are_read_and_checked() {
    let one = || names(vec![GeneralName::DnsName(Ia5String::new("a.example").unwrap())]);
    let parsed = CertificateRequest::parse_and_verify(&request(vec![one()])).unwrap();
    assert_eq!(parsed.extensions.len(), 1);
    let mut garbage = one();
    garbage.extn_value = OctetString::new(b"garbage".as_slice()).unwrap();
    for wrong in [vec![one(), one()], vec![names(Vec::new())], vec![garbage]] {
        let outcome = CertificateRequest::parse_and_verify(&request(wrong));
        assert!(matches!(outcome, Err(PkiError::Malformed { .. })), "{outcome:?}");
    }
}

#[test]
fn both_pem_labels_are_read() {
    let text = pem::certificate_request(&request(Vec::new()));
    CertificateRequest::parse_and_verify(text.as_bytes()).unwrap();
    let older = text.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST");
    CertificateRequest::parse_and_verify(older.as_bytes()).unwrap();
}
