//! `ListCertificateAuthorities`: lists the CAs of the account in the region, or those that others share with it.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_ListCertificateAuthorities.html>

use outlast_domain::ca;
use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{
    ListCertificateAuthorities, ListCertificateAuthoritiesRequest as Input,
    ListCertificateAuthoritiesResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::CertificateAuthority;
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListCertificateAuthorities {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("MaxResults", input.max_results)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
        let owner = input.resource_owner.as_deref().unwrap_or("SELF");
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
