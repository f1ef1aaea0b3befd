//! `DescribeAcmeExternalAccountBinding`: an external account binding, without its key.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeAcmeExternalAccountBinding.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    DescribeAcmeExternalAccountBinding, DescribeAcmeExternalAccountBindingRequest as Input,
    DescribeAcmeExternalAccountBindingResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{authorize_tagged, find_binding};
use crate::wire::ApiError;

impl Run for DescribeAcmeExternalAccountBinding {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let binding = find_binding(call, &input.acme_external_account_binding_arn)?;
        let action = action::acm::DescribeAcmeExternalAccountBinding;
        authorize_tagged(call, action, &binding.arn(), binding.tags())?;
        Ok(Output { external_account_binding: (&binding).into() })
    }
}
