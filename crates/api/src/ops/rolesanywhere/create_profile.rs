//! `CreateProfile`: makes a profile: roles that certificates may begin sessions of.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_CreateProfile.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, NewProfile, PROFILE};

pub use crate::aws::rolesanywhere::{
    CreateProfile, CreateProfileRequest as Input, ProfileDetailResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_new, may_pass, new_tags, role_arns, shown};
use crate::wire::ApiError;

impl Run for CreateProfile {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("name", input.name.as_str());
        let role_arns = role_arns(call, &input.role_arns)?;
        let tags = new_tags(call, input.tags)?;
        let allowed = authorize_new(call, action::rolesanywhere::CreateProfile, &PROFILE, &tags)?;
        let may_pass = may_pass(call, &role_arns)?;
        let new = NewProfile {
            name: input.name,
            enabled: input.enabled.unwrap_or_default(),
            requires_instance_properties: input.require_instance_properties.unwrap_or_default(),
            created_by: call.caller.principal.arn(),
            session_policy: input.session_policy,
            role_arns,
            managed_policy_arns: input.managed_policy_arns.unwrap_or_default(),
            seconds: input.duration_seconds,
            accepts_session_name: input.accept_role_session_name.unwrap_or_default(),
            tags,
            alias: input.alias_name,
        };
        let (work, scope) = (&mut call.work, &call.scope);
        let made = rolesanywhere::create_profile(work, scope, new, &allowed, &may_pass)?;
        call.notes.resource(made.arn(), PROFILE.cloudtrail);
        call.notes.response("profileArn", made.arn());
        Ok(Output { profile: shown(call, &made) })
    }
}
