//! `RevokeAcmeAccount`: revokes an account of an ACME endpoint, for good.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RevokeAcmeAccount.html>

use outlast_domain::acme;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{RevokeAcmeAccount, RevokeAcmeAccountRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_acme::{authorize_tagged, find_account, find_endpoint};
use crate::wire::ApiError;

impl Run for RevokeAcmeAccount {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        let action = action::acm::RevokeAcmeAccount;
        let allowed = authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        let account = find_account(call, &endpoint, &input.account_url)?;
        acme::revoke_account(&mut call.work, account, &allowed)?;
        Ok(Empty {})
    }
}
