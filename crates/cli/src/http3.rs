//! Whether HTTP/3 is served, and its socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::str::FromStr;

use crate::failure::Failure;

/// Flags of `server`; the settings file has the same.
#[derive(clap::Args, Default)]
// The groups of all `Flags` would have one name, and this one must not be the flag's.
#[group(skip)]
pub(crate) struct Flags {
    /// HTTP/3 at the same port over UDP: on or off [default: on if the port is free].
    #[arg(long, env = "OUTLAST_HTTP3", value_name = "on|off")]
    pub(crate) http3: Option<String>,
}

/// Whether there is HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Http3 {
    /// If the port can be had.
    #[default]
    IfPossible,
    /// Or nothing is served at all.
    On,
    Off,
}

impl FromStr for Http3 {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(Failure::new(format!("{text:?} is neither on nor off"))
                .hint("give --http3 one of them, or leave it away")),
        }
    }
}

impl Flags {
    /// What was given here, or else in the file.
    pub(crate) fn choose(self, file: Option<String>) -> Result<Http3, Failure> {
        self.http3.or(file).map_or(Ok(Http3::default()), |text| text.parse())
    }
}

impl Http3 {
    /// The socket beside a listener of TCP, if there is to be one and the port can be had.
    pub(crate) fn bind(self, address: SocketAddr) -> Result<Option<UdpSocket>, io::Error> {
        match self {
            Self::Off => Ok(None),
            Self::On | Self::IfPossible => UdpSocket::bind(address).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_file_and_both_may_be_absent() {
        let choose = |flag: Option<&str>, file: Option<&str>| {
            let flags = Flags { http3: flag.map(str::to_owned) };
            flags.choose(file.map(str::to_owned)).ok()
        };
        assert_eq!(choose(None, None), Some(Http3::IfPossible));
        assert_eq!(choose(None, Some("off")), Some(Http3::Off));
        assert_eq!(choose(Some("on"), Some("off")), Some(Http3::On));
        assert_eq!(choose(Some("yes"), None), None);
    }
}
