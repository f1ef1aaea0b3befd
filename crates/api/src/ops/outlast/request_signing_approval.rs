//! `RequestSigningApproval`: asks the approvers of a key for signatures. Ours; described in `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::approval;

pub use crate::aws::outlast::{
    RequestSigningApproval, RequestSigningApprovalRequest as Input,
    RequestSigningApprovalResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::{count, note_files, note_request, own_key};
use crate::wire::{ApiError, Timestamp};

impl Run for RequestSigningApproval {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::outlast::RequestSigningApproval, &input.key_id)?;
        note_files(call, &input.files);
        let allowed =
            call.authorize(action::outlast::RequestSigningApproval, &approval::approval_arn(&key))?;
        let mut algorithms: Vec<_> =
            input.files.iter().map(|file| file.signing_algorithm.clone()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        // Who may not sign has nothing to ask for.
        call.conditions.set("kms:MessageType", "RAW");
        for algorithm in algorithms {
            call.conditions.set("kms:SigningAlgorithm", algorithm);
            call.authorize_key(action::kms::Sign, &key, None)?;
        }
        let files = input.files.into_iter().map(Into::into).collect();
        let reason = input.reason.unwrap_or_default();
        if !reason.is_empty() {
            call.notes.parameter("reason", reason.as_str());
        }
        let (work, access) = call.split();
        let request =
            approval::request_approval(work, &key, access.caller, files, reason, &allowed)?;
        let digest = note_request(call, key.scope(), &request);
        Ok(Output {
            request_id: request.id,
            request_digest: digest,
            key_id: request.key,
            expires_at: Timestamp::from_ms(request.expires_ms),
            approvers_required: count(key.approval_rule().map_or(0, |rule| rule.required)),
        })
    }
}
