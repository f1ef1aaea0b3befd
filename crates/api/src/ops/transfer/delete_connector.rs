//! `DeleteConnector`: deletes an SFTP connector. Its jobs stop, and their results are gone; those that ran have their
//! events.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DeleteConnector.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::connector::delete_connector;

use crate::aws::Empty;
pub use crate::aws::transfer::{DeleteConnector, DeleteConnectorRequest as Input};
use crate::call::{Call, Run};
use crate::model::connectors::find_connector;
use crate::model::transfer::authorize_tagged;
use crate::wire::ApiError;

impl Run for DeleteConnector {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let found = find_connector(call, &input.connector_id)?;
        let action = action::transfer::DeleteConnector;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        call.reports = delete_connector(&mut call.work, &found, &allowed)?;
        Ok(Empty {})
    }
}
