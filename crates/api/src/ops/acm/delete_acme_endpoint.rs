//! `DeleteAcmeEndpoint`: deletes an ACME endpoint with all that is below it.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DeleteAcmeEndpoint.html>

use outlast_domain::acm::AcmError;
use outlast_domain::acme;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{DeleteAcmeEndpoint, DeleteAcmeEndpointRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_acme::{ENDPOINT, authorize_tagged};
use crate::wire::ApiError;

impl Run for DeleteAcmeEndpoint {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let arn = input.acme_endpoint_arn.as_str();
        call.notes.parameter("acmeEndpointArn", arn);
        match acme::find_endpoint(&mut call.work, &call.scope, arn) {
            Ok(endpoint) => {
                let arn = endpoint.arn();
                call.notes.resource(arn.clone(), ENDPOINT);
                let action = action::acm::DeleteAcmeEndpoint;
                let allowed = authorize_tagged(call, action, &arn, endpoint.tags())?;
                acme::delete_endpoint(&mut call.work, &endpoint, &allowed)?;
            }
            // AWS's model has no ResourceNotFoundException here: deleting what is gone succeeds.
            Err(AcmError::NotFound(_)) => {
                let arn = acme::absent(&call.scope, arn)?;
                call.authorize(action::acm::DeleteAcmeEndpoint, &arn)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Empty {})
    }
}
