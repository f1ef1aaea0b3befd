//! `ListAliases`: lists aliases, of one key or of all.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListAliases.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    AliasListEntry, ListAliases, ListAliasesRequest as Input, ListAliasesResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::model::marker;
use crate::wire::{ApiError, Timestamp, validate};

impl Run for ListAliases {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_of("Limit", input.limit, 50, 100)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let key = match &input.key_id {
            Some(name) => Some(own_key(call, action::kms::ListAliases, name)?),
            None => None,
        };
        let resource = call.scope.arn("kms", "alias/*");
        let allowed = call.authorize(action::kms::ListAliases, &resource)?;
        let page = kms::aliases(
            &mut call.work,
            &call.scope,
            key.as_ref(),
            after.as_deref(),
            limit,
            &allowed,
        )?;
        Ok(Output {
            aliases: page
                .items
                .iter()
                .map(|alias| AliasListEntry {
                    alias_name: alias.name.clone(),
                    alias_arn: alias.arn(&call.scope),
                    target_key_id: alias.target.clone(),
                    creation_date: Timestamp::from_ms(alias.created_ms),
                    last_updated_date: Timestamp::from_ms(alias.updated_ms),
                })
                .collect(),
            truncated: page.next.is_some(),
            next_marker: page.next.as_deref().map(marker::wrap),
        })
    }
}
