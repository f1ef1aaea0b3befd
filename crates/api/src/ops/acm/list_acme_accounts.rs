//! `ListAcmeAccounts`: the accounts of an ACME endpoint.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ListAcmeAccounts.html>

use outlast_domain::acme;
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    ListAcmeAccounts, ListAcmeAccountsRequest as Input, ListAcmeAccountsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_acme::{AcmeAccount, authorize_tagged, find_endpoint, next_token};
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListAcmeAccounts {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        let marker = next_token(input.next_token.as_deref())?;
        let endpoint = find_endpoint(call, &input.acme_endpoint_arn)?;
        let action = action::acm::ListAcmeAccounts;
        let allowed = authorize_tagged(call, action, &endpoint.arn(), endpoint.tags())?;
        let page = acme::accounts(&call.work, &endpoint, marker.as_deref(), limit, &allowed)?;
        let acme_accounts = page.items.iter().map(|found| AcmeAccount::new(found, call)).collect();
        Ok(Output { acme_accounts, next_token: page.next.as_deref().map(marker::wrap) })
    }
}
