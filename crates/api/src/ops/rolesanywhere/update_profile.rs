//! `UpdateProfile`: changes a profile.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_UpdateProfile.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, ProfileUpdate};

pub use crate::aws::rolesanywhere::{
    ProfileDetailResponse as Output, UpdateProfile, UpdateProfileRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_profile, may_pass, role_arns, shown};
use crate::wire::ApiError;

impl Run for UpdateProfile {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_profile(call, &input.profile_id)?;
        let role_arns = input.role_arns.map(|given| role_arns(call, &given)).transpose()?;
        let action = action::rolesanywhere::UpdateProfile;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let may_pass = may_pass(call, role_arns.as_deref().unwrap_or_default())?;
        let update = ProfileUpdate {
            name: input.name,
            session_policy: input.session_policy,
            role_arns,
            managed_policy_arns: input.managed_policy_arns,
            seconds: input.duration_seconds,
            accepts_session_name: input.accept_role_session_name,
            alias: input.alias_name,
        };
        let work = &mut call.work;
        let found = rolesanywhere::update_profile(work, found, update, &allowed, &may_pass)?;
        Ok(Output { profile: shown(call, &found) })
    }
}
