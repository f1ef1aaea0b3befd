//! Builders of certificate extensions from plain values, with the criticality that RFC 5280 requires.
//!
//! Tables have the values that AWS has names for: [`KEY_USAGES`], [`PURPOSES`], [`ACCESS_METHODS`].

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280 as id;
use der::asn1::{Ia5StringRef, OctetString};
use der::flagset::FlagSet;
use der::{Decode, Encode};
pub use x509_cert::ext::Extension;
pub use x509_cert::ext::pkix::KeyUsages;
pub use x509_cert::ext::pkix::NameConstraints;
use x509_cert::ext::pkix::{
    AuthorityInfoAccessSyntax, AuthorityKeyIdentifier, BasicConstraints, CertificatePolicies,
    CrlDistributionPoints, ExtendedKeyUsage, KeyUsage, PolicyConstraints, PolicyMappings,
    SubjectInfoAccessSyntax, SubjectKeyIdentifier,
};

use crate::PkiError;
use crate::extension::extension;
use crate::general_name::{self, GeneralName, decode_names, encode_names, names_content};
use crate::strict_der::is_der;

/// The bits of a key usage by AWS's names in `KeyUsage`, in RFC 5280's order.
pub static KEY_USAGES: &[(&str, KeyUsages)] = &[
    ("DigitalSignature", KeyUsages::DigitalSignature),
    ("NonRepudiation", KeyUsages::NonRepudiation),
    ("KeyEncipherment", KeyUsages::KeyEncipherment),
    ("DataEncipherment", KeyUsages::DataEncipherment),
    ("KeyAgreement", KeyUsages::KeyAgreement),
    ("KeyCertSign", KeyUsages::KeyCertSign),
    ("CRLSign", KeyUsages::CRLSign),
    ("EncipherOnly", KeyUsages::EncipherOnly),
    ("DecipherOnly", KeyUsages::DecipherOnly),
];

/// An extended key usage with a name.
#[derive(Debug)]
pub struct Purpose {
    /// Name in AWS's `ExtendedKeyUsageType`, or one in the same style.
    pub name: &'static str,
    /// Its identifier.
    pub oid: ObjectIdentifier,
    /// Whether AWS has the name.
    pub aws: bool,
}

/// All extended key usages with a name.
pub static PURPOSES: &[Purpose] = &[
    Purpose { name: "SERVER_AUTH", oid: SERVER_AUTH, aws: true },
    Purpose { name: "CLIENT_AUTH", oid: CLIENT_AUTH, aws: true },
    Purpose { name: "CODE_SIGNING", oid: CODE_SIGNING, aws: true },
    Purpose { name: "EMAIL_PROTECTION", oid: id::ID_KP_EMAIL_PROTECTION, aws: true },
    Purpose { name: "TIME_STAMPING", oid: TIME_STAMPING, aws: true },
    Purpose { name: "OCSP_SIGNING", oid: OCSP_SIGNING, aws: true },
    // szOID_KP_SMARTCARD_LOGON, szOID_KP_DOCUMENT_SIGNING: Microsoft's.
    Purpose { name: "SMART_CARD_LOGIN", oid: oid("1.3.6.1.4.1.311.20.2.2"), aws: true },
    Purpose { name: "DOCUMENT_SIGNING", oid: oid("1.3.6.1.4.1.311.10.3.12"), aws: true },
    // RFC 6962, section 3.1: a precertificate signing certificate.
    Purpose { name: "CERTIFICATE_TRANSPARENCY", oid: oid("1.3.6.1.4.1.11129.2.4.4"), aws: true },
    // RFC 4945, section 5.1.3.12.
    Purpose { name: "IPSEC_IKE", oid: IPSEC_IKE, aws: false },
    // RFC 9336.
    Purpose { name: "PKIX_DOCUMENT_SIGNING", oid: oid("1.3.6.1.5.5.7.3.36"), aws: false },
];

/// The methods of a subject information access by AWS's names in `AccessMethodType` (RFC 5280, 4.2.2.2; RFC 6487,
/// 4.8.8).
pub static ACCESS_METHODS: &[(&str, ObjectIdentifier)] = &[
    ("CA_REPOSITORY", id::ID_AD_CA_REPOSITORY),
    ("RESOURCE_PKI_MANIFEST", oid("1.3.6.1.5.5.7.48.10")),
    ("RESOURCE_PKI_NOTIFY", oid("1.3.6.1.5.5.7.48.13")),
];

