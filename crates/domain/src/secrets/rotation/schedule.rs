//! Rotation schedules: `rate(...)`, `cron(...)`, days, and windows. All times are UTC.
//!
//! Source: "Schedule expressions in Secrets Manager rotation" of the user guide. AWS's cron has six fields, its minutes are
//! 0 and its year is `*`, so an hour is the smallest step.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use time::{Date, Duration, Month, OffsetDateTime, Weekday};

use crate::secrets::SecretError;

/// The rotation of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// `RotationLambdaARN`
    pub function: String,
    /// When it rotates.
    #[serde(default)]
    pub rules: Rules,
    /// Whether it rotates by itself.
    pub enabled: bool,
    /// Beginning of the window of the next rotation, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<i64>,
}

/// `RotationRules`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// `AutomaticallyAfterDays`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_days: Option<i64>,
    /// `Duration`: length of the window, such as `3h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// `ScheduleExpression`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

/// The time in which a rotation may begin, milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its beginning.
    pub start_ms: i64,
    /// Its end, excluded.
    pub end_ms: i64,
}

/// A schedule that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Schedule {
    Hours(i64),
    Days(i64),
    Cron(Box<Cron>),
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

impl Rules {
    /// Checks the rules.
    pub fn check(&self) -> Result<(), SecretError> {
        if self.after_days.is_some() && self.expression.is_some() {
            return Err(invalid(
                "You can't specify both AutomaticallyAfterDays and ScheduleExpression.",
            ));
        }
        let schedule = self.schedule()?;
        let Some(hours) = self.hours()? else { return Ok(()) };
        let longest = match &schedule {
            None => return Err(invalid("Duration is valid only with a schedule.")),
            Some(Schedule::Hours(every)) => *every,
            // "The window must not extend into the next UTC day or the next rotation window."
            Some(Schedule::Days(_) | Schedule::Cron(_)) => 24,
        };
        if (1..=longest).contains(&hours) {
            return Ok(());
        }
        Err(invalid(&format!("Duration must be between 1h and {longest}h for this schedule.")))
    }

    /// `AutomaticallyAfterDays` of answers, which AWS calculates from the schedule; `None` if it is not one of days.
    pub fn days(&self) -> Option<i64> {
        match self.schedule() {
            Ok(Some(Schedule::Days(days))) => Some(days),
            _ => None,
        }
    }

    /// Beginning of the next window after `now_ms`; none if only requests rotate.
    pub fn next(&self, now_ms: i64) -> Result<Option<i64>, SecretError> {
        Ok(match self.schedule()? {
            None => None,
            Some(Schedule::Hours(hours)) => Some(floor(now_ms, HOUR_MS) + hours * HOUR_MS),
            Some(Schedule::Days(days)) => Some(floor(now_ms, DAY_MS) + days * DAY_MS),
            Some(Schedule::Cron(cron)) => Some(cron.after(now_ms).ok_or_else(|| {
                invalid("The ScheduleExpression names no time in the next eight years.")
            })?),
        })
    }

    /// The window that begins at `start_ms`.
    pub fn window(&self, start_ms: i64) -> Option<Window> {
        let by_default = match self.schedule().ok()?? {
            Schedule::Hours(_) => HOUR_MS,
            Schedule::Days(_) | Schedule::Cron(_) => floor(start_ms, DAY_MS) + DAY_MS - start_ms,
        };
        let length = self.hours().ok()?.map_or(by_default, |hours| hours * HOUR_MS);
        Some(Window { start_ms, end_ms: start_ms + length })
    }

    fn hours(&self) -> Result<Option<i64>, SecretError> {
        let Some(text) = &self.duration else { return Ok(None) };
        let hours = text.strip_suffix('h').and_then(|digits| digits.parse::<i64>().ok());
        hours.map(Some).ok_or_else(|| invalid("Duration must be a number of hours such as 3h."))
    }

    fn schedule(&self) -> Result<Option<Schedule>, SecretError> {
        if let Some(days) = self.after_days {
            if !(1..=1000).contains(&days) {
                return Err(invalid("RotationRules.AutomaticallyAfterDays must be within 1-1000."));
            }
            return Ok(Some(Schedule::Days(days)));
        }
        self.expression.as_deref().map(expression).transpose()
    }
}

