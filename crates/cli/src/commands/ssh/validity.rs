//! Validity of certificates in ssh-keygen's words (its option `-V`): `+1h`, `-5m:+1h`, `20261201Z:20261231Z`.

/// Begin and end, in seconds since 1970; what is not said is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) after: Option<Time>,
    pub(super) before: Time,
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Seconds from now.
    Relative(i64),
    /// Seconds since 1970.
    Absolute(i64),
}

impl Time {
    /// Seconds since 1970.
    pub(super) fn at(self, now: i64) -> i64 {
        match self {
            Self::Relative(seconds) => now.saturating_add(seconds),
            Self::Absolute(at) => at,
        }
    }
}

const FORMS: &str =
    "give the end, such as +8h, or begin and end, such as -5m:+1d or 20261201Z:20261231Z";

/// Parses the option.
pub(super) fn parse(text: &str) -> Result<Validity, String> {
    match text.split_once(':') {
        None => Ok(Validity { after: None, before: time(text)? }),
        Some((after, before)) => Ok(Validity { after: Some(time(after)?), before: time(before)? }),
    }
}

fn time(text: &str) -> Result<Time, String> {
    if matches!(text, "always" | "forever") {
        return Err("certificates that last can only be revoked: give them an end".to_owned());
    }
    if let Some(rest) = text.strip_prefix('+') {
        return Ok(Time::Relative(duration(rest)?));
    }
    if let Some(rest) = text.strip_prefix('-') {
        return Ok(Time::Relative(-duration(rest)?));
    }
    let Some(digits) = text.strip_suffix('Z') else {
        return Err(match text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() >= 8 {
            true => format!("say that the time is UTC: {text}Z"),
            false => FORMS.to_owned(),
        });
    };
    let rfc3339 = match digits.len() {
        _ if !digits.bytes().all(|byte| byte.is_ascii_digit()) => text.to_owned(),
        8 => format!("{}T00:00:00Z", date(digits)),
        12 => format!("{}T{}:{}:00Z", date(digits), &digits[8..10], &digits[10..]),
        14 => {
            let (hour, minute, second) = (&digits[8..10], &digits[10..12], &digits[12..]);
            format!("{}T{hour}:{minute}:{second}Z", date(digits))
        }
        _ => return Err(FORMS.to_owned()),
    };
    crate::values::time(&rfc3339).map(Time::Absolute).map_err(|_| FORMS.to_owned())
}

fn date(digits: &str) -> String {
    format!("{}-{}-{}", &digits[..4], &digits[4..6], &digits[6..8])
}

/// Seconds of a duration such as `90`, `1h30m` or `2w`.
fn duration(text: &str) -> Result<i64, String> {
    let wrong = || FORMS.to_owned();
    let (mut total, mut number) = (0_i64, None::<i64>);
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            let so_far = number.unwrap_or(0).checked_mul(10);
            number = Some(so_far.and_then(|n| n.checked_add(digit.into())).ok_or_else(wrong)?);
            continue;
        }
        let unit = match c.to_ascii_lowercase() {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return Err(wrong()),
        };
        let part = number.take().and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
    }
    match number {
        Some(seconds) => total.checked_add(seconds).ok_or_else(wrong),
        None if text.is_empty() => Err(wrong()),
        None => Ok(total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_those_of_ssh_keygen() {
        let now = 1_795_219_200;
        let times = |text: &str| {
            let found = parse(text)?;
            Ok::<_, String>((found.after.map(|time| time.at(now)), found.before.at(now)))
        };
        assert_eq!(times("+1h"), Ok((None, now + 3600)));
        assert_eq!(times("-5m:+1w1d"), Ok((Some(now - 300), now + 8 * 86_400)));
        assert_eq!(times("+90:+1H30M"), Ok((Some(now + 90), now + 5400)));
        assert_eq!(
            times("20261121Z:202611211230Z"),
            Ok((Some(1_795_219_200), 1_795_219_200 + 45_000))
        );
        assert_eq!(times("2026-11-21T00:00:01Z"), Err(FORMS.to_owned()));
        assert_eq!(times("+0s:20261121000001Z"), Ok((Some(now), now + 1)));
        for wrong in
            ["", "+", "1h", "+h", "+1x", "always:forever", "20261301Z", "+1h:", "+99999999999999w"]
        {
            assert!(times(wrong).is_err(), "{wrong}");
        }
        assert!(times("20261121").unwrap_err().contains("20261121Z"));
    }
}
