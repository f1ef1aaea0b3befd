//! `TestConnection`: logs in at the server of a connector, and out again.
//!
//! The secret of the connector is read before, as its access role; that is in the audit trail by itself, whatever comes of
//! the test.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_TestConnection.html>

use outlast_domain::identity::action;

pub use crate::aws::transfer::{
    TestConnection, TestConnectionRequest as Input, TestConnectionResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::{SftpConnectorConnectionDetails, find_connector};
use crate::model::transfer::authorize_tagged;
use crate::wire::ApiError;

impl Run for TestConnection {
    const READ_ONLY: bool = true;
    // The secret is read in a transaction of its own, which waits for the disk.
    const SLOW: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_connector(call, &input.connector_id)?;
        let action = action::transfer::TestConnection;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let (status, message, host_key) = match call.outside.test(&found, &allowed)? {
            Ok(facts) => ("OK", "Connection succeeded".to_owned(), Some(facts.host_key.clone())),
            Err(failure) => ("ERROR", failure.message.clone(), failure.host_key.clone()),
        };
        call.notes.response("status", status);
        Ok(Output {
            connector_id: input.connector_id,
            status: status.to_owned(),
            status_message: message,
            sftp_connection_details: SftpConnectorConnectionDetails { host_key },
        })
    }
}
