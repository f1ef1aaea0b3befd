//! `UpdateHostKey`: changes the description of a host key.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_UpdateHostKey.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::update_host_key;

pub use crate::aws::transfer::{
    UpdateHostKey, UpdateHostKeyRequest as Input, UpdateHostKeyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, description, find_host_key, only_sealed};
use crate::wire::ApiError;

impl Run for UpdateHostKey {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        only_sealed(input.storage_type.as_deref())?;
        let found = find_host_key(call, &input.server_id, &input.host_key_id)?;
        let action = action::transfer::UpdateHostKey;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let found =
            update_host_key(&mut call.work, found, description(input.description)?, &allowed)?;
        Ok(Output { server_id: input.server_id, host_key_id: found.id().to_owned() })
    }
}
