//! Changing the rule of a key. The first rule needs no approval; each later change needs those of the rule in force, because a
//! rule that a caller whom it binds can take away binds nobody.

use std::collections::BTreeSet;

use outlast_crypto::keys::KeyUsage;
use outlast_pki::public_key::Kind;

use super::request::{Request, State, Subject, approval_arn, create, find_by, judge};
use super::rule::{Approver, Rule, change_id};
use crate::arn::Arn;
use crate::identity::unique::{Unresolved, resolve_one};
use crate::identity::{Caller, Permit, action};
use crate::kms::record::{Key, Origin};
use crate::kms::{KmsError, region};
use crate::limits;
use crate::work::Work;

/// A rule, as somebody wants it.
#[derive(Debug, Clone)]
pub struct NewRule {
    /// Number of approvers that a request needs.
    pub required: i64,
    /// The approvers.
    pub approvers: Vec<NewApprover>,
    /// How long a request can be approved and used, in minutes; `None` for a day.
    pub valid_minutes: Option<i64>,
    /// Whether the approval of the principal who made the request counts.
    pub requester_may_approve: bool,
}

/// An approver, as somebody wants it.
#[derive(Debug, Clone)]
pub struct NewApprover {
    /// ARN of a user or role of the key's account.
    pub principal: String,
    /// DER `SubjectPublicKeyInfo` of the key that must have signed the approvals.
    pub public_key: Option<Vec<u8>>,
}

/// What became of a change.
#[derive(Debug)]
pub enum Changed {
    /// It is made.
    Applied,
    /// It waits for approvals.
    Asked(Box<Request>),
}

/// Sets the rule of a key, or removes it. A rule that there is already has to approve it: the first call makes a request, and the
/// same call again makes the change once the request is approved.
pub fn change_rule(
    work: &mut Work<'_>,
    key: Key,
    caller: &Caller,
    new: Option<NewRule>,
    reason: String,
    permit: &Permit<impl action::ChangesApprovalRule>,
    of_key: &Permit<action::kms::PutKeyPolicy>,
) -> Result<Changed, KmsError> {
    permit.opens(&approval_arn(&key))?;
    of_key.opens(&key.arn())?;
    check_key(&key)?;
    let new = new.map(|new| check(work, &key, new)).transpose()?;
    let Some(present) = key.approval_rule() else {
        if new.is_none() {
            let text = format!("{} has no rule of approvals.", key.arn());
            return Err(KmsError::NotFound(text));
        }
        return apply(work, key, new);
    };
    if new.as_ref() == Some(present) {
        return Ok(Changed::Applied);
    }
    let id = change_id(new.as_ref());
    let known = find_by(work, &key, caller.principal.principal_id(), &id)?;
    if let Some(mut known) = known {
        match judge(work, key.scope(), &known)?.state {
            State::Pending => return Ok(Changed::Asked(Box::new(known))),
            State::Approved => {
                let done_ms = Some(work.now_ms());
                known.subject = Subject::Rule { rule: new.clone(), done_ms };
                known.save(work, key.scope())?;
                return apply(work, key, new);
            }
            State::Denied | State::Expired | State::Finished => {}
        }
    }
    let subject = Subject::Rule { rule: new, done_ms: None };
    let made = create(work, &[&key], caller, subject, reason)?;
    Ok(Changed::Asked(Box::new(made)))
}

fn apply(work: &mut Work<'_>, mut key: Key, rule: Option<Rule>) -> Result<Changed, KmsError> {
    key.record.approval_rule = rule;
    key.save(work)?;
    region::spread_approval_rule(work, &key)?;
    Ok(Changed::Applied)
}

/// Only a key whose signatures nobody else can make can have a rule.
fn check_key(key: &Key) -> Result<(), KmsError> {
    key.require_kept()?;
    if key.usage() != KeyUsage::SignVerify {
        return Err(KmsError::InvalidKeyUsage(format!(
            "{} key usage is {}: approvals are for keys that sign.",
            key.arn(),
            key.usage().name()
        )));
    }
    if key.origin() == Origin::External {
        return Err(KmsError::UnsupportedOperation(format!(
            "The material of {} was imported: everybody who has it signs without approvals. Make a key of origin AWS_KMS.",
            key.arn()
        )));
    }
    if let (true, Some(regions)) = (key.is_replica(), key.regions()) {
        return Err(KmsError::UnsupportedOperation(format!(
            "{} is a replica key, and has the rule of its primary key in {}; change it there.",
            key.arn(),
            regions.primary
        )));
    }
    Ok(())
}

fn check(work: &mut Work<'_>, key: &Key, new: NewRule) -> Result<Rule, KmsError> {
    let wrong = |text: String| Err(KmsError::Validation(text));
    let mut approvers = Vec::new();
    let (mut ids, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for NewApprover { principal, public_key } in new.approvers {
        let shown: String = principal.chars().take(256).collect();
        let arn = Arn::principal(&principal).filter(|arn| {
            let resource = arn.resource();
            arn.service() == "iam"
                && arn.account() == key.account()
                && (resource.starts_with("user/") || resource.starts_with("role/"))
        });
        let Some(arn) = arn.map(|arn| arn.to_string()) else {
            return wrong(format!(
                "The approver '{shown}' is not the ARN of a user or role of the key's account; a role stands for all its sessions."
            ));
        };
        let id = match resolve_one(work, &arn) {
            Ok(Some(id)) => id,
            Err(Unresolved::Fault(fault)) => return Err(fault.into()),
            Ok(None) | Err(Unresolved::Unknown(_)) => {
                return wrong(format!("The approver '{shown}' does not exist."));
            }
        };
        if !ids.insert(id.clone()) {
            return wrong(format!("The approver '{shown}' is named more than once."));
        }
        let public_key = match public_key {
            None => None,
            Some(spki) => {
                if !Kind::check(&spki).is_ok_and(|kind| kind.family.is_some()) {
                    return wrong(format!(
                        "The public key of '{shown}' is not a DER SubjectPublicKeyInfo of a key that signs."
                    ));
                }
                let text = hex::encode(spki);
                if !keys.insert(text.clone()) {
                    return wrong(format!(
                        "The public key of '{shown}' is another approver's, too."
                    ));
                }
                Some(text)
            }
        };
        approvers.push(Approver { principal: arn, id, public_key });
    }
    approvers.sort_by(|a, b| a.principal.cmp(&b.principal));
    let required = usize::try_from(new.required).unwrap_or_default();
    if !(1..=approvers.len()).contains(&required) {
        return wrong(format!(
            "ApproversRequired is {}, and there are {} approvers.",
            new.required,
            approvers.len()
        ));
    }
    let valid_minutes = new.valid_minutes.unwrap_or(limits::SIGNING_APPROVAL_MINUTES);
    let requester_may_approve = new.requester_may_approve;
    Ok(Rule { required, approvers, valid_minutes, requester_may_approve })
}
