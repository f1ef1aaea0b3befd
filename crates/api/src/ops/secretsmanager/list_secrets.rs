//! `ListSecrets`: lists secrets, filtered and sorted.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_ListSecrets.html>

use outlast_domain::Fault;
use outlast_domain::identity::action;
use outlast_domain::secrets::{self, Order, SecretError, SortBy};

pub use crate::aws::secretsmanager::{
    ListSecrets, ListSecretsRequest as Input, ListSecretsResponse as Output, SecretListEntry,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::secretsmanager::filters;
use crate::wire::{ApiError, validate};

impl Run for ListSecrets {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_of("MaxResults", input.max_results, 100, 100)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
        let order = Order {
            by: input.sort_by.as_deref().and_then(SortBy::by_name).unwrap_or_default(),
            descending: input.sort_order.as_deref() == Some("desc"),
        };
        let filters = filters(input.filters)?;
        let all = call.scope.arn("secretsmanager", "secret:*");
        let allowed = call.authorize(action::secretsmanager::ListSecrets, &all)?;
        if order.descending || !matches!(order.by, SortBy::Created | SortBy::Name) {
            // All secrets are read.
            outlast_crypto::pace::take_long()
                .map_err(|error| SecretError::Fault(Fault::from(error)))?;
        }
        let with_deleted = input.include_planned_deletion == Some(true);
        let place = (after.as_deref(), limit);
        let page = secrets::secrets(
            &call.work,
            &call.scope,
            &filters,
            order,
            place,
            with_deleted,
            &allowed,
        )?;
        Ok(Output {
            secret_list: page.items.iter().map(SecretListEntry::from).collect(),
            next_token: page.next.map(|last| marker::wrap(&last)),
        })
    }
}
