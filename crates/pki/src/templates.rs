//! AWS Private CA's certificate templates as rows, and a few that AWS lacks.
//!
//! Source: AWS Private CA user guide, "Template definitions" and "Template order of operations". For each extension
//! the template comes first, then the authority's configuration (CRL distribution points, OCSP), then the call, then
//! the request; the first that defines it wins and the others are dropped silently, as AWS does. A key usage that an
//! RFC forbids for a kind of key is dropped: see [`Template::extensions`].

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280 as id;
use der::Decode;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage, KeyUsages};

use crate::PkiError;
use crate::certificate::key_identifier;
use crate::extensions::{self, authority_key_identifier, subject_key_identifier};
pub use crate::extensions::{
    CLIENT_AUTH, CODE_SIGNING, IPSEC_IKE, OCSP_SIGNING, SERVER_AUTH, SUBJECT_ALT_NAME,
    TIME_STAMPING, key_usage,
};
use crate::public_key;

mod table;

pub use table::TEMPLATES;

/// Kind of the certificates from a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Self-signed; only a root CA can issue it, for its own key.
    Root,
    /// A CA below the issuer, with at most this many CAs below it.
    Subordinate(u8),
    /// Not a CA.
    EndEntity,
}

/// Sources of extensions, beside the template itself. The subject alternative name always comes from the request,
/// unless the call gives one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passthrough {
    /// None.
    None,
    /// The request: `_CSRPassthrough`.
    Request,
    /// The call: `_APIPassthrough`.
    Call,
    /// Both: `_APICSRPassthrough`.
    Both,
}

/// A template.
#[derive(Debug)]
pub struct Template {
    /// Name between `arn:aws:acm-pca:::template/` and `/V1`.
    pub name: &'static str,
    /// Root, subordinate or end entity.
    pub kind: Kind,
    /// Sources of extensions.
    pub passthrough: Passthrough,
    /// Whether AWS has it.
    pub aws: bool,
    /// Most CAs below a root.
    root_path_len: Option<u8>,
    /// Whether basic constraints are critical although it is not a CA.
    critical_constraints: bool,
    key_usage: &'static [KeyUsages],
    extended_key_usage: &'static [ObjectIdentifier],
    extended_key_usage_critical: bool,
    /// Whether a subject alternative name is required.
    named: bool,
}

/// Key usage of a CA.
pub const CA_KEY_USAGE: &[KeyUsages] =
    &[KeyUsages::DigitalSignature, KeyUsages::KeyCertSign, KeyUsages::CRLSign];

/// Inputs of a certificate, beside the template.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requested<'a> {
    /// DER `SubjectPublicKeyInfo` to certify.
    pub public_key: &'a [u8],
    /// The issuer's subject key identifier; `None` for a root.
    pub issuer_key_id: Option<&'a [u8]>,
    /// The request's extensions.
    pub csr: &'a [Extension],
    /// The call's extensions: `ApiPassthrough`.
    pub api: &'a [Extension],
    /// CRL distribution points and authority information access, by the authority's configuration.
    pub authority: &'a [Extension],
}

