//! `ListTrustAnchors`: lists the trust anchors of an account in the Region.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_ListTrustAnchors.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, TRUST_ANCHOR};

pub use crate::aws::rolesanywhere::{
    ListRequest as Input, ListTrustAnchors, ListTrustAnchorsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::rolesanywhere::{next_token, page_size};
use crate::wire::ApiError;

impl Run for ListTrustAnchors {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.page_size)?;
        let after = next_token(input.next_token.as_deref())?;
        let allowed = call.authorize(
            action::rolesanywhere::ListTrustAnchors,
            &TRUST_ANCHOR.arn(&call.scope, "*"),
        )?;
        let (work, scope) = (&call.work, &call.scope);
        let page = rolesanywhere::trust_anchors(work, scope, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            trust_anchors: page.items.iter().map(Into::into).collect(),
            next_token: page.next.as_deref().map(marker::wrap),
        })
    }
}
