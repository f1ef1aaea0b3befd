//! Values of options that several commands have. `clap` names the option of a refused value, and exits with 2.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use outlast_domain::arn::{is_account_id, is_region};
use outlast_domain::identity::is_access_key_id;
use outlast_negotiate::Mode;
use outlast_negotiate::catalogue::POLICIES;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// An address to listen at: `127.0.0.1:8443`, or with a host name `localhost:8443`. Of a name's addresses the first
/// is taken, an IPv4 address if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ListenAddress(pub(crate) SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        if host.is_empty() || host.contains(':') || port.parse::<u16>().is_err() {
            return Err(format!("{text:?} is not an address with a port, such as 127.0.0.1:8443"));
        }
        let found = text.to_socket_addrs();
        let mut found: Vec<_> =
            found.map_err(|error| format!("{host} has no address: {error}"))?.collect();
        found.sort_by_key(|address| !address.is_ipv4());
        found.first().copied().map(Self).ok_or_else(|| format!("{host} has no address"))
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names of the modes.
pub(crate) fn modes() -> PossibleValuesParser {
    PossibleValuesParser::new(Mode::ALL.map(Mode::name))
}

/// Names of the policies for TLS listeners.
pub(crate) fn tls_policies() -> PossibleValuesParser {
    PossibleValuesParser::new(POLICIES.iter().filter(|row| row.has_tls()).map(|row| row.name))
}

/// Names of all policies, also those for SSH only.
pub(crate) fn policies() -> PossibleValuesParser {
    PossibleValuesParser::new(POLICIES.iter().map(|row| row.name))
}

/// An address or host name with a port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map(|ListenAddress(address)| address)
}

/// Names of the rows of a table.
pub(crate) fn names<T>(rows: &'static [(&'static str, T)]) -> PossibleValuesParser {
    PossibleValuesParser::new(rows.iter().map(|(name, _)| *name))
}

/// The name of a Region, such as `eu-central-1`.
pub(crate) fn region(text: &str) -> Result<String, String> {
    let problem = || "not a Region, such as eu-central-1".to_owned();
    is_region(text).then(|| text.to_owned()).ok_or_else(problem)
}

/// A number from 1 on.
pub(crate) fn positive<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.ok_or_else(|| "not a whole number from 1 on".to_owned())
}

/// The number of an event.
pub(crate) fn event(text: &str) -> Result<u64, String> {
    positive(text).map_err(|_| "not the number of an event: they are counted from 1".to_owned())
}

/// A duration in seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds =
        text.parse().map_err(|_| "not a number of seconds, such as 5 or 0.5".to_owned())?;
    duration(seconds).map(|_| seconds)
}

/// The duration of so many seconds, from a setting.
pub(crate) fn duration(seconds: f64) -> Result<Duration, String> {
    const MAX: f64 = 30.0 * 86_400.0;
    if (0.001..=MAX).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(format!("{seconds} seconds are too few or too many: give 0.001 to {MAX}"))
}

/// Twelve digits.
pub(crate) fn account(text: &str) -> Result<String, String> {
    let known = is_account_id(text).then(|| text.to_owned());
    known.ok_or_else(|| "an account id has 12 digits".to_owned())
}

/// An access key id: AWS's or one of the caller's choice.
pub(crate) fn access_key_id(text: &str) -> Result<String, String> {
    let known = is_access_key_id(text).then(|| text.to_owned());
    known.ok_or_else(|| "an access key id has 3 to 128 letters, digits and underscores".to_owned())
}

/// A time in UTC, seconds since 1970.
pub(crate) fn time(text: &str) -> Result<i64, String> {
    OffsetDateTime::parse(text, &Rfc3339)
        .map(OffsetDateTime::unix_timestamp)
        .map_err(|_| "not a time such as 2026-11-21T12:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{address, positive, seconds};

    #[test]
    fn an_address_may_have_a_hosts_name() {
        let found = address("localhost:22010").unwrap();
        assert!(found.ip().is_loopback() && found.port() == 22010, "{found}");
        assert_eq!(address("[::1]:1").unwrap().to_string(), "[::1]:1");
        for wrong in ["localhost", "localhost:x", "localhost:65536", ":1", "", "::1:1:1", "a b:1"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_say_what_they_have_to_be() {
        assert_eq!(positive::<usize>("7"), Ok(7));
        for wrong in ["0", "-1", "x", "", "1.5"] {
            assert!(positive::<u32>(wrong).unwrap_err().contains("from 1 on"), "{wrong}");
        }
        assert_eq!(seconds("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "NaN", "inf", "five", ""] {
            assert!(seconds(wrong).unwrap_err().contains("seconds"), "{wrong}");
        }
    }
}
