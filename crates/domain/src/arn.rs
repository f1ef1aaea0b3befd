//! Amazon resource names, accounts and Regions.
//!
//! An ARN has one spelling: [`Arn::parse`] accepts what this service would write and nothing else, except that it
//! ignores the partition of an ARN without a Region (`docs/decisions/0022-partitions.md`).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::partition::{AWS, PARTITIONS, Partition};

/// Bytes of an ARN at most.
const MAX_LEN: usize = 2048;

/// An account and a Region: where a resource lives.
///
/// ```
/// use outlast_domain::arn::Scope;
///
/// let scope = Scope { account: "123456789012".into(), region: "eu-central-1".into() };
/// assert_eq!(scope.arn("kms", "key/1"), "arn:aws:kms:eu-central-1:123456789012:key/1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Twelve digits.
    pub account: String,
    /// A region name such as `eu-central-1`.
    pub region: String,
}

impl Scope {
    /// The ARN of a resource of `service` in this account and Region, with the Region's partition.
    pub fn arn(&self, service: &str, resource: &str) -> String {
        let partition = Partition::of(&self.region).id;
        format!("arn:{partition}:{service}:{}:{}:{resource}", self.region, self.account)
    }
}

/// A parsed ARN.
///
/// ```
/// use outlast_domain::arn::Arn;
///
/// let arn = Arn::parse("arn:aws:kms:eu-central-1:123456789012:key/1").unwrap();
/// assert_eq!((arn.account(), arn.resource()), ("123456789012", "key/1"));
/// assert!(Arn::parse("arn:aws-cn:kms:eu-central-1:123456789012:key/1").is_none()); // not China's
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Arn {
    partition: &'static Partition,
    service: String,
    region: String,
    account: String,
    resource: String,
}

impl Arn {
    /// Reads `arn:partition:service:region:account:resource`. A Region must be in the partition; without a Region any
    /// partition is accepted, and counts as `aws`.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut parts = text.splitn(6, ':');
        if parts.next() != Some("arn") {
            return None;
        }
        let partition = Partition::by_id(parts.next()?)?;
        let (service, region) = (parts.next()?, parts.next()?);
        let (account, resource) = (parts.next()?, parts.next()?);
        let is_service =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let partition = match region {
            "" => AWS,
            // IAM and STS have no Regions in their ARNs.
            _ if GLOBAL.contains(&service) => return None,
            _ if is_region(region) && Partition::of(region) == partition => partition,
            _ => return None,
        };
        let good = !service.is_empty()
            && service.bytes().all(is_service)
            && (account.is_empty() || is_account_id(account))
            && !resource.is_empty();
        good.then(|| Self {
            partition,
            service: service.to_owned(),
            region: region.to_owned(),
            account: account.to_owned(),
            resource: resource.to_owned(),
        })
    }

    /// Reads the ARN of an account, user, role or session: `root`, `user/NAME`, `role/NAME`,
    /// `assumed-role/ROLE/SESSION` or `federated-user/NAME`.
    pub fn principal(text: &str) -> Option<Self> {
        let arn = Self::parse(text).filter(|arn| !arn.account.is_empty())?;
        let parts: Vec<_> = arn.resource.split('/').collect();
        let good = !parts.contains(&"")
            && matches!(
                (arn.service.as_str(), &parts[..]),
                ("iam", ["root"] | ["user" | "role", _, ..])
                    | ("sts", ["assumed-role", _, _] | ["federated-user", _])
            );
        good.then_some(arn)
    }

    /// Service, such as `kms`.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Region; empty for resources without one.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Account; empty for resources of AWS itself.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The resource: everything after the account.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The rest of the resource after `prefix`, if the ARN is one of `service` and has the prefix.
    pub fn of(&self, service: &str, prefix: &str) -> Option<&str> {
        (self.service == service).then(|| self.resource.strip_prefix(prefix))?
    }

    /// Whether it names something in `scope`.
    pub fn is_in(&self, scope: &Scope) -> bool {
        self.region == scope.region && self.account == scope.account
    }
}

impl fmt::Display for Arn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, service, region, account, resource } = self;
        write!(f, "arn:{}:{service}:{region}:{account}:{resource}", partition.id)
    }
}

