//! Authorization decisions by a caller's policies.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::action::{self, Action};
use super::principal::{Identity, Principal};
use super::unique::UniqueIds;
use crate::acme;
use crate::arn::Arn;
use crate::ca::{Authority, CaError, permission};
use crate::policy::{self, ConditionKeys, Decision, Kind, Policy, Question};
use crate::work::Work;
use crate::{Fault, limits};

/// Proof that one action on one resource was authorized: only this module makes one.
///
/// A function that carries out the action takes a permit for it and checks that it [opens](Permit::opens) the
/// resource at hand. A permit for another action does not compile:
///
/// ```compile_fail,E0308
/// # use outlast_domain::identity::{Permit, action};
/// fn sign(permit: &Permit<action::kms::Sign>) {}
/// fn misuse(permit: &Permit<action::kms::Verify>) {
///     sign(permit);
/// }
/// ```
///
/// nor does one whose action is not in the list that the function accepts:
///
/// ```compile_fail,E0277
/// # use outlast_domain::identity::{Permit, action};
/// fn decrypt(permit: &Permit<impl action::Decrypts>) {}
/// fn misuse(permit: &Permit<action::kms::Encrypt>) {
///     decrypt(permit);
/// }
/// ```
///
/// nor one that was made by hand, or copied:
///
/// ```compile_fail,E0451
/// # use outlast_domain::identity::{Permit, action};
/// let forged: Permit<action::kms::Sign> = Permit {
///     resource: "*".to_owned(),
///     by_grant: false,
///     holder: None,
///     action: std::marker::PhantomData,
/// };
/// ```
///
/// ```compile_fail,E0624
/// # use outlast_domain::identity::{Permit, action};
/// let forged = Permit::<action::kms::Sign>::new("*", false, None);
/// ```
///
/// ```compile_fail,E0599
/// # use outlast_domain::identity::{Permit, action};
/// fn keep(permit: &Permit<action::kms::Sign>) -> Permit<action::kms::Sign> {
///     Permit::clone(permit)
/// }
/// ```
///
/// nor an action of one's own:
///
/// ```compile_fail,E0603
/// # use outlast_domain::identity::action;
/// #[derive(Clone, Copy)]
/// struct Anything;
/// impl action::sealed::Sealed for Anything {}
/// ```
#[derive(Debug)]
pub struct Permit<A: Action> {
    resource: String,
    by_grant: bool,
    /// Unique id of the user or role that it was given to; `None` if it was given to a service.
    holder: Option<String>,
    action: PhantomData<A>,
}

impl<A: Action> Permit<A> {
    /// The only function that makes a permit: called below, where decisions are made.
    fn new(resource: &str, by_grant: bool, holder: Option<String>) -> Self {
        Self { resource: resource.to_owned(), by_grant, holder, action: PhantomData }
    }

    /// Checks that this is the permit for `resource`. If it is not, this program has a bug; the caller is not to
    /// blame.
    pub fn opens(&self, resource: &str) -> Result<(), Fault> {
        if self.resource == resource {
            return Ok(());
        }
        Err(Fault::Misused(A::NAME))
    }

    /// Checks that `A` on `resource`, which the operation implies, was permitted as well.
    pub fn required(permit: Option<&Self>, resource: &str) -> Result<(), Fault> {
        permit.ok_or(Fault::Misused(A::NAME))?.opens(resource)
    }

    /// Unique id of the user or role that it was given to; `None` if it was given to a service.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }

    /// Whether a grant allowed what policies did not.
    pub(crate) fn by_grant(&self) -> bool {
        self.by_grant
    }
}

/// A refusal, with everything that an operator needs to change it.
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
    /// The kind of policy that refused, or that allowed nothing.
    pub because: String,
    /// Whether a policy denies it explicitly.
    pub explicit: bool,
}

/// Parsed policies by their text: a request needs several, and they seldom change.
pub struct PolicyCache(Mutex<LruCache<(Kind, String, UniqueIds), Arc<Policy>>>);

impl Default for PolicyCache {
    fn default() -> Self {
        let capacity = NonZeroUsize::new(limits::MAX_CACHED_POLICIES).unwrap_or(NonZeroUsize::MIN);
        Self(Mutex::new(LruCache::new(capacity)))
    }
}

