//! Numbers, times, addresses and bytes in conditions.
//!
//! Source: "IAM JSON policy elements: Condition operators".

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnet::{IpNet, Ipv4Net};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A number, with or without a fraction.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Nanoseconds since 1970: from seconds since then, or from a date of W3C's profile of ISO 8601. A bare year, which
/// that profile allows, is taken as seconds.
pub(super) fn instant(text: &str) -> Option<i128> {
    if let Ok(seconds) = text.parse::<i64>() {
        return Some(i128::from(seconds) * 1_000_000_000);
    }
    // A shorter form means the start of the period.
    let whole = match (text.len(), text.split_once('T')) {
        (7, None) => format!("{text}-01T00:00:00Z"),
        (10, None) => format!("{text}T00:00:00Z"),
        (_, Some((date, time))) if time.is_char_boundary(5) && has_no_seconds(time) => {
            let (minutes, zone) = time.split_at(5);
            format!("{date}T{minutes}:00{zone}")
        }
        _ => text.to_owned(),
    };
    OffsetDateTime::parse(&whole, &Rfc3339).ok().map(OffsetDateTime::unix_timestamp_nanos)
}

fn has_no_seconds(time: &str) -> bool {
    matches!(time.as_bytes().get(5), Some(b'Z' | b'+' | b'-'))
}

/// A range of addresses, or one address.
pub(super) fn network(text: &str) -> Option<IpNet> {
    let network = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text.parse().ok()?,
    };
    let IpNet::V6(v6) = network else { return Some(network) };
    // ::ffff:192.0.2.0/120 is 192.0.2.0/24: callers' addresses are compared in the second form.
    let mapped = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96));
    match mapped {
        Some((v4, length)) => Ipv4Net::new(v4, length).ok().map(IpNet::V4),
        None => Some(network),
    }
}

/// A caller's address.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Bytes in base64.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}
