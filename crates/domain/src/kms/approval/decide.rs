//! Approving and denying requests.

use outlast_crypto::signatures::{Message, SIGNATURES};

use super::request::{
    Approval, Denial, KeyVerdict, Request, Signed, State, find, ids_of, judge, request_arn,
};
use super::rule::Approver;
use super::statement::approval_message;
use crate::arn::Scope;
use crate::identity::{Caller, Permit, action};
use crate::kms::KmsError;
use crate::work::Work;

/// An approval to be given.
#[derive(Debug, Clone, Copy)]
pub struct NewApproval<'a> {
    /// The digest of the request that the approver has seen ([`Request::digest`]).
    pub digest: &'a str,
    /// KMS `SigningAlgorithm` and signature over [`approval_message`], if the rule names a key for the approver.
    pub signed: Option<(&'a str, &'a [u8])>,
}

/// Approves a request in the caller's name.
///
/// # Errors
/// [`KmsError::NotApproved`] if the caller is not an approver or must not be counted, [`KmsError::AlreadyExists`] if the caller has
/// approved it before, [`KmsError::InvalidState`] if the request has ended, [`KmsError::IncorrectDigest`] and
/// [`KmsError::InvalidSignature`] if the approval is for something else.
pub fn approve(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    caller: &Caller,
    new: NewApproval<'_>,
    permit: &Permit<action::outlast::ApproveSigning>,
) -> Result<Request, KmsError> {
    permit.opens(&request_arn(scope, id))?;
    let mut request = find(work, scope, id)?;
    let verdict = judge(work, scope, &request)?;
    let ids = ids_of(caller);
    let own = ids.first().map_or("", String::as_str);
    if verdict.keys.iter().all(|one| one.approver(own).is_none()) {
        return Err(not_an_approver(caller, &request));
    }
    require_open(verdict.state, &request)?;
    if request.digest(scope) != new.digest {
        return Err(KmsError::IncorrectDigest);
    }
    // One that counts for no key, for example without the signature that a changed rule asks for, is replaced.
    let mut index = 0..;
    request.approvals.retain(|one| {
        let at = index.next().unwrap_or_default();
        one.ids.first() != ids.first() || verdict.keys.iter().any(|key| key.counts_at(at))
    });
    let verdict = judge(work, scope, &request)?;
    let has_counted = |one: &KeyVerdict| {
        let mut all = request.approvals.iter().zip(&one.counts);
        all.any(|(approval, counts)| *counts && approval.ids.first() == ids.first())
    };
    // The rules of two keys may ask for signatures by different keys of the approver: then it takes two approvals.
    let open: Vec<_> = verdict.keys.iter().filter(|one| !has_counted(one)).collect();
    let approvers: Vec<_> = open.iter().filter_map(|one| one.approver(own)).collect();
    if approvers.is_empty() {
        return Err(KmsError::AlreadyExists(format!(
            "{} has approved the request {id} already.",
            caller.principal.arn()
        )));
    }
    let signed = check_signature(&approvers, scope, &request, new)?;
    let at_ms = work.now_ms();
    request.approvals.push(Approval { principal: caller.principal.arn(), ids, at_ms, signed });
    // An approval that would never count is refused instead of being kept: the approver learns why.
    let after = judge(work, scope, &request)?;
    if !after.keys.iter().any(|one| one.counts.last() == Some(&true)) {
        return Err(KmsError::NotApproved(format!(
            "The approval of {} does not count: the same person has made the request or approved it already.",
            caller.principal.arn()
        )));
    }
    request.save(work, scope)?;
    Ok(request)
}

/// Ends a request: an approver denies it, or its requester withdraws it.
///
/// # Errors
/// [`KmsError::NotApproved`] if the caller is neither, [`KmsError::InvalidState`] if it has ended.
pub fn deny(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    caller: &Caller,
    reason: String,
    permit: &Permit<action::outlast::DenySigning>,
) -> Result<Request, KmsError> {
    permit.opens(&request_arn(scope, id))?;
    let mut request = find(work, scope, id)?;
    let verdict = judge(work, scope, &request)?;
    let principal = caller.principal.principal_id();
    let is_approver = verdict.keys.iter().any(|one| one.approver(principal).is_some());
    if !is_approver && !request.is_by(principal) {
        return Err(not_an_approver(caller, &request));
    }
    require_open(verdict.state, &request)?;
    let (principal, at_ms) = (caller.principal.arn(), work.now_ms());
    request.denial = Some(Denial { principal, at_ms, reason });
    request.save(work, scope)?;
    Ok(request)
}

fn not_an_approver(caller: &Caller, request: &Request) -> KmsError {
    KmsError::NotApproved(format!(
        "{} is not an approver of {}.",
        caller.principal.arn(),
        request.key
    ))
}

fn require_open(state: State, request: &Request) -> Result<(), KmsError> {
    let what = match state {
        State::Pending | State::Approved => return Ok(()),
        State::Finished => "is finished",
        State::Denied => "was denied",
        State::Expired => "has expired",
    };
    Err(KmsError::InvalidState(format!("The request {} {what}.", request.id)))
}

/// Verifies the approver's signature, if a rule names a key for the approver. `approvers` are the entries of the rules that
/// the approval is for.
fn check_signature(
    approvers: &[&Approver],
    scope: &Scope,
    request: &Request,
    new: NewApproval<'_>,
) -> Result<Option<Signed>, KmsError> {
    let keys: Vec<_> = approvers.iter().filter_map(|one| one.public_key.as_ref()).collect();
    let (algorithm, signature) = match (keys.is_empty(), new.signed) {
        (true, None) => return Ok(None),
        (true, Some(_)) => {
            return Err(KmsError::Validation(
                "The rule names no key for this approver: leave the signature out.".into(),
            ));
        }
        (false, None) => {
            return Err(KmsError::Validation(
                "The rule names a key for this approver: SigningAlgorithm and Signature are required.".into(),
            ));
        }
        (false, Some(signed)) => signed,
    };
    let message = approval_message(&request_arn(scope, &request.id), new.digest);
    for key in keys {
        let spki = hex::decode(key).map_err(|_| KmsError::InvalidSignature)?;
        let rows = SIGNATURES.iter().filter(|row| row.kms_name == algorithm);
        // ML-DSA's parameter sets share a name; the key fits one of them.
        let mut verified = rows.map(|row| row.verify(&spki, Message::Raw(&message), signature));
        if verified.any(|result| result.is_ok()) {
            return Ok(Some(Signed {
                algorithm: algorithm.to_owned(),
                signature: hex::encode(signature),
                public_key: key.clone(),
            }));
        }
    }
    Err(KmsError::InvalidSignature)
}
