//! `UpdatePrimaryRegion`: makes a replica the primary key of its set.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_UpdatePrimaryRegion.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{UpdatePrimaryRegion, UpdatePrimaryRegionRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for UpdatePrimaryRegion {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let key = own_key(call, action::kms::UpdatePrimaryRegion, &input.key_id)?;
        call.notes.parameter("primaryRegion", input.primary_region.as_str());
        call.conditions.set("kms:PrimaryRegion", input.primary_region.as_str());
        let allowed = call.authorize_key(action::kms::UpdatePrimaryRegion, &key, None)?;
        // Both keys' policies must allow it.
        let replica = kms::member(&mut call.work, &key, &input.primary_region)?;
        let mut at_replica = None;
        if let Some(replica) = replica.filter(|replica| replica.scope() != key.scope()) {
            call.notes.resource(replica.arn(), "AWS::KMS::Key");
            let action = action::kms::UpdatePrimaryRegion;
            at_replica = Some(call.authorize_key(action, &replica, None)?);
        }
        let (work, region) = (&mut call.work, &input.primary_region);
        kms::update_primary(work, &key, region, &allowed, at_replica.as_ref())?;
        Ok(Empty {})
    }
}
