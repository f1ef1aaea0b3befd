//! `StartFileTransfer`: sends files of buckets to the server of a connector, or retrieves files from it. The answer says that
//! the request is on disk; the files follow.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_StartFileTransfer.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::connector::{Request, start};

pub use crate::aws::transfer::{
    StartFileTransfer, StartFileTransferRequest as Input, StartFileTransferResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::{find_connector, required};
use crate::model::transfer::{authorize_tagged, invalid};
use crate::wire::ApiError;

impl Run for StartFileTransfer {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_connector(call, &input.connector_id)?;
        let action = action::transfer::StartFileTransfer;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let (local, remote) = (input.local_directory_path, input.remote_directory_path);
        let request = match (input.send_file_paths, input.retrieve_file_paths) {
            (Some(files), None) => {
                if local.is_some() {
                    return Err(invalid("LocalDirectoryPath is of RetrieveFilePaths"));
                }
                call.notes.parameter("sendFilePaths", files.clone());
                Request::Send { files, to: remote }
            }
            (None, Some(files)) => {
                if remote.is_some() {
                    return Err(invalid(
                        "RemoteDirectoryPath is of SendFilePaths: RetrieveFilePaths are whole paths",
                    ));
                }
                call.notes.parameter("retrieveFilePaths", files.clone());
                let to = required(local, "RetrieveFilePaths need a LocalDirectoryPath")?;
                Request::Retrieve { files, to }
            }
            _ => {
                return Err(invalid("Give either SendFilePaths or RetrieveFilePaths"));
            }
        };
        let started = start(&mut call.work, &found, request, &allowed)?;
        call.notes.response("transferId", started.id.as_str());
        Ok(Output { transfer_id: started.id })
    }
}
