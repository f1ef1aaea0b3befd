//! Structures of Outlast's own operations.

use std::collections::BTreeSet;

use outlast_domain::arn::Scope;
use outlast_domain::identity::action::Action;
use outlast_domain::kms::Key;
use outlast_domain::kms::approval::{
    Approval, Changed, KeyVerdict, NewApprover, NewFile, NewRule, Request, Rule, Subject, Verdict,
    request_arn,
};
use serde_json::{Value, json};

pub use crate::aws::outlast::{
    SigningApproval, SigningApprovalRule, SigningApprover, SigningDenial, SigningFile,
    SigningRequest, SigningRequestFile, SigningRequestKey, SigningRequestSummary,
};
use crate::call::Call;
use crate::model::kms::find_key;
use crate::wire::{ApiError, Blob, Timestamp};

/// CloudTrail's type of requests.
pub const SIGNING_REQUEST: &str = "Outlast::SigningRequest";

impl From<SigningFile> for NewFile {
    fn from(file: SigningFile) -> Self {
        Self {
            name: file.name,
            digest_algorithm: file.digest_algorithm,
            digest: file.digest.0,
            algorithm: file.signing_algorithm,
            message: file.message.0,
        }
    }
}

impl From<SigningApprovalRule> for NewRule {
    fn from(rule: SigningApprovalRule) -> Self {
        let approver = |one: SigningApprover| NewApprover {
            principal: one.principal_arn,
            public_key: one.public_key.map(|key| key.0),
        };
        Self {
            required: rule.approvers_required,
            approvers: rule.approvers.into_iter().map(approver).collect(),
            valid_minutes: rule.valid_for_minutes,
            requester_may_approve: rule.requester_may_approve.unwrap_or(false),
        }
    }
}

impl From<&Rule> for SigningApprovalRule {
    fn from(rule: &Rule) -> Self {
        let approvers = rule.approvers.iter().map(|one| SigningApprover {
            principal_arn: one.principal.clone(),
            public_key: one.public_key.as_deref().map(blob),
        });
        Self {
            approvers_required: count(rule.required),
            approvers: approvers.collect(),
            valid_for_minutes: Some(rule.valid_minutes),
            requester_may_approve: Some(rule.requester_may_approve),
        }
    }
}

/// Bytes of a record, which has them in hexadecimal.
fn blob(text: &str) -> Blob {
    Blob(hex::decode(text).unwrap_or_default())
}

/// A number in an answer.
pub fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The keys of a request but its first, if there are several. `in_full` shows their rules, too.
pub fn other_keys(verdict: &Verdict, in_full: bool) -> Option<Vec<SigningRequestKey>> {
    let other = |one: &KeyVerdict| SigningRequestKey {
        key_id: one.key.clone(),
        approvers_required: one.rule.as_ref().map(|rule| count(rule.required)),
        approvals_counted: count(one.counted()),
        rule: one.rule.as_ref().filter(|_| in_full).map(Into::into),
    };
    let others: Vec<_> = verdict.keys.iter().skip(1).map(other).collect();
    (!others.is_empty()).then_some(others)
}

/// How many approvals the rule of a request's first key asks for.
pub fn required(verdict: &Verdict) -> Option<i64> {
    let rule = verdict.keys.first()?.rule.as_ref()?;
    Some(count(rule.required))
}

/// How many count by that rule.
pub fn counted(verdict: &Verdict) -> i64 {
    count(verdict.keys.first().map_or(0, KeyVerdict::counted))
}

/// A request as GetSigningRequest shows it.
pub fn shown(scope: &Scope, request: &Request, verdict: &Verdict) -> SigningRequest {
    let (files, new_rule, removes_rule) = match &request.subject {
        Subject::Files(files) => (files.as_slice(), None, false),
        Subject::Rule { rule, .. } => (&[][..], rule.as_ref(), rule.is_none()),
    };
    let files = files.iter().map(|file| SigningRequestFile {
        name: file.name.clone(),
        digest_algorithm: file.digest_algorithm.clone(),
        digest: Blob(file.digest.clone()),
        key_id: file.key.clone(),
        signing_algorithm: file.algorithm.clone(),
        message: Blob(file.message.clone()),
        signed_at: file.signed_ms.map(Timestamp::from_ms),
    });
    let approval = |(index, approval): (usize, &Approval)| {
        let keys = verdict.keys.iter().filter(|one| one.counts.get(index) == Some(&true));
        let keys: Vec<_> = keys.map(|one| one.key.clone()).collect();
        SigningApproval {
            principal_arn: approval.principal.clone(),
            approved_at: Timestamp::from_ms(approval.at_ms),
            counts: !keys.is_empty(),
            counts_for: (verdict.keys.len() > 1).then_some(keys),
            signing_algorithm: approval.signed.as_ref().map(|signed| signed.algorithm.clone()),
            signature: approval.signed.as_ref().map(|signed| blob(&signed.signature)),
            public_key: approval.signed.as_ref().map(|signed| blob(&signed.public_key)),
        }
    };
    let rule = verdict.keys.first().and_then(|first| first.rule.as_ref());
    SigningRequest {
        request_id: request.id.clone(),
        request_arn: request_arn(scope, &request.id),
        request_digest: request.digest(scope),
        key_id: request.key.clone(),
        requester_arn: request.requester.clone(),
        reason: some(&request.reason),
        created_at: Timestamp::from_ms(request.created_ms),
        expires_at: Timestamp::from_ms(request.expires_ms),
        ends_at: Timestamp::from_ms(verdict.ends_ms),
        status: verdict.state.name().to_owned(),
        rule: rule.map(Into::into),
        approvals_counted: counted(verdict),
        other_keys: other_keys(verdict, true),
        files: files.collect(),
        new_rule: new_rule.map(Into::into),
        removes_rule,
        approvals: request.approvals.iter().enumerate().map(approval).collect(),
        denial: request.denial.as_ref().map(|denial| SigningDenial {
            principal_arn: denial.principal.clone(),
            denied_at: Timestamp::from_ms(denial.at_ms),
            reason: some(&denial.reason),
        }),
    }
}

