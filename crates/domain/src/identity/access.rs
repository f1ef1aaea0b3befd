//! Decisions: what a caller's policies say.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::principal::{Identity, Principal};
use crate::arn::Arn;
use crate::policy::{self, ConditionKeys, Decision, Kind, Policy, Question};
use crate::{Fault, limits};

/// Proof that a principal may do one action on one resource. Only this crate makes it.
#[derive(Debug)]
pub struct Allowed {
    /// Whether it was a grant that allowed what policies did not.
    pub(crate) by_grant: bool,
}

impl Allowed {
    /// A service has been given permission to do it by itself; [`crate::ca::permission`] has looked.
    pub(crate) fn by_permission() -> Self {
        Self { by_grant: false }
    }
}

/// The refusal, with what an operator needs to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "User: {principal} is not authorized to perform: {action} on resource: {resource} {because}"
)]
pub struct Denied {
    /// ARN of the caller.
    pub principal: String,
    /// Action such as `kms:Sign`.
    pub action: String,
    /// ARN of the resource.
    pub resource: String,
    /// Which kind of policy refused, or allowed nothing.
    pub because: String,
    /// Whether a policy says so, and not only that none says otherwise.
    pub explicit: bool,
}

/// Parsed policies by their text: a request reads several, and they seldom change.
pub struct PolicyCache(Mutex<LruCache<(Kind, String), Arc<Policy>>>);

impl Default for PolicyCache {
    fn default() -> Self {
        let capacity = NonZeroUsize::new(limits::MAX_CACHED_POLICIES).unwrap_or(NonZeroUsize::MIN);
        Self(Mutex::new(LruCache::new(capacity)))
    }
}

impl PolicyCache {
    /// The policy that was stored as `text`, in the record `place`.
    pub fn parse(&self, kind: Kind, text: &str, place: &str) -> Result<Arc<Policy>, Fault> {
        let key = (kind, text.to_owned());
        if let Some(policy) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(policy.clone());
        }
        // It was valid when it was stored.
        let policy = Policy::parse(text, kind).map_err(|_| Fault::Damaged(place.to_owned()))?;
        let policy = Arc::new(policy);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, policy.clone());
        Ok(policy)
    }
}

/// A caller with the policies that say what it may do.
#[derive(Clone)]
pub struct Caller {
    /// Who it is.
    pub principal: Principal,
    /// Tags of the user, or of the role and the session.
    pub tags: BTreeMap<String, String>,
    /// Source identity of the session, which those that it begins keep.
    pub source_identity: Option<String>,
    /// Session tags that the sessions that it begins keep.
    pub transitive_tags: BTreeMap<String, String>,
    /// Policies of the user or role.
    pub(crate) policies: Vec<Arc<Policy>>,
    /// Policy that was given with the session: it allows nothing, it only takes away.
    pub(crate) session: Option<Arc<Policy>>,
}

impl Caller {
    /// A role that a service has in an account to act for it, which is there without being made.
    pub(crate) fn service_linked_role(
        account: &str,
        role: &str,
        policy: &str,
        policies: &PolicyCache,
    ) -> Result<Self, Fault> {
        let identity = Identity::Session {
            role: role.to_owned(),
            role_id: String::new(),
            session: "service".into(),
            issued_ms: 0,
        };
        let (account, access_key_id) = (account.to_owned(), String::new());
        Ok(Self {
            principal: Principal { account, access_key_id, identity },
            tags: BTreeMap::new(),
            source_identity: None,
            transitive_tags: BTreeMap::new(),
            policies: vec![policies.parse(Kind::Identity, policy, role)?],
            session: None,
        })
    }

    /// Whether any of its policies has a condition on this key, given in lower case.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.policies.iter().chain(&self.session).any(|policy| policy.asks_for(name))
    }

    /// Asks `question` of a resource with (or without) a policy of its own, in `account`.
    pub(crate) fn decide(
        &self,
        resource_policy: Option<&Policy>,
        account: &str,
        granted: bool,
        keys: &ConditionKeys,
        action: &str,
        resource: &str,
    ) -> Result<Allowed, Denied> {
        let (arn, role_arn, user_id) =
            (self.principal.arn(), self.principal.role_arn(), self.principal.unique_id());
        let question = Question {
            caller: policy::Caller {
                account: &self.principal.account,
                arn: &arn,
                role_arn: role_arn.as_deref(),
                is_root: false,
                user_id: &user_id,
                user_name: self.principal.user_name(),
            },
            action,
            resource,
            keys,
        };
        let denied = |because: String, explicit: bool| Denied {
            principal: arn.clone(),
            action: action.to_owned(),
            resource: resource.to_owned(),
            because,
            explicit,
        };
        let decision = policy::decide(resource_policy, account, &self.policies, granted, &question);
        match decision {
            Decision::Allow => {}
            Decision::ExplicitDeny { source } => {
                return Err(denied(format!("with an explicit deny in {source}"), true));
            }
            Decision::ImplicitDeny { reason } => {
                return Err(denied(format!("because {reason} allows the {action} action"), false));
            }
        }
        if let Some(session) = &self.session
            && !matches!(session.evaluate(&question), policy::Grant::Allow { .. })
        {
            return Err(denied(
                format!("because no session policy allows the {action} action"),
                true,
            ));
        }
        Ok(Allowed { by_grant: granted })
    }
}

/// Decides whether the caller may do `action` on a resource that has no policy of its own.
pub fn authorize(
    caller: &Caller,
    keys: &ConditionKeys,
    action: &str,
    resource: &str,
) -> Result<Allowed, Denied> {
    let account = Arn::parse(resource).map_or("", |arn| arn.account);
    caller.decide(None, account, false, keys, action, resource)
}
