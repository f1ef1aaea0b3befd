//! Whether a certificate is for an identity (RFC 9525): only alternative names count, never the common name.

use std::fmt;
use std::net::IpAddr;

use x509_cert::ext::pkix::name::{GeneralName, GeneralNames};

/// The identity that a certificate must be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity<'a> {
    /// A host by its DNS name; internationalised names as A-labels.
    Dns(&'a str),
    /// A host by its address.
    Ip(IpAddr),
    /// A mailbox.
    Email(&'a str),
}

impl fmt::Display for Identity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(text) | Self::Email(text) => f.write_str(text),
            Self::Ip(address) => address.fmt(f),
        }
    }
}

impl Identity<'_> {
    /// Whether one of the names matches.
    pub(super) fn is_among(&self, names: &GeneralNames) -> bool {
        names.iter().any(|name| match (self, name) {
            (Self::Dns(wanted), GeneralName::DnsName(name)) => dns_matches(wanted, name.as_str()),
            (Self::Ip(wanted), GeneralName::IpAddress(bytes)) => match wanted {
                IpAddr::V4(address) => address.octets() == bytes.as_bytes(),
                IpAddr::V6(address) => address.octets() == bytes.as_bytes(),
            },
            (Self::Email(wanted), GeneralName::Rfc822Name(name)) => {
                email_matches(wanted, name.as_str())
            }
            _ => false,
        })
    }
}

/// RFC 9525, section 6.3: ignores case; a wildcard is the whole leftmost label and stands for one label.
fn dns_matches(wanted: &str, name: &str) -> bool {
    let wanted = wanted.strip_suffix('.').unwrap_or(wanted);
    if wanted.is_empty() || wanted.contains('*') {
        return false;
    }
    match name.strip_prefix("*.") {
        Some(parent) => {
            // A wildcard directly below the root would stand for every top-level domain.
            !parent.contains('*')
                && parent.contains('.')
                && wanted.split_once('.').is_some_and(|(label, rest)| {
                    !label.is_empty() && rest.eq_ignore_ascii_case(parent)
                })
        }
        None => !name.contains('*') && name.eq_ignore_ascii_case(wanted),
    }
}

/// Ignores case in the host; the local part must be equal (RFC 5280, section 7.5).
fn email_matches(wanted: &str, name: &str) -> bool {
    match (wanted.rsplit_once('@'), name.rsplit_once('@')) {
        (Some((local, host)), Some((other_local, other_host))) => {
            local == other_local && host.eq_ignore_ascii_case(other_host)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_rfc_9525_says() {
        for (wanted, name, expected) in [
            ("host.example.com", "host.example.com", true),
            ("HOST.example.com", "host.EXAMPLE.com", true),
            ("host.example.com.", "host.example.com", true),
            ("host.example.com", "*.example.com", true),
            ("a.host.example.com", "*.example.com", false),
            ("example.com", "*.example.com", false),
            (".example.com", "*.example.com", false),
            ("host.example.com", "h*.example.com", false),
            ("host.example.com", "*.com", false),
            ("example.com", "*.com", false),
            ("*.example.com", "*.example.com", false),
            ("host.example.com", "other.example.com", false),
            ("", "", false),
        ] {
            assert_eq!(dns_matches(wanted, name), expected, "{wanted} {name}");
        }
        assert!(email_matches("a@Example.com", "a@example.COM"));
        assert!(!email_matches("A@example.com", "a@example.com"));
        assert!(!email_matches("example.com", "example.com"));
    }
}
