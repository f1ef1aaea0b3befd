//! A small code-signing hierarchy, made with this crate.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    dead_code,
    reason = "a test may fail and print, and need a part only"
)]

pub mod raw;

use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::{Certificate, Content, key_identifier};
use outlast_pki::name::common_name;
use outlast_pki::templates::{Requested, TEMPLATES, Template};

/// 2026-11-01T00:00:00Z
pub const START: i64 = 1_793_491_200;
pub const YEAR: i64 = 365 * 86_400;

pub struct Party {
    pub key: Box<dyn Key>,
    pub algorithm: &'static SignatureAlgorithm,
    pub certificate: Certificate,
}

pub fn template(name: &str) -> &'static Template {
    TEMPLATES.iter().find(|row| row.name == name).expect(name)
}

pub fn issue(spec: &str, name: &str, row: &str, years: i64, issuer: Option<&Party>) -> Party {
    let found = KeySpec::by_name(spec).unwrap();
    // An algorithm that CMS supports, too, if there is one: not RSASSA-PSS.
    let mut rows = found.signing.iter().filter(|row| row.oid.is_some());
    let first = rows.clone().next().unwrap();
    let algorithm = *rows.find(|row| !row.cms_digests.is_empty()).unwrap_or(first);
    issue_with(spec, algorithm, name, row, years, issuer)
}

pub fn issue_with(
    spec: &str,
    algorithm: &'static SignatureAlgorithm,
    name: &str,
    row: &str,
    years: i64,
    issuer: Option<&Party>,
) -> Party {
    let spec = KeySpec::by_name(spec).unwrap();
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    let public_key = key.public_key().unwrap().to_vec();
    let subject = common_name(name).unwrap();
    let (issuer_name, issuer_key, issuer_algorithm, issuer_key_id) = match issuer {
        Some(party) => (
            party.certificate.subject().clone(),
            party.certificate.public_key().unwrap(),
            party.algorithm,
            party.certificate.subject_key_identifier(),
        ),
        None => (subject.clone(), public_key.clone(), algorithm, None),
    };
    if issuer.is_some() {
        assert_eq!(issuer_key_id.clone().unwrap(), key_identifier(&issuer_key).unwrap());
    }
    let requested = Requested {
        public_key: &public_key,
        issuer_key_id: issuer_key_id.as_deref(),
        ..Requested::default()
    };
    let extensions = template(row).extensions(&requested).unwrap();
    let unsigned = Content {
        serial: [0x11; 16],
        issuer: issuer_name,
        subject,
        public_key,
        not_before: START,
        not_after: START + years * YEAR,
        extensions,
    }
    .prepare(issuer_algorithm, &issuer_key)
    .unwrap();
    let signer = issuer.map_or(&key, |party| &party.key);
    let signature = signer.sign(issuer_algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    let certificate = Certificate::parse(&unsigned.assemble(&signature).unwrap()).unwrap();
    Party { key, algorithm, certificate }
}

pub struct Hierarchy {
    pub root: Party,
    pub subordinate: Party,
    pub leaf: Party,
}

pub fn hierarchy(spec: &str) -> Hierarchy {
    let root = issue(spec, "Root", "RootCACertificate", 10, None);
    let subordinate = issue(spec, "Sub", "SubordinateCACertificate_PathLen0", 5, Some(&root));
    let leaf = issue(spec, "Signer", "CodeSigningCertificate", 1, Some(&subordinate));
    Hierarchy { root, subordinate, leaf }
}
