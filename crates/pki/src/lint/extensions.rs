//! Rules about extensions.

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280 as id;
use der::asn1::{Any, AnyRef};
use der::{Decode, Encode, Reader, Tag, Tagged};
use x509_cert::ext::pkix::{
    AuthorityInfoAccessSyntax, AuthorityKeyIdentifier, BasicConstraints, CertificatePolicies,
    CrlDistributionPoints, KeyUsage, KeyUsages, NameConstraints, PolicyConstraints, PolicyMappings,
    SubjectKeyIdentifier,
};

use super::Outcome;
use super::parts::Parts;
use crate::extensions::{
    self, CLIENT_AUTH, CODE_SIGNING, OCSP_NO_CHECK, OCSP_SIGNING, SERVER_AUTH,
};
use crate::general_name::{self, GeneralName, decode_names};

/// `id-ce-subjectDirectoryAttributes`
const DIRECTORY_ATTRIBUTES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.9");
/// `id-qt-unotice`
const USER_NOTICE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.2.2");
/// `anyPolicy`
const ANY_POLICY: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.32.0");

/// Extensions that this crate, or the profile, knows.
const KNOWN: &[ObjectIdentifier] = &[
    id::ID_CE_AUTHORITY_KEY_IDENTIFIER,
    id::ID_CE_SUBJECT_KEY_IDENTIFIER,
    id::ID_CE_KEY_USAGE,
    id::ID_CE_CERTIFICATE_POLICIES,
    id::ID_CE_POLICY_MAPPINGS,
    id::ID_CE_SUBJECT_ALT_NAME,
    id::ID_CE_ISSUER_ALT_NAME,
    DIRECTORY_ATTRIBUTES,
    id::ID_CE_BASIC_CONSTRAINTS,
    id::ID_CE_NAME_CONSTRAINTS,
    id::ID_CE_POLICY_CONSTRAINTS,
    id::ID_CE_EXT_KEY_USAGE,
    id::ID_CE_CRL_DISTRIBUTION_POINTS,
    id::ID_CE_INHIBIT_ANY_POLICY,
    id::ID_CE_FRESHEST_CRL,
    id::ID_PE_AUTHORITY_INFO_ACCESS,
    id::ID_PE_SUBJECT_INFO_ACCESS,
    OCSP_NO_CHECK,
    // The poison of Certificate Transparency (RFC 6962, section 3.1) is critical by design.
    ObjectIdentifier::new_unwrap("1.3.6.1.4.1.11129.2.4.3"),
];

/// RFC 5280: each MUST NOT be critical.
const NEVER_CRITICAL: &[ObjectIdentifier] = &[
    id::ID_CE_AUTHORITY_KEY_IDENTIFIER,
    id::ID_CE_SUBJECT_KEY_IDENTIFIER,
    DIRECTORY_ATTRIBUTES,
    id::ID_CE_FRESHEST_CRL,
    id::ID_PE_AUTHORITY_INFO_ACCESS,
    id::ID_PE_SUBJECT_INFO_ACCESS,
];
/// RFC 5280 (the last: RFC 6960): each SHOULD NOT be critical.
const RARELY_CRITICAL: &[ObjectIdentifier] =
    &[id::ID_CE_ISSUER_ALT_NAME, id::ID_CE_CRL_DISTRIBUTION_POINTS, OCSP_NO_CHECK];
/// RFC 5280: each MUST be critical.
const ALWAYS_CRITICAL: &[ObjectIdentifier] =
    &[id::ID_CE_NAME_CONSTRAINTS, id::ID_CE_POLICY_CONSTRAINTS, id::ID_CE_INHIBIT_ANY_POLICY];
/// RFC 5280: each SHOULD be critical.
const MOSTLY_CRITICAL: &[ObjectIdentifier] = &[id::ID_CE_KEY_USAGE, id::ID_CE_POLICY_MAPPINGS];
/// They restrict the certificates below, so only CAs have them.
const FOR_CAS: &[ObjectIdentifier] = &[
    id::ID_CE_NAME_CONSTRAINTS,
    id::ID_CE_POLICY_CONSTRAINTS,
    id::ID_CE_POLICY_MAPPINGS,
    id::ID_CE_INHIBIT_ANY_POLICY,
];

