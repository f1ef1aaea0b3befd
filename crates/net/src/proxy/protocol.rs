//! The PROXY protocol, versions 1 and 2: parsing a header from a proxy in front, and writing one for the backend.
//!
//! Functions on bytes; nothing here reads or writes a socket. The specification is HAProxy's `proxy-protocol.txt`;
//! sections refer to it.

use std::net::SocketAddr;

use ppp::{v1, v2};

use crate::limits;

/// Longest header of version 1, with its line end (section 2.1).
const MAX_V1: usize = 107;
/// Signature, version, family and length (section 2.2).
const V2_FIXED: usize = 16;

/// Sections 2.2.1 to 2.2.6.
const TYPE_ALPN: u8 = 0x01;
const TYPE_AUTHORITY: u8 = 0x02;
const TYPE_CRC32C: u8 = 0x03;
const TYPE_SSL: u8 = 0x20;
const SUBTYPE_SSL_VERSION: u8 = 0x21;
const SUBTYPE_SSL_CN: u8 = 0x22;
const SUBTYPE_SSL_CIPHER: u8 = 0x23;
const SUBTYPE_SSL_GROUP: u8 = 0x26;
const CLIENT_SSL: u8 = 0x01;
const CLIENT_CERT_CONN: u8 = 0x02;
const CLIENT_CERT_SESS: u8 = 0x04;

/// Version to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A line of text: addresses only.
    V1,
    /// Binary, with details of the TLS connection.
    V2,
}

/// All versions and their names.
pub const VERSIONS: &[(&str, Version)] = &[("v1", Version::V1), ("v2", Version::V2)];

/// A parsed header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its length in bytes.
    pub len: usize,
    /// Real source and destination of the connection; `None` if the proxy speaks for itself or does not know.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
}

/// Why bytes are not a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// They begin like neither version.
    #[error("no PROXY protocol header")]
    Absent,
    /// They begin like a header but are malformed.
    #[error("a malformed PROXY protocol header")]
    Malformed,
    /// It exceeds the limit.
    #[error("a PROXY protocol header that is longer than {max} bytes", max = limits::MAX_PROXY_HEADER)]
    TooLong,
    /// Its checksum is wrong.
    #[error("a PROXY protocol header whose checksum is wrong")]
    Checksum,
}

/// Parses the header at the start of `bytes`; `None` if more bytes are needed.
pub fn parse(bytes: &[u8]) -> Result<Option<Header>, HeaderError> {
    let prefix = |of: &[u8]| bytes.len() >= of.len() && bytes.starts_with(of);
    let may_become = |of: &[u8]| of.starts_with(bytes);
    if prefix(v2::PROTOCOL_PREFIX) {
        parse_v2(bytes)
    } else if prefix(v1::PROTOCOL_PREFIX.as_bytes()) {
        parse_v1(bytes)
    } else if may_become(v2::PROTOCOL_PREFIX) || may_become(v1::PROTOCOL_PREFIX.as_bytes()) {
        Ok(None)
    } else {
        Err(HeaderError::Absent)
    }
}

fn parse_v1(bytes: &[u8]) -> Result<Option<Header>, HeaderError> {
    let window = &bytes[..bytes.len().min(MAX_V1)];
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        return if window.len() < MAX_V1 { Ok(None) } else { Err(HeaderError::Malformed) };
    };
    let line = &window[..end + 2];
    let header = v1::Header::try_from(line).map_err(|_| HeaderError::Malformed)?;
    let addresses = match header.addresses {
        v1::Addresses::Unknown => None,
        v1::Addresses::Tcp4(of) => Some((
            SocketAddr::from((of.source_address, of.source_port)),
            SocketAddr::from((of.destination_address, of.destination_port)),
        )),
        v1::Addresses::Tcp6(of) => Some((
            SocketAddr::from((of.source_address, of.source_port)),
            SocketAddr::from((of.destination_address, of.destination_port)),
        )),
    };
    Ok(Some(Header { len: line.len(), addresses }))
}

