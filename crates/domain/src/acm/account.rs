//! An account's settings.

use serde::{Deserialize, Serialize};

use super::{AcmError, TokenUse};
use crate::Fault;
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::Work;

/// Default of [`Configuration::days_before_expiry`].
pub(super) const DEFAULT_DAYS: i64 = 45;

/// An account's settings in a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Days before the end of a certificate at which expiry events begin.
    pub days_before_expiry: i64,
}

/// The settings in force: the account's own, or the defaults.
pub fn configuration(
    work: &mut Work<'_>,
    scope: &Scope,
    permit: &Permit<action::acm::GetAccountConfiguration>,
) -> Result<Configuration, AcmError> {
    permit.opens(&scope.arn("acm", "*"))?;
    let stored = work.get(&record_key(scope))?;
    Ok(stored.unwrap_or(Configuration { days_before_expiry: DEFAULT_DAYS }))
}

/// Replaces the settings; what is left out becomes the default. The same request with the same token does nothing
/// within the hour, whatever was set since.
pub fn configure(
    work: &mut Work<'_>,
    scope: &Scope,
    days_before_expiry: Option<i64>,
    token: &str,
    permit: &Permit<action::acm::PutAccountConfiguration>,
) -> Result<(), AcmError> {
    permit.opens(&scope.arn("acm", "*"))?;
    let days_before_expiry = days_before_expiry.unwrap_or(DEFAULT_DAYS);
    if !(1..=DEFAULT_DAYS).contains(&days_before_expiry) {
        return Err(AcmError::Validation(format!(
            "DaysBeforeExpiry must be between 1 and {DEFAULT_DAYS}, inclusive."
        )));
    }
    let token = TokenUse::new(scope, "configure", token, &days_before_expiry.to_string());
    if token.earlier(work, AcmError::Conflict)?.is_some() {
        return Ok(());
    }
    token.remember(work, "")?;
    Ok(work.put(&record_key(scope), &Configuration { days_before_expiry })?)
}

/// Days before the end of a certificate at which events of an account in a Region begin.
pub(super) fn days_before_expiry(work: &mut Work<'_>, scope: &Scope) -> Result<i64, Fault> {
    let stored = work.get::<Configuration>(&record_key(scope))?;
    Ok(stored.map_or(DEFAULT_DAYS, |configuration| configuration.days_before_expiry))
}

fn record_key(scope: &Scope) -> String {
    format!("acm/account/{}/{}", scope.account, scope.region)
}