fn expression(text: &str) -> Result<Schedule, SecretError> {
    let within = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(rate) = within("rate") {
        let mut words = rate.split_ascii_whitespace();
        let number = words.next().and_then(|word| word.parse::<i64>().ok());
        return match (number, words.next(), words.next()) {
            // "Secrets Manager rotates as often as every four hours."
            (Some(hours @ 4..=999), Some("hours"), None) => Ok(Schedule::Hours(hours)),
            (Some(1), Some("day"), None) => Ok(Schedule::Days(1)),
            (Some(days @ 1..=999), Some("days"), None) => Ok(Schedule::Days(days)),
            _ => Err(invalid(
                "A rate expression is rate(N hours) with N from 4 to 999, or rate(N days) with N from 1 to 999.",
            )),
        };
    }
    let cron = within("cron")
        .ok_or_else(|| invalid("ScheduleExpression must be rate(...) or cron(...)."))?;
    Cron::parse(cron).map(|cron| Schedule::Cron(Box::new(cron))).map_err(|what| invalid(&what))
}

fn invalid(text: &str) -> SecretError {
    SecretError::InvalidParameter(text.to_owned())
}

fn floor(ms: i64, unit: i64) -> i64 {
    ms.div_euclid(unit) * unit
}

/// A cron expression: hours, months, and days of the month or of the week.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cron {
    hours: BTreeSet<u8>,
    months: BTreeSet<u8>,
    days: Days,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Days {
    /// Days of the month.
    OfMonth(BTreeSet<u8>),
    /// `L`
    Last,
    /// `NW`: the weekday next to day N, in the same month.
    NearestWeekday(u8),
    /// Days of the week, 1 for Sunday.
    OfWeek(BTreeSet<u8>),
    /// `D#N`: the Nth such day of the month.
    Nth(u8, u8),
    /// `DL`: the last such day of the month.
    LastOfWeek(u8),
}

const MONTHS: &[&str] =
    &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Cron {
    fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<_> = text.split_ascii_whitespace().collect();
        let [minutes, hours, of_month, months, of_week, year] = fields[..] else {
            return Err("A cron expression has six fields: minutes, hours, day of month, month, day of week, year.".into());
        };
        if minutes != "0" {
            return Err(
                "The minutes of a cron expression must be 0: windows begin on the hour.".into()
            );
        }
        if year != "*" {
            return Err("The year of a cron expression must be *.".into());
        }
        let hours = set("hours", hours, 0..=23, &[])?;
        let months = set("month", months, 1..=12, MONTHS)?;
        let days = match (of_month, of_week) {
            ("?", "?") => return Err("Day of month and day of week can't both be ?.".into()),
            (of_month, "?") => days_of_month(of_month)?,
            ("?", of_week) => days_of_week(of_week)?,
            // AWS wants a question mark in one of them; "* *" is what people write.
            ("*", "*") => days_of_month("*")?,
            _ => return Err("Day of month or day of week must be ?.".into()),
        };
        Ok(Self { hours, months, days })
    }

    /// The first time after `now_ms`, within eight years: a 29th of February can be that far away.
    fn after(&self, now_ms: i64) -> Option<i64> {
        let now = OffsetDateTime::from_unix_timestamp(now_ms.div_euclid(1000)).ok()?;
        let mut date = now.date();
        for _ in 0..8 * 366 {
            if self.has(date) {
                let mut starts = self.hours.iter().filter_map(|hour| {
                    Some(date.with_hms(*hour, 0, 0).ok()?.assume_utc().unix_timestamp() * 1000)
                });
                if let Some(start) = starts.find(|start| *start > now_ms) {
                    return Some(start);
                }
            }
            date = date.next_day()?;
        }
        None
    }

    fn has(&self, date: Date) -> bool {
        let (day, weekday) = (date.day(), date.weekday().number_days_from_sunday() + 1);
        let length = date.month().length(date.year());
        self.months.contains(&u8::from(date.month()))
            && match &self.days {
                Days::OfMonth(days) => days.contains(&day),
                Days::Last => day == length,
                Days::NearestWeekday(near) => {
                    nearest_weekday(date.year(), date.month(), *near) == Some(date)
                }
                Days::OfWeek(days) => days.contains(&weekday),
                Days::Nth(of, nth) => weekday == *of && (day - 1) / 7 + 1 == *nth,
                Days::LastOfWeek(of) => weekday == *of && day + 7 > length,
            }
    }
}

