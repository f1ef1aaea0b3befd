//! `StopServer`: stops an SFTP server, which takes effect at once.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_StopServer.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::set_online;

use crate::aws::Empty;
pub use crate::aws::transfer::{StopServer, StopServerRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_server};
use crate::wire::ApiError;

impl Run for StopServer {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let found = find_server(call, &input.server_id)?;
        let action = action::transfer::StopServer;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        set_online(&mut call.work, found, false, &allowed)?;
        Ok(Empty {})
    }
}