/// `id-kp-codeSigning`
pub const CODE_SIGNING: ObjectIdentifier = id::ID_KP_CODE_SIGNING;
/// `id-kp-serverAuth`
pub const SERVER_AUTH: ObjectIdentifier = id::ID_KP_SERVER_AUTH;
/// `id-kp-clientAuth`
pub const CLIENT_AUTH: ObjectIdentifier = id::ID_KP_CLIENT_AUTH;
/// `id-kp-OCSPSigning`
pub const OCSP_SIGNING: ObjectIdentifier = id::ID_KP_OCSP_SIGNING;
/// `id-kp-timeStamping`
pub const TIME_STAMPING: ObjectIdentifier = id::ID_KP_TIME_STAMPING;
/// `id-kp-ipsecIKE`
pub const IPSEC_IKE: ObjectIdentifier = oid("1.3.6.1.5.5.7.3.17");
/// `id-ce-subjectAltName`
pub const SUBJECT_ALT_NAME: ObjectIdentifier = id::ID_CE_SUBJECT_ALT_NAME;
/// `id-pkix-ocsp-nocheck` (RFC 6960, section 4.2.2.2.1)
pub const OCSP_NO_CHECK: ObjectIdentifier = oid("1.3.6.1.5.5.7.48.1.5");
/// `id-qt-cps`
pub const CPS: ObjectIdentifier = oid("1.3.6.1.5.5.7.2.1");

/// A certificate policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Its identifier.
    pub id: ObjectIdentifier,
    /// URIs of the statement of practice, each of which becomes a CPS qualifier.
    pub cps: Vec<String>,
}

impl Purpose {
    /// The row with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PURPOSES.iter().find(|row| row.name == name)
    }
}

/// The key usage bit with this AWS name.
pub fn key_usage_by_name(name: &str) -> Option<KeyUsages> {
    KEY_USAGES.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag)
}

/// The access method with this AWS name.
pub fn access_method_by_name(name: &str) -> Option<ObjectIdentifier> {
    ACCESS_METHODS.iter().find(|(known, _)| *known == name).map(|(_, oid)| *oid)
}

/// Basic constraints.
pub fn basic_constraints(
    ca: bool,
    path_len_constraint: Option<u8>,
    critical: bool,
) -> Result<Extension, PkiError> {
    extension(id::ID_CE_BASIC_CONSTRAINTS, critical, &BasicConstraints { ca, path_len_constraint })
}

/// A critical key usage (RFC 5280, section 4.2.1.3: at least one bit must be set).
pub fn key_usage(flags: &[KeyUsages]) -> Result<Extension, PkiError> {
    let mut usage = FlagSet::default();
    for flag in flags {
        usage |= *flag;
    }
    if usage.is_empty() {
        return Err(refused("key usage", "at least one bit must be set"));
    }
    extension(id::ID_CE_KEY_USAGE, true, &KeyUsage(usage))
}

/// An extended key usage. RFC 5280, section 4.2.1.12, leaves the criticality open.
pub fn extended_key_usage(
    purposes: &[ObjectIdentifier],
    critical: bool,
) -> Result<Extension, PkiError> {
    if purposes.is_empty() {
        return Err(refused("extended key usage", "at least one purpose is required"));
    }
    let mut unique = Vec::with_capacity(purposes.len());
    for purpose in purposes {
        if !unique.contains(purpose) {
            unique.push(*purpose);
        }
    }
    extension(id::ID_CE_EXT_KEY_USAGE, critical, &ExtendedKeyUsage(unique))
}

/// Certificate policies, not critical. RFC 5280, section 4.2.1.4: a policy occurs once.
pub fn certificate_policies(policies: &[Policy]) -> Result<Extension, PkiError> {
    let name = "certificate policies";
    if policies.is_empty() {
        return Err(refused(name, "at least one policy is required"));
    }
    let mut content = Vec::new();
    for (index, policy) in policies.iter().enumerate() {
        if policies[..index].iter().any(|earlier| earlier.id == policy.id) {
            return Err(refused(name, &format!("the policy {} occurs twice", policy.id)));
        }
        content.extend(policy_information(policy)?);
    }
    raw(id::ID_CE_CERTIFICATE_POLICIES, false, &sequence(name, &content)?)
}

