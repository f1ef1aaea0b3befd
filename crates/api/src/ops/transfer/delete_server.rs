//! `DeleteServer`: deletes an SFTP server with its users and host keys.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DeleteServer.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::delete_server;

use crate::aws::Empty;
pub use crate::aws::transfer::{DeleteServer, DeleteServerRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_server};
use crate::wire::ApiError;

impl Run for DeleteServer {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let found = find_server(call, &input.server_id)?;
        let action = action::transfer::DeleteServer;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        delete_server(&mut call.work, &found, &allowed)?;
        Ok(Empty {})
    }
}
