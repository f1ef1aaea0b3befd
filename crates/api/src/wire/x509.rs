//! Signature Version 4 by the key of an X.509 certificate: verifies requests of Roles Anywhere.
//!
//! Source: "The IAM Roles Anywhere authentication signing process" of its user guide. What differs from [`super::sigv4`] is the
//! algorithm, the serial number in place of an access key's id, and the certificates in headers, which must be signed. Whether
//! anybody trusts the certificate is not asked here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outlast_crypto::signatures::{
    ECDSA_SHA_256, ML_DSA_44, ML_DSA_65, ML_DSA_87, Message, RSA_PKCS1_SHA_256, SignatureAlgorithm,
};
use outlast_domain::limits::MAX_X509_CHAIN;
use outlast_domain::rolesanywhere::decimal;
use outlast_pki::certificate::Certificate;
use outlast_pki::public_key::Kind;

use super::ApiError;
use super::sigv4::{self, Parts};

/// Prefix of the names of all these algorithms.
pub const PREFIX: &str = "AWS4-X509-";
/// Header with the certificate.
const CERTIFICATE: &str = "x-amz-x509";
/// Header with the chain.
const CHAIN: &str = "x-amz-x509-chain";
/// Headers that must be signed if they are present.
const MUST_BE_SIGNED: &[&str] = &["x-amz-date", CERTIFICATE, CHAIN, "x-amz-content-sha256"];

/// The keys that a name stands for, and what they sign with. RSA and EC keys sign a digest of the text, ML-DSA keys the text.
struct Row {
    name: &'static str,
    /// Kind of key, by its name, and its algorithm.
    keys: &'static [(&'static str, &'static SignatureAlgorithm)],
}

static ALGORITHMS: &[Row] = &[
    Row { name: "AWS4-X509-RSA-SHA256", keys: &[("RSA", &RSA_PKCS1_SHA_256)] },
    Row {
        name: "AWS4-X509-ECDSA-SHA256",
        keys: &[
            ("EC P-256", &ECDSA_SHA_256),
            ("EC P-384", &ECDSA_SHA_256),
            ("EC P-521", &ECDSA_SHA_256),
        ],
    },
    Row {
        name: "AWS4-X509-MLDSA",
        keys: &[("ML-DSA-44", &ML_DSA_44), ("ML-DSA-65", &ML_DSA_65), ("ML-DSA-87", &ML_DSA_87)],
    },
];

/// The signature of a request and its certificates, not verified yet.
#[derive(Debug)]
pub struct Claim {
    /// Region of the credential scope.
    pub region: String,
    /// The certificate whose key has signed.
    pub leaf: Certificate,
    /// Other certificates, in the order in which they came.
    pub chain: Vec<Certificate>,
    row: &'static str,
    algorithm: &'static SignatureAlgorithm,
    date: String,
    timestamp: String,
    signed_headers: Vec<String>,
    signature: Vec<u8>,
}

fn refused(message: impl Into<String>) -> ApiError {
    ApiError::new("AccessDeniedException", message)
}