fn parse_v2(bytes: &[u8]) -> Result<Option<Header>, HeaderError> {
    let Some(&[high, low]) = bytes.get(V2_FIXED - 2..V2_FIXED) else { return Ok(None) };
    let len = V2_FIXED + usize::from(u16::from_be_bytes([high, low]));
    if len > limits::MAX_PROXY_HEADER {
        return Err(HeaderError::TooLong);
    }
    let Some(whole) = bytes.get(..len) else { return Ok(None) };
    let header = v2::Header::try_from(whole).map_err(|_| HeaderError::Malformed)?;
    // Section 2.2: without addresses the rest of the header cannot be interpreted and is skipped.
    if header.addresses != v2::Addresses::Unspecified {
        check_values(whole, len - header.tlv_bytes().len())?;
    }
    let stream = header.protocol == v2::Protocol::Stream;
    let addresses = match header.addresses {
        // Section 2.2: addresses of LOCAL are ignored.
        _ if header.command == v2::Command::Local => None,
        v2::Addresses::IPv4(of) if stream => Some((
            SocketAddr::from((of.source_address, of.source_port)),
            SocketAddr::from((of.destination_address, of.destination_port)),
        )),
        v2::Addresses::IPv6(of) if stream => Some((
            SocketAddr::from((of.source_address, of.source_port)),
            SocketAddr::from((of.destination_address, of.destination_port)),
        )),
        // A stream does not carry datagrams.
        v2::Addresses::IPv4(_) | v2::Addresses::IPv6(_) => return Err(HeaderError::Malformed),
        v2::Addresses::Unix(_) | v2::Addresses::Unspecified => None,
    };
    Ok(Some(Header { len, addresses }))
}

/// Checks the values after the addresses, from offset `from`.
fn check_values(header: &[u8], from: usize) -> Result<(), HeaderError> {
    let mut at = from;
    while at < header.len() {
        let Some(&[kind, high, low]) = header.get(at..at + 3) else {
            return Err(HeaderError::Malformed);
        };
        let end = at + 3 + usize::from(u16::from_be_bytes([high, low]));
        let value = header.get(at + 3..end).ok_or(HeaderError::Malformed)?;
        if kind == TYPE_CRC32C {
            // Section 2.2.3: over the header with the checksum set to zero.
            let said: [u8; 4] = value.try_into().map_err(|_| HeaderError::Malformed)?;
            let mut zeroed = header.to_vec();
            zeroed[at + 3..end].fill(0);
            if crc32c(&zeroed) != u32::from_be_bytes(said) {
                return Err(HeaderError::Checksum);
            }
        }
        at = end;
    }
    Ok(())
}

/// RFC 9260, appendix A: the checksum of SCTP. No secret depends on it.
fn crc32c(bytes: &[u8]) -> u32 {
    const REVERSED: u32 = 0x82f6_3b78;
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { (sum >> 1) ^ REVERSED } else { sum >> 1 }
        })
    })
}

/// What the backend is told about a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Source and destination of the client's connection; `None` if unknown.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// Negotiated ALPN name.
    pub alpn: Option<Vec<u8>>,
    /// Name that the client asked for (SNI).
    pub authority: Option<String>,
    /// Negotiated parameters, if the client's connection is TLS.
    pub tls: Option<TlsAnnouncement>,
}

/// What the backend is told about the client's TLS connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsAnnouncement {
    /// `TLSv1.3`
    pub version: String,
    /// IANA name of the cipher suite.
    pub cipher: String,
    /// IANA name of the group, if known.
    pub group: Option<String>,
    /// Whether the client presented a certificate; if so, it was verified.
    pub certificate: bool,
    /// Common name in that certificate's subject.
    pub common_name: Option<String>,
}

/// Header of this version.
pub fn write(version: Version, announcement: &Announcement) -> Vec<u8> {
    match version {
        Version::V1 => write_v1(announcement.addresses),
        Version::V2 => write_v2(announcement),
    }
}

