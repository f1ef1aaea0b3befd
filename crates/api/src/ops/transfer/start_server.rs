//! `StartServer`: starts an SFTP server, which takes effect at once.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_StartServer.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::set_online;

use crate::aws::Empty;
pub use crate::aws::transfer::{StartServer, StartServerRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_server};
use crate::wire::ApiError;

impl Run for StartServer {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let found = find_server(call, &input.server_id)?;
        let action = action::transfer::StartServer;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        set_online(&mut call.work, found, true, &allowed)?;
        Ok(Empty {})
    }
}
