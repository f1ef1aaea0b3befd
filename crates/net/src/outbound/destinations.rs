//! Where connectors may connect to. Who creates a connector chooses its host, and must not reach through this server
//! what is near it: its own ports, the operator's network, the metadata service of a cloud.
//!
//! An address is judged, not a name: the one that the connection is then made to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::acme::addresses::{canonical, may_look};

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

/// Networks of IPv4 that are not the Internet (IANA's registry of special-purpose addresses, RFC 6890), and
/// multicast.
const SPECIAL_V4: [Ipv4Net; 16] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    // Between customers and their provider (RFC 6598).
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    // Relays of 6to4 (RFC 7526).
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
    // The metadata service of Azure's platform.
    v4(168, 63, 129, 16, 32),
];

/// All that IPv6 has of global unicast addresses.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Networks in it that are not the Internet, or lead to an IPv4 address that nobody has judged: protocol assignments with
/// Teredo and ORCHID, documentation, 6to4.
const SPECIAL_V6: [Ipv6Net; 4] =
    [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x2002, 0, 16), v6(0x3fff, 0, 20)];

/// Whether an address is one of the Internet.
fn is_public(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(v4) => !SPECIAL_V4.iter().any(|network| network.contains(&v4)),
        IpAddr::V6(v6) => {
            GLOBAL_V6.contains(&v6) && !SPECIAL_V6.iter().any(|network| network.contains(&v6))
        }
    }
}

/// The destinations that connectors may have.
///
/// Without any, all addresses of the Internet. A network permits the addresses in it, private ones too, but loopback addresses
/// only if it contains no others; link-local and multicast addresses are never permitted. Any other address of this
/// machine is permitted only by a network that is that address alone. A host permits the addresses of the Internet that its name has: the owner of the name
/// must not be able to lead connectors elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Destinations(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    place: Place,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Network(IpNet),
    /// A name in lower case.
    Host(String),
    /// All names below this one, which begins with a dot.
    Below(String),
    AnyHost,
}

/// A text that names no destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither a host such as sftp.example.com:22 or *.example.com, nor a network such as 10.1.0.0/16:22 or [2001:db8::/32]:22"
)]
pub struct NotADestination(pub String);

impl Destinations {
    /// Reads hosts and networks, each with a port or without.
    ///
    /// # Errors
    /// One of them is neither.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, NotADestination> {
        let rules = texts.into_iter().map(|text| {
            rule(text).ok_or_else(|| NotADestination(text.chars().take(100).collect()))
        });
        rules.collect::<Result<_, _>>().map(Self)
    }

    /// Whether a connector for this host and port may connect to this address.
    pub(super) fn permit(&self, host: &str, port: u16, address: IpAddr) -> bool {
        self.permit_from(host, port, address, is_own)
    }

    fn permit_from(
        &self,
        host: &str,
        port: u16,
        address: IpAddr,
        is_own: impl Fn(IpAddr) -> bool,
    ) -> bool {
        if !self.reach(host, port, address) {
            return false;
        }
        let address = canonical(address);
        // Rules for loopback addresses have named them already.
        address.is_loopback() || self.names(port, address) || !is_own(address)
    }

    /// Whether a rule is this address alone.
    fn names(&self, port: u16, address: IpAddr) -> bool {
        let rules = self.0.iter().filter(|rule| rule.port.is_none_or(|only| only == port));
        rules.into_iter().any(|rule| match &rule.place {
            Place::Network(network) => *network == IpNet::from(address),
            _ => false,
        })
    }

    fn reach(&self, host: &str, port: u16, address: IpAddr) -> bool {
        if self.0.is_empty() {
            return is_public(address);
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().filter(|rule| rule.port.is_none_or(|only| only == port)).any(|rule| {
            match &rule.place {
                Place::Network(network) => may_look(address, &[*network]),
                Place::Host(name) => *name == host && is_public(address),
                Place::Below(end) => host.ends_with(end.as_str()) && is_public(address),
                Place::AnyHost => is_public(address),
            }
        })
    }
}

/// Whether an address is one of this machine: packets to it would come from itself. Nothing is sent.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
        // Any port: only the route counts.
        socket.connect(SocketAddr::new(address, 9))?;
        socket.local_addr()
    });
    // Without a route there is no connection either.
    source.is_ok_and(|source| source.ip() == address)
}

fn rule(text: &str) -> Option<Rule> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']')?;
        let port = match after {
            "" => None,
            after => Some(port(after.strip_prefix(':')?)?),
        };
        return Some(Rule { place: Place::Network(network(inside)?), port });
    }
    if let Some(network) = network(text) {
        return Some(Rule { place: Place::Network(network), port: None });
    }
    let (before, port) = match text.split_once(':') {
        Some((before, after)) => (before, Some(port(after)?)),
        None => (text, None),
    };
    let place = network(before).map(Place::Network).or_else(|| host(before))?;
    Some(Rule { place, port })
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port != 0)
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

