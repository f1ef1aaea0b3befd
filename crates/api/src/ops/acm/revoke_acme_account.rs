//! `RevokeAcmeAccount`: ends an account of an ACME endpoint, for good.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RevokeAcmeAccount.html>

use outlast_domain::acme;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_acme::{authorize_tagged, find_account, find_endpoint};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct RevokeAcmeAccount;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub acme_endpoint_arn: String,
    pub account_url: String,
}

impl Operation for RevokeAcmeAccount {
    const NAME: &'static str = "RevokeAcmeAccount";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        let action = action::acm::RevokeAcmeAccount;
        let allowed = authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        let account = find_account(call, &endpoint, &input.account_url)?;
        acme::revoke_account(&mut call.work, account, &allowed)?;
        Ok(Empty {})
    }
}
