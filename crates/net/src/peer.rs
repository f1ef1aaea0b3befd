//! Identity of a connection's other end, for the purpose of limits. Only the address counts, because a stranger can
//! choose everything else.

use std::net::{IpAddr, Ipv6Addr};

/// An IPv4 address, or the first 64 bits of an IPv6 address, because the holder of one address in such a network has
/// all of them (RFC 4291, section 2.5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    /// Peer to which this address belongs.
    pub(crate) fn of(address: IpAddr) -> Self {
        const NETWORK: u128 = u128::MAX << 64;
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & NETWORK)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_are_one_peer() {
        for (one, other, is_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::1", "127.0.0.1", false),
        ] {
            let peer = |text: &str| Peer::of(text.parse().unwrap());
            assert_eq!(peer(one) == peer(other), is_same, "{one} {other}");
        }
    }
}
