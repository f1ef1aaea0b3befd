//! `PutAccountConfiguration`: replaces an account's settings.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_PutAccountConfiguration.html>

use outlast_domain::acm::account;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm::{ExpiryEvents, check_token};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct PutAccountConfiguration;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    #[serde(default, deserialize_with = "crate::wire::types::structure")]
    pub expiry_events: Option<ExpiryEvents>,
    pub idempotency_token: String,
}

impl Operation for PutAccountConfiguration {
    const NAME: &'static str = "PutAccountConfiguration";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        check_token(&input.idempotency_token)?;
        let resource = call.scope.arn("acm", "*");
        let allowed = call.authorize(action::acm::PutAccountConfiguration, &resource)?;
        let days = input.expiry_events.and_then(|events| events.days_before_expiry);
        let token = &input.idempotency_token;
        account::configure(&mut call.work, &call.scope, days, token, &allowed)?;
        Ok(Empty {})
    }
}
