//! Extensions of certificates, requests and CRLs in words (RFC 5280, sections 4.2 and 5.2).

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280 as id;
use const_oid::db::rfc5912;
use der::Decode;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::constraints::name::GeneralSubtree;
use x509_cert::ext::pkix::crl::dp::DistributionPoint;
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralNames};
use x509_cert::ext::pkix::{
    AccessDescription, AuthorityInfoAccessSyntax, AuthorityKeyIdentifier, BaseCrlNumber,
    BasicConstraints, CertificatePolicies, CrlDistributionPoints, CrlNumber, ExtendedKeyUsage,
    FreshestCrl, IssuingDistributionPoint, KeyUsage, NameConstraints, PolicyConstraints,
    PolicyMappings, SubjectAltName, SubjectInfoAccessSyntax, SubjectKeyIdentifier,
};

use super::{general_name, hex_text};

/// An extension in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its name, such as `subject alternative name`; its OID if it has no name here.
    pub name: String,
    /// Whether it is critical: a reader that does not know it must refuse.
    pub critical: bool,
    /// Its contents; hexadecimal where there are no words for them.
    pub values: Vec<String>,
}

/// Describes the contents; `None` if they do not match the type.
type Words = fn(&[u8]) -> Option<Vec<String>>;

/// id-pkix-ocsp-nocheck (RFC 6960, section 4.2.2.2.1).
const OCSP_NO_CHECK: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.5");
/// id-pe-tlsfeature (RFC 7633).
const TLS_FEATURE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.24");

/// All extensions that can be described.
static EXTENSIONS: &[(ObjectIdentifier, &str, Words)] = &[
    (id::ID_CE_BASIC_CONSTRAINTS, "basic constraints", basic_constraints),
    (id::ID_CE_KEY_USAGE, "key usage", key_usage),
    (id::ID_CE_EXT_KEY_USAGE, "extended key usage", |der| {
        let list = ExtendedKeyUsage::from_der(der).ok()?.0;
        Some(list.iter().map(|oid| purpose(*oid)).collect())
    }),
    (id::ID_CE_SUBJECT_ALT_NAME, "subject alternative name", |der| {
        Some(names(&SubjectAltName::from_der(der).ok()?.0))
    }),
    (id::ID_CE_ISSUER_ALT_NAME, "issuer alternative name", |der| {
        Some(names(&GeneralNames::from_der(der).ok()?))
    }),
    (id::ID_CE_SUBJECT_KEY_IDENTIFIER, "subject key identifier", |der| {
        Some(vec![hex_text(SubjectKeyIdentifier::from_der(der).ok()?.0.as_bytes())])
    }),
    (id::ID_CE_AUTHORITY_KEY_IDENTIFIER, "authority key identifier", authority_key),
    (id::ID_CE_CRL_DISTRIBUTION_POINTS, "CRL distribution points", |der| {
        Some(points(&CrlDistributionPoints::from_der(der).ok()?.0))
    }),
    (id::ID_CE_FRESHEST_CRL, "freshest CRL", |der| {
        Some(points(&FreshestCrl::from_der(der).ok()?.0))
    }),
    (rfc5912::ID_PE_AUTHORITY_INFO_ACCESS, "authority information access", |der| {
        Some(access(&AuthorityInfoAccessSyntax::from_der(der).ok()?.0))
    }),
    (rfc5912::ID_PE_SUBJECT_INFO_ACCESS, "subject information access", |der| {
        Some(access(&SubjectInfoAccessSyntax::from_der(der).ok()?.0))
    }),
    (id::ID_CE_CERTIFICATE_POLICIES, "certificate policies", |der| {
        let list = CertificatePolicies::from_der(der).ok()?.0;
        Some(list.iter().map(|policy| named(policy.policy_identifier)).collect())
    }),
    (id::ID_CE_POLICY_MAPPINGS, "policy mappings", |der| {
        let list = PolicyMappings::from_der(der).ok()?.0;
        let pair = |row: &x509_cert::ext::pkix::PolicyMapping| {
            format!("{} as {}", row.issuer_domain_policy, row.subject_domain_policy)
        };
        Some(list.iter().map(pair).collect())
    }),
    (id::ID_CE_POLICY_CONSTRAINTS, "policy constraints", policy_constraints),
    (id::ID_CE_INHIBIT_ANY_POLICY, "inhibit anyPolicy", |der| {
        Some(vec![format!("after {} certificates", u32::from_der(der).ok()?)])
    }),
    (id::ID_CE_NAME_CONSTRAINTS, "name constraints", name_constraints),
    (id::ID_CE_CRL_NUMBER, "CRL number", |der| {
        Some(vec![hex_text(CrlNumber::from_der(der).ok()?.0.as_bytes())])
    }),
    (id::ID_CE_DELTA_CRL_INDICATOR, "delta CRL indicator", |der| {
        Some(vec![format!("base {}", hex_text(BaseCrlNumber::from_der(der).ok()?.0.as_bytes()))])
    }),
    (id::ID_CE_ISSUING_DISTRIBUTION_POINT, "issuing distribution point", issuing_point),
    (OCSP_NO_CHECK, "OCSP no check", |_| Some(vec!["not to be looked up by OCSP".to_owned()])),
    (TLS_FEATURE, "TLS feature", |der| {
        let list = Vec::<u16>::from_der(der).ok()?;
        let name = |feature: &u16| match feature {
            5 => "status_request (must staple)".to_owned(),
            other => other.to_string(),
        };
        Some(list.iter().map(name).collect())
    }),
];