impl PolicyCache {
    /// The policy that was stored as `text`, in the record `record_key`.
    pub fn parse(&self, kind: Kind, text: &str, record_key: &str) -> Result<Arc<Policy>, Fault> {
        self.bound(kind, text, &UniqueIds::new(), record_key)
    }

    /// The same for a policy with principals, given the unique ids that were stored with it.
    pub fn bound(
        &self,
        kind: Kind,
        text: &str,
        ids: &UniqueIds,
        record_key: &str,
    ) -> Result<Arc<Policy>, Fault> {
        let key = (kind, text.to_owned(), ids.clone());
        if let Some(policy) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(policy.clone());
        }
        // It was valid when it was stored.
        let policy =
            Policy::parse_stored(text, kind).map_err(|_| Fault::Damaged(record_key.to_owned()))?;
        let policy = Arc::new(policy.bound(ids));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, policy.clone());
        Ok(policy)
    }
}

/// A caller with the policies that apply to it.
#[derive(Clone)]
pub struct Caller {
    /// The principal.
    pub principal: Principal,
    /// Tags of the user, or of the role and the session.
    pub tags: BTreeMap<String, String>,
    /// Source identity of the session, which sessions that it starts inherit.
    pub source_identity: Option<String>,
    /// Unique id of the user or role that began the chain of sessions, if a principal of this service did.
    pub started_by: Option<String>,
    /// Session tags that sessions that it starts inherit.
    pub transitive_tags: BTreeMap<String, String>,
    /// Policies of the user or role.
    pub(crate) policies: Vec<Arc<Policy>>,
    /// Session policies: they allow nothing and only restrict. With several, one must allow and none may deny.
    pub(crate) session: Vec<Arc<Policy>>,
}

impl Caller {
    /// A service-linked role of an account, which exists without being made.
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
            started_by: None,
            transitive_tags: BTreeMap::new(),
            policies: vec![policies.parse(Kind::Identity, policy, role)?],
            session: Vec::new(),
        })
    }

    /// Unique id of the user or role that began the chain of sessions, or of the caller itself.
    pub fn origin(&self) -> &str {
        self.started_by.as_deref().unwrap_or_else(|| self.principal.principal_id())
    }

    /// Whether any of its policies has a condition on this key, which is given in lower case.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.policies.iter().chain(&self.session).any(|policy| policy.asks_for(name))
    }

    /// Authorizes `action` on a resource in `account`, which may have a policy of its own. `granted` says that a
    /// grant allows what policies do not deny.
    pub(crate) fn decide<A: Action>(
        &self,
        resource_policy: Option<&Policy>,
        account: &str,
        granted: bool,
        keys: &ConditionKeys,
        _: A,
        resource: &str,
    ) -> Result<Permit<A>, Denied> {
        self.judge(resource_policy, account, granted, keys, A::NAME, resource)?;
        Ok(Permit::new(resource, granted, Some(self.principal.principal_id().to_owned())))
    }

    /// What [`Self::decide`] would decide, without a permit.
    pub(crate) fn judge(
        &self,
        resource_policy: Option<&Policy>,
        account: &str,
        granted: bool,
        keys: &ConditionKeys,
        action: &str,
        resource: &str,
    ) -> Result<(), Denied> {
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
        let denied =
            |because: String, explicit: bool| self.denied(action, resource, because, explicit);
        let decision = policy::decide(resource_policy, account, &self.policies, granted, &question);
        match decision {
            Decision::Allow => {}
            Decision::ExplicitDeny { source } => {
                return Err(denied(format!("with an explicit deny in {source}"), true));
            }
            Decision::ImplicitDeny { reason } => {
                return Err(denied(format!("because {reason} allows the {action} action"), false));
            }
            // It might have been a Deny: no grant overrides what cannot be evaluated.
            Decision::Undecided { source, why } => {
                let because = format!("because {source} could not be evaluated: {why}");
                return Err(denied(because, true));
            }
        }
        let mut allows = self.session.is_empty();
        for session in &self.session {
            match session.evaluate(&question) {
                policy::Grant::Allow { .. } => allows = true,
                policy::Grant::None => {}
                policy::Grant::Stopped(why) => {
                    let because = format!("because a session policy could not be evaluated: {why}");
                    return Err(denied(because, true));
                }
                policy::Grant::Deny => {
                    allows = false;
                    break;
                }
            }
        }
        if allows {
            return Ok(());
        }
        Err(denied(format!("because no session policy allows the {action} action"), true))
    }

    fn denied(&self, action: &str, resource: &str, because: String, explicit: bool) -> Denied {
        Denied {
            principal: self.principal.arn(),
            action: action.to_owned(),
            resource: resource.to_owned(),
            because,
            explicit,
        }
    }
}

