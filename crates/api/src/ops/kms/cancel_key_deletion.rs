//! `CancelKeyDeletion`: cancels the deletion of a key, which is disabled afterwards.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_CancelKeyDeletion.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    CancelKeyDeletion, CancelKeyDeletionRequest as Input, CancelKeyDeletionResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for CancelKeyDeletion {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::kms::CancelKeyDeletion, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::CancelKeyDeletion, &key, None)?;
        let key = kms::cancel_deletion(&mut call.work, key, &allowed)?;
        Ok(Output { key_id: key.arn() })
    }
}
