//! `StartRemoteMove`: moves or renames a file or directory of the server of a connector.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_StartRemoteMove.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::connector::{Request, start};

pub use crate::aws::transfer::{
    StartRemoteMove, StartRemoteMoveRequest as Input, StartRemoteMoveResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::find_connector;
use crate::model::transfer::authorize_tagged;
use crate::wire::ApiError;

impl Run for StartRemoteMove {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_connector(call, &input.connector_id)?;
        let action = action::transfer::StartRemoteMove;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        call.notes.parameter("sourcePath", input.source_path.as_str());
        call.notes.parameter("targetPath", input.target_path.as_str());
        let request = Request::Move { from: input.source_path, to: input.target_path };
        let started = start(&mut call.work, &found, request, &allowed)?;
        call.notes.response("moveId", started.id.as_str());
        Ok(Output { move_id: started.id })
    }
}
