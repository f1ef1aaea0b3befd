//! `DeleteAcmeEndpoint`: deletes an ACME endpoint with all that is below it.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DeleteAcmeEndpoint.html>

use outlast_domain::acm::AcmError;
use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{ENDPOINT, authorize_tagged};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct DeleteAcmeEndpoint;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_endpoint_arn: String,
}

impl Operation for DeleteAcmeEndpoint {
    const NAME: &'static str = "DeleteAcmeEndpoint";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("AcmeEndpointArn", input.acme_endpoint_arn.chars().count(), 1, 200)?;
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
            // AWS's model has no ResourceNotFoundException here: what is gone may be deleted again.
            Err(AcmError::NotFound(_)) => {
                let arn = acme::absent(&call.scope, arn)?;
                call.authorize(action::acm::DeleteAcmeEndpoint, &arn)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Empty {})
    }
}
