//! One decision from a resource's policy and the caller's policies.
//!
//! Sources: "Policy evaluation logic" of the IAM User Guide; "Key policies in AWS KMS" and "Allowing users
//! in other accounts to use a KMS key" of the KMS Developer Guide.

use super::{Grant, Kind, Policy, Question, Steps, Stopped};

/// Whether a request is allowed, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed.
    Allow,
    /// A `Deny` applies: "with an explicit deny in {source}".
    ExplicitDeny {
        /// `a key policy`, `a role trust policy` or `an identity-based policy`.
        source: &'static str,
    },
    /// An `Allow` is missing: "because {reason} allows the {action} action".
    ImplicitDeny {
        /// `no key policy`, `no role trust policy`, `no resource-based policy` (there is none, and the
        /// caller is of another account) or `no identity-based policy`.
        reason: &'static str,
    },
    /// A policy was not evaluated to its end, and might have denied: "because {source} could not be evaluated:
    /// {why}".
    Undecided {
        /// As in an explicit deny.
        source: &'static str,
        /// What stopped the evaluation.
        why: Stopped,
    },
}

/// Decides. `granted` says that a KMS grant allows the request; `identity` are the policies of the caller.
///
/// - A `Deny` anywhere wins, also over a grant. Then a grant allows.
/// - In the resource's own account, an `Allow` of its policy for the caller suffices; one for the caller's
///   account needs an `Allow` of an identity policy, too. A resource without a policy leaves it to those.
/// - A key's policy and a role's decide alone; a certificate authority's only adds to what identity policies of
///   its own account say.
/// - From another account, both must allow.
///
/// The root user of an account has no identity policies: where one is needed, the root user may do everything.
///
/// All documents together may take [`crate::limits::MAX_POLICY_STEPS`]. If they need more the request is denied,
/// whatever the others say.
pub fn decide(
    resource_policy: Option<&Policy>,
    resource_account: &str,
    identity: &[impl std::borrow::Borrow<Policy>],
    granted: bool,
    question: &Question<'_>,
) -> Decision {
    let steps = Steps::default();
    let resource = resource_policy.map(|policy| policy.evaluate_within(&steps, question));
    let source = match resource_policy.map(Policy::kind) {
        Some(Kind::Key) => "a key policy",
        Some(Kind::Trust) => "a role trust policy",
        _ => "a resource-based policy",
    };
    match resource {
        Some(Grant::Deny) => return Decision::ExplicitDeny { source },
        Some(Grant::Stopped(why)) => return Decision::Undecided { source, why },
        _ => {}
    }
    let mut identity_allows = question.caller.is_root;
    let source = "an identity-based policy";
    for policy in identity {
        match policy.borrow().evaluate_within(&steps, question) {
            Grant::Deny => return Decision::ExplicitDeny { source },
            Grant::Stopped(why) => return Decision::Undecided { source, why },
            Grant::Allow { .. } => identity_allows = true,
            Grant::None => {}
        }
    }
    if granted {
        return Decision::Allow;
    }
    let same_account = question.caller.account == resource_account;
    let adds = resource_policy
        .is_some_and(|policy| matches!(policy.kind(), Kind::Authority | Kind::Secret));
    // If a policy that only adds does not apply, it counts as absent.
    let resource = resource.filter(|grant| !(adds && same_account && *grant == Grant::None));
    match resource {
        Some(Grant::Allow { delegated: false }) if same_account => Decision::Allow,
        Some(Grant::Allow { .. }) if identity_allows => Decision::Allow,
        None if same_account && identity_allows => Decision::Allow,
        Some(Grant::Allow { .. }) => NO_IDENTITY_POLICY,
        None if same_account => NO_IDENTITY_POLICY,
        _ => {
            let reason = match resource_policy.map(Policy::kind) {
                Some(Kind::Key) => "no key policy",
                Some(Kind::Trust) => "no role trust policy",
                _ => "no resource-based policy",
            };
            Decision::ImplicitDeny { reason }
        }
    }
}

const NO_IDENTITY_POLICY: Decision = Decision::ImplicitDeny { reason: "no identity-based policy" };
