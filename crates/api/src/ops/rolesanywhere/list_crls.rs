//! `ListCrls`: lists the imported CRLs of an account in the Region.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_ListCrls.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, CRL};

pub use crate::aws::rolesanywhere::{ListCrls, ListCrlsResponse as Output, ListRequest as Input};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::rolesanywhere::{CrlDetail, next_token, page_size};
use crate::wire::ApiError;

impl Run for ListCrls {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.page_size)?;
        let after = next_token(input.next_token.as_deref())?;
        let allowed =
            call.authorize(action::rolesanywhere::ListCrls, &CRL.arn(&call.scope, "*"))?;
        let (work, scope) = (&call.work, &call.scope);
        let page = rolesanywhere::crls(work, scope, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            crls: page.items.iter().map(CrlDetail::new).collect::<Result<_, _>>()?,
            next_token: page.next.as_deref().map(marker::wrap),
        })
    }
}
