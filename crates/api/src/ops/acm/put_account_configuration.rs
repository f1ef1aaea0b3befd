//! `PutAccountConfiguration`: replaces an account's settings.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_PutAccountConfiguration.html>

use outlast_domain::acm::account;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm::{PutAccountConfiguration, PutAccountConfigurationRequest as Input};
use crate::call::{Call, Run};
use crate::wire::ApiError;

impl Run for PutAccountConfiguration {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let resource = call.scope.arn("acm", "*");
        let allowed = call.authorize(action::acm::PutAccountConfiguration, &resource)?;
        let days = input.expiry_events.and_then(|events| events.days_before_expiry);
        let token = &input.idempotency_token;
        account::configure(&mut call.work, &call.scope, days, token, &allowed)?;
        Ok(Empty {})
    }
}
