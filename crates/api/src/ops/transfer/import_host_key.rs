//! `ImportHostKey`: adds a host key to an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ImportHostKey.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{HOST_KEY, NewHostKey, import_host_key};

pub use crate::aws::transfer::{
    ImportHostKey, ImportHostKeyRequest as Input, ImportHostKeyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{
    authorize_tagged, description, find_server, may_tag, new_tags, only_sealed,
};
use crate::wire::ApiError;

impl Run for ImportHostKey {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        only_sealed(input.storage_type.as_deref())?;
        let server = find_server(call, &input.server_id)?;
        let tags = new_tags(call, input.tags)?;
        let action = action::transfer::ImportHostKey;
        let allowed = authorize_tagged(call, action, &server.arn(), server.tags())?;
        may_tag(call, &tags, &HOST_KEY.arn(&call.scope, &format!("{}/*", server.id())))?;
        let new = NewHostKey { description: description(input.description)?, tags };
        let made = import_host_key(&mut call.work, &server, &input.host_key_body, new, &allowed)?;
        call.notes.resource(made.arn(), HOST_KEY.cloudtrail);
        call.notes.response("hostKeyId", made.id());
        Ok(Output { server_id: input.server_id, host_key_id: made.id().to_owned() })
    }
}
