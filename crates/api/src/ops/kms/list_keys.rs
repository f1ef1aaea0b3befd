//! `ListKeys`: lists the keys of the account in the Region.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListKeys.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    KeyListEntry, ListKeys, ListKeysRequest as Input, ListKeysResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListKeys {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("Limit", input.limit)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let allowed = call.authorize(action::kms::ListKeys, &call.scope.arn("kms", "key/*"))?;
        let owners = input.resource_owners.unwrap_or_else(|| vec!["SELF".to_owned()]);
        // Keys are not shared by Resource Access Manager here.
        if !owners.iter().any(|owner| owner == "SELF") {
            return Ok(Output { keys: Vec::new(), next_marker: None, truncated: false });
        }
        let page = kms::keys(&call.work, &call.scope, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            keys: page
                .items
                .iter()
                .map(|key| KeyListEntry { key_id: key.id().to_owned(), key_arn: key.arn() })
                .collect(),
            truncated: page.next.is_some(),
            next_marker: page.next.as_deref().map(marker::wrap),
        })
    }
}