impl Claim {
    /// Reads the headers and checks everything that needs neither the body nor a trust anchor: form, date, scope, kind of payload,
    /// and that certificate, serial number and algorithm belong together.
    pub fn parse(parts: &Parts<'_>, now: i64) -> Result<Self, ApiError> {
        let authorization = parts
            .header("authorization")
            .ok_or_else(|| refused("There must be one Authorization header, in ASCII."))?;
        let (name, fields) = authorization
            .split_once(' ')
            .ok_or_else(|| refused("The Authorization header has no parameters."))?;
        let row = ALGORITHMS.iter().find(|row| row.name == name).ok_or_else(|| {
            let names: Vec<_> = ALGORITHMS.iter().map(|row| row.name).collect();
            refused(format!("Authorization must begin with one of {}.", names.join(", ")))
        })?;
        let field = |name: &str| {
            let mut found = fields
                .split(',')
                .filter_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
            found.next().filter(|_| found.next().is_none()).ok_or_else(|| {
                refused(format!("Authorization header requires one '{name}' parameter."))
            })
        };
        let scope: Vec<_> = field("Credential")?.split('/').collect();
        let [serial, date, region, "rolesanywhere", "aws4_request"] = scope.as_slice() else {
            return Err(refused(
                "Credential must be SERIAL/DATE/REGION/rolesanywhere/aws4_request.",
            ));
        };
        if !outlast_domain::arn::is_region(region) {
            return Err(refused("The region of the credential scope is not valid."));
        }
        let signed_headers: Vec<String> =
            field("SignedHeaders")?.split(';').map(str::to_ascii_lowercase).collect();
        let signature = hex::decode(field("Signature")?)
            .map_err(|_| refused("Signature must be hexadecimal."))?;
        let timestamp = parts
            .header("x-amz-date")
            .ok_or_else(|| refused("There must be one X-Amz-Date header."))?;
        let denied = |error: ApiError| refused(error.message);
        sigv4::check_clock(timestamp, date, now).map_err(denied)?;
        sigv4::check_payload_kind(parts).map_err(denied)?;
        let is_signed = |name: &str| signed_headers.iter().any(|signed| signed == name);
        for name in MUST_BE_SIGNED {
            if parts.headers.contains_key(*name) && !is_signed(name) {
                return Err(refused(format!("The header {name} must be signed.")));
            }
        }
        if !is_signed("host") {
            return Err(refused("The header host must be signed."));
        }
        let leaf = parts
            .header(CERTIFICATE)
            .ok_or_else(|| refused("There must be one X-Amz-X509 header."))?;
        let leaf = read(leaf)?;
        let chain = if parts.headers.contains_key(CHAIN) {
            let text = parts.header(CHAIN).ok_or_else(|| {
                refused("There must be at most one X-Amz-X509-Chain header, in ASCII.")
            })?;
            if text.split(',').count() > MAX_X509_CHAIN {
                return Err(refused(format!(
                    "X-Amz-X509-Chain has more than {MAX_X509_CHAIN} certificates."
                )));
            }
            text.split(',').map(read).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        if decimal(leaf.serial()) != *serial {
            return Err(refused("The serial number in Credential is not the certificate's."));
        }
        let algorithm = algorithm(row, &leaf)?;
        Ok(Self {
            region: (*region).to_owned(),
            leaf,
            chain,
            row: row.name,
            algorithm,
            date: (*date).to_owned(),
            timestamp: timestamp.to_owned(),
            signed_headers,
            signature,
        })
    }

    /// Verifies payload and signature with the key of the certificate.
    pub fn verify(&self, parts: &Parts<'_>) -> Result<(), ApiError> {
        sigv4::check_digest(parts).map_err(|error| refused(error.message))?;
        let wrong = || refused("The request signature is not one by the key of the certificate.");
        let path = sigv4::canonical_path(parts.path);
        let canonical = sigv4::canonical_request(parts, &path, &self.signed_headers);
        let canonical = canonical.ok_or_else(wrong)?;
        let scope = format!("{}/{}/rolesanywhere/aws4_request", self.date, self.region);
        let text = sigv4::string_to_sign(self.row, &self.timestamp, &scope, &canonical);
        let key = self.leaf.public_key().map_err(|_| wrong())?;
        let message = Message::Raw(text.as_bytes());
        self.algorithm.verify(&key, message, &self.signature).map_err(|_| wrong())
    }
}

/// A certificate in base64 of its DER, on one line.
fn read(text: &str) -> Result<Certificate, ApiError> {
    let der = STANDARD.decode(text.trim()).ok();
    let parsed = der.and_then(|der| Certificate::parse(&der).ok());
    parsed.ok_or_else(|| {
        refused("X-Amz-X509 and X-Amz-X509-Chain must have certificates as base64 of their DER.")
    })
}

/// What the key of the certificate signs with under this name.
fn algorithm(row: &Row, leaf: &Certificate) -> Result<&'static SignatureAlgorithm, ApiError> {
    let key = leaf.public_key().ok();
    let kind = key.and_then(|key| Kind::check(&key).ok());
    let found = kind.and_then(|kind| row.keys.iter().find(|(name, _)| *name == kind.name));
    found
        .map(|(_, algorithm)| *algorithm)
        .ok_or_else(|| refused(format!("The key of the certificate is not one for {}.", row.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_keys_that_there_are() {
        for row in ALGORITHMS {
            assert!(row.name.starts_with(PREFIX));
            for (name, algorithm) in row.keys {
                let kind = outlast_pki::public_key::KINDS.iter().find(|kind| kind.name == *name);
                assert_eq!(kind.and_then(|kind| kind.family), Some(algorithm.family), "{name}");
            }
        }
    }
}