fn criticality(parts: &Parts<'_>, list: &[ObjectIdentifier], wrong: bool) -> Outcome {
    parts.extensions.iter().find(|ext| ext.critical == wrong && list.contains(&ext.oid)).map(
        |ext| {
            let name = crate::oid_name(ext.oid).unwrap_or_default();
            format!("{name} ({}) is {}critical", ext.oid, if wrong { "" } else { "not " })
        },
    )
}

pub(super) fn not_empty(parts: &Parts<'_>) -> Outcome {
    (parts.has_extensions && parts.extensions.is_empty()).then(|| "the list is empty".into())
}

pub(super) fn unique(parts: &Parts<'_>) -> Outcome {
    let all = &parts.extensions;
    all.iter()
        .enumerate()
        .find(|(index, ext)| all[..*index].iter().any(|earlier| earlier.oid == ext.oid))
        .map(|(_, ext)| format!("{} occurs twice", ext.oid))
}

pub(super) fn unknown_critical(parts: &Parts<'_>) -> Outcome {
    parts
        .extensions
        .iter()
        .find(|ext| ext.critical && !KNOWN.contains(&ext.oid))
        .map(|ext| format!("{} is critical and unknown", ext.oid))
}

/// Extensions of a known kind must have its syntax. Names have rules of their own.
pub(super) fn syntax(parts: &Parts<'_>) -> Outcome {
    parts.extensions.iter().find_map(|ext| match ext.oid {
        id::ID_CE_SUBJECT_ALT_NAME | id::ID_CE_ISSUER_ALT_NAME => {
            decode_names(ext.value).err().map(|error| error.to_string())
        }
        oid => extensions::check_value(oid, ext.value).err().map(|error| error.to_string()),
    })
}

pub(super) fn never_critical(parts: &Parts<'_>) -> Outcome {
    criticality(parts, NEVER_CRITICAL, true)
}

pub(super) fn rarely_critical(parts: &Parts<'_>) -> Outcome {
    criticality(parts, RARELY_CRITICAL, true)
}

pub(super) fn always_critical(parts: &Parts<'_>) -> Outcome {
    criticality(parts, ALWAYS_CRITICAL, false)
}

pub(super) fn mostly_critical(parts: &Parts<'_>) -> Outcome {
    criticality(parts, MOSTLY_CRITICAL, false)
}

pub(super) fn for_cas(parts: &Parts<'_>) -> Outcome {
    if parts.is_ca() {
        return None;
    }
    parts.extensions.iter().find(|ext| FOR_CAS.contains(&ext.oid)).map(|ext| {
        format!("{} is only for CAs", crate::oid_name(ext.oid).unwrap_or("the extension"))
    })
}

pub(super) fn aki_present(parts: &Parts<'_>) -> Outcome {
    let aki = parts.decode::<AuthorityKeyIdentifier>(id::ID_CE_AUTHORITY_KEY_IDENTIFIER);
    let has_id = aki.is_some_and(|aki| aki.key_identifier.is_some());
    // The one exception is a CA's own, self-signed certificate.
    let excepted = parts.is_ca() && parts.is_self_issued();
    (!has_id && !excepted).then(|| "there is no keyIdentifier".into())
}

pub(super) fn aki_pair(parts: &Parts<'_>) -> Outcome {
    let aki = parts.decode::<AuthorityKeyIdentifier>(id::ID_CE_AUTHORITY_KEY_IDENTIFIER)?;
    (aki.authority_cert_issuer.is_some() != aki.authority_cert_serial_number.is_some())
        .then(|| "it has only one of authorityCertIssuer and authorityCertSerialNumber".into())
}

pub(super) fn ski_in_ca(parts: &Parts<'_>) -> Outcome {
    (parts.is_ca() && parts.find(id::ID_CE_SUBJECT_KEY_IDENTIFIER).is_none())
        .then(|| "the CA certificate has none".into())
}

pub(super) fn ski_in_leaf(parts: &Parts<'_>) -> Outcome {
    (!parts.is_ca() && parts.find(id::ID_CE_SUBJECT_KEY_IDENTIFIER).is_none())
        .then(|| "there is none".into())
}

