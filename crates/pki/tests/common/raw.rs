//! Certificates as separate parts, to build what no builder would.

use outlast_pki::ObjectIdentifier;
use outlast_pki::extensions::Extension;
use x509_cert::der::asn1::AnyRef;
use x509_cert::der::{Decode, Encode, Reader, SliceReader};

/// The fields of a certificate, each a whole DER value.
#[derive(Clone)]
pub struct Raw {
    pub version: Vec<u8>,
    pub serial: Vec<u8>,
    pub algorithm: Vec<u8>,
    pub issuer: Vec<u8>,
    pub validity: Vec<u8>,
    pub subject: Vec<u8>,
    pub public_key: Vec<u8>,
    pub unique: Vec<u8>,
    /// `None` leaves the field out.
    pub extensions: Option<Vec<Vec<u8>>>,
    pub outer_algorithm: Vec<u8>,
    pub signature: Vec<u8>,
}

pub fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        len @ 0..0x80 => out.push(u8::try_from(len).unwrap()),
        len => {
            let bytes: Vec<u8> = len.to_be_bytes().into_iter().skip_while(|b| *b == 0).collect();
            out.push(0x80 | u8::try_from(bytes.len()).unwrap());
            out.extend(bytes);
        }
    }
    out.extend(content);
    out
}

pub fn seq(parts: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, &parts.concat())
}

pub fn oid(dotted: &str) -> Vec<u8> {
    ObjectIdentifier::new(dotted).unwrap().to_der().unwrap()
}

/// An extension from its parts.
pub fn ext(dotted: &str, critical: bool, value: &[u8]) -> Vec<u8> {
    let flag: &[u8] = if critical { &[1, 1, 0xff] } else { &[] };
    seq(&[&oid(dotted), flag, &tlv(4, value)])
}

/// A name of one attribute.
pub fn dn(dotted: &str, tag: u8, value: &[u8]) -> Vec<u8> {
    seq(&[&tlv(0x31, &seq(&[&oid(dotted), &tlv(tag, value)]))])
}

/// The DER values inside a constructed one.
pub fn values(der: &[u8]) -> Vec<Vec<u8>> {
    let any = AnyRef::from_der(der).unwrap();
    let mut reader = SliceReader::new(any.value()).unwrap();
    let mut out = Vec::new();
    while !reader.is_finished() {
        out.push(reader.tlv_bytes().unwrap().to_vec());
    }
    out
}

impl Raw {
    pub fn of(der: &[u8]) -> Self {
        let outer = values(der);
        let tbs = values(&outer[0]);
        let list = tbs.get(7).map(|field| values(&values(field)[0]));
        Self {
            version: tbs[0].clone(),
            serial: tbs[1].clone(),
            algorithm: tbs[2].clone(),
            issuer: tbs[3].clone(),
            validity: tbs[4].clone(),
            subject: tbs[5].clone(),
            public_key: tbs[6].clone(),
            unique: Vec::new(),
            extensions: list,
            outer_algorithm: outer[1].clone(),
            signature: outer[2].clone(),
        }
    }

    pub fn tbs(&self) -> Vec<u8> {
        let extensions = self
            .extensions
            .as_ref()
            .map_or_else(Vec::new, |list| tlv(0xa3, &tlv(0x30, &list.concat())));
        seq(&[
            &self.version,
            &self.serial,
            &self.algorithm,
            &self.issuer,
            &self.validity,
            &self.subject,
            &self.public_key,
            &self.unique,
            &extensions,
        ])
    }

    pub fn der(&self) -> Vec<u8> {
        seq(&[&self.tbs(), &self.outer_algorithm, &self.signature])
    }

    /// Replaces the extension of this kind, or adds it.
    pub fn set(mut self, dotted: &str, critical: bool, value: &[u8]) -> Self {
        self = self.without(dotted);
        self.extensions.get_or_insert_default().push(ext(dotted, critical, value));
        self
    }

    pub fn set_extension(self, extension: &Extension) -> Self {
        let oid = extension.extn_id.to_string();
        self.set(&oid, extension.critical, extension.extn_value.as_bytes())
    }

    pub fn without(mut self, dotted: &str) -> Self {
        let wanted = oid(dotted);
        if let Some(list) = &mut self.extensions {
            list.retain(|ext| values(ext)[0] != wanted);
        }
        self
    }

    pub fn set_times(mut self, not_before: (u8, &str), not_after: (u8, &str)) -> Self {
        let time = |(tag, text): (u8, &str)| tlv(tag, text.as_bytes());
        self.validity = seq(&[&time(not_before), &time(not_after)]);
        self
    }
}

pub const UTC: u8 = 0x17;
pub const GENERALIZED: u8 = 0x18;
