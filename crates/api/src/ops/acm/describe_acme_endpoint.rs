//! `DescribeAcmeEndpoint`: an ACME endpoint: its URL and settings.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeAcmeEndpoint.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    DescribeAcmeEndpoint, DescribeAcmeEndpointRequest as Input,
    DescribeAcmeEndpointResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{AcmeEndpoint, authorize_tagged, find_endpoint};
use crate::wire::ApiError;

impl Run for DescribeAcmeEndpoint {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        authorize_tagged(
            call,
            action::acm::DescribeAcmeEndpoint,
            &endpoint.arn(),
            endpoint.tags(),
        )?;
        Ok(Output { acme_endpoint: AcmeEndpoint::new(&endpoint, call) })
    }
}