pub(super) fn ski_not_empty(parts: &Parts<'_>) -> Outcome {
    let ski = parts.decode::<SubjectKeyIdentifier>(id::ID_CE_SUBJECT_KEY_IDENTIFIER)?;
    ski.0.as_bytes().is_empty().then(|| "it is empty".into())
}

pub(super) fn usage_in_ca(parts: &Parts<'_>) -> Outcome {
    (parts.is_ca() && parts.find(id::ID_CE_KEY_USAGE).is_none())
        .then(|| "the CA certificate has none".into())
}

pub(super) fn usage_not_empty(parts: &Parts<'_>) -> Outcome {
    parts.key_usage?.is_empty().then(|| "no bit is set".into())
}

/// X.690, section 11.2.2: a list of named bits has no zeros behind the last one.
pub(super) fn usage_encoding(parts: &Parts<'_>) -> Outcome {
    let found = parts.find(id::ID_CE_KEY_USAGE)?;
    let again = KeyUsage(parts.key_usage?).to_der().ok()?;
    (again != found.value).then(|| "its bits are not encoded as a list of named bits".into())
}

pub(super) fn cert_sign(parts: &Parts<'_>) -> Outcome {
    (parts.may(KeyUsages::KeyCertSign) && !parts.is_ca())
        .then(|| "keyCertSign is set, but this is not a CA".into())
}

pub(super) fn crl_sign(parts: &Parts<'_>) -> Outcome {
    (parts.may(KeyUsages::CRLSign) && !parts.is_ca())
        .then(|| "cRLSign is set, but this is not a CA".into())
}

pub(super) fn ca_cert_sign(parts: &Parts<'_>) -> Outcome {
    (parts.is_ca() && parts.key_usage.is_some() && !parts.may(KeyUsages::KeyCertSign))
        .then(|| "this is a CA, but keyCertSign is not set".into())
}

pub(super) fn encipher_only(parts: &Parts<'_>) -> Outcome {
    let only = parts.may(KeyUsages::EncipherOnly) || parts.may(KeyUsages::DecipherOnly);
    (only && !parts.may(KeyUsages::KeyAgreement))
        .then(|| "encipherOnly or decipherOnly is set without keyAgreement".into())
}

pub(super) fn constraints_critical(parts: &Parts<'_>) -> Outcome {
    let critical = parts.find(id::ID_CE_BASIC_CONSTRAINTS)?.critical;
    (parts.is_ca() && !critical).then(|| "they are not critical in a CA".into())
}

pub(super) fn path_len(parts: &Parts<'_>) -> Outcome {
    let limit = parts.constraints.as_ref()?.path_len_constraint?;
    let allowed = parts.is_ca() && (parts.key_usage.is_none() || parts.may(KeyUsages::KeyCertSign));
    (!allowed).then(|| format!("the path length {limit} is given without CA and keyCertSign"))
}

/// X.690, section 11.5: default values are left out.
pub(super) fn constraints_encoding(parts: &Parts<'_>) -> Outcome {
    let found = parts.find(id::ID_CE_BASIC_CONSTRAINTS)?;
    let again = BasicConstraints::from_der(found.value).ok()?.to_der().ok()?;
    (again != found.value).then(|| "cA is encoded although it is FALSE, the default".into())
}

pub(super) fn name_constraints(parts: &Parts<'_>) -> Outcome {
    let constraints = parts.decode::<NameConstraints>(id::ID_CE_NAME_CONSTRAINTS)?;
    let lists = [&constraints.permitted_subtrees, &constraints.excluded_subtrees];
    if lists.iter().all(|list| list.is_none()) {
        return Some("they are empty".into());
    }
    let again = constraints.to_der().ok();
    if again.is_some_and(|again| {
        parts.find(id::ID_CE_NAME_CONSTRAINTS).is_some_and(|found| found.value != again)
    }) {
        return Some("the minimum is encoded although it is 0, the default".into());
    }
    lists.into_iter().flatten().find_map(|list| {
        if list.is_empty() {
            return Some("a list of subtrees is empty".into());
        }
        list.iter()
            .any(|subtree| subtree.minimum != 0 || subtree.maximum.is_some())
            .then(|| "a subtree has a minimum or maximum".into())
    })
}

