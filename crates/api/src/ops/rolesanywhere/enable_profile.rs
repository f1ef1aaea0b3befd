//! `EnableProfile`: enables a profile.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_EnableProfile.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    EnableProfile, ProfileDetailResponse as Output, ScalarProfileRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_profile, shown};
use crate::wire::ApiError;

impl Run for EnableProfile {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_profile(call, &input.profile_id)?;
        let action = action::rolesanywhere::EnableProfile;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let found = rolesanywhere::set_profile_enabled(&mut call.work, found, true, &allowed)?;
        Ok(Output { profile: shown(call, &found) })
    }
}
