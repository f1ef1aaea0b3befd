//! `RevokeGrant`: ends a grant, on behalf of the key's administrator.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_RevokeGrant.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{RevokeGrant, RevokeGrantRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, key_by_id};
use crate::wire::ApiError;

impl Run for RevokeGrant {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let key = key_by_id(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::RevokeGrant, &key, None)?;
        let grant = kms::find_grant(&mut call.work, &key, &input.grant_id)?;
        call.notes.parameter("grantId", grant.id.as_str());
        dry_run(input.dry_run)?;
        kms::delete_grant(&mut call.work, key.scope(), &grant, &allowed)?;
        Ok(Empty {})
    }
}
