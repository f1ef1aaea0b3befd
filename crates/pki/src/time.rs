//! Converts seconds since 1970 (UTC) to and from X.509 times.

use der::DateTime;
use der::asn1::{GeneralizedTime, UtcTime};
use x509_cert::time::Time;

use crate::PkiError;

/// An X.509 time. RFC 5280, section 4.1.2.5: UTCTime through 2049, GeneralizedTime from 2050 on.
pub fn x509_time(unix: i64) -> Result<Time, PkiError> {
    let seconds = u64::try_from(unix).map_err(|_| PkiError::Time)?;
    let date = DateTime::from_unix_duration(std::time::Duration::from_secs(seconds))
        .map_err(|_| PkiError::Time)?;
    match UtcTime::from_date_time(date) {
        Ok(time) => Ok(Time::UtcTime(time)),
        Err(_) => Ok(Time::GeneralTime(GeneralizedTime::from_date_time(date))),
    }
}

/// Seconds since 1970 of an X.509 time.
pub fn unix_time(time: &Time) -> i64 {
    i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
}

/// Reverses [`rfc3339`], with any offset; `None` if the text is not a time.
pub fn from_rfc3339(text: &str) -> Option<i64> {
    let form = &time::format_description::well_known::Rfc3339;
    time::OffsetDateTime::parse(text, form).ok().map(time::OffsetDateTime::unix_timestamp)
}

/// `2026-11-21T02:00:00Z`.
pub fn rfc3339(unix: i64) -> String {
    time::OffsetDateTime::from_unix_timestamp(unix)
        .ok()
        .and_then(|time| time.format(&time::format_description::well_known::Rfc3339).ok())
        .unwrap_or_else(|| format!("{unix} seconds since 1970"))
}
