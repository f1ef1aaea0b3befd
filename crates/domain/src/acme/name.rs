//! DNS names in ACME (RFC 8555, section 7.1.4): ASCII, lower case, perhaps a wildcard.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::limits;

/// A name that a certificate may be for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DnsName {
    /// The name without `*.`.
    base: String,
    wildcard: bool,
}

impl DnsName {
    /// Reads a name and converts it to lower case. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let (base, wildcard) = match lower.strip_prefix("*.") {
            Some(base) => (base, true),
            None => (lower.as_str(), false),
        };
        // RFC 1035, section 2.3.4: 255 octets, which leaves 253 characters.
        if text.len() > limits::MAX_DNS_NAME {
            return Err("the name is longer than 253 characters".into());
        }
        if base.parse::<IpAddr>().is_ok() {
            return Err("an address is not a DNS name".into());
        }
        let fits = |label: &str| {
            let inner =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            (1..=63).contains(&label.len())
                && label.bytes().all(inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if !base.split('.').all(fits) {
            return Err(
                "it is not a host name in ASCII: labels of letters, digits and hyphens, with at \
                        most one * as the whole first label"
                    .into(),
            );
        }
        // Other programs would read it as an IP address (WHATWG URL, "ends in a number checker").
        if base.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
            return Err("the last label is a number".into());
        }
        Ok(Self { base: base.to_owned(), wildcard })
    }

    /// The name without `*.`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether it is a wildcard for [`Self::base`].
    pub fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    /// The name and its parents: `a.b.c`, `b.c`, `c`.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self.base.as_str()), |name| Some(name.split_once('.')?.1))
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wildcard {
            f.write_str("*.")?;
        }
        f.write_str(&self.base)
    }
}

impl TryFrom<String> for DnsName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<DnsName> for String {
    fn from(name: DnsName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_host_names_in_lower_case() {
        let name = DnsName::parse("*.WWW.Example").unwrap();
        assert_eq!((name.base(), name.is_wildcard()), ("www.example", true));
        assert_eq!(name.to_string(), "*.www.example");
        assert_eq!(name.ancestors().collect::<Vec<_>>(), ["www.example", "example"]);
        let long = format!("{}.example", "a".repeat(64));
        let longer = ["a"; 128].join(".");
        for wrong in [
            "",
            ".",
            "a..b",
            "a.",
            ".a",
            "*",
            "*.",
            "*.*.a",
            "a.*.b",
            "-a.b",
            "a-.b",
            "a_b.c",
            "ü.de",
            "127.0.0.1",
            "::1",
            "a.b/c",
            "a b",
            "host.1",
            &long,
            &longer,
        ] {
            assert!(DnsName::parse(wrong).is_err(), "{wrong}");
        }
        assert!(DnsName::parse("localhost").is_ok() && DnsName::parse("xn--bcher-kva.de").is_ok());
    }
}
