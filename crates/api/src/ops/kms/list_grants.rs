//! `ListGrants`: lists the grants of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListGrants.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{GrantListEntry, key_by_id};
use crate::model::marker;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ListGrants;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub limit: Option<i64>,
    pub marker: Option<String>,
    pub key_id: String,
    pub grant_id: Option<String>,
    pub grantee_principal: Option<String>,
    pub grantee_service_principal: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub grants: Vec<GrantListEntry>,
    pub next_marker: Option<String>,
    pub truncated: bool,
}

impl Operation for ListGrants {
    const NAME: &'static str = "ListGrants";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        if input.grantee_principal.is_some() && input.grantee_service_principal.is_some() {
            return Err(ApiError::validation(
                "Specify either GranteePrincipal or GranteeServicePrincipal, and not both.",
            ));
        }
        let names = [&input.grantee_principal, &input.grantee_service_principal];
        for name in names.into_iter().flatten() {
            validate::length("GranteePrincipal", name.chars().count(), 1, 256)?;
        }
        let limit = validate::page_limit("Limit", input.limit)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let key = key_by_id(call, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::ListGrants, &key, None)?;
        // Grants name principals in one spelling; what names none is in no grant.
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
