//! `ListSubjects`: lists the subjects that have authenticated of an account in the Region.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_ListSubjects.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, SUBJECT};

pub use crate::aws::rolesanywhere::{
    ListRequest as Input, ListSubjects, ListSubjectsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::rolesanywhere::{next_token, page_size};
use crate::wire::ApiError;

impl Run for ListSubjects {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.page_size)?;
        let after = next_token(input.next_token.as_deref())?;
        let allowed =
            call.authorize(action::rolesanywhere::ListSubjects, &SUBJECT.arn(&call.scope, "*"))?;
        let (work, scope) = (&call.work, &call.scope);
        let page = rolesanywhere::subjects(work, scope, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            subjects: page.items.iter().map(Into::into).collect(),
            next_token: page.next.as_deref().map(marker::wrap),
        })
    }
}