/// A request as ListSigningRequests shows it.
pub fn summary(request: &Request, verdict: &Verdict) -> SigningRequestSummary {
    let files = match &request.subject {
        // Of several keys each signs the same files.
        Subject::Files(files) if verdict.keys.len() > 1 => {
            files.iter().map(|file| file.name.as_str()).collect::<BTreeSet<_>>().len()
        }
        Subject::Files(files) => files.len(),
        Subject::Rule { .. } => 0,
    };
    SigningRequestSummary {
        request_id: request.id.clone(),
        key_id: request.key.clone(),
        requester_arn: request.requester.clone(),
        reason: some(&request.reason),
        created_at: Timestamp::from_ms(request.created_ms),
        ends_at: Timestamp::from_ms(verdict.ends_ms),
        status: verdict.state.name().to_owned(),
        approvers_required: required(verdict),
        approvals_counted: counted(verdict),
        other_keys: other_keys(verdict, false),
        file_count: count(files),
        changes_rule: matches!(request.subject, Subject::Rule { .. }),
    }
}

/// What became of a change of a rule, as answers have it.
pub struct RuleChange {
    /// `Status`
    pub status: String,
    /// `RequestId`
    pub request_id: Option<String>,
    /// `RequestDigest`
    pub request_digest: Option<String>,
    /// `ExpiresAt`
    pub expires_at: Option<Timestamp>,
}

impl RuleChange {
    /// Notes the outcome for the audit record, too.
    pub fn new(call: &mut Call<'_>, scope: &Scope, changed: Changed) -> Self {
        match changed {
            Changed::Applied => {
                call.notes.response("status", "APPLIED");
                let (request_id, request_digest, expires_at) = (None, None, None);
                Self { status: "APPLIED".into(), request_id, request_digest, expires_at }
            }
            Changed::Asked(request) => {
                call.notes.response("status", "PENDING_APPROVAL");
                let digest = note_request(call, scope, &request);
                Self {
                    status: "PENDING_APPROVAL".into(),
                    expires_at: Some(Timestamp::from_ms(request.expires_ms)),
                    request_id: Some(request.id),
                    request_digest: Some(digest),
                }
            }
        }
    }
}

/// Notes a request for the audit record: its ARN, and its digest, which is returned.
pub fn note_request(call: &mut Call<'_>, scope: &Scope, request: &Request) -> String {
    let digest = request.digest(scope);
    call.notes.resource(request_arn(scope, &request.id), SIGNING_REQUEST);
    call.notes.response("signingRequestId", request.id.as_str());
    call.notes.response("requestDigest", digest.as_str());
    digest
}

/// Notes the state that a decision has left a request in, for the audit record.
pub fn note_state(call: &mut Call<'_>, verdict: &Verdict) {
    for one in &verdict.keys {
        call.notes.resource(one.key.clone(), "AWS::KMS::Key");
    }
    call.notes.response("status", verdict.state.name());
    call.notes.response("approvalsCounted", counted(verdict));
    if let Some(others) = other_keys(verdict, false) {
        let shown = |one: &SigningRequestKey| json!({ "keyId": one.key_id, "approvalsCounted": one.approvals_counted });
        call.notes.response("otherKeys", others.iter().map(shown).collect::<Vec<_>>());
    }
}

/// Finds a key of the caller's own account by any of its names: approvals do not work across accounts.
pub fn own_key<A: Action>(call: &mut Call<'_>, _: A, name: &str) -> Result<Key, ApiError> {
    let key = find_key(call, name)?;
    if key.account() == call.scope.account {
        return Ok(key);
    }
    Err(ApiError::new(
        "AccessDeniedException",
        format!(
            "User: {} is not authorized to perform: {} on resource: {} because the operation does not work across accounts",
            call.caller.principal.arn(),
            A::NAME,
            key.arn()
        ),
    ))
}

/// Notes the files of a request for the audit record.
pub fn note_files(call: &mut Call<'_>, files: &[SigningFile]) {
    let shown = |file: &SigningFile| {
        let mut value = json!({
            "name": file.name,
            "digestAlgorithm": file.digest_algorithm,
            "digest": hex::encode(&file.digest.0),
            "signingAlgorithm": file.signing_algorithm,
        });
        if let Some(key) = &file.key_id {
            value["keyId"] = json!(key);
        }
        value
    };
    let files: Vec<Value> = files.iter().map(shown).collect();
    call.notes.parameter("files", files);
}

/// Notes a rule for the audit record.
pub fn note_rule(call: &mut Call<'_>, rule: &SigningApprovalRule) {
    let approver = |one: &SigningApprover| {
        json!({
            "principalArn": one.principal_arn,
            "publicKey": one.public_key.as_ref().map(|key| hex::encode(&key.0)),
        })
    };
    let rule = json!({
        "approversRequired": rule.approvers_required,
        "approvers": rule.approvers.iter().map(approver).collect::<Vec<_>>(),
        "validForMinutes": rule.valid_for_minutes,
        "requesterMayApprove": rule.requester_may_approve.unwrap_or(false),
    });
    call.notes.parameter("rule", rule);
}
