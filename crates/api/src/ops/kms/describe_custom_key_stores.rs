//! `DescribeCustomKeyStores`: returns an empty list: no custom key store exists here.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DescribeCustomKeyStores.html>

use outlast_domain::identity::action;

pub use crate::aws::kms::{
    DescribeCustomKeyStores, DescribeCustomKeyStoresRequest as Input,
    DescribeCustomKeyStoresResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::no_custom_key_store;
use crate::model::marker;
use crate::wire::{ApiError, validate};

impl Run for DescribeCustomKeyStores {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::page_limit("Limit", input.limit)?;
        marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        call.authorize(action::kms::DescribeCustomKeyStores, &call.scope.arn("kms", "*"))?;
        if let Some(name) = input.custom_key_store_id.or(input.custom_key_store_name) {
            return Err(no_custom_key_store(&name));
        }
        Ok(Output { custom_key_stores: Vec::new(), next_marker: None, truncated: false })
    }
}
