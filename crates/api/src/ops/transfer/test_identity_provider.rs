//! `TestIdentityProvider`: tries a login without files.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_TestIdentityProvider.html>

use std::net::IpAddr;

use outlast_domain::identity::action;
use outlast_domain::transfer::USER;

pub use crate::aws::transfer::{
    TestIdentityProvider, TestIdentityProviderRequest as Input,
    TestIdentityProviderResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_server, invalid, only_sftp};
use crate::wire::ApiError;

impl Run for TestIdentityProvider {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_server(call, &input.server_id)?;
        call.notes.parameter("userName", input.user_name.as_str());
        only_sftp(input.server_protocol.map(|name| vec![name]).as_deref())?;
        let resource = USER.arn(&call.scope, &format!("{}/{}", found.id(), input.user_name));
        let action = action::transfer::TestIdentityProvider;
        let _ = authorize_tagged(call, action, &resource, found.tags())?;
        if let Some(address) = input.source_ip.filter(|text| !text.is_empty()) {
            address.parse::<IpAddr>().map_err(|_| invalid("SourceIp is not an IP address"))?;
        }
        // AWS: "cannot be used to test a server whose users are service managed".
        Err(invalid(if found.provider().is_service_managed() {
            "TestIdentityProvider is for servers whose identity provider is not SERVICE_MANAGED"
        } else {
            "TestIdentityProvider cannot ask the identity provider from here; log in with an SFTP client"
        }))
    }
}
