//! AWS's managed policies that a profile can name, by their ARNs, with what they say about the services here.
//!
//! Source: "AWS managed policy reference guide". What they say about other services is left out: it would allow nothing here.

use std::sync::Arc;

use super::access::PolicyCache;
use crate::Fault;
use crate::policy::{Kind, Policy};

/// A policy with a name.
#[derive(Debug)]
pub struct ManagedPolicy {
    /// AWS's name.
    pub name: &'static str,
    /// The document.
    pub text: &'static str,
}

macro_rules! policy {
    ($($statement:literal),+) => {
        concat!(r#"{"Version":"2012-10-17","Statement":["#, policy!(@ $($statement),+), "]}")
    };
    (@ $only:literal) => { $only };
    (@ $first:literal, $($rest:literal),+) => { concat!($first, ",", policy!(@ $($rest),+)) };
}

/// All of them.
pub static MANAGED_POLICIES: &[ManagedPolicy] = &[
    ManagedPolicy {
        name: "AdministratorAccess",
        text: policy!(r#"{"Effect":"Allow","Action":"*","Resource":"*"}"#),
    },
    ManagedPolicy {
        name: "AWSCertificateManagerFullAccess",
        text: policy!(r#"{"Effect":"Allow","Action":"acm:*","Resource":"*"}"#),
    },
    ManagedPolicy {
        name: "AWSCertificateManagerReadOnly",
        text: policy!(
            r#"{"Effect":"Allow","Action":["acm:DescribeCertificate","acm:ListCertificates","acm:GetCertificate","acm:ListTagsForCertificate","acm:GetAccountConfiguration"],"Resource":"*"}"#
        ),
    },
    ManagedPolicy {
        name: "AWSKeyManagementServicePowerUser",
        text: policy!(
            r#"{"Effect":"Allow","Action":["kms:CreateAlias","kms:CreateKey","kms:DeleteAlias","kms:Describe*","kms:GenerateRandom","kms:Get*","kms:List*","kms:TagResource","kms:UntagResource"],"Resource":"*"}"#
        ),
    },
    ManagedPolicy {
        name: "AWSPrivateCAFullAccess",
        text: policy!(r#"{"Effect":"Allow","Action":"acm-pca:*","Resource":"*"}"#),
    },
    ManagedPolicy {
        name: "AWSPrivateCAReadOnly",
        text: policy!(
            r#"{"Effect":"Allow","Action":["acm-pca:DescribeCertificateAuthority","acm-pca:DescribeCertificateAuthorityAuditReport","acm-pca:ListCertificateAuthorities","acm-pca:GetCertificateAuthorityCsr","acm-pca:GetCertificateAuthorityCertificate","acm-pca:GetCertificate","acm-pca:GetPolicy","acm-pca:ListPermissions","acm-pca:ListTags"],"Resource":"*"}"#
        ),
    },
    ManagedPolicy {
        name: "SecretsManagerReadWrite",
        text: policy!(r#"{"Effect":"Allow","Action":"secretsmanager:*","Resource":"*"}"#),
    },
];

/// The name of the policy with this ARN, if it is one of these.
pub(crate) fn by_arn(text: &str) -> Option<&'static ManagedPolicy> {
    // The owner of these policies is not an account but `aws`.
    let name = text.strip_prefix("arn:").and_then(|rest| {
        let (partition, name) = rest.split_once(":iam::aws:policy/")?;
        crate::partition::Partition::by_id(partition).map(|_| name)
    });
    by_name(name?)
}

/// The one with this name.
pub(crate) fn by_name(name: &str) -> Option<&'static ManagedPolicy> {
    MANAGED_POLICIES.iter().find(|policy| policy.name == name)
}

/// Parsed.
pub(crate) fn parsed(cache: &PolicyCache, name: &str) -> Result<Arc<Policy>, Fault> {
    let found = by_name(name).ok_or_else(|| Fault::Damaged(format!("managed policy {name}")))?;
    cache.parse(Kind::Identity, found.text, found.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_one() {
        for policy in MANAGED_POLICIES {
            assert!(Policy::parse(policy.text, Kind::Identity).is_ok(), "{}", policy.name);
            let found = by_arn(&format!("arn:aws:iam::aws:policy/{}", policy.name));
            assert_eq!(found.map(|found| found.name), Some(policy.name));
        }
        for wrong in [
            "",
            "AdministratorAccess",
            "arn:aws:iam::123456789012:policy/AdministratorAccess",
            "arn:aws-x:iam::aws:policy/AdministratorAccess",
            "arn:aws:iam::aws:policy/administratoraccess",
        ] {
            assert!(by_arn(wrong).is_none(), "{wrong}");
        }
    }
}
