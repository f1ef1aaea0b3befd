//! Periods of validity in AWS's five units.

use time::{Date, Month, OffsetDateTime, Time};

use super::CaError;

/// Unit of a [`Validity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidityType {
    /// `YYMMDDHHMMSS` or `YYYYMMDDHHMMSS`, UTC, written as one number.
    EndDate,
    /// Seconds since 1970.
    Absolute,
    /// Days from now.
    Days,
    /// Calendar months from now.
    Months,
    /// Calendar years from now.
    Years,
}

/// The end (or start) of a validity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The number.
    pub value: i64,
    /// The unit.
    pub kind: ValidityType,
}

impl ValidityType {
    /// Reads AWS's name.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "END_DATE" => Self::EndDate,
            "ABSOLUTE" => Self::Absolute,
            "DAYS" => Self::Days,
            "MONTHS" => Self::Months,
            "YEARS" => Self::Years,
            _ => return None,
        })
    }
}

impl Validity {
    /// The point in time, seconds since 1970.
    pub fn resolve(&self, now: i64) -> Result<i64, CaError> {
        self.try_resolve(now).ok_or_else(|| {
            CaError::Validation(format!("{} is not a valid value for {:?}", self.value, self.kind))
        })
    }

    fn try_resolve(&self, now: i64) -> Option<i64> {
        if self.value < 1 {
            return None;
        }
        let at = match self.kind {
            ValidityType::Absolute => self.value,
            ValidityType::Days => now.checked_add(self.value.checked_mul(86_400)?)?,
            ValidityType::Months => months_later(now, self.value)?,
            ValidityType::Years => months_later(now, self.value.checked_mul(12)?)?,
            ValidityType::EndDate => end_date(self.value)?,
        };
        // The last year that X.509 can express is 9999.
        OffsetDateTime::from_unix_timestamp(at).ok().filter(|time| time.year() <= 9999)?;
        Some(at)
    }
}

/// The same day and hour some months later; the month's last day if it has no such day.
fn months_later(now: i64, months: i64) -> Option<i64> {
    let from = OffsetDateTime::from_unix_timestamp(now).ok()?;
    let total = i64::from(from.year()) * 12 + i64::from(u8::from(from.month())) - 1;
    let total = total.checked_add(months)?;
    let year = i32::try_from(total.div_euclid(12)).ok().filter(|year| *year <= 9999)?;
    let month = Month::try_from(u8::try_from(total.rem_euclid(12)).ok()? + 1).ok()?;
    let day = from.day().min(month.length(year));
    let date = Date::from_calendar_date(year, month, day).ok()?;
    Some(date.with_time(from.time()).assume_utc().unix_timestamp())
}

fn end_date(value: i64) -> Option<i64> {
    let pair = |position: u32| u8::try_from(value / 100_i64.pow(position) % 100).ok();
    let mut year = i32::try_from(value / 10_i64.pow(10)).ok()?;
    if value < 10_i64.pow(12) {
        // RFC 5280, section 4.1.2.5.1: years from 50 on belong to the last century.
        year += if year >= 50 { 1900 } else { 2000 };
    }
    let date = Date::from_calendar_date(year, Month::try_from(pair(4)?).ok()?, pair(3)?).ok()?;
    let time = Time::from_hms(pair(2)?, pair(1)?, pair(0)?).ok()?;
    Some(date.with_time(time).assume_utc().unix_timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_says_a_point_in_time() {
        // 2026-11-30T12:00:00Z
        let now = 1_796_040_000;
        for (kind, value, expected) in [
            (ValidityType::Days, 1, Some(now + 86_400)),
            (ValidityType::Months, 3, Some(1_803_816_000)), // 2027-02-28T12:00:00Z
            (ValidityType::Years, 1, Some(1_827_576_000)),  // 2027-11-30T12:00:00Z
            (ValidityType::Absolute, 1_800_000_000, Some(1_800_000_000)),
            (ValidityType::EndDate, 20_270_228_120_000, Some(1_803_816_000)),
            (ValidityType::EndDate, 270_228_120_000, Some(1_803_816_000)),
            (ValidityType::EndDate, 20_271_301_000_000, None),
            (ValidityType::Years, 9000, None),
            (ValidityType::Days, i64::MAX, None),
            (ValidityType::Days, 0, None),
        ] {
            assert_eq!(Validity { value, kind }.try_resolve(now), expected, "{kind:?} {value}");
        }
    }
}
