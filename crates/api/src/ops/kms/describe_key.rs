//! `DescribeKey`: describes a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DescribeKey.html>

use outlast_domain::identity::action;

pub use crate::aws::kms::{
    DescribeKey, DescribeKeyRequest as Input, DescribeKeyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{KeyMetadata, find_key, grant_tokens};
use crate::wire::ApiError;

impl Run for DescribeKey {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        let key = find_key(call, &input.key_id)?;
        call.authorize_key(action::kms::DescribeKey, &key, None)?;
        Ok(Output { key_metadata: KeyMetadata::from(&key) })
    }
}