fn policy_information(policy: &Policy) -> Result<Vec<u8>, PkiError> {
    let name = "certificate policies";
    let failed = |error: der::Error| refused(name, &error.to_string());
    let mut content = policy.id.to_der().map_err(failed)?;
    let mut qualifiers = Vec::new();
    for cps in &policy.cps {
        general_name::uri(cps).map_err(|reason| refused(name, &format!("the CPS URI {reason}")))?;
        let mut qualifier = CPS.to_der().map_err(failed)?;
        let text = Ia5StringRef::new(cps).and_then(|text| text.to_der()).map_err(failed)?;
        qualifier.extend(text);
        qualifiers.extend(sequence(name, &qualifier)?);
    }
    if !qualifiers.is_empty() {
        content.extend(sequence(name, &qualifiers)?);
    }
    sequence(name, &content)
}

/// Subject alternative names. RFC 5280, section 4.2.1.6: critical if, and only if, the subject is empty.
pub fn subject_alternative_names(
    names: &[GeneralName],
    critical: bool,
) -> Result<Extension, PkiError> {
    raw(SUBJECT_ALT_NAME, critical, &encode_names(names)?)
}

/// Subject information access (RFC 5280, section 4.2.2.2): methods and their locations.
pub fn subject_information_access(
    descriptions: &[(ObjectIdentifier, GeneralName)],
) -> Result<Extension, PkiError> {
    raw(id::ID_PE_SUBJECT_INFO_ACCESS, false, &access_descriptions(descriptions)?)
}

/// Authority information access (RFC 5280, section 4.2.2.1): URLs of OCSP responders and of the issuer's certificate.
pub fn authority_information_access(
    ocsp: &[&str],
    ca_issuers: &[&str],
) -> Result<Extension, PkiError> {
    let uri = |text: &&str| GeneralName::UniformResourceIdentifier((*text).to_owned());
    let mut descriptions: Vec<_> = ocsp.iter().map(|url| (id::ID_AD_OCSP, uri(url))).collect();
    descriptions.extend(ca_issuers.iter().map(|url| (id::ID_AD_CA_ISSUERS, uri(url))));
    raw(id::ID_PE_AUTHORITY_INFO_ACCESS, false, &access_descriptions(&descriptions)?)
}

fn access_descriptions(
    descriptions: &[(ObjectIdentifier, GeneralName)],
) -> Result<Vec<u8>, PkiError> {
    let name = "information access";
    if descriptions.is_empty() {
        return Err(refused(name, "at least one description is required"));
    }
    let mut content = Vec::new();
    for (method, location) in descriptions {
        location.check()?;
        let mut description = method.to_der().map_err(|error| refused(name, &error.to_string()))?;
        description.extend(location.to_der()?);
        content.extend(sequence(name, &description)?);
    }
    sequence(name, &content)
}

/// CRL distribution points: one point with each of these URLs, which all lead to the same CRL (RFC 5280, section
/// 4.2.1.13).
pub fn crl_distribution_points(urls: &[&str]) -> Result<Extension, PkiError> {
    let name = "CRL distribution points";
    let failed = |error: der::Error| refused(name, &error.to_string());
    let names: Vec<_> =
        urls.iter().map(|url| GeneralName::UniformResourceIdentifier((*url).to_owned())).collect();
    // DistributionPoint ::= SEQUENCE { distributionPoint [0] CHOICE { fullName [0] GeneralNames, ... }, ... }
    let full_name = general_name::tagged(0, true, &names_content(&names)?).map_err(failed)?;
    let point = general_name::tagged(0, true, &full_name).map_err(failed)?;
    let point = sequence(name, &point)?;
    raw(id::ID_CE_CRL_DISTRIBUTION_POINTS, false, &sequence(name, &point)?)
}

/// The key identifier of the issuer; never critical.
pub fn authority_key_identifier(key_id: &[u8]) -> Result<Extension, PkiError> {
    let value = AuthorityKeyIdentifier {
        key_identifier: Some(octets(key_id)?),
        ..AuthorityKeyIdentifier::default()
    };
    extension(id::ID_CE_AUTHORITY_KEY_IDENTIFIER, false, &value)
}

