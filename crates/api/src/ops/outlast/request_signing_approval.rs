//! `RequestSigningApproval`: asks the approvers of a key for signatures. Ours; described in `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::approval;

pub use crate::aws::outlast::{
    RequestSigningApproval, RequestSigningApprovalRequest as Input,
    RequestSigningApprovalResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::{note_files, own_key};
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
        let requester = call.caller.principal.clone();
        let request =
            approval::request_approval(&mut call.work, &key, &requester, files, reason, &allowed)?;
        let digest = request.digest(key.scope());
        call.notes
            .resource(approval::request_arn(key.scope(), &request.id), "Outlast::SigningRequest");
        call.notes.response("signingRequestId", request.id.as_str());
        call.notes.response("requestDigest", digest.as_str());
        Ok(Output {
            request_id: request.id,
            request_digest: digest,
            key_id: request.key,
            expires_at: Timestamp::from_ms(request.expires_ms),
        })
    }
}
