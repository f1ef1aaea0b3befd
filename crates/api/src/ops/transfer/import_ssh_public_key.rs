//! `ImportSshPublicKey`: adds a public key to a user of an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ImportSshPublicKey.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::add_key;

pub use crate::aws::transfer::{
    ImportSshPublicKey, ImportSshPublicKeyRequest as Input, ImportSshPublicKeyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_user};
use crate::wire::ApiError;

impl Run for ImportSshPublicKey {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_user(call, &input.server_id, &input.user_name)?;
        let action = action::transfer::ImportSshPublicKey;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let id = add_key(&mut call.work, found, &input.ssh_public_key_body, &allowed)?;
        call.notes.response("sshPublicKeyId", id.as_str());
        Ok(Output { server_id: input.server_id, ssh_public_key_id: id, user_name: input.user_name })
    }
}
