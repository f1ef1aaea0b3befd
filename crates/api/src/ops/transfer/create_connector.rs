//! `CreateConnector`: creates an SFTP connector.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_CreateConnector.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::CONNECTOR;
use outlast_domain::transfer::connector::create_connector;

pub use crate::aws::transfer::{
    CreateConnector, CreateConnectorRequest as Input, CreateConnectorResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::connectors::GivenConnector;
use crate::model::transfer::{may_tag, new_tags};
use crate::wire::ApiError;

impl Run for CreateConnector {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let given = GivenConnector {
            url: input.url,
            access_role: Some(input.access_role),
            logging_role: input.logging_role,
            sftp: input.sftp_config,
            security_policy_name: input.security_policy_name,
            ip_address_type: input.ip_address_type,
        };
        let tags = new_tags(call, input.tags)?;
        let resource = CONNECTOR.arn(&call.scope, "*");
        let allowed = call.authorize(action::transfer::CreateConnector, &resource)?;
        may_tag(call, &tags, &resource)?;
        let (change, may_pass) = given.or_defaults().read(call)?;
        let (work, scope) = (&mut call.work, &call.scope);
        let made = create_connector(work, scope, change, tags, &allowed, &may_pass)?;
        call.notes.resource(made.arn(), CONNECTOR.cloudtrail);
        call.notes.response("connectorId", made.id());
        Ok(Output { connector_id: made.id().to_owned() })
    }
}