/// An extension in words.
pub fn extension(extension: &Extension) -> Described {
    let der = extension.extn_value.as_bytes();
    let row = EXTENSIONS.iter().find(|(oid, _, _)| *oid == extension.extn_id);
    let name = row.map_or_else(|| named(extension.extn_id), |(_, name, _)| (*name).to_owned());
    let values = match row.map(|(_, _, words)| words(der)) {
        Some(Some(values)) => values,
        Some(None) => vec![format!("not well-formed: {}", hex_text(der))],
        None => vec![hex_text(der)],
    };
    Described { name, critical: extension.critical, values }
}

fn named(oid: ObjectIdentifier) -> String {
    crate::oid_name(oid).map_or_else(|| oid.to_string(), |name| format!("{name} ({oid})"))
}

/// A purpose such as `serverAuth`, in the notation of OpenSSL's configuration files.
fn purpose(oid: ObjectIdentifier) -> String {
    let name = crate::oid_name(oid).unwrap_or_default();
    match name.strip_prefix("id-kp-") {
        Some(short) => short.to_owned(),
        None if oid == id::ANY_EXTENDED_KEY_USAGE => "any".to_owned(),
        None => named(oid),
    }
}

fn names(list: &GeneralNames) -> Vec<String> {
    list.iter().map(general_name).collect()
}

fn basic_constraints(der: &[u8]) -> Option<Vec<String>> {
    let value = BasicConstraints::from_der(der).ok()?;
    let mut out = vec![if value.ca { "CA".to_owned() } else { "not a CA".to_owned() }];
    if let Some(limit) = value.path_len_constraint {
        out.push(format!("path length {limit}"));
    }
    Some(out)
}

/// RFC 5280, section 4.2.1.3, in the RFC's spelling.
fn key_usage(der: &[u8]) -> Option<Vec<String>> {
    let value = KeyUsage::from_der(der).ok()?;
    let text = |flag: x509_cert::ext::pkix::KeyUsages| {
        let name = format!("{flag:?}");
        match name.as_str() {
            // The names of the crate's flags begin with a capital letter, the RFC's with a small one.
            "CRLSign" => "cRLSign".to_owned(),
            _ => name
                .chars()
                .take(1)
                .flat_map(char::to_lowercase)
                .chain(name.chars().skip(1))
                .collect(),
        }
    };
    Some(value.0.into_iter().map(text).collect())
}

fn authority_key(der: &[u8]) -> Option<Vec<String>> {
    let value = AuthorityKeyIdentifier::from_der(der).ok()?;
    let mut out = Vec::new();
    out.extend(value.key_identifier.map(|id| hex_text(id.as_bytes())));
    out.extend(value.authority_cert_issuer.iter().flat_map(names));
    let serial = value.authority_cert_serial_number;
    out.extend(serial.map(|serial| format!("serial {}", hex_text(serial.as_bytes()))));
    Some(out)
}