/// Authorizes `action` on a resource that has no policy of its own.
pub fn authorize<A: Action>(
    caller: &Caller,
    keys: &ConditionKeys,
    action: A,
    resource: &str,
) -> Result<Permit<A>, Denied> {
    let arn = Arn::parse(resource);
    if arn.as_ref().is_some_and(has_policy) {
        let because = "because its own policy was not evaluated".to_owned();
        return Err(caller.denied(A::NAME, resource, because, false));
    }
    let account = arn.as_ref().map_or("", Arn::account);
    caller.decide(None, account, false, keys, action, resource)
}

/// Whether it is a key, an authority or a secret: [`crate::kms::authorize`], [`crate::ca::authorize`] and
/// [`crate::secrets::authorize`] evaluate the policies that those have.
fn has_policy(arn: &Arn) -> bool {
    let rows =
        [("kms", "key/"), ("acm-pca", "certificate-authority/"), ("secretsmanager", "secret:")];
    rows.iter().any(|(service, kind)| arn.of(service, kind).is_some_and(|id| id != "*"))
}

/// A service that asks a role's trust policy.
#[derive(Clone, Copy)]
pub(super) struct ServicePermits<'a> {
    pub(super) trust: &'a Policy,
    /// Name of the service.
    pub(super) service: &'a str,
    pub(super) keys: &'a ConditionKeys,
    /// ARN of the role.
    pub(super) role: &'a str,
}

impl ServicePermits<'_> {
    /// The permit for an action on the role, if the trust policy allows it to the service.
    pub(super) fn permit<A: Action>(self, _: A) -> Option<Permit<A>> {
        let caller = policy::Caller {
            account: "",
            arn: self.service,
            role_arn: None,
            is_root: false,
            user_id: "",
            user_name: "",
        };
        let question = Question { caller, action: A::NAME, resource: self.role, keys: self.keys };
        let allows = matches!(self.trust.evaluate(&question), policy::Grant::Allow { .. });
        allows.then(|| Permit::new(self.role, false, None))
    }
}

/// Authorizes a service to act on an authority for `account` without a caller: the authority must have permitted it.
pub(crate) fn by_permission<A: Action>(
    work: &mut Work<'_>,
    authority: &Authority,
    service: &str,
    account: &str,
    _: A,
) -> Result<Option<Permit<A>>, CaError> {
    let holds = permission::holds(work, authority, service, account, A::OPERATION)?;
    Ok(holds.then(|| Permit::new(&authority.arn(), false, None)))
}

/// Authorizes the revocation of a certificate by the holder of the key `signer` (a DER `SubjectPublicKeyInfo`), who
/// has signed the request: it must be the certificate's own key (RFC 8555, section 7.6).
pub(crate) fn by_certificate_key(
    certificate: &acme::Certificate,
    signer: &[u8],
) -> Result<Option<Permit<action::acm::RevokeCertificate>>, Fault> {
    let is_own = certificate.public_key()? == signer;
    Ok(is_own.then(|| Permit::new(certificate.arn(), false, None)))
}

/// Authorizes Certificate Manager to have a certificate of ACME revoked at its authority, on behalf of a principal
/// who may revoke it: the authority must have issued it.
pub(crate) fn at_issuing_authority(
    permit: &Permit<action::acm::RevokeCertificate>,
    certificate: &acme::Certificate,
    authority: &Authority,
) -> Result<Permit<action::acm_pca::RevokeCertificate>, Fault> {
    permit.opens(certificate.arn())?;
    if certificate.authority() != authority.arn() {
        return Err(Fault::Misused(action::acm_pca::RevokeCertificate::NAME));
    }
    Ok(Permit::new(&authority.arn(), false, None))
}
