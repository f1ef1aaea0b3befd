//! `ListRetirableGrants`: lists the grants that a principal may retire.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListRetirableGrants.html>

use outlast_domain::arn::Scope;
use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    ListGrantsResponse as Output, ListRetirableGrants, ListRetirableGrantsRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::kms::GrantListEntry;
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListRetirableGrants {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_of("Limit", input.limit, 50, 100)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let given = (&input.retiring_principal, &input.retiring_service_principal);
        let ((Some(name), None) | (None, Some(name))) = given else {
            return Err(ApiError::validation(
                "Specify either RetiringPrincipal or RetiringServicePrincipal, and not both.",
            ));
        };
        let retiring = &match given.0 {
            Some(arn) => kms::principal_of("RetiringPrincipal", arn)?,
            None => name.clone(),
        };
        // "The authorized resource is the retiring principal", which must be of the caller's account.
        let allowed = call.authorize(action::kms::ListRetirableGrants, retiring)?;
        let scope = call.scope.clone();
        let after = after.as_deref();
        let page = kms::retirable_grants(&mut call.work, &scope, retiring, after, limit, &allowed)?;
        Ok(Output {
            grants: page
                .items
                .into_iter()
                .map(|grant| {
                    let of = Scope { account: grant.account.clone(), region: scope.region.clone() };
                    GrantListEntry::new(&of, grant)
                })
                .collect(),
            truncated: page.next.is_some(),
            next_marker: page.next.as_deref().map(marker::wrap),
        })
    }
}
