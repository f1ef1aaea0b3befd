//! `DescribeAcmeAccount`: an account that a client has made at an ACME endpoint.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeAcmeAccount.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{AcmeAccount, authorize_tagged, find_account, find_endpoint};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DescribeAcmeAccount;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_endpoint_arn: String,
    pub account_url: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub acme_account: AcmeAccount,
}

impl Operation for DescribeAcmeAccount {
    const NAME: &'static str = "DescribeAcmeAccount";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        let action = action::acm::DescribeAcmeAccount;
        authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        let account = find_account(call, &endpoint, &input.account_url)?;
        Ok(Output { acme_account: AcmeAccount::new(&account, call) })
    }
}