/// The key identifier of the subject; never critical.
pub fn subject_key_identifier(key_id: &[u8]) -> Result<Extension, PkiError> {
    extension(id::ID_CE_SUBJECT_KEY_IDENTIFIER, false, &SubjectKeyIdentifier(octets(key_id)?))
}

/// Says that an OCSP responder's certificate need not be checked for revocation (RFC 6960, section 4.2.2.2.1).
pub fn ocsp_no_check() -> Result<Extension, PkiError> {
    extension(OCSP_NO_CHECK, false, &der::asn1::Null)
}

/// An extension of any kind from its DER, which must be well-formed, and valid for its kind if that is known.
pub fn custom(oid: ObjectIdentifier, critical: bool, value: &[u8]) -> Result<Extension, PkiError> {
    let extension = raw(oid, critical, value)?;
    check(&extension)?;
    Ok(extension)
}

/// Parses name constraints.
pub fn name_constraints(extension: &Extension) -> Result<NameConstraints, PkiError> {
    NameConstraints::from_der(extension.extn_value.as_bytes())
        .map_err(|error| PkiError::malformed("name constraints", &error))
}

/// Checks that the value is DER, and valid for its kind if that is known.
pub fn check(extension: &Extension) -> Result<(), PkiError> {
    let value = extension.extn_value.as_bytes();
    if matches!(extension.extn_id, SUBJECT_ALT_NAME | id::ID_CE_ISSUER_ALT_NAME) {
        for name in decode_names(value)? {
            name.check()?;
        }
    }
    check_value(extension.extn_id, value)
}

/// The same as [`check`], without the syntax of names.
pub(crate) fn check_value(oid: ObjectIdentifier, value: &[u8]) -> Result<(), PkiError> {
    let what = || crate::oid_name(oid).unwrap_or("extension").to_owned();
    if !is_der(value) {
        return Err(refused(&what(), "the value is not DER"));
    }
    let result = match oid {
        id::ID_CE_BASIC_CONSTRAINTS => BasicConstraints::from_der(value).map(drop),
        id::ID_CE_KEY_USAGE => KeyUsage::from_der(value).map(drop),
        id::ID_CE_EXT_KEY_USAGE => ExtendedKeyUsage::from_der(value).map(drop),
        id::ID_CE_NAME_CONSTRAINTS => NameConstraints::from_der(value).map(drop),
        id::ID_CE_CERTIFICATE_POLICIES => CertificatePolicies::from_der(value).map(drop),
        id::ID_CE_POLICY_CONSTRAINTS => PolicyConstraints::from_der(value).map(drop),
        id::ID_CE_POLICY_MAPPINGS => PolicyMappings::from_der(value).map(drop),
        id::ID_CE_INHIBIT_ANY_POLICY => u32::from_der(value).map(drop),
        id::ID_CE_CRL_DISTRIBUTION_POINTS | id::ID_CE_FRESHEST_CRL => {
            CrlDistributionPoints::from_der(value).map(drop)
        }
        id::ID_PE_AUTHORITY_INFO_ACCESS => AuthorityInfoAccessSyntax::from_der(value).map(drop),
        id::ID_PE_SUBJECT_INFO_ACCESS => SubjectInfoAccessSyntax::from_der(value).map(drop),
        id::ID_CE_SUBJECT_KEY_IDENTIFIER => SubjectKeyIdentifier::from_der(value).map(drop),
        id::ID_CE_AUTHORITY_KEY_IDENTIFIER => AuthorityKeyIdentifier::from_der(value).map(drop),
        OCSP_NO_CHECK => der::asn1::Null::from_der(value).map(drop),
        _ => Ok(()),
    };
    result.map_err(|error| refused(&what(), &error.to_string()))
}

fn raw(oid: ObjectIdentifier, critical: bool, value: &[u8]) -> Result<Extension, PkiError> {
    Ok(Extension { extn_id: oid, critical, extn_value: octets(value)? })
}

fn sequence(name: &str, content: &[u8]) -> Result<Vec<u8>, PkiError> {
    general_name::sequence(content).map_err(|error| refused(name, &error.to_string()))
}

fn octets(bytes: &[u8]) -> Result<OctetString, PkiError> {
    OctetString::new(bytes).map_err(|error| PkiError::malformed("extension", &error))
}

fn refused(what: &str, reason: &str) -> PkiError {
    PkiError::Extension { what: what.to_owned(), reason: reason.to_owned() }
}

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}