fn write_v1(addresses: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let (kind, source, destination) = match addresses.map(same_family) {
        Some((source, destination)) if source.is_ipv4() => ("TCP4", source, destination),
        Some((source, destination)) => ("TCP6", source, destination),
        None => return b"PROXY UNKNOWN\r\n".to_vec(),
    };
    let (from, to) = (source.ip(), destination.ip());
    format!("PROXY {kind} {from} {to} {} {}\r\n", source.port(), destination.port()).into_bytes()
}

fn write_v2(announcement: &Announcement) -> Vec<u8> {
    let (family, addresses) = match announcement.addresses.map(same_family) {
        // Section 2.2: PROXY with AF_UNSPEC means that the addresses are unknown.
        None => (0x00, Vec::new()),
        Some((source, destination)) => {
            let octets = |address: SocketAddr| match address {
                SocketAddr::V4(address) => address.ip().octets().to_vec(),
                SocketAddr::V6(address) => address.ip().octets().to_vec(),
            };
            let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
            let family = if source.is_ipv4() { 0x11 } else { 0x21 };
            (family, [octets(source), octets(destination), ports].concat())
        }
    };
    let mut body = addresses;
    if let Some(alpn) = &announcement.alpn {
        value(&mut body, TYPE_ALPN, alpn);
    }
    if let Some(authority) = &announcement.authority {
        value(&mut body, TYPE_AUTHORITY, authority.as_bytes());
    }
    if let Some(tls) = &announcement.tls {
        let seen = if tls.certificate { CLIENT_CERT_CONN | CLIENT_CERT_SESS } else { 0 };
        // Section 2.2.5: `verify` is zero if a certificate was presented and is valid.
        let verify = u32::from(!tls.certificate).to_be_bytes();
        let mut ssl = [&[CLIENT_SSL | seen], &verify[..]].concat();
        value(&mut ssl, SUBTYPE_SSL_VERSION, tls.version.as_bytes());
        if let Some(name) = &tls.common_name {
            let end = name.floor_char_boundary(MAX_COMMON_NAME);
            value(&mut ssl, SUBTYPE_SSL_CN, &name.as_bytes()[..end]);
        }
        value(&mut ssl, SUBTYPE_SSL_CIPHER, tls.cipher.as_bytes());
        if let Some(group) = &tls.group {
            value(&mut ssl, SUBTYPE_SSL_GROUP, group.as_bytes());
        }
        // Complete, whatever its length: its values are already truncated.
        body.push(TYPE_SSL);
        body.extend(u16::try_from(ssl.len()).unwrap_or(u16::MAX).to_be_bytes());
        body.extend(ssl);
    }
    let mut out = v2::PROTOCOL_PREFIX.to_vec();
    out.extend([0x21, family]);
    // Each value is truncated to `MAX_VALUE`, so the sum is far below the limit of 16 bits.
    out.extend(u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend(body);
    out
}

/// Longest value that is written: host and protocol names have at most 255 bytes.
const MAX_VALUE: usize = 1024;

/// Longest common name that is written, in bytes. RFC 5280, appendix A.1, allows 64 characters.
const MAX_COMMON_NAME: usize = 256;

fn value(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(MAX_VALUE)];
    out.push(kind);
    out.extend(u16::try_from(bytes.len()).unwrap_or_default().to_be_bytes());
    out.extend(bytes);
}

/// Both IPv4 or both IPv6: a header has one address family.
fn same_family((source, destination): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let (source, destination) = (plain(source), plain(destination));
    if source.is_ipv4() == destination.is_ipv4() {
        return (source, destination);
    }
    let mapped = |address: SocketAddr| match address {
        SocketAddr::V4(of) => SocketAddr::from((of.ip().to_ipv6_mapped(), of.port())),
        SocketAddr::V6(_) => address,
    };
    (mapped(source), mapped(destination))
}

#[cfg(test)]
mod tests;
