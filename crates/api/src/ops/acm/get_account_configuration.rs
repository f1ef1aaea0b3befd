//! `GetAccountConfiguration`: an account's settings.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_GetAccountConfiguration.html>

use outlast_domain::acm::account;
use outlast_domain::identity::action;

use crate::aws::Empty;
use crate::aws::acm::ExpiryEventsConfiguration;
pub use crate::aws::acm::{GetAccountConfiguration, GetAccountConfigurationResponse as Output};
use crate::call::{Call, Run};
use crate::wire::ApiError;

impl Run for GetAccountConfiguration {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, _: Empty) -> Result<Output, ApiError> {
        let resource = call.scope.arn("acm", "*");
        let allowed = call.authorize(action::acm::GetAccountConfiguration, &resource)?;
        let found = account::configuration(&mut call.work, &call.scope, &allowed)?;
        let days_before_expiry = Some(found.days_before_expiry);
        Ok(Output { expiry_events: Some(ExpiryEventsConfiguration { days_before_expiry }) })
    }
}
