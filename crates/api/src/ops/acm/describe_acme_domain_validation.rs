//! `DescribeAcmeDomainValidation`: a domain validation, with the DNS record that proves it.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeAcmeDomainValidation.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    DescribeAcmeDomainValidation, DescribeAcmeDomainValidationRequest as Input,
    DescribeAcmeDomainValidationResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{authorize_tagged, find_validation};
use crate::wire::ApiError;

impl Run for DescribeAcmeDomainValidation {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let validation = find_validation(call, &input.acme_domain_validation_arn)?;
        let action = action::acm::DescribeAcmeDomainValidation;
        authorize_tagged(call, action, &validation.arn(), validation.tags())?;
        Ok(Output { acme_domain_validation: (&validation).into() })
    }
}
