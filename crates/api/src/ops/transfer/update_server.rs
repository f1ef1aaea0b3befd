//! `UpdateServer`: changes an SFTP server.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_UpdateServer.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{HOST_KEY, set_host_key, update_server};

pub use crate::aws::transfer::{
    UpdateServer, UpdateServerRequest as Input, UpdateServerResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{GivenServer, authorize_tagged, find_server, only_sftp};
use crate::wire::ApiError;

impl Run for UpdateServer {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        only_sftp(input.protocols.as_deref())?;
        let found = find_server(call, &input.server_id)?;
        let action = action::transfer::UpdateServer;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let given = GivenServer {
            endpoint_details: input.endpoint_details,
            endpoint_type: input.endpoint_type,
            provider_details: input.identity_provider_details,
            provider_type: input.identity_provider_type,
            logging_role: input.logging_role,
            post_banner: input.post_authentication_login_banner,
            pre_banner: input.pre_authentication_login_banner,
            protocol_details: input.protocol_details,
            security_policy_name: input.security_policy_name,
            log_destinations: input.structured_log_destinations,
            storage_options: input.s3_storage_options,
            ip_address_type: input.ip_address_type,
            workflow_details: input.workflow_details,
        };
        let (change, may_pass) = given.read(call, found.provider())?;
        let found = update_server(&mut call.work, found, change, &allowed, &may_pass)?;
        if let Some(text) = input.host_key.as_deref().filter(|text| !text.is_empty()) {
            let key = set_host_key(&mut call.work, &found, text, &allowed)?;
            call.notes.resource(key.arn(), HOST_KEY.cloudtrail);
        }
        Ok(Output { server_id: found.id().to_owned() })
    }
}
