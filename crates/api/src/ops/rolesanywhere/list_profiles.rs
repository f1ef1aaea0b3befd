//! `ListProfiles`: lists the profiles of an account in the Region.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_ListProfiles.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, PROFILE};

pub use crate::aws::rolesanywhere::{
    ListProfiles, ListProfilesResponse as Output, ListRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::rolesanywhere::{next_token, page_size, shown};
use crate::wire::ApiError;

impl Run for ListProfiles {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.page_size)?;
        let after = next_token(input.next_token.as_deref())?;
        let allowed =
            call.authorize(action::rolesanywhere::ListProfiles, &PROFILE.arn(&call.scope, "*"))?;
        let (work, scope) = (&call.work, &call.scope);
        let page = rolesanywhere::profiles(work, scope, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            profiles: page.items.iter().map(|found| shown(call, found)).collect(),
            next_token: page.next.as_deref().map(marker::wrap),
        })
    }
}