fn point_name(name: &DistributionPointName) -> Vec<String> {
    match name {
        DistributionPointName::FullName(list) => names(list),
        DistributionPointName::NameRelativeToCRLIssuer(name) => vec![format!("relative:{name}")],
    }
}

fn points(list: &[DistributionPoint]) -> Vec<String> {
    list.iter().flat_map(|point| point.distribution_point.iter().flat_map(point_name)).collect()
}

fn access(list: &[AccessDescription]) -> Vec<String> {
    let method = |oid: ObjectIdentifier| match crate::oid_name(oid) {
        Some("id-ad-ocsp") => "OCSP".to_owned(),
        Some("id-ad-caIssuers") => "CA issuers".to_owned(),
        _ => named(oid),
    };
    let line = |row: &AccessDescription| {
        format!("{} {}", method(row.access_method), general_name(&row.access_location))
    };
    list.iter().map(line).collect()
}

fn policy_constraints(der: &[u8]) -> Option<Vec<String>> {
    let value = PolicyConstraints::from_der(der).ok()?;
    let mut out = Vec::new();
    out.extend(value.require_explicit_policy.map(|n| format!("explicit policy after {n}")));
    out.extend(value.inhibit_policy_mapping.map(|n| format!("no mapping after {n}")));
    Some(out)
}

fn name_constraints(der: &[u8]) -> Option<Vec<String>> {
    let value = NameConstraints::from_der(der).ok()?;
    let lines = |what: &str, list: Option<Vec<GeneralSubtree>>| -> Vec<String> {
        let line = |row: &GeneralSubtree| format!("{what} {}", general_name(&row.base));
        list.iter().flatten().map(line).collect()
    };
    let mut out = lines("permitted", value.permitted_subtrees);
    out.extend(lines("excluded", value.excluded_subtrees));
    Some(out)
}

fn issuing_point(der: &[u8]) -> Option<Vec<String>> {
    let value = IssuingDistributionPoint::from_der(der).ok()?;
    let mut out: Vec<String> = value.distribution_point.iter().flat_map(point_name).collect();
    for (is_set, text) in [
        (value.only_contains_user_certs, "only end entities"),
        (value.only_contains_ca_certs, "only CAs"),
        (value.indirect_crl, "indirect"),
        (value.only_contains_attribute_certs, "only attribute certificates"),
        (value.only_some_reasons.is_some(), "only some reasons"),
    ] {
        if is_set {
            out.push(text.to_owned());
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use der::asn1::OctetString;

    use super::*;
    use crate::templates::{Template, basic_constraints as constraints};

    fn words(oid: ObjectIdentifier, der: &[u8]) -> Vec<String> {
        let extn_value = OctetString::new(der).unwrap();
        extension(&Extension { extn_id: oid, critical: false, extn_value }).values
    }

    #[test]
    fn what_is_damaged_or_unknown_is_shown_as_it_is() {
        for (oid, _, _) in EXTENSIONS.iter().filter(|(oid, _, _)| *oid != OCSP_NO_CHECK) {
            assert_eq!(words(*oid, &[0xff, 1]), ["not well-formed: ff01"], "{oid}");
        }
        assert_eq!(words(ObjectIdentifier::new_unwrap("1.2.3.4"), &[5, 0]), ["0500"]);
    }

    #[test]
    fn values_in_the_spelling_that_people_know() {
        assert_eq!(
            words(id::ID_CE_BASIC_CONSTRAINTS, &[0x30, 6, 1, 1, 0xff, 2, 1, 2]),
            ["CA", "path length 2"]
        );
        assert_eq!(
            words(id::ID_CE_KEY_USAGE, &[3, 2, 1, 0x86]),
            ["digitalSignature", "keyCertSign", "cRLSign"]
        );
        let eku = [0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 1];
        assert_eq!(words(id::ID_CE_EXT_KEY_USAGE, &eku), ["serverAuth"]);
        assert_eq!(words(TLS_FEATURE, &[0x30, 3, 2, 1, 5]), ["status_request (must staple)"]);
        assert!(!constraints(Template::default_row().kind).ca);
    }

    proptest::proptest! {
        #[test]
        fn no_content_makes_it_panic(der: Vec<u8>) {
            for (oid, _, _) in EXTENSIONS {
                let _ = words(*oid, &der);
            }
        }
    }
}
