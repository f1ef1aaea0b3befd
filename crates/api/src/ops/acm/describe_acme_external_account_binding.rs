//! `DescribeAcmeExternalAccountBinding`: an external account binding, without its key.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeAcmeExternalAccountBinding.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{AcmeExternalAccountBinding, authorize_tagged, find_binding};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DescribeAcmeExternalAccountBinding;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_external_account_binding_arn: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub external_account_binding: AcmeExternalAccountBinding,
}

impl Operation for DescribeAcmeExternalAccountBinding {
    const NAME: &'static str = "DescribeAcmeExternalAccountBinding";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let binding = find_binding(call, &input.acme_external_account_binding_arn)?;
        let action = action::acm::DescribeAcmeExternalAccountBinding;
        authorize_tagged(call, action, &binding.arn(), binding.tags())?;
        Ok(Output { external_account_binding: (&binding).into() })
    }
}
