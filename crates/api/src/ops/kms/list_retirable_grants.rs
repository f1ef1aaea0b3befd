//! `ListRetirableGrants`: lists the grants that a principal may retire.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListRetirableGrants.html>

use outlast_domain::arn::Scope;
use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::GrantListEntry;
use crate::model::marker;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ListRetirableGrants;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub limit: Option<i64>,
    pub marker: Option<String>,
    pub retiring_principal: Option<String>,
    pub retiring_service_principal: Option<String>,
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

impl Operation for ListRetirableGrants {
    const NAME: &'static str = "ListRetirableGrants";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("Limit", input.limit)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let given = (&input.retiring_principal, &input.retiring_service_principal);
        let ((Some(name), None) | (None, Some(name))) = given else {
            return Err(ApiError::validation(
                "Specify either RetiringPrincipal or RetiringServicePrincipal, and not both.",
            ));
        };
        validate::length("RetiringPrincipal", name.chars().count(), 1, 256)?;
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
