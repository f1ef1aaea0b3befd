//! Addresses to which the server may connect for ACME. A client chooses the host names, and must not reach through
//! this server what it could not reach itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The metadata service of AWS over IPv6.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
/// The metadata service of Azure's platform, which is not a link-local address.
const PLATFORM_V4: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Translators forward this to the IPv4 address at its end (RFC 6052, section 2.1).
const NAT64: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
/// Local translators do the same; to which address is not known (RFC 8215).
const LOCAL_NAT64: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48);
/// This machine.
const LOOPBACK_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
const LOOPBACK_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128);
/// "This network": Linux treats it as this machine.
const THIS_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 8);

/// An IPv4 address inside an IPv6 address, to which packets go in the end; any other address as it is.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if NAT64.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        other => other,
    }
}

/// Whether the server may connect to an address.
pub(crate) fn may_look(address: IpAddr, networks: &[IpNet]) -> bool {
    let address = canonical(address);
    let never = match address {
        IpAddr::V4(v4) => {
            v4.is_link_local()
                || THIS_V4.contains(&v4)
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4 == PLATFORM_V4
        }
        IpAddr::V6(v6) => {
            v6.is_unicast_link_local()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6 == METADATA_V6
        }
    };
    // An address that only this machine can reach must be listed explicitly: a larger network does not include it.
    let own = |network: &IpNet| match (address, network) {
        (IpAddr::V4(v4), IpNet::V4(network)) => {
            !LOOPBACK_V4.contains(&v4) || LOOPBACK_V4.contains(network)
        }
        (IpAddr::V6(v6), IpNet::V6(network)) => {
            let special = [LOOPBACK_V6, LOCAL_NAT64].into_iter().find(|one| one.contains(&v6));
            special.is_none_or(|special| special.contains(network))
        }
        _ => false,
    };
    let named = match networks {
        [] => ANY.iter().any(own),
        networks => networks.iter().any(|network| network.contains(&address) && own(network)),
    };
    !never && named
}

/// All networks.
const ANY: [IpNet; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_services_are_never_looked_at() {
        let all = ["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        for address in [
            "169.254.169.254",
            "169.254.0.1",
            "::ffff:169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "168.63.129.16",
            "0.0.0.0",
            "0.0.0.1",
            "::ffff:0.0.0.0",
            "::",
            "ff02::1",
            "64:ff9b::169.254.169.254",
            "64:ff9b::a83f:8110",
            "64:ff9b::0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            let address = address.parse().unwrap();
            assert!(!may_look(address, &[]) && !may_look(address, &all), "{address}");
        }
    }

    #[test]
    fn the_operator_may_name_networks() {
        let inside: IpNet = "10.1.0.0/16".parse().unwrap();
        let look = |address: &str, networks: &[IpNet]| may_look(address.parse().unwrap(), networks);
        assert!(look("64:ff9b::10.1.2.3", &[]) && look("10.1.2.3", &[]) && look("192.0.2.1", &[]));
        assert!(look("10.1.2.3", &[inside]) && look("::ffff:10.1.2.3", &[inside]));
        assert!(look("64:ff9b::10.1.2.3", &[inside]) && !look("64:ff9b::10.2.0.1", &[inside]));
        assert!(!look("10.2.0.1", &[inside]) && !look("2001:db8::1", &[inside]));
    }

    #[test]
    fn this_machine_must_be_named() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let all = [net("0.0.0.0/0"), net("::/0")];
        let named = [net("127.0.0.0/8"), net("::1/128"), net("64:ff9b:1::/48")];
        for address in [
            "127.0.0.1",
            "127.1.2.3",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::1",
        ] {
            let address = address.parse().unwrap();
            assert!(!may_look(address, &[]) && !may_look(address, &all), "{address}");
            assert!(may_look(address, &named), "{address}");
        }
        assert!(!may_look("127.0.0.2".parse().unwrap(), &[net("127.0.0.1/32")]));
        assert!(!may_look("10.0.0.1".parse().unwrap(), &named));
    }
}
