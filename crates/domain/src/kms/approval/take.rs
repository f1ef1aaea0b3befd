//! The check before each signature: uses up the approval of one message.

use outlast_crypto::signatures::{Message, SignatureAlgorithm};

use super::files::message_id;
use super::request::{KeyVerdict, State, Subject, find_by, judge};
use crate::identity::{Permit, action};
use crate::kms::KmsError;
use crate::kms::record::Key;
use crate::work::Work;

/// Lets a message be signed: if the key has a rule, the caller must have asked for this message, enough approvals must count,
/// and the message must not have been signed for that request yet. Where several keys sign together, none signs before the approvals
/// count for all. Returns the id of the request.
pub(in crate::kms) fn take(
    work: &mut Work<'_>,
    key: &Key,
    row: &SignatureAlgorithm,
    message: Message<'_>,
    permit: &Permit<action::kms::Sign>,
) -> Result<Option<String>, KmsError> {
    let Some(rule) = key.approval_rule() else { return Ok(None) };
    let refused = |why: String| {
        Err(KmsError::NotApproved(format!(
            "{} signs only what {} of its {} approvers have approved, and {why}.",
            key.arn(),
            rule.required,
            rule.approvers.len()
        )))
    };
    let id = message_id(row, message);
    // Without a caller, as where a service signs for itself, there is nobody whose request could have been approved.
    let holder = permit.holder().unwrap_or_default();
    let Some(mut request) = find_by(work, key, holder, &id)? else {
        return refused("the caller has made no request for this message".into());
    };
    let verdict = judge(work, key.scope(), &request)?;
    let now_ms = work.now_ms();
    let (arn, first, name) = (key.arn(), request.key.clone(), request.id.clone());
    let is_ours = request.is_by(holder);
    let file = match &mut request.subject {
        Subject::Files(files) if is_ours => {
            files.iter_mut().find(|file| file.id == id && file.signed_by(&first) == arn)
        }
        _ => None,
    };
    let Some(file) = file else {
        return refused("the caller has made no request for this message".into());
    };
    if file.signed_ms.is_some() {
        return refused(format!("the approvals of request {name} were used for it already"));
    }
    match verdict.state {
        State::Approved => {}
        State::Denied => return refused(format!("request {name} was denied")),
        State::Expired | State::Finished => {
            return refused(format!("request {name} has ended"));
        }
        State::Pending => {
            // The own approvals first: the other keys do not matter as long as these are missing.
            let lacking = verdict.lacking(&arn);
            let counted = lacking.map_or(0, KeyVerdict::counted);
            let of = match lacking {
                Some(other) if other.key != arn => {
                    format!(" for {}, which signs the same files", other.key)
                }
                _ => String::new(),
            };
            return refused(format!("{counted} approvals of request {name} count{of}"));
        }
    }
    file.signed_ms = Some(now_ms);
    request.save(work, key.scope())?;
    Ok(Some(name))
}
