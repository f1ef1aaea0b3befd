//! `DeleteAttributeMapping`: removes rules by which a part of certificates becomes tags of sessions.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_DeleteAttributeMapping.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    DeleteAttributeMapping, DeleteAttributeMappingRequest as Input,
    DeleteAttributeMappingResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_profile, shown};
use crate::wire::ApiError;

impl Run for DeleteAttributeMapping {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_profile(call, &input.profile_id)?;
        call.notes.parameter("certificateField", input.certificate_field.as_str());
        if let Some(specifiers) = &input.specifiers {
            call.notes.parameter("specifiers", specifiers.clone());
        }
        let action = action::rolesanywhere::DeleteAttributeMapping;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let (work, field) = (&mut call.work, &input.certificate_field);
        let specifiers = input.specifiers.as_deref();
        let found = rolesanywhere::delete_mapping(work, found, field, specifiers, &allowed)?;
        Ok(Output { profile: shown(call, &found) })
    }
}