/// Services without Regions in their ARNs.
const GLOBAL: &[&str] = &["iam", "sts"];

/// The ARN of a principal: `root`, `user/NAME` or `role/NAME` of an account.
pub fn iam(account: &str, resource: &str) -> String {
    format!("arn:aws:iam::{account}:{resource}")
}

/// The account in an ARN that this service made.
pub(crate) fn account_of(arn: &str) -> Option<&str> {
    Arn::parse(arn)?;
    arn.split(':').nth(4)
}

/// The ARN of a session of a role.
pub fn assumed_role(account: &str, role: &str, session: &str) -> String {
    format!("arn:aws:sts::{account}:assumed-role/{role}/{session}")
}

/// An ARN of this service as a caller in `region` expects it: without a Region it is shown in the partition of the
/// caller's Region. For display only; decisions and records use the canonical ARN.
pub fn shown_in(region: &str, arn: &str) -> String {
    let partition = Partition::of(region);
    match split(arn) {
        Some((_, rest)) if partition != AWS && is_global(rest) => {
            format!("arn:{}:{rest}", partition.id)
        }
        _ => arn.to_owned(),
    }
}

/// For serde: the ARN of a record, updated by [`current`].
pub(crate) fn stored<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(current(&String::deserialize(from)?).into_owned())
}

/// The same for an ARN that may be absent.
pub(crate) fn stored_option<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<String>, D::Error> {
    let found = Option::<String>::deserialize(from)?;
    Ok(found.map(|arn| current(&arn).into_owned()))
}

/// Updates the ARN of a record. Stores that are older than partitions have `aws` for every Region.
pub(crate) fn current(stored: &str) -> Cow<'_, str> {
    if let Some((partition, rest)) = split(stored)
        && partition == AWS.id
        && let Some(partition) = region_of(rest).map(Partition::of)
        && partition != AWS
    {
        return Cow::Owned(format!("arn:{}:{rest}", partition.id));
    }
    Cow::Borrowed(stored)
}

/// The ARNs by which a policy may name `arn`. Without a Region the resource is the same in each partition; and
/// policies may be older than partitions, so `aws` stands for every one.
pub(crate) fn spellings(arn: &str) -> Vec<Cow<'_, str>> {
    let mut all = vec![Cow::Borrowed(arn)];
    let Some((own, rest)) = split(arn) else { return all };
    let others = PARTITIONS.iter().filter(|other| other.id != own);
    if is_global(rest) {
        all.extend(others.map(|other| Cow::Owned(format!("arn:{}:{rest}", other.id))));
    } else if own != AWS.id {
        all.push(Cow::Owned(format!("arn:{}:{rest}", AWS.id)));
    }
    all
}

/// The partition, and the rest.
fn split(arn: &str) -> Option<(&str, &str)> {
    arn.strip_prefix("arn:")?.split_once(':')
}

/// The Region in the rest after the partition.
fn region_of(rest: &str) -> Option<&str> {
    rest.split(':').nth(1)
}

fn is_global(rest: &str) -> bool {
    region_of(rest) == Some("")
}

