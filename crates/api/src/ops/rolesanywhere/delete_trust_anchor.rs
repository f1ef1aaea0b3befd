//! `DeleteTrustAnchor`: deletes a trust anchor.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_DeleteTrustAnchor.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    DeleteTrustAnchor, ScalarTrustAnchorRequest as Input, TrustAnchorDetailResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_trust_anchor};
use crate::wire::ApiError;

impl Run for DeleteTrustAnchor {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_trust_anchor(call, &input.trust_anchor_id)?;
        let action = action::rolesanywhere::DeleteTrustAnchor;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let found = rolesanywhere::delete_trust_anchor(&mut call.work, found, &allowed)?;
        Ok(Output { trust_anchor: (&found).into() })
    }
}
