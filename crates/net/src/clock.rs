//! The time of day.

use std::time::SystemTime;

/// Time at which a request is evaluated, in milliseconds since 1970.
pub type Clock = fn() -> i64;

/// The system's clock.
pub fn system_clock() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
