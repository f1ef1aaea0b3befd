//! Common elements of the text formats: decimal numbers, base64, names.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::{Hash, MAX_SIZE};

/// An ASCII decimal without leading zeroes, of at most [`MAX_SIZE`].
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let plain = text == "0" || !text.starts_with('0');
    (plain && text.len() <= 19 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
        .filter(|number| *number <= MAX_SIZE)
}

/// Standard base64 with padding; trailing bits must be zero, so that every value has one spelling.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

pub(crate) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Base64 of 32 bytes.
pub(crate) fn hash(text: &str) -> Option<Hash> {
    base64(text)?.try_into().ok()
}

/// A key's name: not empty, without Unicode spaces, plus signs and control characters, and of at most 255 bytes, which is what a
/// cosignature can hold.
pub(crate) fn is_key_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
        && !name.chars().any(|c| c.is_whitespace() || c == '+' || c < ' ')
}

/// Whether text has ASCII control characters other than newlines.
pub(crate) fn has_control_characters(text: &str) -> bool {
    text.bytes().any(|byte| byte < b' ' && byte != b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_spelling() {
        assert_eq!(decimal("0"), Some(0));
        assert_eq!(decimal("9223372036854775807"), Some(MAX_SIZE));
        for text in [
            "",
            "00",
            "01",
            "+1",
            "-1",
            " 1",
            "1 ",
            "1_0",
            "9223372036854775808",
            "18446744073709551615",
            "99999999999999999999",
            "١",
        ] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    #[test]
    fn base64_has_one_spelling() {
        assert_eq!(base64("AA=="), Some(vec![0]));
        for text in ["AA", "AA=", "AB==", "A A=", "AA==\n", "_w=="] {
            assert_eq!(base64(text), None, "{text}");
        }
    }

    #[test]
    fn names_fit_on_a_line_and_in_a_byte() {
        assert!(
            is_key_name("example.com/log") && is_key_name(&"n".repeat(255)) && is_key_name("π")
        );
        for name in
            ["", "a b", "a+b", "a\tb", "a\nb", "a\u{a0}b", "a\u{2003}b", "a\u{1}", &"n".repeat(256)]
        {
            assert!(!is_key_name(name), "{name:?}");
        }
    }
}
