//! AWS Private CA's certificate templates as rows.
//!
//! Source: AWS Private CA user guide, "Template definitions". Where RFC 9881 or RFC 8813 forbids a key usage
//! for a kind of key, it is left out: see [`Template::extensions`].

use const_oid::ObjectIdentifier;
use der::flagset::FlagSet;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectKeyIdentifier,
};

use crate::PkiError;
use crate::certificate::{extension, key_identifier};

/// `id-kp-codeSigning`
pub const CODE_SIGNING: ObjectIdentifier = const_oid::db::rfc5280::ID_KP_CODE_SIGNING;
/// `id-kp-serverAuth`
pub const SERVER_AUTH: ObjectIdentifier = const_oid::db::rfc5280::ID_KP_SERVER_AUTH;
/// `id-kp-clientAuth`
pub const CLIENT_AUTH: ObjectIdentifier = const_oid::db::rfc5280::ID_KP_CLIENT_AUTH;
/// `id-kp-OCSPSigning`
pub const OCSP_SIGNING: ObjectIdentifier = const_oid::db::rfc5280::ID_KP_OCSP_SIGNING;
/// `id-ce-subjectAltName`
pub const SUBJECT_ALT_NAME: ObjectIdentifier = const_oid::db::rfc5280::ID_CE_SUBJECT_ALT_NAME;

/// What a certificate made from a template is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signed by itself; only a root CA can issue it, for its own key.
    Root,
    /// A CA below the issuer, followed by at most this many more CAs.
    Subordinate(u8),
    /// Not a CA.
    EndEntity,
}

/// One template.
#[derive(Debug)]
pub struct Template {
    /// Name between `arn:aws:acm-pca:::template/` and `/V1`.
    pub name: &'static str,
    /// Root, subordinate or end entity.
    pub kind: Kind,
    key_usage: &'static [KeyUsages],
    extended_key_usage: &'static [ObjectIdentifier],
    extended_key_usage_critical: bool,
}

/// What a CA's key is for.
pub const CA_KEY_USAGE: &[KeyUsages] =
    &[KeyUsages::DigitalSignature, KeyUsages::KeyCertSign, KeyUsages::CRLSign];
const TLS_KEY_USAGE: &[KeyUsages] = &[KeyUsages::DigitalSignature, KeyUsages::KeyEncipherment];

const fn ca(name: &'static str, kind: Kind) -> Template {
    Template {
        name,
        kind,
        key_usage: CA_KEY_USAGE,
        extended_key_usage: &[],
        extended_key_usage_critical: false,
    }
}

const fn tls(name: &'static str, extended_key_usage: &'static [ObjectIdentifier]) -> Template {
    Template {
        name,
        kind: Kind::EndEntity,
        key_usage: TLS_KEY_USAGE,
        extended_key_usage,
        extended_key_usage_critical: false,
    }
}

const fn signing(name: &'static str, purpose: &'static [ObjectIdentifier]) -> Template {
    Template {
        name,
        kind: Kind::EndEntity,
        key_usage: &[KeyUsages::DigitalSignature],
        extended_key_usage: purpose,
        extended_key_usage_critical: true,
    }
}

/// Every template. The first end-entity row is what AWS takes when none is named.
pub static TEMPLATES: &[Template] = &[
    tls("EndEntityCertificate", &[SERVER_AUTH, CLIENT_AUTH]),
    tls("EndEntityClientAuthCertificate", &[CLIENT_AUTH]),
    tls("EndEntityServerAuthCertificate", &[SERVER_AUTH]),
    signing("CodeSigningCertificate", &[CODE_SIGNING]),
    signing("OCSPSigningCertificate", &[OCSP_SIGNING]),
    ca("RootCACertificate", Kind::Root),
    ca("SubordinateCACertificate_PathLen0", Kind::Subordinate(0)),
    ca("SubordinateCACertificate_PathLen1", Kind::Subordinate(1)),
    ca("SubordinateCACertificate_PathLen2", Kind::Subordinate(2)),
    ca("SubordinateCACertificate_PathLen3", Kind::Subordinate(3)),
];

