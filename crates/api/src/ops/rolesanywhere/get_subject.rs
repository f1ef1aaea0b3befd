//! `GetSubject`: describes a subject: when it has authenticated, and with which certificates.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_GetSubject.html>

use outlast_domain::identity::action;

pub use crate::aws::rolesanywhere::{
    GetSubject, ScalarSubjectRequest as Input, SubjectDetailResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_subject};
use crate::wire::ApiError;

impl Run for GetSubject {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_subject(call, &input.subject_id)?;
        let action = action::rolesanywhere::GetSubject;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        Ok(Output { subject: (&found).into() })
    }
}
