//! `GetTrustAnchor`: describes a trust anchor.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_GetTrustAnchor.html>

use outlast_domain::identity::action;

pub use crate::aws::rolesanywhere::{
    GetTrustAnchor, ScalarTrustAnchorRequest as Input, TrustAnchorDetailResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_trust_anchor};
use crate::wire::ApiError;

impl Run for GetTrustAnchor {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_trust_anchor(call, &input.trust_anchor_id)?;
        let action = action::rolesanywhere::GetTrustAnchor;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        Ok(Output { trust_anchor: (&found).into() })
    }
}
