//! Attribute mappings: which parts of a certificate become tags of the session.
//!
//! Source: "Certificate attribute mapping" and "Trust policy" of the user guide.

use std::collections::BTreeMap;

use outlast_pki::certificate::Certificate;
use outlast_pki::general_name::GeneralName;
use serde::{Deserialize, Serialize};

use super::attribute::Selected;
use crate::limits;

/// The parts of a certificate that can be mapped, by AWS's names.
pub const FIELDS: &[&str] = &[ISSUER, SAN, SUBJECT];

const ISSUER: &str = "x509Issuer";
const SAN: &str = "x509SAN";
const SUBJECT: &str = "x509Subject";

/// The rules for one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// One of [`FIELDS`].
    pub field: String,
    /// Specifiers.
    pub rules: Vec<String>,
}

/// The rules of a new profile.
pub(super) fn defaults() -> Vec<Mapping> {
    let rules = |field: &str, rules: &[&str]| Mapping {
        field: field.to_owned(),
        rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
    };
    vec![rules(ISSUER, &["*"]), rules(SAN, &["DNS", "URI", "Name/*"]), rules(SUBJECT, &["*"])]
}

/// A specifier as it is kept and shown; `None` if the field has no such specifier.
pub(super) fn canonical(field: &str, specifier: &str) -> Option<String> {
    if field != SAN {
        return Selected::parse(specifier).map(|_| specifier.to_owned());
    }
    match specifier {
        "DNS" | "URI" => Some(specifier.to_owned()),
        // "Both Name and Name/ are equivalent to Name/* and will be displayed as Name/*."
        "Name" | "Name/" => Some("Name/*".to_owned()),
        other => Selected::parse(other.strip_prefix("Name/")?).map(|_| other.to_owned()),
    }
}

/// The tags of a session that this certificate begins. "The service ignores values that do not match this pattern", which is
/// that of session tags.
pub(super) fn tags(mappings: &[Mapping], certificate: &Certificate) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::new();
    let names = certificate.general_names();
    for mapping in mappings {
        for rule in &mapping.rules {
            let found = match mapping.field.as_str() {
                ISSUER => selected(rule, certificate.issuer()),
                SUBJECT => selected(rule, certificate.subject()),
                _ => alternative(rule, &names),
            };
            for (name, value) in found {
                if is_tag_value(&value) {
                    tags.insert(format!("{}/{name}", mapping.field), value);
                }
            }
        }
    }
    tags
}

fn selected(rule: &str, name: &outlast_pki::name::Name) -> Vec<(String, String)> {
    Selected::parse(rule).map(|selected| selected.values(name)).unwrap_or_default()
}

/// What a rule selects of the first alternative name of its type.
fn alternative(rule: &str, names: &[GeneralName]) -> Vec<(String, String)> {
    let first = names.iter().find_map(|name| match (rule, name) {
        ("DNS", GeneralName::DnsName(text))
        | ("URI", GeneralName::UniformResourceIdentifier(text)) => {
            Some(vec![(rule.to_owned(), text.clone())])
        }
        (rule, GeneralName::DirectoryName(name)) => {
            let found = selected(rule.strip_prefix("Name/")?, name).into_iter();
            Some(found.map(|(name, value)| (format!("Name/{name}"), value)).collect())
        }
        _ => None,
    });
    first.unwrap_or_default()
}

/// Whether it can be the value of a session tag: `[\p{L}\p{Z}\p{N}_.:/=+\-@]*`, 256 characters at most.
pub(super) fn is_tag_value(text: &str) -> bool {
    text.chars().count() <= limits::MAX_TAG_VALUE && text.chars().all(is_tag_character)
}

/// Whether session tags and source identities may have it.
pub(super) fn is_tag_character(c: char) -> bool {
    c.is_alphanumeric() || (c.is_whitespace() && !c.is_control()) || "_.:/=+-@".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifiers_have_one_form() {
        for (field, given, kept) in [
            (SAN, "Name", Some("Name/*")),
            (SAN, "Name/", Some("Name/*")),
            (SAN, "Name/CN", Some("Name/CN")),
            (SAN, "Name/2.5.4.3", Some("Name/2.5.4.3")),
            (SAN, "DNS", Some("DNS")),
            (SAN, "dns", None),
            (SAN, "*", None),
            (SAN, "IP", None),
            (SUBJECT, "*", Some("*")),
            (SUBJECT, "CN", Some("CN")),
            (SUBJECT, "Name/CN", None),
            (ISSUER, "", None),
        ] {
            assert_eq!(canonical(field, given).as_deref(), kept, "{field} {given}");
        }
    }

    #[test]
    fn tags_take_letters_numbers_and_a_few_signs() {
        for good in
            ["", "Alice", "spiffe://example.com/workload/alice", "Zürich 1", "a=b@c+d-e_f.g"]
        {
            assert!(is_tag_value(good), "{good}");
        }
        for bad in ["a,b", "a*", "${x}", "a\n", "\"", &"x".repeat(257)] {
            assert!(!is_tag_value(bad), "{bad}");
        }
    }
}