pub(super) fn policies_unique(parts: &Parts<'_>) -> Outcome {
    let policies = parts.decode::<CertificatePolicies>(id::ID_CE_CERTIFICATE_POLICIES)?.0;
    let twice = policies.iter().enumerate().find(|(index, policy)| {
        policies[..*index]
            .iter()
            .any(|earlier| earlier.policy_identifier == policy.policy_identifier)
    });
    twice.map(|(_, policy)| format!("the policy {} occurs twice", policy.policy_identifier))
}

pub(super) fn policies_not_empty(parts: &Parts<'_>) -> Outcome {
    let policies = parts.decode::<CertificatePolicies>(id::ID_CE_CERTIFICATE_POLICIES)?.0;
    let empty = policies.is_empty()
        || policies
            .iter()
            .any(|policy| policy.policy_qualifiers.as_ref().is_some_and(Vec::is_empty));
    empty.then(|| "a list is empty".into())
}

/// The explicit texts of user notices: the type of each, and its length in characters.
fn explicit_texts(parts: &Parts<'_>) -> Vec<(Tag, usize)> {
    let policies = parts.decode::<CertificatePolicies>(id::ID_CE_CERTIFICATE_POLICIES);
    let qualifiers =
        policies.into_iter().flat_map(|list| list.0).flat_map(|policy| {
            policy.policy_qualifiers.unwrap_or_default().into_iter().filter_map(|info| {
                info.qualifier.filter(|_| info.policy_qualifier_id == USER_NOTICE)
            })
        });
    // UserNotice ::= SEQUENCE { noticeRef SEQUENCE OPTIONAL, explicitText DisplayText OPTIONAL }
    let text = |notice: &Any| {
        notice.sequence(|reader| {
            let mut found = None;
            while !reader.is_finished() {
                let field = AnyRef::decode(reader)?;
                if field.tag() != Tag::Sequence {
                    let len = match field.tag() {
                        Tag::BmpString => field.value().len() / 2,
                        _ => String::from_utf8_lossy(field.value()).chars().count(),
                    };
                    found = Some((field.tag(), len));
                }
            }
            Ok::<_, der::Error>(found)
        })
    };
    qualifiers.filter_map(|notice| text(&notice).ok().flatten()).collect()
}

pub(super) fn explicit_text(parts: &Parts<'_>) -> Outcome {
    explicit_texts(parts)
        .iter()
        .any(|(tag, len)| *tag == Tag::Ia5String || *len > 200)
        .then(|| "a text is an IA5String or longer than 200 characters".into())
}

pub(super) fn explicit_text_utf8(parts: &Parts<'_>) -> Outcome {
    explicit_texts(parts)
        .iter()
        .any(|(tag, _)| *tag != Tag::Utf8String)
        .then(|| "a text is not a UTF8String".into())
}

pub(super) fn mappings(parts: &Parts<'_>) -> Outcome {
    let mappings = parts.decode::<PolicyMappings>(id::ID_CE_POLICY_MAPPINGS)?.0;
    if mappings.is_empty() {
        return Some("they are empty".into());
    }
    mappings
        .iter()
        .any(|mapping| {
            mapping.issuer_domain_policy == ANY_POLICY
                || mapping.subject_domain_policy == ANY_POLICY
        })
        .then(|| "anyPolicy is mapped".into())
}

pub(super) fn policy_constraints(parts: &Parts<'_>) -> Outcome {
    let constraints = parts.decode::<PolicyConstraints>(id::ID_CE_POLICY_CONSTRAINTS)?;
    (constraints.require_explicit_policy.is_none() && constraints.inhibit_policy_mapping.is_none())
        .then(|| "they are empty".into())
}

pub(super) fn purposes_not_empty(parts: &Parts<'_>) -> Outcome {
    parts.purposes.as_ref()?.is_empty().then(|| "it is empty".into())
}