fn nearest_weekday(year: i32, month: Month, day: u8) -> Option<Date> {
    let date = Date::from_calendar_date(year, month, day).ok()?;
    let moved = match date.weekday() {
        Weekday::Saturday if day == 1 => date.checked_add(Duration::days(2))?,
        Weekday::Saturday => date.previous_day()?,
        Weekday::Sunday if day == month.length(year) => date.checked_sub(Duration::days(2))?,
        Weekday::Sunday => date.next_day()?,
        _ => date,
    };
    Some(moved)
}

fn days_of_month(text: &str) -> Result<Days, String> {
    if text == "L" {
        return Ok(Days::Last);
    }
    if let Some(day) = text.strip_suffix('W') {
        return Ok(Days::NearestWeekday(number("day of month", day, &(1..=31), &[])?));
    }
    set("day of month", text, 1..=31, &[]).map(Days::OfMonth)
}

fn days_of_week(text: &str) -> Result<Days, String> {
    let day = |text| number("day of week", text, &(1..=7), WEEKDAYS);
    if let Some((of, nth)) = text.split_once('#') {
        return Ok(Days::Nth(day(of)?, number("day of week", nth, &(1..=5), &[])?));
    }
    match text.strip_suffix('L') {
        Some("") => Ok(Days::OfWeek(BTreeSet::from([7]))),
        Some(of) => Ok(Days::LastOfWeek(day(of)?)),
        None => set("day of week", text, 1..=7, WEEKDAYS).map(Days::OfWeek),
    }
}

/// A list of numbers, ranges and steps.
fn set(
    field: &str,
    text: &str,
    range: std::ops::RangeInclusive<u8>,
    names: &[&str],
) -> Result<BTreeSet<u8>, String> {
    let mut all = BTreeSet::new();
    for item in text.split(',') {
        let (item, step) = match item.split_once('/') {
            Some((item, step)) => (item, Some(number(field, step, &(1..=*range.end()), &[])?)),
            None => (item, None),
        };
        let (from, to) = match item.split_once('-') {
            _ if item == "*" || item.is_empty() && step.is_some() => (*range.start(), *range.end()),
            Some((from, to)) => {
                (number(field, from, &range, names)?, number(field, to, &range, names)?)
            }
            None => {
                let from = number(field, item, &range, names)?;
                (from, if step.is_some() { *range.end() } else { from })
            }
        };
        if from > to {
            return Err(format!(
                "The {field} of the cron expression has a range that ends before it begins."
            ));
        }
        all.extend((from..=to).step_by(usize::from(step.unwrap_or(1))));
    }
    Ok(all)
}

