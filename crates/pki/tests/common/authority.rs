//! Certificates with any extensions, names and times, made with this crate.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may fail; each test file uses a part"
)]

use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::{Certificate, Content, key_identifier};
use outlast_pki::extension::extension;
use outlast_pki::name::{Name, common_name};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectKeyIdentifier,
};

/// 2026-11-01T00:00:00Z
pub const START: i64 = 1_793_491_200;
pub const DAY: i64 = 86_400;
pub const YEAR: i64 = 365 * DAY;

pub struct Authority {
    pub key: Box<dyn Key>,
    pub algorithm: &'static SignatureAlgorithm,
    pub certificate: Certificate,
}

/// Properties of a certificate.
pub struct Plan {
    pub spec: &'static str,
    pub subject: Name,
    pub serial: u64,
    pub not_before: i64,
    pub not_after: i64,
    pub extensions: Vec<Extension>,
    /// Extensions that are marked critical, whatever they are.
    pub critical: Vec<&'static str>,
    /// Instead of its key's.
    pub public_key: Option<Vec<u8>>,
}

pub fn plan(spec: &'static str, name: &str) -> Plan {
    Plan {
        spec,
        subject: common_name(name).unwrap(),
        serial: 0x11,
        not_before: START,
        not_after: START + YEAR,
        extensions: Vec::new(),
        critical: Vec::new(),
        public_key: None,
    }
}

impl Plan {
    pub fn ca(self, path_len: Option<u8>) -> Self {
        let constraints = BasicConstraints { ca: true, path_len_constraint: path_len };
        self.with("2.5.29.19", true, &constraints).usage(&[
            KeyUsages::DigitalSignature,
            KeyUsages::KeyCertSign,
            KeyUsages::CRLSign,
        ])
    }

    pub fn usage(self, usages: &[KeyUsages]) -> Self {
        let bits = usages.iter().copied().fold(None, |bits, usage| {
            Some(bits.map_or(usage.into(), |bits: der::flagset::FlagSet<KeyUsages>| bits | usage))
        });
        self.with("2.5.29.15", true, &KeyUsage(bits.unwrap()))
    }

    pub fn purpose(self, oids: &[&str]) -> Self {
        let list = oids.iter().map(|oid| oid.parse().unwrap()).collect();
        self.with("2.5.29.37", false, &ExtendedKeyUsage(list))
    }

    pub fn with(mut self, oid: &str, critical: bool, value: &impl der::Encode) -> Self {
        self.extensions.push(extension(oid.parse().unwrap(), critical, value).unwrap());
        self
    }

    pub fn critical(mut self, oid: &'static str) -> Self {
        self.critical.push(oid);
        self
    }

    pub fn public_key(mut self, spki: &[u8]) -> Self {
        self.public_key = Some(spki.to_vec());
        self
    }

    pub fn serial(mut self, serial: u64) -> Self {
        self.serial = serial;
        self
    }

    pub fn valid(mut self, not_before: i64, not_after: i64) -> Self {
        (self.not_before, self.not_after) = (not_before, not_after);
        self
    }

    pub fn issue(mut self, issuer: Option<&Authority>) -> Authority {
        let spec = KeySpec::by_name(self.spec).unwrap();
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        let algorithm = *spec.signing.iter().find(|row| row.oid.is_some()).unwrap();
        let public_key = key.public_key().unwrap().to_vec();
        let (signer, issuer_name, issuer_key, issuer_algorithm) = match issuer {
            Some(party) => (
                &party.key,
                party.certificate.subject().clone(),
                party.certificate.public_key().unwrap(),
                party.algorithm,
            ),
            None => (&key, self.subject.clone(), public_key.clone(), algorithm),
        };
        let id = |key: &[u8]| der::asn1::OctetString::new(key_identifier(key).unwrap()).unwrap();
        self = self.with("2.5.29.14", false, &SubjectKeyIdentifier(id(&public_key)));
        if issuer.is_some() {
            let authority = AuthorityKeyIdentifier {
                key_identifier: Some(id(&issuer_key)),
                ..Default::default()
            };
            self = self.with("2.5.29.35", false, &authority);
        }
        for extension in &mut self.extensions {
            extension.critical |= self.critical.contains(&extension.extn_id.to_string().as_str());
        }
        let mut serial = [0; 16];
        serial[8..].copy_from_slice(&self.serial.to_be_bytes());
        let unsigned = Content {
            serial,
            issuer: issuer_name,
            subject: self.subject,
            public_key: self.public_key.unwrap_or(public_key),
            not_before: self.not_before,
            not_after: self.not_after,
            extensions: self.extensions,
        }
        .prepare(issuer_algorithm, &issuer_key)
        .unwrap();
        let signature =
            signer.sign(issuer_algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
        let certificate = Certificate::parse(&unsigned.assemble(&signature).unwrap()).unwrap();
        Authority { key, algorithm, certificate }
    }
}

impl Authority {
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.key.sign(self.algorithm, Message::Raw(message)).unwrap()
    }

    pub fn der(&self) -> Vec<u8> {
        self.certificate.der().to_vec()
    }
}
