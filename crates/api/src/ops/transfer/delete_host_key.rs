//! `DeleteHostKey`: deletes a host key of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DeleteHostKey.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::delete_host_key;

use crate::aws::Empty;
pub use crate::aws::transfer::{DeleteHostKey, DeleteHostKeyRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_host_key};
use crate::wire::ApiError;

impl Run for DeleteHostKey {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let found = find_host_key(call, &input.server_id, &input.host_key_id)?;
        let action = action::transfer::DeleteHostKey;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        delete_host_key(&mut call.work, &found, &allowed)?;
        Ok(Empty {})
    }
}
