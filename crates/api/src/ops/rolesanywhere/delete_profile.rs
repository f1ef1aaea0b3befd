//! `DeleteProfile`: deletes a profile.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_DeleteProfile.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    DeleteProfile, ProfileDetailResponse as Output, ScalarProfileRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_profile, shown};
use crate::wire::ApiError;

impl Run for DeleteProfile {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_profile(call, &input.profile_id)?;
        let action = action::rolesanywhere::DeleteProfile;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let found = rolesanywhere::delete_profile(&mut call.work, found, &allowed)?;
        Ok(Output { profile: shown(call, &found) })
    }
}
