//! `PutAttributeMapping`: replaces the rules by which a part of certificates becomes tags of sessions.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_PutAttributeMapping.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    PutAttributeMapping, PutAttributeMappingRequest as Input, PutAttributeMappingResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_profile, shown};
use crate::wire::ApiError;

impl Run for PutAttributeMapping {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_profile(call, &input.profile_id)?;
        let rules: Vec<_> = input.mapping_rules.into_iter().map(|rule| rule.specifier).collect();
        call.notes.parameter("certificateField", input.certificate_field.as_str());
        call.notes.parameter("specifiers", rules.clone());
        let action = action::rolesanywhere::PutAttributeMapping;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let (work, field) = (&mut call.work, &input.certificate_field);
        let found = rolesanywhere::put_mapping(work, found, field, &rules, &allowed)?;
        Ok(Output { profile: shown(call, &found) })
    }
}