impl Template {
    /// The row with this ARN, `arn:aws:acm-pca:::template/NAME/V1`.
    pub fn by_arn(arn: &str) -> Option<&'static Self> {
        Self::by_name(arn.strip_prefix("arn:aws:acm-pca:::template/")?.strip_suffix("/V1")?)
    }

    /// The row with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        TEMPLATES.iter().find(|row| row.name == name)
    }

    /// The default row, if the caller names no template.
    pub fn default_row() -> &'static Self {
        &TEMPLATES[0]
    }

    /// Whether `ApiPassthrough` applies: the subject and the extensions of the call. With other templates AWS ignores
    /// it.
    pub fn takes_api(&self) -> bool {
        matches!(self.passthrough, Passthrough::Call | Passthrough::Both)
    }

    /// Whether the request's extensions apply, beside the subject alternative name.
    pub fn takes_csr(&self) -> bool {
        matches!(self.passthrough, Passthrough::Request | Passthrough::Both)
    }

    /// Most CAs that may follow below, for a CA with a limit.
    pub fn path_len(&self) -> Option<u8> {
        match self.kind {
            Kind::Root => self.root_path_len,
            Kind::Subordinate(len) => Some(len),
            Kind::EndEntity => None,
        }
    }

    /// The extensions of a certificate.
    pub fn extensions(&self, input: &Requested<'_>) -> Result<Vec<Extension>, PkiError> {
        let is_ca = self.kind != Kind::EndEntity;
        let critical = is_ca || self.critical_constraints;
        let mut out = vec![extensions::basic_constraints(is_ca, self.path_len(), critical)?];
        if let Some(id) = input.issuer_key_id {
            out.push(authority_key_identifier(id)?);
        }
        let own_id = key_identifier(input.public_key)?;
        out.push(subject_key_identifier(&own_id)?);
        let usage = self.usable(input.public_key)?;
        if !usage.is_empty() {
            out.push(key_usage(&usage)?);
        }
        if !self.extended_key_usage.is_empty() {
            out.push(extensions::extended_key_usage(
                self.extended_key_usage,
                self.extended_key_usage_critical,
            )?);
        }
        let api = if self.takes_api() { input.api } else { &[] };
        let csr = if self.takes_csr() { input.csr } else { &[] };
        // A root is on nobody's CRL (user guide: "CRL distribution points: N/A").
        let authority = if self.kind == Kind::Root { &[] } else { input.authority };
        let is_name = |extension: &&Extension| extension.extn_id == SUBJECT_ALT_NAME;
        let names = api.iter().chain(input.csr).filter(is_name);
        for extension in names.chain(authority).chain(api).chain(csr) {
            if !self.refuses(extension) && !is_there(&out, extension) {
                out.push(served(extension, input.public_key)?);
            }
        }
        // RFC 5280, section 4.2.1.1: optional in a self-signed certificate. A reader that does not know the algorithm
        // cannot see that the certificate is self-signed, and would report it missing.
        let identifies =
            |extension: &Extension| extension.extn_id == id::ID_CE_AUTHORITY_KEY_IDENTIFIER;
        if self.kind == Kind::Root && !out.iter().any(identifies) {
            out.push(authority_key_identifier(&own_id)?);
        }
        if self.named && !out.iter().any(|extension| extension.extn_id == SUBJECT_ALT_NAME) {
            return Err(self.error("it needs a subject alternative name"));
        }
        Ok(out)
    }

    /// Extensions that are never passed through, even if the template lacks them.
    fn refuses(&self, extension: &Extension) -> bool {
        match extension.extn_id {
            // "AKI: [SKI from CA certificate]": only for a root does AWS name the API as its source.
            id::ID_CE_AUTHORITY_KEY_IDENTIFIER => self.kind != Kind::Root,
            id::ID_CE_CRL_DISTRIBUTION_POINTS => {
                self.kind == Kind::Root && !self.key_usage.is_empty()
            }
            _ => false,
        }
    }

    /// The template's key usage, reduced to what the key can do: a signature key never enciphers keys (RFC 9881,
    /// section 5, for ML-DSA; RFC 9909, section 6, for SLH-DSA; RFC 8813, section 3, for EC). An ML-KEM key does
    /// nothing else (RFC 9935, section 5).
    fn usable(&self, public_key: &[u8]) -> Result<Vec<KeyUsages>, PkiError> {
        let key = public_key::Kind::of(public_key)?;
        if self.kind != Kind::EndEntity && !key.signs() {
            return Err(self.error(&format!("{} keys cannot sign certificates", key.name)));
        }
        let fits = |flag: &&KeyUsages| match flag {
            KeyUsages::KeyEncipherment => key.enciphers,
            _ => key.signs(),
        };
        let usage: Vec<_> = self.key_usage.iter().filter(fits).copied().collect();
        if usage.is_empty() && !self.key_usage.is_empty() {
            return Err(self.error(&format!("{} keys cannot serve its purpose", key.name)));
        }
        Ok(usage)
    }

    fn error(&self, reason: &str) -> PkiError {
        PkiError::Template { template: self.name, reason: reason.to_owned() }
    }
}

/// A key usage reduced to what the key can do: cert-manager and others request keyEncipherment for any key, and AWS
/// drops that bit for keys that encipher nothing. If it is the only bit it stays, and the rules refuse it.
fn served(extension: &Extension, public_key: &[u8]) -> Result<Extension, PkiError> {
    let mut out = extension.clone();
    if extension.extn_id == id::ID_CE_KEY_USAGE
        && !public_key::Kind::of(public_key)?.enciphers
        && let Ok(usage) = KeyUsage::from_der(extension.extn_value.as_bytes())
    {
        let rest: Vec<_> =
            usage.0.into_iter().filter(|flag| *flag != KeyUsages::KeyEncipherment).collect();
        if usage.key_encipherment() && !rest.is_empty() {
            out.extn_value = key_usage(&rest)?.extn_value;
        }
    }
    Ok(out)
}

fn is_there(extensions: &[Extension], new: &Extension) -> bool {
    extensions.iter().any(|extension| extension.extn_id == new.extn_id)
}

/// The basic constraints of a certificate of this kind.
pub fn basic_constraints(kind: Kind) -> BasicConstraints {
    match kind {
        Kind::Root => BasicConstraints { ca: true, path_len_constraint: None },
        Kind::Subordinate(len) => BasicConstraints { ca: true, path_len_constraint: Some(len) },
        Kind::EndEntity => BasicConstraints { ca: false, path_len_constraint: None },
    }
}

#[cfg(test)]
mod tests;