fn host(text: &str) -> Option<Place> {
    let text = text.to_ascii_lowercase();
    if text == "*" {
        return Some(Place::AnyHost);
    }
    let (name, is_below) = match text.strip_prefix('*') {
        Some(rest) => (rest.strip_prefix('.')?, true),
        None => (text.as_str(), false),
    };
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    // A name whose last part is a number would be read as an address of IPv4.
    let last_is_number = name.rsplit('.').next()?.bytes().all(|byte| byte.is_ascii_digit());
    if name.len() > 253 || !name.split('.').all(is_label) || last_is_number {
        return None;
    }
    Some(if is_below { Place::Below(format!(".{name}")) } else { Place::Host(name.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Destinations {
        Destinations::parse(texts.iter().copied()).unwrap()
    }

    fn permit(texts: &[&str], host: &str, port: u16, address: &str) -> bool {
        of(texts).permit(host, port, address.parse().unwrap())
    }

    const NOT_PUBLIC: [&str; 41] = [
        "0.0.0.0",
        "0.0.0.1",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "168.63.129.16",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
    ];

    #[test]
    fn without_a_setting_only_the_internet_is_permitted() {
        for address in NOT_PUBLIC.iter().chain(&["ff02::1", "fec0::1", "100::1", "5f00::1"]) {
            assert!(!permit(&[], "a.example", 22, address), "{address}");
            // Nor by a name, whatever its owner answers.
            for texts in [&["a.example"][..], &["*.example:22"], &["*"]] {
                assert!(!permit(texts, "a.example", 22, address), "{address} {texts:?}");
            }
        }
        for address in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "2606:4700::1",
            "64:ff9b::1.1.1.1",
            "::ffff:1.1.1.1",
        ] {
            assert!(permit(&[], "a.example", 22, address), "{address}");
        }
    }

    #[test]
    fn an_address_of_this_machine_must_be_named_alone() {
        for (texts, address, expected) in [
            (&[][..], "1.1.1.1", false),
            (&["*"], "1.1.1.1", false),
            (&["a.example"], "2606:4700::1", false),
            (&["1.1.1.0/24"], "1.1.1.1", false),
            (&["10.0.0.0/8"], "::ffff:10.0.0.5", false),
            (&["1.1.1.1:2222"], "1.1.1.1", false),
            (&["1.1.1.1"], "1.1.1.1", true),
            (&["1.1.1.1/32:22"], "64:ff9b::1.1.1.1", true),
            (&["[2606:4700::1]:22"], "2606:4700::1", true),
            (&["127.0.0.0/8"], "127.0.0.1", true),
        ] {
            let (rules, address) = (of(texts), address.parse().unwrap());
            let permit = |own| rules.permit_from("a.example", 22, address, |_| own);
            assert_eq!(permit(true), expected, "{texts:?} {address}");
            assert!(permit(false) || texts == ["1.1.1.1:2222"], "{texts:?} {address}");
        }
        assert!(is_own("127.0.0.1".parse().unwrap()));
        assert!(!is_own("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn networks_permit_what_is_in_them_but_this_machine_only_by_name() {
        assert!(permit(&["10.0.0.0/8"], "x", 22, "10.1.2.3"));
        assert!(permit(&["10.0.0.0/8:22"], "x", 22, "::ffff:10.1.2.3"));
        assert!(!permit(&["10.0.0.0/8:22"], "x", 2222, "10.1.2.3"));
        assert!(!permit(&["10.0.0.0/8"], "x", 22, "192.168.0.1"));
        // What is listed is all.
        assert!(!permit(&["10.0.0.0/8"], "x", 22, "1.1.1.1"));
        assert!(permit(&["10.0.0.0/8", "*"], "x", 22, "1.1.1.1"));
        assert!(permit(&["127.0.0.1"], "x", 22, "127.0.0.1"));
        assert!(permit(&["127.0.0.0/8:2022"], "x", 2022, "127.0.0.1"));
        assert!(permit(&["[::1]:2022"], "x", 2022, "::1"));
        assert!(permit(&["fd12::/16"], "x", 22, "fd12::1"));
        for address in [
            "127.0.0.1",
            "::1",
            "169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "224.0.0.1",
            "0.0.0.0",
        ] {
            assert!(!permit(&["0.0.0.0/0", "::/0"], "x", 22, address), "{address}");
        }
        assert!(!permit(&["169.254.169.254"], "x", 22, "169.254.169.254"));
    }

    #[test]
    fn hosts_are_compared_as_names() {
        let public = "1.1.1.1";
        assert!(permit(&["SFTP.example.com:22"], "sftp.Example.com.", 22, public));
        assert!(!permit(&["sftp.example.com:22"], "sftp.example.com", 2222, public));
        assert!(!permit(&["example.com"], "sftp.example.com", 22, public));
        assert!(permit(&["*.example.com"], "a.b.example.com", 22, public));
        for host in ["example.com", "badexample.com", "example.com.evil.test"] {
            assert!(!permit(&["*.example.com"], host, 22, public), "{host}");
        }
    }

    #[test]
    fn what_is_no_destination_is_refused() {
        for text in [
            "",
            "a b",
            "a..b",
            "*a.example",
            "a.*.example",
            "host:",
            "host:0",
            "host:65536",
            "host:22:22",
            "[::1",
            "[::1]22",
            "[host]:22",
            "10.0.0.0/33",
            "256.0.0.1",
            "1.2.3",
            "sftp://a.example",
            "-:x",
        ] {
            assert_eq!(rule(text), None, "{text}");
        }
        let long = format!("{}.example", "a".repeat(300));
        assert_eq!(Destinations::parse([long.as_str()]).unwrap_err().0.len(), 100);
    }
}
