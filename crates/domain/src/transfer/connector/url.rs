//! `Url` of a connector: `sftp://host` or `sftp://host:port`.
//!
//! Only the syntax is judged here; which addresses may be reached is decided where the connection is opened.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::transfer::TransferError;

/// Port of SSH.
const PORT: u16 = 22;

/// Host and port of a connector's `Url`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// A name of DNS, or an address without brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Target {
    /// Reads a `Url`.
    pub(super) fn parse(url: &str) -> Result<Self, TransferError> {
        Self::read(url).ok_or_else(|| {
            TransferError::invalid(
                "Url must be sftp://HOST or sftp://HOST:PORT, without a user, a path and a query; HOST is a name of DNS, \
                 an IPv4 address, or an IPv6 address in brackets",
            )
        })
    }

    fn read(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("sftp://")?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                (
                    address.to_string(),
                    if port.is_empty() { None } else { Some(port.strip_prefix(':')?) },
                )
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (name(host)?, Some(port)),
                None => (name(rest)?, None),
            },
        };
        let port = match port {
            None => PORT,
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().ok().filter(|port| *port != 0)?
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }
}

/// A name of DNS or an IPv4 address, in lower case.
fn name(host: &str) -> Option<String> {
    if host.parse::<Ipv4Addr>().is_ok() {
        return Some(host.to_owned());
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let labels = host.strip_suffix('.').unwrap_or(host);
    // What ends with a number is an address to some resolvers: `127.1`, `0x7f000001`.
    let last = labels.rsplit('.').next()?;
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last
            .strip_prefix("0x")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || last
            .strip_prefix("0X")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (labels.len() <= 253 && labels.split('.').all(is_label) && !is_number)
        .then(|| labels.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_and_perhaps_a_port() {
        for (url, host, port) in [
            ("sftp://files.example.com", "files.example.com", 22),
            ("sftp://Files.Example.com:2222", "files.example.com", 2222),
            ("sftp://files.example.com./", "files.example.com", 22),
            ("sftp://192.0.2.1:65535", "192.0.2.1", 65535),
            ("sftp://[2001:DB8::1]", "2001:db8::1", 22),
            ("sftp://[2001:db8::1]:22", "2001:db8::1", 22),
            ("sftp://my_host-1", "my_host-1", 22),
        ] {
            let target = Target::parse(url).unwrap_or_else(|_| panic!("{url}"));
            assert_eq!((target.host.as_str(), target.port), (host, port), "{url}");
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for url in [
            "",
            "files.example.com",
            "SFTP://files.example.com",
            "https://files.example.com",
            "sftp://",
            "sftp://:22",
            "sftp://user@files.example.com",
            "sftp://user:secret@files.example.com",
            "sftp://files.example.com/path",
            "sftp://files.example.com?x",
            "sftp://files.example.com#x",
            "sftp://files.example.com:",
            "sftp://files.example.com:0",
            "sftp://files.example.com:65536",
            "sftp://files.example.com:+22",
            "sftp://files.example.com:22:22",
            "sftp://a b",
            "sftp://a..b",
            "sftp://-a.example",
            "sftp://a-.example",
            "sftp://b\u{fc}cher.example",
            "sftp://127.1",
            "sftp://2130706433",
            "sftp://0x7f000001",
            "sftp://a.0X7F",
            "sftp://[2001:db8::1",
            "sftp://[192.0.2.1]",
            "sftp://[2001:db8::1]22",
            "sftp://[2001:db8::1%eth0]",
            "sftp://2001:db8::1",
            "sftp://a\n.example",
        ] {
            assert!(Target::parse(url).is_err(), "{url:?}");
        }
        assert!(Target::parse(&format!("sftp://{}.example", "a".repeat(64))).is_err());
        assert!(Target::parse(&format!("sftp://{}e", "a.".repeat(127))).is_err());
    }
}
