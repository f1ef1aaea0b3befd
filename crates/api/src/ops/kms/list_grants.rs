//! `ListGrants`: lists the grants of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListGrants.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{ListGrants, ListGrantsRequest as Input, ListGrantsResponse as Output};
use crate::call::{Call, Run};
use crate::model::kms::{GrantListEntry, key_by_id};
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListGrants {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        if input.grantee_principal.is_some() && input.grantee_service_principal.is_some() {
            return Err(ApiError::validation(
                "Specify either GranteePrincipal or GranteeServicePrincipal, and not both.",
            ));
        }
        let limit = validate::page_of("Limit", input.limit, 50, 100)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let key = key_by_id(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::ListGrants, &key, None)?;
        // Grants store principals in one spelling; a text that is no principal matches no grant.
        let grantee = input
            .grantee_principal
            .map(|given| kms::principal_of("GranteePrincipal", &given).unwrap_or(given));
        let wanted = |grant: &kms::Grant| {
            let is = |wanted: &Option<String>, found: &Option<String>| {
                wanted.is_none() || wanted == found
            };
            is(&grantee, &grant.grantee)
                && is(&input.grantee_service_principal, &grant.grantee_service)
        };
        if let Some(id) = &input.grant_id {
            let grant = kms::find_grant(&mut call.work, &key, id)?;
            let grant = Some(kms::shown_grant(&mut call.work, grant)?).filter(wanted);
            let grants = grant.map(|grant| GrantListEntry::new(key.scope(), grant));
            return Ok(Output {
                grants: grants.into_iter().collect(),
                next_marker: None,
                truncated: false,
            });
        }
        let page = kms::grants(&mut call.work, &key, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            grants: page
                .items
                .into_iter()
                .filter(wanted)
                .map(|grant| GrantListEntry::new(key.scope(), grant))
                .collect(),
            truncated: page.next.is_some(),
            next_marker: page.next.as_deref().map(marker::wrap),
        })
    }
}
