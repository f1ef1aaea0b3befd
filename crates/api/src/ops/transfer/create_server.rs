//! `CreateServer`: creates an SFTP server, which serves at once.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_CreateServer.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{NewServer, Provider, SERVER, create_server};

pub use crate::aws::transfer::{
    CreateServer, CreateServerRequest as Input, CreateServerResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{
    DOMAIN, GivenServer, invalid, may_tag, new_tags, only_sealed, only_sftp,
};
use crate::wire::ApiError;

impl Run for CreateServer {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        only_sftp(input.protocols.as_deref())?;
        only_sealed(input.host_key_storage_type.as_deref())?;
        if input.domain.is_some_and(|domain| domain != DOMAIN) {
            return Err(invalid("The domain EFS is not served; use S3"));
        }
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
        let tags = new_tags(call, input.tags)?;
        let resource = SERVER.arn(&call.scope, "*");
        let allowed = call.authorize(action::transfer::CreateServer, &resource)?;
        may_tag(call, &tags, &resource)?;
        let (change, may_pass) = given.or_default_policy().read(call, &Provider::ServiceManaged)?;
        let host_key = input.host_key.as_deref().filter(|text| !text.is_empty());
        let new = NewServer { change, host_key, tags };
        let (work, scope) = (&mut call.work, &call.scope);
        let made = create_server(work, scope, new, &allowed, &may_pass)?;
        call.notes.resource(made.arn(), SERVER.cloudtrail);
        call.notes.response("serverId", made.id());
        Ok(Output { server_id: made.id().to_owned() })
    }
}
