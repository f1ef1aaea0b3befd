//! `ListKeyPolicies`: lists the names of the policies of a key; every key has one, `default`.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListKeyPolicies.html>

use outlast_domain::identity::action;

pub use crate::aws::kms::{
    ListKeyPolicies, ListKeyPoliciesRequest as Input, ListKeyPoliciesResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for ListKeyPolicies {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::page_limit("Limit", input.limit)?;
        marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let key = own_key(call, action::kms::ListKeyPolicies, &input.key_id)?;
        call.authorize_key(action::kms::ListKeyPolicies, &key, None)?;
        let policy_names = match input.marker {
            None => vec!["default".to_owned()],
            Some(_) => Vec::new(),
        };
        Ok(Output { policy_names, next_marker: None, truncated: false })
    }
}
