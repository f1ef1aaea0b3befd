//! `GetSigningRequest`: a request for approval, with everything that its approvers judge. Ours; described in
//! `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::approval;

pub use crate::aws::outlast::{
    GetSigningRequest, GetSigningRequestRequest as Input, GetSigningRequestResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::{SIGNING_REQUEST, shown};
use crate::wire::ApiError;

impl Run for GetSigningRequest {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let scope = call.scope.clone();
        let arn = approval::request_arn(&scope, &input.request_id);
        call.notes.parameter("requestId", input.request_id.as_str());
        call.notes.resource(arn.clone(), SIGNING_REQUEST);
        let allowed = call.authorize(action::outlast::GetSigningRequest, &arn)?;
        let request = approval::shown(&mut call.work, &scope, &input.request_id, &allowed)?;
        let verdict = approval::judge(&mut call.work, &scope, &request)?;
        Ok(Output { request: shown(&scope, &request, &verdict) })
    }
}
