//! `RotateKeyOnDemand`: rotates a key now.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_RotateKeyOnDemand.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    RotateKeyOnDemand, RotateKeyOnDemandRequest as Input, RotateKeyOnDemandResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for RotateKeyOnDemand {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::kms::RotateKeyOnDemand, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::RotateKeyOnDemand, &key, None)?;
        let key_id = key.arn();
        kms::rotate_on_demand(&mut call.work, key, &allowed)?;
        Ok(Output { key_id })
    }
}
