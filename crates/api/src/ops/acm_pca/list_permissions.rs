//! `ListPermissions`: lists what Certificate Manager may do with a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_ListPermissions.html>

use outlast_domain::ca::permission;
use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{
    ListPermissions, ListPermissionsRequest as Input, ListPermissionsResponse as Output, Permission,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::model::marker;
use crate::wire::{ApiError, Timestamp, validate};

impl Run for ListPermissions {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        let allowed = call.authorize_authority(action::acm_pca::ListPermissions, &authority)?;
        let page = permission::list(&call.work, &authority, after.as_deref(), limit, &allowed)?;
        let permissions = page.items.into_iter().map(|found| Permission {
            certificate_authority_arn: authority.arn(),
            created_at: Timestamp::from_ms(found.created_ms),
            policy: found.policy(&authority),
            principal: found.principal,
            source_account: found.source_account,
            actions: found.actions.into_iter().collect(),
        });
        Ok(Output {
            permissions: permissions.collect(),
            next_token: page.next.as_deref().map(marker::wrap),
        })
    }
}
