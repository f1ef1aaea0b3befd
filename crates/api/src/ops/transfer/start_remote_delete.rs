//! `StartRemoteDelete`: deletes a file or directory of the server of a connector.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_StartRemoteDelete.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::connector::{Request, start};

pub use crate::aws::transfer::{
    StartRemoteDelete, StartRemoteDeleteRequest as Input, StartRemoteDeleteResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::find_connector;
use crate::model::transfer::authorize_tagged;
use crate::wire::ApiError;

impl Run for StartRemoteDelete {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_connector(call, &input.connector_id)?;
        let action = action::transfer::StartRemoteDelete;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        call.notes.parameter("deletePath", input.delete_path.as_str());
        let request = Request::Delete { path: input.delete_path };
        let started = start(&mut call.work, &found, request, &allowed)?;
        call.notes.response("deleteId", started.id.as_str());
        Ok(Output { delete_id: started.id })
    }
}
