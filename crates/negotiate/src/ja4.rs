//! JA4: a fingerprint of client software from its ClientHello.
//!
//! Source: "JA4: TLS Client Fingerprinting", FoxIO, technical_details/JA4.md (BSD 3-Clause).

use outlast_crypto::digests::sha256;

use crate::offer::{Offer, Transport};

/// The fingerprint, 36 characters: `t13d1516h2_8daaf6152771_02713d6af862`.
pub fn ja4(offer: &Offer) -> String {
    let mut out = String::with_capacity(LEN);
    out.push(match offer.transport {
        Transport::Tcp => 't',
        Transport::Quic => 'q',
    });
    out.push_str(version(offer));
    out.push(if offer.extensions.contains(&SERVER_NAME) { 'd' } else { 'i' });
    push_count(&mut out, offer.suites.iter());
    push_count(&mut out, offer.extensions.iter());
    let (first, last) = protocol(offer);
    out.push(first);
    out.push(last);

    let mut sorted = Vec::with_capacity(offer.suites.len().max(offer.extensions.len()));
    let mut text = Vec::with_capacity(
        ENTRY * (offer.suites.len().max(offer.extensions.len() + offer.schemes.len()) + 1),
    );
    sorted.extend(meaningful(&offer.suites));
    sorted.sort_unstable();
    push_list(&mut text, &sorted);
    out.push('_');
    push_digest(&mut out, &text);

    // The server name and ALPN depend on the server, not on the client.
    sorted.clear();
    sorted.extend(
        meaningful(&offer.extensions).filter(|kind| ![SERVER_NAME, PROTOCOLS].contains(kind)),
    );
    sorted.sort_unstable();
    text.clear();
    push_list(&mut text, &sorted);
    sorted.clear();
    // Signature schemes keep their order, which distinguishes clients.
    sorted.extend(meaningful(&offer.schemes));
    if !sorted.is_empty() {
        text.push(b'_');
        push_list(&mut text, &sorted);
    }
    out.push('_');
    push_digest(&mut out, &text);
    out
}

/// Characters of a fingerprint.
pub const LEN: usize = 36;

/// Bytes of a value in a list, with its comma.
const ENTRY: usize = 5;
const SERVER_NAME: u16 = 0;
const PROTOCOLS: u16 = 16;
/// Bytes of a digest that are shown.
const SHOWN: usize = 6;

/// RFC 8701: 0x0a0a, 0x1a1a, to 0xfafa.
fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

fn meaningful(values: &[u16]) -> impl Iterator<Item = u16> {
    values.iter().copied().filter(|value| !is_grease(*value))
}

fn version(offer: &Offer) -> &'static str {
    match meaningful(&offer.versions).max() {
        Some(0x0304) => "13",
        Some(0x0303) => "12",
        Some(0x0302) => "11",
        Some(0x0301) => "10",
        Some(0x0300) => "s3",
        Some(0x0002) => "s2",
        _ => "00",
    }
}

fn push_count<'a>(out: &mut String, values: impl Iterator<Item = &'a u16>) {
    let count = values.filter(|value| !is_grease(**value)).count().min(99);
    for digit in [count / 10, count % 10] {
        out.push(char::from(DIGITS.get(digit).copied().unwrap_or(b'0')));
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn hex_digit(value: u8) -> u8 {
    DIGITS.get(usize::from(value & 0x0f)).copied().unwrap_or(b'0')
}

/// First and last character of the first ALPN name; of its hexadecimal form, if either is not alphanumeric.
fn protocol(offer: &Offer) -> (char, char) {
    let Some((first, last)) = offer.protocols.first().and_then(|name| ends(name)) else {
        return ('0', '0');
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        (first.into(), last.into())
    } else {
        (hex_digit(first >> 4).into(), hex_digit(last).into())
    }
}

/// First and last byte of a name whose other bytes are escaped as by [`u8::escape_ascii`].
fn ends(name: &str) -> Option<(u8, u8)> {
    let mut rest = name.as_bytes();
    let mut ends = None;
    while let [byte, tail @ ..] = rest {
        let (value, tail) = match (byte, tail) {
            (b'\\', [b'x', high, low, tail @ ..]) => {
                let nibble = |digit: &u8| char::from(*digit).to_digit(16).unwrap_or(0) as u8;
                (nibble(high) << 4 | nibble(low), tail)
            }
            (b'\\', [b't', tail @ ..]) => (b'\t', tail),
            (b'\\', [b'r', tail @ ..]) => (b'\r', tail),
            (b'\\', [b'n', tail @ ..]) => (b'\n', tail),
            (b'\\', [escaped, tail @ ..]) => (*escaped, tail),
            _ => (*byte, tail),
        };
        ends = Some((ends.map_or(value, |(first, _)| first), value));
        rest = tail;
    }
    ends
}

fn push_list(text: &mut Vec<u8>, values: &[u16]) {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        let [high, low] = value.to_be_bytes();
        text.extend([high >> 4, high, low >> 4, low].map(hex_digit));
    }
}

fn push_digest(out: &mut String, text: &[u8]) {
    // "If a hashed field is empty, the output is 000s instead of a hash of an empty field" (JA4+ General Rules).
    let digest = if text.is_empty() { [0; 32] } else { sha256(text) };
    for byte in digest.iter().take(SHOWN) {
        out.push(hex_digit(byte >> 4).into());
        out.push(hex_digit(*byte).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grease_is_sixteen_values() {
        let found: Vec<_> = (0..=u16::MAX).filter(|value| is_grease(*value)).collect();
        assert_eq!(found.len(), 16);
        assert!(found.contains(&0x0a0a) && found.contains(&0xfafa) && !found.contains(&0x0a1a));
    }

    #[test]
    fn every_first_and_last_byte_comes_back_from_its_escape() {
        for first in 0..=u8::MAX {
            assert_eq!(ends(&[first].escape_ascii().to_string()), Some((first, first)));
            for last in 0..=u8::MAX {
                let name = [first, b'-', last].escape_ascii().to_string();
                assert_eq!(ends(&name), Some((first, last)), "{name}");
            }
        }
        assert_eq!(ends(""), None);
    }
}
