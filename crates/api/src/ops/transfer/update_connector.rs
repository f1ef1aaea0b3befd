//! `UpdateConnector`: changes an SFTP connector.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_UpdateConnector.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::connector::update_connector;

pub use crate::aws::transfer::{
    UpdateConnector, UpdateConnectorRequest as Input, UpdateConnectorResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::{GivenConnector, find_connector};
use crate::model::transfer::authorize_tagged;
use crate::wire::ApiError;

impl Run for UpdateConnector {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_connector(call, &input.connector_id)?;
        let action = action::transfer::UpdateConnector;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let given = GivenConnector {
            url: input.url,
            access_role: input.access_role,
            logging_role: input.logging_role,
            sftp: input.sftp_config,
            security_policy_name: input.security_policy_name,
            ip_address_type: input.ip_address_type,
        };
        let (change, may_pass) = given.read(call)?;
        update_connector(&mut call.work, found, change, &allowed, &may_pass)?;
        Ok(Output { connector_id: input.connector_id })
    }
}
