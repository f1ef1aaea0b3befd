//! The cost of a chain: real certificates, the bytes of a TLS 1.3 handshake with them, and the headers in which
//! proxies pass on a client's certificate.

pub mod flight;
pub mod headers;

use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_crypto::{CryptoError, Secret, random};

use crate::PkiError;
use crate::certificate::{Certificate, Content, SERIAL_LEN};
use crate::extensions::subject_alternative_names;
use crate::extensions::{authority_information_access, crl_distribution_points};
use crate::general_name::GeneralName;
use crate::name::name;
use crate::templates::{Kind, Requested, Template};

const DAY: i64 = 86_400;
/// Most certificates in a chain.
pub const MAX_LEN: usize = 8;

/// A chain that was made to measure it.
pub struct Made {
    /// The leaf first, the root last; DER.
    pub certificates: Vec<Vec<u8>>,
    /// The leaf's private key, PKCS #8 DER.
    pub leaf_key: Secret,
}

struct Issuer {
    key: Box<dyn Key>,
    algorithm: &'static SignatureAlgorithm,
    certificate: Certificate,
}

/// Makes a chain of these key types, from the root to the leaf, with new keys and the extensions that Private CA
/// would add: the leaf's for server and client with these DNS names, CRL and OCSP URLs of usual length.
pub fn build(specs: &[&'static KeySpec], dns_names: &[String], now: i64) -> Result<Made, PkiError> {
    let wrong = |reason: String| PkiError::Malformed { what: "chain", reason };
    let Some(between) = specs.len().checked_sub(2).filter(|_| specs.len() <= MAX_LEN) else {
        return Err(wrong(format!(
            "it must have a root, a leaf and at most {MAX_LEN} certificates"
        )));
    };
    let mut certificates = Vec::new();
    let mut leaf_key = Secret::new(Vec::new());
    let mut issuer: Option<Issuer> = None;
    for (index, spec) in specs.iter().enumerate() {
        let template = match index {
            0 => "RootCACertificate".to_owned(),
            index if index == specs.len() - 1 => "EndEntityCertificate".to_owned(),
            index => format!("SubordinateCACertificate_PathLen{}", between - index),
        };
        let failed = |_: CryptoError| PkiError::UnsupportedAlgorithm(spec.name.to_owned());
        let stored = spec.generate().map_err(failed)?;
        leaf_key = spec.to_pkcs8(&stored).map_err(failed)?;
        let key = spec.load(&stored).map_err(failed)?;
        let certificate =
            issue(&template, index, key.as_ref(), issuer.as_ref(), spec, dns_names, now)?;
        let certificate = Certificate::parse(&certificate)?;
        certificates.push(certificate.der().to_vec());
        // A leaf need not sign (ML-KEM); whether an issuer can is checked when it must.
        if let Some(algorithm) = signing(spec) {
            issuer = Some(Issuer { key, algorithm, certificate });
        } else if index + 1 < specs.len() {
            return Err(PkiError::UnsupportedAlgorithm(spec.name.to_owned()));
        }
    }
    certificates.reverse();
    Ok(Made { certificates, leaf_key })
}

/// The algorithm with which a key of this type signs certificates.
pub fn signing(spec: &KeySpec) -> Option<&'static SignatureAlgorithm> {
    let with = |wanted: fn(&SignatureAlgorithm) -> bool| {
        spec.signing.iter().copied().find(|row| row.oid.is_some() && wanted(row))
    };
    with(|row| row.pca_name.is_some()).or_else(|| with(|_| true))
}

fn issue(
    template: &str,
    index: usize,
    key: &dyn Key,
    issuer: Option<&Issuer>,
    spec: &KeySpec,
    dns_names: &[String],
    now: i64,
) -> Result<Vec<u8>, PkiError> {
    let unsupported = || PkiError::UnsupportedAlgorithm(spec.name.to_owned());
    let public_key = key.public_key().ok_or_else(unsupported)?.to_vec();
    let common = match (index, dns_names.first()) {
        (0, _) => "Example Root CA".to_owned(),
        (_, Some(dns)) if template == "EndEntityCertificate" => dns.chars().take(64).collect(),
        (index, _) => format!("Example Issuing CA {index}"),
    };
    let subject =
        name(&[("Country", "US"), ("Organization", "Example Corp"), ("CommonName", &common)], &[])?;
    let names: Vec<_> = dns_names.iter().cloned().map(GeneralName::DnsName).collect();
    let csr = match template {
        "EndEntityCertificate" if !names.is_empty() => {
            vec![subject_alternative_names(&names, false)?]
        }
        _ => Vec::new(),
    };
    let authority = [
        crl_distribution_points(&[
            "http://crl.example.com/crl/0123456789abcdef0123456789abcdef.crl",
        ])?,
        authority_information_access(&["http://ocsp.example.com/ocsp"], &[])?,
    ];
    let template = Template::by_arn(&format!("arn:aws:acm-pca:::template/{template}/V1"))
        .ok_or_else(unsupported)?;
    let issuer_key_id = issuer.and_then(|issuer| issuer.certificate.subject_key_identifier());
    let extensions = template.extensions(&Requested {
        public_key: &public_key,
        issuer_key_id: issuer_key_id.as_deref(),
        csr: &csr,
        api: &[],
        authority: &authority,
    })?;
    let (signer, algorithm) = match issuer {
        Some(issuer) => (issuer.key.as_ref(), issuer.algorithm),
        None => (key, signing(spec).ok_or_else(unsupported)?),
    };
    let issuer_name =
        issuer.map_or_else(|| subject.clone(), |issuer| issuer.certificate.subject().clone());
    let issuer_key = match issuer {
        Some(issuer) => issuer.certificate.public_key()?,
        None => public_key.clone(),
    };
    let unsigned = Content {
        serial: random::bytes::<SERIAL_LEN>().map_err(|_| unsupported())?,
        issuer: issuer_name,
        subject,
        public_key,
        not_before: now,
        not_after: now + if template.kind == Kind::EndEntity { 90 } else { 3650 } * DAY,
        extensions,
    }
    .prepare(algorithm, &issuer_key)?;
    let signature =
        signer.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).map_err(|_| unsupported())?;
    unsigned.assemble(&signature)
}

/// Orders the certificates of a file: the first one that is not a CA's (or else the first), then its issuers. Drops
/// certificates that do not belong to its chain.
pub fn ordered(certificates: &[Vec<u8>]) -> Result<Vec<Certificate>, PkiError> {
    let mut rest =
        certificates.iter().map(|der| Certificate::parse(der)).collect::<Result<Vec<_>, _>>()?;
    let first = rest.iter().position(|found| !found.may_issue()).unwrap_or(0);
    let mut out = Vec::new();
    let mut next = (!rest.is_empty()).then_some(first);
    while let Some(index) = next {
        let current = rest.remove(index);
        let is_root = current.issuer() == current.subject();
        next = match is_root || out.len() + 1 >= MAX_LEN {
            true => None,
            false => rest.iter().position(|other| current.signed_by(other)),
        };
        out.push(current);
    }
    Ok(out)
}
