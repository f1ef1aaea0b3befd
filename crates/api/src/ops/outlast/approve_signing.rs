//! `ApproveSigning`: approves a request in the caller's name. Ours; described in `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::approval::{self, NewApproval};

pub use crate::aws::outlast::{
    ApproveSigning, ApproveSigningRequest as Input, ApproveSigningResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::{SIGNING_REQUEST, counted, note_state, other_keys, required};
use crate::wire::{ApiError, validate};

impl Run for ApproveSigning {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let scope = call.scope.clone();
        let arn = approval::request_arn(&scope, &input.request_id);
        call.notes.parameter("requestId", input.request_id.as_str());
        call.notes.parameter("requestDigest", input.request_digest.as_str());
        call.notes.resource(arn.clone(), SIGNING_REQUEST);
        let signed = match (&input.signing_algorithm, &input.signature) {
            (Some(algorithm), Some(signature)) => {
                call.notes.parameter("signingAlgorithm", algorithm.as_str());
                // Part of the evidence: every reader of the log can verify it.
                call.notes.parameter("signature", hex::encode(&signature.0));
                Some((algorithm.as_str(), signature.0.as_slice()))
            }
            (None, None) => None,
            (None, Some(_)) => return Err(validate::missing("SigningAlgorithm")),
            (Some(_), None) => return Err(validate::missing("Signature")),
        };
        let allowed = call.authorize(action::outlast::ApproveSigning, &arn)?;
        let new = NewApproval { digest: &input.request_digest, signed };
        let (work, access) = call.split();
        let request =
            approval::approve(work, &scope, &input.request_id, access.caller, new, &allowed)?;
        let verdict = approval::judge(&mut call.work, &scope, &request)?;
        note_state(call, &verdict);
        Ok(Output {
            request_id: request.id,
            status: verdict.state.name().to_owned(),
            approvers_required: required(&verdict).unwrap_or_default(),
            approvals_counted: counted(&verdict),
            other_keys: other_keys(&verdict, false),
        })
    }
}
