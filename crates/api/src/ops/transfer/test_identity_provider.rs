//! `TestIdentityProvider`: asks the identity provider of a server about a user, as a login does.
//!
//! The answer is the provider's own, and says what a login would make of it. The test proves no key: a provider that is asked
//! without a password answers with the keys of the user.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_TestIdentityProvider.html>

use std::net::{IpAddr, Ipv4Addr};

use outlast_crypto::Secret;
use outlast_domain::identity::action;
use outlast_domain::transfer::{self, USER};

pub use crate::aws::transfer::{
    TestIdentityProvider, TestIdentityProviderRequest as Input,
    TestIdentityProviderResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{authorize_tagged, find_server, invalid, only_sftp};
use crate::outside::{Errand, Reply};
use crate::wire::ApiError;

impl Run for TestIdentityProvider {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_server(call, &input.server_id)?;
        call.notes.parameter("userName", input.user_name.as_str());
        only_sftp(input.server_protocol.map(|name| vec![name]).as_deref())?;
        let resource = USER.arn(&call.scope, &format!("{}/{}", found.id(), input.user_name));
        let action = action::transfer::TestIdentityProvider;
        let permit = authorize_tagged(call, action, &resource, found.tags())?;
        let source_ip = match input.source_ip.filter(|text| !text.is_empty()) {
            Some(text) => text.parse().map_err(|_| invalid("SourceIp is not an IP address"))?,
            None => call_address(call),
        };
        let password = input.user_password.filter(|password| !password.is_empty());
        let password = password.map(|text| Secret::new(text.into_bytes()));
        let user = input.user_name.as_str();
        let question =
            || transfer::test_question(&found, user, password.as_ref(), source_ip, &permit);
        // AWS: "cannot be used to test a server whose users are service managed".
        let Some(asked) = question()? else {
            return Err(invalid(
                "TestIdentityProvider is for servers whose identity provider is not SERVICE_MANAGED",
            ));
        };
        let Some(again) = question()? else { return Err(invalid("ServerId")) };
        let server_arn = found.arn();
        let errand = || Errand::Provider { server_arn, question: again };
        let Reply::Provider(reply) = call.outside.ask(errand)? else {
            return Err(invalid("ServerId"));
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(reason) => {
                let message = format!("Unable to call identity provider: {reason}");
                return Ok(Output { status_code: 500, message, ..Output::default() });
            }
        };
        let message = match reply.answer(&asked) {
            Ok(Some(answer)) => {
                let policies = call.policies;
                let refusal =
                    transfer::test_answer(&mut call.work, policies, &found, &asked, &answer)
                        .map_err(transfer::TransferError::from)?;
                refusal.map(|refusal| refusal.to_string()).unwrap_or_default()
            }
            Ok(None) => transfer::Refusal::Provider.to_string(),
            Err(error) => error.to_string(),
        };
        Ok(Output {
            response: String::from_utf8_lossy(&reply.body).into_owned(),
            status_code: i64::from(reply.status),
            message,
            url: reply.url.chars().take(MAX_URL).collect(),
        })
    }
}

/// Characters of `Url`, by AWS's model.
const MAX_URL: usize = 255;

/// The address of the caller, which stands for the client's unless the caller names one.
fn call_address(call: &Call<'_>) -> IpAddr {
    let text = call.conditions.get("aws:SourceIp").and_then(|all| all.first()?.parse().ok());
    text.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}
