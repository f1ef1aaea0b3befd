//! `UpdateTrustAnchor`: changes a trust anchor.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_UpdateTrustAnchor.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, TrustAnchorUpdate};

pub use crate::aws::rolesanywhere::{
    TrustAnchorDetailResponse as Output, UpdateTrustAnchor, UpdateTrustAnchorRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_trust_anchor, no_fetching, source};
use crate::wire::ApiError;

impl Run for UpdateTrustAnchor {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        no_fetching(input.crl_dp_revocation_enabled)?;
        let found = find_trust_anchor(call, &input.trust_anchor_id)?;
        let source = input.source.map(|given| source(call, given)).transpose()?;
        let action = action::rolesanywhere::UpdateTrustAnchor;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let update = TrustAnchorUpdate { name: input.name, source, alias: input.alias_name };
        let found = rolesanywhere::update_trust_anchor(&mut call.work, found, update, &allowed)?;
        Ok(Output { trust_anchor: (&found).into() })
    }
}
