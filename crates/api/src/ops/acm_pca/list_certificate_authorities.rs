//! `ListCertificateAuthorities`: lists the CAs of the account in the region, or those that others share with it.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_ListCertificateAuthorities.html>

use outlast_domain::ca;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::{CertificateAuthority, RESOURCE_OWNERS};
use crate::model::marker;
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ListCertificateAuthorities;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub max_results: Option<i64>,
    pub next_token: Option<String>,
    pub resource_owner: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate_authorities: Vec<CertificateAuthority>,
    pub next_token: Option<String>,
}

impl Operation for ListCertificateAuthorities {
    const NAME: &'static str = "ListCertificateAuthorities";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
        let owner = input.resource_owner.as_deref().unwrap_or("SELF");
        validate::one_of("ResourceOwner", owner, RESOURCE_OWNERS)?;
        let resource = call.scope.arn("acm-pca", "certificate-authority/*");
        let allowed = call.authorize(action::acm_pca::ListCertificateAuthorities, &resource)?;
        let page = if owner == "OTHER_ACCOUNTS" {
            let (work, scope) = (&mut call.work, &call.scope);
            ca::policy::shared_with(work, scope, after.as_deref(), limit, &allowed)?
        } else {
            ca::authorities(&call.work, &call.scope, after.as_deref(), limit, &allowed)?
        };
        Ok(Output {
            certificate_authorities: page
                .items
                .iter()
                .map(|authority| CertificateAuthority::new(authority, &call.settings))
                .collect(),
            next_token: page.next.as_deref().map(marker::wrap),
        })
    }
}
