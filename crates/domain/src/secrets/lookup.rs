//! Finding a secret by name, ARN or partial ARN.

use super::SecretError;
use super::secret::{Secret, load};
use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::work::Work;

/// What a `SecretId` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Account and Region.
    pub scope: Scope,
    /// Name, or name with suffix: the part of an ARN after `secret:`.
    pub resource: String,
    /// Whether it was an ARN.
    pub by_arn: bool,
}

impl Named {
    /// Reads a `SecretId`. An ARN may name another account's secret, and must be one of this Region.
    pub fn parse(scope: &Scope, id: &str) -> Result<Self, SecretError> {
        if !id.starts_with("arn:") {
            if !is_name(id) {
                return Err(SecretError::Validation(INVALID_NAME.into()));
            }
            return Ok(Self { scope: scope.clone(), resource: id.to_owned(), by_arn: false });
        }
        let invalid =
            || SecretError::Validation("Invalid ARN: it is not the ARN of a secret.".into());
        let arn = Arn::parse(id).filter(|arn| !arn.account().is_empty()).ok_or_else(invalid)?;
        let resource = arn.of("secretsmanager", "secret:").ok_or_else(invalid)?;
        if !is_name(resource) {
            return Err(invalid());
        }
        if arn.region() != scope.region {
            return Err(SecretError::not_found());
        }
        let named = Scope { account: arn.account().to_owned(), region: arn.region().to_owned() };
        Ok(Self { scope: named, resource: resource.to_owned(), by_arn: true })
    }

    /// The ARN of what is named, without a suffix if none was given.
    pub fn arn(&self) -> String {
        self.scope.arn("secretsmanager", &format!("secret:{}", self.resource))
    }
}

/// Whether a name has AWS's characters and length.
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+=.@-!".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// Finds a secret. A full ARN must have its suffix; a partial one, without the suffix, is accepted as AWS does. Where
/// a partial ARN could also be a full one, the full one counts.
pub fn find(work: &mut Work<'_>, named: &Named) -> Result<Option<Secret>, Fault> {
    if named.by_arn
        && let Some((name, suffix)) = split_suffix(&named.resource)
        && let Some(found) = load(work, &named.scope, name)?
        && found.record.suffix == suffix
    {
        return Ok(Some(found));
    }
    load(work, &named.scope, &named.resource)
}

/// Name and suffix of `NAME-XXXXXX`.
fn split_suffix(resource: &str) -> Option<(&str, &str)> {
    let (name, suffix) = resource.rsplit_once('-')?;
    let is_suffix = suffix.len() == 6 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_suffix && !name.is_empty()).then_some((name, suffix))
}

/// AWS's text for a name with other characters.
pub(super) const INVALID_NAME: &str = "Invalid name. Must be a valid name containing alphanumeric characters, or any of \
                                       the following: -/_+=.@!";

/// Characters of a name, and of a name with suffix (API reference, CreateSecret: "The name ... 1 to 512").
const MAX_NAME: usize = 519;

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope { account: "123456789012".into(), region: "eu-west-1".into() }
    }

    #[test]
    fn ids_are_names_and_arns_of_this_region() {
        let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:a/b-abcdef";
        let named = Named::parse(&scope(), arn).unwrap();
        assert_eq!((named.resource.as_str(), named.by_arn), ("a/b-abcdef", true));
        assert_eq!(named.arn(), arn);
        for (id, is_missing) in [
            ("arn:aws:secretsmanager:eu-west-2:123456789012:secret:a", true),
            ("arn:aws:secretsmanager:eu-west-1:123456789012:secret:", false),
            ("arn:aws:secretsmanager:eu-west-1::secret:a", false),
            ("arn:aws:kms:eu-west-1:123456789012:secret:a", false),
            ("arn:aws:secretsmanager:eu-west-1:123456789012:secret:a:b", false),
            ("a b", false),
            ("a\u{e9}", false),
            ("", false),
        ] {
            let error = Named::parse(&scope(), id).unwrap_err();
            assert_eq!(matches!(error, SecretError::NotFound(_)), is_missing, "{id}");
        }
    }

    #[test]
    fn a_suffix_is_six_letters_or_digits() {
        assert_eq!(split_suffix("a-b-Ab12Cd"), Some(("a-b", "Ab12Cd")));
        for resource in ["a", "a-abcde", "a-abcdefg", "-abcdef", "a-abc_ef"] {
            assert_eq!(split_suffix(resource), None, "{resource}");
        }
    }
}
