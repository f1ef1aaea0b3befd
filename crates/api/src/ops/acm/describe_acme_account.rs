//! `DescribeAcmeAccount`: an account that a client has made at an ACME endpoint.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DescribeAcmeAccount.html>

use outlast_domain::identity::action;

pub use crate::aws::acm::{
    DescribeAcmeAccount, DescribeAcmeAccountRequest as Input, DescribeAcmeAccountResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{AcmeAccount, authorize_tagged, find_account, find_endpoint};
use crate::wire::ApiError;

impl Run for DescribeAcmeAccount {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        let action = action::acm::DescribeAcmeAccount;
        authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        let account = find_account(call, &endpoint, &input.account_url)?;
        Ok(Output { acme_account: AcmeAccount::new(&account, call) })
    }
}