fn number(
    field: &str,
    text: &str,
    range: &std::ops::RangeInclusive<u8>,
    names: &[&str],
) -> Result<u8, String> {
    let by_name = names.iter().position(|name| name.eq_ignore_ascii_case(text));
    let number = match by_name {
        Some(index) => u8::try_from(index).ok().map(|index| index + range.start()),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    };
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        format!(
            "The {field} of the cron expression must have numbers from {} to {}.",
            range.start(),
            range.end()
        )
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::format_description::well_known::Rfc3339;

    use super::*;

    fn at(text: &str) -> i64 {
        OffsetDateTime::parse(text, &Rfc3339).unwrap().unix_timestamp() * 1000
    }

    fn rules(expression: &str) -> Rules {
        Rules { expression: Some(expression.into()), ..Rules::default() }
    }

    #[test]
    fn next_windows() {
        // 2026-11-24 is a Tuesday.
        let now = at("2026-11-24T10:30:00Z");
        for (expression, next) in [
            ("rate(4 hours)", "2026-11-24T14:00:00Z"),
            ("rate(1 day)", "2026-11-25T00:00:00Z"),
            ("rate(30 days)", "2026-12-24T00:00:00Z"),
            ("cron(0 10 * * ? *)", "2026-11-25T10:00:00Z"),
            ("cron(0 11 * * ? *)", "2026-11-24T11:00:00Z"),
            ("cron(0 /4 * * ? *)", "2026-11-24T12:00:00Z"),
            ("cron(0 0 1 1/3 ? *)", "2027-01-01T00:00:00Z"),
            ("cron(0 0 L * ? *)", "2026-11-30T00:00:00Z"),
            ("cron(0 0 29 FEB ? *)", "2028-02-29T00:00:00Z"),
            ("cron(0 0 29W NOV ? *)", "2026-11-30T00:00:00Z"),
            ("cron(0 0 1W AUG ? *)", "2027-08-02T00:00:00Z"),
            ("cron(0 8-17 ? * MON-FRI *)", "2026-11-24T11:00:00Z"),
            ("cron(0 0 ? * SUN *)", "2026-11-29T00:00:00Z"),
            ("cron(0 0 ? * 2#1 *)", "2026-12-07T00:00:00Z"),
            ("cron(0 16 ? * 6L *)", "2026-11-27T16:00:00Z"),
            ("cron(0 18 ? * tue,thu *)", "2026-11-24T18:00:00Z"),
        ] {
            rules(expression).check().unwrap();
            assert_eq!(rules(expression).next(now).unwrap(), Some(at(next)), "{expression}");
        }
        let days = Rules { after_days: Some(7), ..Rules::default() };
        assert_eq!(days.next(now).unwrap(), Some(at("2026-12-01T00:00:00Z")));
        assert_eq!(Rules::default().next(now).unwrap(), None);
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for expression in [
            "",
            "rate(3 hours)",
            "rate(1 days ago)",
            "rate(4 hours",
            "rate(0 days)",
            "rate(9223372036854775807 days)",
            "cron(* * * * ? *)",
            "cron(0 24 * * ? *)",
            "cron(0 1 ? * ? *)",
            "cron(0 1 1 * 1 *)",
            "cron(0 1 * * ?)",
            "cron(0 1 * * ? 2027)",
            "cron(0 1 32W * ? *)",
            "cron(0 5-3 * * ? *)",
            "cron(0 1/0 * * ? *)",
            "at(2027-01-01)",
        ] {
            assert!(rules(expression).check().is_err(), "{expression}");
        }
        let never = rules("cron(0 0 31 FEB ? *)");
        assert!(never.next(at("2026-11-24T00:00:00Z")).is_err());
    }

    #[test]
    fn windows_end() {
        let with = |expression: &str, duration: Option<&str>| Rules {
            duration: duration.map(str::to_owned),
            ..rules(expression)
        };
        let start = at("2026-11-24T20:00:00Z");
        for (rules, hours) in [
            (with("cron(0 20 * * ? *)", None), 4),
            (with("cron(0 20 * * ? *)", Some("2h")), 2),
            (with("rate(6 hours)", None), 1),
            (with("rate(6 hours)", Some("6h")), 6),
        ] {
            rules.check().unwrap();
            assert_eq!(rules.window(start).unwrap().end_ms, start + hours * HOUR_MS, "{rules:?}");
        }
        for rules in [
            with("rate(6 hours)", Some("7h")),
            with("rate(6 days)", Some("25h")),
            with("rate(6 days)", Some("0h")),
            Rules { duration: Some("3h".into()), ..Rules::default() },
            Rules { after_days: Some(1), ..rules("rate(1 day)") },
        ] {
            assert!(rules.check().is_err(), "{rules:?}");
        }
    }

    proptest! {
        #[test]
        fn no_expression_panics(text in "(rate|cron)?\\(?[0-9A-Z#?*/, -]{0,24}\\)?", now in any::<i32>()) {
            let rules = rules(&text);
            if rules.check().is_ok()
                && let Ok(Some(next)) = rules.next(i64::from(now) * 1000)
            {
                prop_assert!(next > i64::from(now) * 1000);
                prop_assert!(rules.window(next).unwrap().end_ms > next);
            }
        }
    }
}