pub(super) fn any_purpose_critical(parts: &Parts<'_>) -> Outcome {
    let critical = parts.find(id::ID_CE_EXT_KEY_USAGE)?.critical;
    (critical && parts.purposes.as_ref()?.contains(&id::ANY_EXTENDED_KEY_USAGE))
        .then(|| "it is critical and has anyExtendedKeyUsage".into())
}

/// RFC 5280, section 4.2.1.12, "Key usage bits that may be consistent".
pub(super) fn purposes_fit_usage(parts: &Parts<'_>) -> Outcome {
    use KeyUsages::{DigitalSignature, KeyAgreement, KeyEncipherment, NonRepudiation};
    let rows: &[(ObjectIdentifier, &[KeyUsages])] = &[
        (SERVER_AUTH, &[DigitalSignature, KeyEncipherment, KeyAgreement]),
        (CLIENT_AUTH, &[DigitalSignature, KeyAgreement]),
        (CODE_SIGNING, &[DigitalSignature]),
        (
            id::ID_KP_EMAIL_PROTECTION,
            &[DigitalSignature, NonRepudiation, KeyEncipherment, KeyAgreement],
        ),
        (id::ID_KP_TIME_STAMPING, &[DigitalSignature, NonRepudiation]),
        (OCSP_SIGNING, &[DigitalSignature, NonRepudiation]),
        // RFC 4945, section 5.1.3.2.
        (extensions::IPSEC_IKE, &[DigitalSignature, NonRepudiation]),
    ];
    let usage = parts.key_usage?;
    let purposes = parts.purposes.as_ref()?;
    rows.iter()
        .find(|(purpose, flags)| {
            purposes.contains(purpose) && !flags.iter().any(|flag| usage.contains(*flag))
        })
        .map(|(purpose, _)| {
            let name = crate::oid_name(*purpose).unwrap_or("a purpose");
            format!("the key usage has no bit that {name} needs")
        })
}

pub(super) fn distribution_points(parts: &Parts<'_>) -> Outcome {
    let found = parts.find(id::ID_CE_CRL_DISTRIBUTION_POINTS)?;
    let points = CrlDistributionPoints::from_der(found.value).ok()?.0;
    if points.is_empty() {
        return Some("the list is empty".into());
    }
    points
        .iter()
        .any(|point| point.distribution_point.is_none() && point.crl_issuer.is_none())
        .then(|| "a point has neither a name nor an issuer".into())
}

/// The URIs of distribution points and information access are absolute (RFC 5280, sections 4.2.1.6 and 4.2.1.13).
pub(super) fn locations(parts: &Parts<'_>) -> Outcome {
    use x509_cert::ext::pkix::name::{DistributionPointName, GeneralName as Theirs};
    let mut uris = Vec::new();
    let points = parts.decode::<CrlDistributionPoints>(id::ID_CE_CRL_DISTRIBUTION_POINTS);
    for point in points.iter().flat_map(|points| &points.0) {
        if let Some(DistributionPointName::FullName(names)) = &point.distribution_point {
            uris.extend(names.iter().cloned());
        }
    }
    for oid in [id::ID_PE_AUTHORITY_INFO_ACCESS, id::ID_PE_SUBJECT_INFO_ACCESS] {
        let access = parts.decode::<AuthorityInfoAccessSyntax>(oid);
        uris.extend(access.into_iter().flat_map(|access| access.0).map(|one| one.access_location));
    }
    uris.iter().find_map(|name| match name {
        Theirs::UniformResourceIdentifier(text) => {
            let name = GeneralName::UniformResourceIdentifier(text.to_string());
            general_name::uri(text.as_str()).err().map(|reason| {
                let text: String = name.to_string().chars().take(80).collect();
                format!("{text} {reason}")
            })
        }
        _ => None,
    })
}

pub(super) fn access_not_empty(parts: &Parts<'_>) -> Outcome {
    [id::ID_PE_AUTHORITY_INFO_ACCESS, id::ID_PE_SUBJECT_INFO_ACCESS].into_iter().find_map(|oid| {
        let access = parts.decode::<AuthorityInfoAccessSyntax>(oid)?;
        access.0.is_empty().then(|| "the list is empty".into())
    })
}
