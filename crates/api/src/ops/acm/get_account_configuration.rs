//! `GetAccountConfiguration`: an account's settings.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_GetAccountConfiguration.html>

use outlast_domain::acm::account;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm::ExpiryEvents;
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct GetAccountConfiguration;

/// Request body.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Input {}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub expiry_events: Option<ExpiryEvents>,
}

impl Operation for GetAccountConfiguration {
    const NAME: &'static str = "GetAccountConfiguration";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, _: Input) -> Result<Output, ApiError> {
        let resource = call.scope.arn("acm", "*");
        let allowed = call.authorize(action::acm::GetAccountConfiguration, &resource)?;
        let found = account::configuration(&mut call.work, &call.scope, &allowed)?;
        let days_before_expiry = Some(found.days_before_expiry);
        Ok(Output { expiry_events: Some(ExpiryEvents { days_before_expiry }) })
    }
}