impl Template {
    /// The row with this ARN, `arn:aws:acm-pca:::template/NAME/V1`; any partition is accepted.
    pub fn by_arn(arn: &str) -> Option<&'static Self> {
        let (prefix, name) = arn.split_once(":acm-pca:::template/")?;
        let name = name.strip_suffix("/V1")?;
        prefix.starts_with("arn:aws").then(|| TEMPLATES.iter().find(|row| row.name == name))?
    }

    /// The row that applies when no template is named.
    pub fn default_row() -> &'static Self {
        &TEMPLATES[0]
    }

    /// The extensions of a certificate for `public_key`, issued by the owner of `issuer_key_id` (its subject
    /// key identifier; absent for a root). `requested` are the extensions of the request, of which a base
    /// template passes the subject alternative name only.
    pub fn extensions(
        &self,
        public_key: &[u8],
        issuer_key_id: Option<&[u8]>,
        requested: &[Extension],
        encipherment_allowed: bool,
    ) -> Result<Vec<Extension>, PkiError> {
        use const_oid::db::rfc5280 as id;
        let octets = |bytes: &[u8]| {
            der::asn1::OctetString::new(bytes)
                .map_err(|error| PkiError::malformed("extension", &error))
        };
        let constraints = basic_constraints(self.kind);
        let is_ca = self.kind != Kind::EndEntity;
        let mut out = vec![extension(id::ID_CE_BASIC_CONSTRAINTS, is_ca, &constraints)?];
        if let Some(id) = issuer_key_id {
            let value = AuthorityKeyIdentifier {
                key_identifier: Some(octets(id)?),
                ..AuthorityKeyIdentifier::default()
            };
            out.push(extension(id::ID_CE_AUTHORITY_KEY_IDENTIFIER, false, &value)?);
        }
        let ski = SubjectKeyIdentifier(octets(&key_identifier(public_key)?)?);
        out.push(extension(id::ID_CE_SUBJECT_KEY_IDENTIFIER, false, &ski)?);
        // RFC 9881, section 5 (ML-DSA), and RFC 8813 (EC): a signature key never enciphers keys.
        let allowed =
            |flag: &&KeyUsages| **flag != KeyUsages::KeyEncipherment || encipherment_allowed;
        let usage: Vec<_> = self.key_usage.iter().filter(allowed).copied().collect();
        out.push(key_usage(&usage)?);
        if !self.extended_key_usage.is_empty() {
            let value = ExtendedKeyUsage(self.extended_key_usage.to_vec());
            out.push(extension(id::ID_CE_EXT_KEY_USAGE, self.extended_key_usage_critical, &value)?);
        }
        out.extend(requested.iter().filter(|ext| ext.extn_id == SUBJECT_ALT_NAME).cloned());
        Ok(out)
    }
}

/// The basic constraints of a certificate of this kind.
pub fn basic_constraints(kind: Kind) -> BasicConstraints {
    match kind {
        Kind::Root => BasicConstraints { ca: true, path_len_constraint: None },
        Kind::Subordinate(len) => BasicConstraints { ca: true, path_len_constraint: Some(len) },
        Kind::EndEntity => BasicConstraints { ca: false, path_len_constraint: None },
    }
}

/// A critical key usage extension.
pub fn key_usage(flags: &[KeyUsages]) -> Result<Extension, PkiError> {
    let mut usage = FlagSet::default();
    for flag in flags {
        usage |= *flag;
    }
    extension(const_oid::db::rfc5280::ID_CE_KEY_USAGE, true, &KeyUsage(usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_name_rows() {
        for row in TEMPLATES {
            let arn = format!("arn:aws:acm-pca:::template/{}/V1", row.name);
            assert!(std::ptr::eq(Template::by_arn(&arn).unwrap(), row));
        }
        for wrong in [
            "arn:aws:acm-pca:::template/RootCACertificate/V2",
            "arn:aws:acm-pca:::template/Nothing/V1",
            "RootCACertificate/V1",
            "",
        ] {
            assert!(Template::by_arn(wrong).is_none(), "{wrong}");
        }
        assert_eq!(Template::default_row().name, "EndEntityCertificate");
    }
}
