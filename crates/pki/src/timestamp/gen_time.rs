//! `genTime`: a GeneralizedTime with a fraction of a second (RFC 3161, section 2.4.2), in milliseconds since 1970.

use std::time::Duration;

use der::asn1::{Any, GeneralizedTime};
use der::{Decode, Encode, Tag, Tagged};

/// Most digits of a fraction that are read; beyond milliseconds they are cut off.
const MAX_DIGITS: usize = 9;

/// The time in `any`; `None` if it is not in the form of DER: `YYYYMMDDhhmmss[.s...]Z`, without trailing zeros.
pub fn read(any: &Any) -> Option<i64> {
    if any.tag() != Tag::GeneralizedTime {
        return None;
    }
    let text = any.value().strip_suffix(b"Z")?;
    let (whole, fraction) = match text.iter().position(|byte| *byte == b'.') {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, &b""[..]),
    };
    if whole.len() != 14 || !whole.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let is_fraction = fraction.len() <= MAX_DIGITS && fraction.iter().all(u8::is_ascii_digit);
    // X.690, section 11.7.3: a fraction has no trailing zero, and no point without digits.
    if !is_fraction || text.last() == Some(&b'.') || fraction.last() == Some(&b'0') {
        return None;
    }
    let der = Any::new(Tag::GeneralizedTime, [whole, b"Z"].concat()).ok()?.to_der().ok()?;
    let seconds = GeneralizedTime::from_der(&der).ok()?.to_unix_duration().as_secs();
    let digit = |at: usize| fraction.get(at).map_or(0, |byte| i64::from(byte - b'0'));
    let ms = digit(0) * 100 + digit(1) * 10 + digit(2);
    i64::try_from(seconds).ok()?.checked_mul(1000)?.checked_add(ms)
}

/// The reverse of [`read`].
pub fn write(unix_ms: i64) -> der::Result<Any> {
    let error = || der::Error::from(der::ErrorKind::DateTime);
    let seconds = u64::try_from(unix_ms.div_euclid(1000)).map_err(|_| error())?;
    let whole = GeneralizedTime::from_unix_duration(Duration::from_secs(seconds))?;
    let mut text = Any::from_der(&whole.to_der()?)?.value().to_vec();
    let fraction = format!(".{:03}", unix_ms.rem_euclid(1000));
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    text.pop();
    text.extend(fraction.as_bytes());
    text.push(b'Z');
    Any::new(Tag::GeneralizedTime, text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds() {
        for (text, expected) in [
            ("19700101000000Z", Some(0)),
            ("19700101000001.5Z", Some(1500)),
            ("20261124161234.056Z", Some(1_795_536_754_056)),
            ("20261124161234.000001Z", Some(1_795_536_754_000)),
            ("99991231235959.999Z", Some(253_402_300_799_999)),
            ("20261124161234.50Z", None),
            ("20261124161234.Z", None),
            ("20261124161234.5", None),
            ("20261124161234.5+0100", None),
            ("20261124161234,5Z", None),
            ("202611241612Z", None),
            ("20261324161234Z", None),
            ("20261124161234.0000000001Z", None),
            ("2026112416123..5Z", None),
            ("Z", None),
            ("", None),
        ] {
            let any = Any::new(Tag::GeneralizedTime, text.as_bytes()).unwrap();
            assert_eq!(read(&any), expected, "{text}");
            if let Some(ms) = expected.filter(|_| !text.contains("000001Z")) {
                assert_eq!(write(ms).unwrap(), any, "{text}");
            }
        }
        assert_eq!(read(&Any::new(Tag::UtcTime, b"261124161234Z".as_slice()).unwrap()), None);
        assert!(write(-1).is_err());
    }
}