/// Whether `text` is an account id: twelve digits.
pub fn is_account_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether `text` looks like a Region: lower-case letters and digits in groups, at most 32 characters.
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
        assert_eq!((arn.resource(), arn.of("kms", "key/")), ("key/1:2", Some("1:2")));
        assert_eq!(arn.of("acm", "key/"), None);
        assert!(arn.is_in(&scope));
        assert_eq!(arn.to_string(), text);
    }

    #[test]
    fn an_arn_has_one_spelling() {
        for wrong in [
            "",
            "arn",
            "arn:aws:kms:eu-west-1",
            "urn:aws:kms:eu-west-1:123456789012:x",
            "ARN:aws:kms:eu-west-1:123456789012:x",
            " arn:aws:kms:eu-west-1:123456789012:x",
            "arn:aws:kms:eu-west-1:123456789012:x ",
            "arn:aws:kms:eu-west-1:123456789012:x\0",
            "arn:aws:kms:eu-west-1:123456789012:",
            "arn:aws-x:kms:eu-west-1:123456789012:x",
            "arn::kms:eu-west-1:123456789012:x",
            "arn:AWS:kms:eu-west-1:123456789012:x",
            "arn:aws-cn:kms:eu-west-1:123456789012:x",
            "arn:aws:kms:cn-north-1:123456789012:x",
            "arn:aws:KMS:eu-west-1:123456789012:x",
            "arn:aws::eu-west-1:123456789012:x",
            "arn:aws:kms:EU-WEST-1:123456789012:x",
            "arn:aws:kms:eu west 1:123456789012:x",
            "arn:aws:kms:eu-west-1:1234567890123:x",
            "arn:aws:kms:eu-west-1:12345678901:x",
            "arn:aws:iam:zz:123456789012:role/x",
            "arn:aws:iam:eu-west-1:123456789012:role/x",
            "arn\u{ff1a}aws:kms:eu-west-1:123456789012:x",
        ] {
            assert_eq!(Arn::parse(wrong), None, "{wrong}");
        }
        for right in [
            "arn:aws-cn:kms:cn-north-1:123456789012:key/x",
            "arn:aws:acm-pca:::template/RootCACertificate/V1",
            "arn:aws:iam::123456789012:role/x",
        ] {
            assert_eq!(Arn::parse(right).unwrap().to_string(), right);
        }
        // Without a Region the partition has no meaning.
        let elsewhere = Arn::parse("arn:aws-cn:iam::123456789012:role/x").unwrap();
        assert_eq!(elsewhere.to_string(), "arn:aws:iam::123456789012:role/x");
    }

    #[test]
    fn principals_are_users_roles_sessions_and_accounts() {
        let of = |service: &str, resource: &str| {
            Arn::principal(&format!("arn:aws:{service}::123456789012:{resource}")).is_some()
        };
        for good in ["root", "user/a", "user/path/a", "role/a"] {
            assert!(of("iam", good), "{good}");
        }
        assert!(of("sts", "assumed-role/a/b") && of("sts", "federated-user/a"));
        for wrong in
            ["", "root/", "Root", "user", "user/", "user//a", "group/a", "assumed-role/a/b"]
        {
            assert!(!of("iam", wrong), "{wrong}");
        }
        assert!(!of("sts", "assumed-role/a") && !of("sts", "user/a") && !of("kms", "root"));
        assert_eq!(Arn::principal("arn:aws:iam:::root"), None);
    }

    #[test]
    fn what_has_no_region_is_the_same_in_every_partition() {
        let role = iam("123456789012", "role/x");
        assert_eq!(spellings(&role).len(), PARTITIONS.len());
        assert_eq!(shown_in("cn-north-1", &role), "arn:aws-cn:iam::123456789012:role/x");
        assert_eq!(shown_in("eu-west-1", &role), role);
        let key = "arn:aws-cn:kms:cn-north-1:123456789012:key/x";
        assert_eq!(spellings(key), [key, "arn:aws:kms:cn-north-1:123456789012:key/x"]);
        assert_eq!(spellings("arn:aws:kms:eu-west-1:1:x").len(), 1);
        assert_eq!(spellings("no arn").len(), 1);
        assert_eq!(
            shown_in("cn-north-1", "arn:aws:kms:eu-west-1:1:x"),
            "arn:aws:kms:eu-west-1:1:x"
        );
    }

    #[test]
    fn older_stores_have_one_partition_only() {
        let stored = "arn:aws:acm-pca:us-gov-west-1:123456789012:certificate-authority/x";
        assert_eq!(current(stored), stored.replacen("aws", "aws-us-gov", 1));
        for same in ["arn:aws:acm-pca:eu-west-1:1:x", "arn:aws:iam::1:role/x", "text"] {
            assert_eq!(current(same), same);
        }
    }

    #[test]
    fn regions_and_accounts() {
        assert!(is_region("us-east-1") && is_region("us-iso-east-1") && is_region("local"));
        assert!(!is_region("US") && !is_region("a--b") && !is_region("../x") && !is_region(""));
        assert!(is_account_id("123456789012") && !is_account_id("12345678901x"));
    }
}
