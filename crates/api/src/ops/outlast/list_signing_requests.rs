//! `ListSigningRequests`: lists the requests for approval of the account in the Region. Ours; described in
//! `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::approval;

pub use crate::aws::outlast::{
    ListSigningRequests, ListSigningRequestsRequest as Input, ListSigningRequestsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::outlast::summary;
use crate::wire::{ApiError, validate};

impl Run for ListSigningRequests {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_of("MaxResults", input.max_results, 50, 100)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidMarkerException")?;
        let scope = call.scope.clone();
        let allowed = call
            .authorize(action::outlast::ListSigningRequests, &approval::request_arn(&scope, "*"))?;
        let page = approval::requests(&call.work, &scope, after.as_deref(), limit, &allowed)?;
        let mut requests = Vec::with_capacity(page.items.len());
        for request in &page.items {
            let verdict = approval::judge(&mut call.work, &scope, request)?;
            requests.push(summary(request, &verdict));
        }
        Ok(Output { requests, next_token: page.next.map(|last| marker::wrap(&last)) })
    }
}
