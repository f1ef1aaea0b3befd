//! Which addresses may be looked at: a client says which hosts are asked, and must not reach through this server
//! what it could not reach itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The metadata service of AWS over IPv6.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
/// That of Azure's platform, which is no link-local address.
const PLATFORM_V4: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Whether an address may be looked at.
pub(super) fn may_look(address: IpAddr, networks: &[IpNet]) -> bool {
    // An IPv4 address in IPv6 clothes is judged as what it is.
    let address = address.to_canonical();
    let never = match address {
        IpAddr::V4(v4) => {
            v4.is_link_local()
                || v4.is_unspecified()
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
    !never && (networks.is_empty() || networks.iter().any(|network| network.contains(&address)))
}

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
            "::",
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
        assert!(look("127.0.0.1", &[]) && look("10.1.2.3", &[]) && look("192.0.2.1", &[]));
        assert!(look("10.1.2.3", &[inside]) && look("::ffff:10.1.2.3", &[inside]));
        assert!(!look("10.2.0.1", &[inside]) && !look("2001:db8::1", &[inside]));
    }
}
