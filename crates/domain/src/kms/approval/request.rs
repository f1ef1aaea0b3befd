//! Requests for approval: made, found, and gone some time after they have ended.

use std::collections::BTreeSet;

use outlast_crypto::signatures::Message;
use serde::{Deserialize, Serialize};

use super::files::{File, NewFile, message_id};
use super::statement::Statement;
use crate::arn::Scope;
use crate::identity::{Permit, Principal, action};
use crate::kms::KmsError;
use crate::kms::record::Key;
use crate::work::Work;
use crate::{Fault, ids, limits, quotas};

/// A request for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// A UUID.
    pub id: String,
    /// ARN of the key.
    pub key: String,
    /// ARN of the user or session that made it.
    pub requester: String,
    /// Unique id of that user, or of the session's role.
    pub requester_id: String,
    /// The requester's reason; empty if there is none.
    pub reason: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// When it ends, milliseconds since 1970.
    pub expires_ms: i64,
    /// The files to be signed.
    pub files: Vec<File>,
}

impl Request {
    /// What approvers approve: SHA-256 of the request's [`Statement`] in hexadecimal.
    pub fn digest(&self, scope: &Scope) -> String {
        let lines: Vec<_> = self.files.iter().map(Statement::file).collect();
        Statement {
            request: &request_arn(scope, &self.id),
            key: &self.key,
            requester: &self.requester,
            expires: self.expires_ms.div_euclid(1000),
            reason: &self.reason,
            lines: &lines,
        }
        .digest()
    }
}

/// Which request a message of a key is part of.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    request: String,
}

/// ARN of a request.
pub fn request_arn(scope: &Scope, id: &str) -> String {
    scope.arn("outlast", &format!("signing-request/{id}"))
}

/// Asks the approvers of a key for signatures of these files.
pub fn request_approval(
    work: &mut Work<'_>,
    key: &Key,
    requester: &Principal,
    files: Vec<NewFile>,
    reason: String,
    permit: &Permit<action::outlast::RequestSigningApproval>,
) -> Result<Request, KmsError> {
    permit.opens(&approval_arn(key))?;
    key.require_enabled()?;
    let files =
        files.into_iter().map(|new| File::check(key, new)).collect::<Result<Vec<_>, _>>()?;
    let scope = key.scope();
    work.admit::<KmsError>(&quotas::SIGNING_REQUESTS, &[&scope.account, &scope.region])?;
    let now_ms = work.now_ms();
    let request = Request {
        id: ids::uuid()?,
        key: key.arn(),
        requester: requester.arn(),
        requester_id: requester.principal_id().to_owned(),
        reason,
        created_ms: now_ms,
        expires_ms: now_ms + limits::SIGNING_APPROVAL_MINUTES * 60_000,
        files,
    };
    let mut seen = BTreeSet::new();
    for file in &request.files {
        let row = key.spec().signing_algorithm(&file.algorithm);
        let row = row.ok_or_else(|| Fault::Damaged(key.arn()))?;
        let id = message_id(row, Message::Raw(&file.message));
        let record_key = message_record_key(key, &request.requester_id, &id);
        if !seen.insert(id) {
            return Err(KmsError::Validation(
                "Two files of the request have the same message.".into(),
            ));
        }
        if let Some(asked) = work.get::<Asked>(&record_key)? {
            let known = work.get::<Request>(&request_record_key(scope, &asked.request))?;
            if known.is_some_and(|known| known.expires_ms > now_ms) {
                return Err(KmsError::AlreadyExists(format!(
                    "The request {} is for the same message.",
                    asked.request
                )));
            }
        }
        work.put(&record_key, &Asked { request: request.id.clone() })?;
    }
    work.put(&request_record_key(scope, &request.id), &request)?;
    Ok(request)
}

/// The key as the resource of what concerns its approvals.
pub fn approval_arn(key: &Key) -> String {
    key.scope().arn("outlast", &format!("key/{}", key.id()))
}

fn request_record_key(scope: &Scope, id: &str) -> String {
    format!("kms/signing-request/{}/{}/{id}", scope.account, scope.region)
}

fn message_record_key(key: &Key, requester: &str, id: &str) -> String {
    let scope = key.scope();
    format!("kms/signing-message/{}/{}/{}/{requester}/{id}", scope.account, scope.region, key.id())
}
