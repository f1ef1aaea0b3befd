//! `GetProfile`: describes a profile.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_GetProfile.html>

use outlast_domain::identity::action;

pub use crate::aws::rolesanywhere::{
    GetProfile, ProfileDetailResponse as Output, ScalarProfileRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_profile, shown};
use crate::wire::ApiError;

impl Run for GetProfile {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_profile(call, &input.profile_id)?;
        let action = action::rolesanywhere::GetProfile;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        Ok(Output { profile: shown(call, &found) })
    }
}
