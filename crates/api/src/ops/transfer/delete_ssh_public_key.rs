//! `DeleteSshPublicKey`: removes a public key from a user of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DeleteSshPublicKey.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::remove_key;

use crate::aws::Empty;
pub use crate::aws::transfer::{DeleteSshPublicKey, DeleteSshPublicKeyRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_user};
use crate::wire::ApiError;

impl Run for DeleteSshPublicKey {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let found = find_user(call, &input.server_id, &input.user_name)?;
        call.notes.parameter("sshPublicKeyId", input.ssh_public_key_id.as_str());
        let action = action::transfer::DeleteSshPublicKey;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        remove_key(&mut call.work, found, &input.ssh_public_key_id, &allowed)?;
        Ok(Empty {})
    }
}
