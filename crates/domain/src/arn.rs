//! Amazon resource names, accounts and regions.

use std::fmt;

/// An account in a region: where a resource lives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Twelve digits.
    pub account: String,
    /// A region name such as `eu-central-1`.
    pub region: String,
}

impl Scope {
    /// The ARN of a resource of `service` here.
    pub fn arn(&self, service: &str, resource: &str) -> String {
        format!("arn:aws:{service}:{}:{}:{resource}", self.region, self.account)
    }
}

/// The parts of an ARN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arn<'a> {
    /// Service, as in `kms`.
    pub service: &'a str,
    /// Region; empty for global resources.
    pub region: &'a str,
    /// Account; empty for resources of AWS itself.
    pub account: &'a str,
    /// All that follows.
    pub resource: &'a str,
}

impl<'a> Arn<'a> {
    /// Splits `arn:aws:service:region:account:resource`.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(6, ':');
        if parts.next() != Some("arn") || !parts.next()?.starts_with("aws") {
            return None;
        }
        Some(Self {
            service: parts.next()?,
            region: parts.next()?,
            account: parts.next()?,
            resource: parts.next()?,
        })
    }

    /// Whether it names something in `scope`.
    pub fn is_in(&self, scope: &Scope) -> bool {
        self.region == scope.region && self.account == scope.account
    }
}

impl fmt::Display for Arn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arn:aws:{}:{}:{}:{}", self.service, self.region, self.account, self.resource)
    }
}

/// Whether `text` is an account id: twelve digits.
pub fn is_account_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether `text` looks like a region: lower-case letters and digits in groups, at most 32 characters.
pub fn is_region(text: &str) -> bool {
    (3..=32).contains(&text.len())
        && text.split('-').all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_split_and_join() {
        let scope = Scope { account: "123456789012".into(), region: "eu-west-1".into() };
        let text = scope.arn("kms", "key/1:2");
        let arn = Arn::parse(&text).unwrap();
        assert_eq!(arn.resource, "key/1:2");
        assert!(arn.is_in(&scope));
        assert_eq!(arn.to_string(), text);
        for wrong in ["", "arn", "arn:aws:kms:eu-west-1", "urn:aws:kms:r:a:x"] {
            assert_eq!(Arn::parse(wrong), None);
        }
    }

    #[test]
    fn regions_and_accounts() {
        assert!(is_region("us-east-1") && is_region("us-iso-east-1") && is_region("local"));
        assert!(!is_region("US") && !is_region("a--b") && !is_region("../x") && !is_region(""));
        assert!(is_account_id("123456789012") && !is_account_id("12345678901x"));
    }
}
