//! The setting for HTTP/3, and its socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::str::FromStr;

use crate::failure::Failure;

/// Whether to serve HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Http3 {
    /// Only if the port is free.
    #[default]
    IfPossible,
    /// Always: otherwise the server does not start.
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
                .hint("give --http3 on or off, or leave it out")
                .about("http3")),
        }
    }
}

impl Http3 {
    /// The socket at the same port as a TCP listener, if HTTP/3 is on and the port is free.
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
    fn on_and_off_are_read_and_nothing_else() {
        assert_eq!("on".parse::<Http3>().ok(), Some(Http3::On));
        assert_eq!("off".parse::<Http3>().ok(), Some(Http3::Off));
        assert_eq!("yes".parse::<Http3>().ok(), None);
    }
}
