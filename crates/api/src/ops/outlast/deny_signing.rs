//! `DenySigning`: ends a request: an approver denies it, or its requester withdraws it. Ours; described in
//! `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::approval;

pub use crate::aws::outlast::{
    DenySigning, DenySigningRequest as Input, DenySigningResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::{SIGNING_REQUEST, note_state};
use crate::wire::ApiError;

impl Run for DenySigning {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let scope = call.scope.clone();
        let arn = approval::request_arn(&scope, &input.request_id);
        call.notes.parameter("requestId", input.request_id.as_str());
        call.notes.resource(arn.clone(), SIGNING_REQUEST);
        let reason = input.reason.unwrap_or_default();
        if !reason.is_empty() {
            call.notes.parameter("reason", reason.as_str());
        }
        let allowed = call.authorize(action::outlast::DenySigning, &arn)?;
        let (work, access) = call.split();
        let request =
            approval::deny(work, &scope, &input.request_id, access.caller, reason, &allowed)?;
        let verdict = approval::judge(&mut call.work, &scope, &request)?;
        note_state(call, &verdict);
        Ok(Output { request_id: request.id, status: verdict.state.name().to_owned() })
    }
}
