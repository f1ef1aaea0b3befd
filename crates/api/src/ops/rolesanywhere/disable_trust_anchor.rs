//! `DisableTrustAnchor`: disables a trust anchor.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_DisableTrustAnchor.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    DisableTrustAnchor, ScalarTrustAnchorRequest as Input, TrustAnchorDetailResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_trust_anchor};
use crate::wire::ApiError;

impl Run for DisableTrustAnchor {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_trust_anchor(call, &input.trust_anchor_id)?;
        let action = action::rolesanywhere::DisableTrustAnchor;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let found =
            rolesanywhere::set_trust_anchor_enabled(&mut call.work, found, false, &allowed)?;
        Ok(Output { trust_anchor: (&found).into() })
    }
}
