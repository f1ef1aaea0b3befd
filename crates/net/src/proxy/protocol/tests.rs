//! Headers from the specification, headers that others write and parse, and arbitrary bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

type Addresses = Option<(SocketAddr, SocketAddr)>;

fn v4(a: &str, b: &str) -> Addresses {
    Some((a.parse().unwrap(), b.parse().unwrap()))
}

/// A header of version 2 with this command, family, addresses and values.
fn binary(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap().to_be_bytes();
    [v2::PROTOCOL_PREFIX, &[0x20 | command, family], &len, body].concat()
}

const FOUR: [u8; 12] = [192, 0, 2, 1, 192, 0, 2, 2, 0x13, 0x88, 1, 187];

#[test]
fn headers_of_each_kind() {
    let both = v4("192.0.2.1:5000", "192.0.2.2:443");
    let rows: &[(Vec<u8>, Result<Addresses, HeaderError>)] = &[
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n".to_vec(), Ok(both)),
        (b"PROXY TCP6 ::1 ::2 1 2\r\n".to_vec(), Ok(v4("[::1]:1", "[::2]:2"))),
        (b"PROXY UNKNOWN\r\n".to_vec(), Ok(None)),
        (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n".to_vec(), Ok(None)),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 5000\r\n".to_vec(), Err(HeaderError::Malformed)),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 5000 443 6\r\n".to_vec(), Err(HeaderError::Malformed)),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 5000 65536\r\n".to_vec(), Err(HeaderError::Malformed)),
        (b"PROXY TCP4 ::1 ::2 1 2\r\n".to_vec(), Err(HeaderError::Malformed)),
        (b"PROXYTCP4 1.1.1.1 1.1.1.1 1 1\r\n".to_vec(), Err(HeaderError::Malformed)),
        ([b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 200]].concat(), Err(HeaderError::Malformed)),
        (binary(1, 0x11, &FOUR), Ok(both)),
        (binary(0, 0x11, &FOUR), Ok(None)),
        (binary(0, 0x00, &[]), Ok(None)),
        (binary(1, 0x00, &[1, 2]), Ok(None)),
        (binary(1, 0x31, &[0; 216]), Ok(None)),
        // Version 1 in binary, an unknown command, family or protocol, and datagrams.
        ([v2::PROTOCOL_PREFIX, &[0x11, 0x11, 0, 0]].concat(), Err(HeaderError::Malformed)),
        (binary(2, 0x11, &FOUR), Err(HeaderError::Malformed)),
        (binary(1, 0x41, &FOUR), Err(HeaderError::Malformed)),
        (binary(1, 0x13, &FOUR), Err(HeaderError::Malformed)),
        (binary(1, 0x12, &FOUR), Err(HeaderError::Malformed)),
        // Truncated addresses and truncated values.
        (binary(1, 0x11, &FOUR[..11]), Err(HeaderError::Malformed)),
        (binary(1, 0x21, &FOUR), Err(HeaderError::Malformed)),
        (binary(1, 0x11, &[&FOUR[..], &[4, 0]].concat()), Err(HeaderError::Malformed)),
        (binary(1, 0x11, &[&FOUR[..], &[4, 0, 2, 0]].concat()), Err(HeaderError::Malformed)),
        (binary(1, 0x11, &vec![0; 65_535]), Err(HeaderError::TooLong)),
        (b"GET / HTTP/1.1\r\n".to_vec(), Err(HeaderError::Absent)),
        (vec![22, 3, 1, 2, 0, 1], Err(HeaderError::Absent)),
        (b"\r\n\r\n\0\r\nQUIX\n".to_vec(), Err(HeaderError::Absent)),
    ];
    for (bytes, expected) in rows {
        let shown = String::from_utf8_lossy(bytes);
        let parsed = parse(bytes);
        match expected {
            Err(error) => assert_eq!(parsed, Err(*error), "{shown}"),
            Ok(addresses) => {
                let header = Header { len: bytes.len(), addresses: *addresses };
                assert_eq!(parsed, Ok(Some(header.clone())), "{shown}");
                // Bytes after it are left alone, and no prefix is complete.
                let more = [&bytes[..], b"\x16\x03\x01\r\n"].concat();
                assert_eq!(parse(&more), Ok(Some(header)), "{shown}");
                for len in 0..bytes.len() {
                    assert_eq!(parse(&bytes[..len]), Ok(None), "{shown} {len}");
                }
            }
        }
    }
}

#[test]
fn checksums() {
    // The check value of CRC-32C.
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    let mut header = binary(1, 0x11, &[&FOUR[..], &[TYPE_CRC32C, 0, 4, 0, 0, 0, 0]].concat());
    let sum = crc32c(&header).to_be_bytes();
    let at = header.len() - 4;
    header[at..].copy_from_slice(&sum);
    assert!(parse(&header).unwrap().unwrap().addresses.is_some());
    header[18] ^= 1;
    assert_eq!(parse(&header), Err(HeaderError::Checksum));
    let short = binary(1, 0x11, &[&FOUR[..], &[TYPE_CRC32C, 0, 3, 0, 0, 0]].concat());
    assert_eq!(parse(&short), Err(HeaderError::Malformed));
}

#[test]
fn families_are_made_one() {
    let mixed = v4("192.0.2.1:1", "[2001:db8::1]:2");
    let announcement = Announcement { addresses: mixed, ..Announcement::default() };
    let text = write(Version::V1, &announcement);
    assert_eq!(text, b"PROXY TCP6 ::ffff:192.0.2.1 2001:db8::1 1 2\r\n");
    let mapped = v4("[::ffff:192.0.2.1]:1", "192.0.2.2:2");
    let announcement = Announcement { addresses: mapped, ..Announcement::default() };
    assert_eq!(write(Version::V1, &announcement), b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n");
    let nobody = Announcement::default();
    assert_eq!(write(Version::V1, &nobody), b"PROXY UNKNOWN\r\n");
    assert_eq!(write(Version::V2, &nobody), binary(1, 0, &[]));
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let four = (any::<u32>(), any::<u16>())
        .prop_map(|(ip, port)| SocketAddr::from((Ipv4Addr::from_bits(ip), port)));
    let six = (any::<u128>(), any::<u16>())
        .prop_map(|(ip, port)| SocketAddr::from((Ipv6Addr::from_bits(ip), port)));
    prop_oneof![four, six]
}

proptest! {
    /// Written headers can be parsed again, and another implementation parses them alike.
    #[test]
    fn written_headers_are_read(
        source in address(),
        destination in address(),
        alpn in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..2000)),
        authority in proptest::option::of("[a-z.]{0,300}"),
        common_name in proptest::option::of(".{0,600}"),
        certificate in any::<bool>(),
    ) {
        let tls = Some(TlsAnnouncement { common_name, certificate, ..TlsAnnouncement::default() });
        let addresses = Some((source, destination));
        let announcement = Announcement { addresses, alpn, authority, tls };
        for (_, version) in VERSIONS {
            let bytes = write(*version, &announcement);
            let header = parse(&bytes).unwrap().unwrap();
            prop_assert_eq!(header.len, bytes.len());
            prop_assert_eq!(header.addresses, Some(same_family((source, destination))));
        }
        let bytes = write(Version::V2, &announcement);
        let other = v2::Header::try_from(bytes.as_slice()).unwrap();
        prop_assert!(other.tlvs().all(|value| value.is_ok()));
        // The values inside the TLS value are complete too.
        let ssl = other.tlvs().flatten().find(|value| value.kind == TYPE_SSL).unwrap();
        prop_assert!(check_values(&ssl.value, 5).is_ok());
        let name = announcement.tls.unwrap().common_name;
        let cut = name.map(|name| name[..name.floor_char_boundary(256)].to_owned());
        let holds = |cut: String| {
            let mut parts = ssl.value.windows(cut.len().max(1));
            cut.is_empty() || parts.any(|part| part == cut.as_bytes())
        };
        let whole = cut.is_none_or(holds);
        prop_assert!(whole);
    }

    /// The result does not depend on how the bytes are split.
    #[test]
    fn anything_is_read_the_same_in_pieces(
        start in 0..4,
        command in any::<u8>(),
        family in prop_oneof![Just(0x11), Just(0x21), Just(0), any::<u8>()],
        len in 0u16..400,
        body in proptest::collection::vec(any::<u8>(), 0..500),
        text in "(TCP4|TCP6|UNKNOWN|)[ 0-9a-f:.]{0,110}(\r\n)?",
    ) {
        let bytes = match start {
            0 => [v2::PROTOCOL_PREFIX, &[command, family], &len.to_be_bytes(), &body].concat(),
            1 => [v2::PROTOCOL_PREFIX, &[0x21, family], &len.to_be_bytes(), &body].concat(),
            2 => format!("PROXY {text}").into_bytes(),
            _ => body,
        };
        let whole = parse(&bytes);
        let mut earlier = Ok(None);
        for end in 0..=bytes.len() {
            let now = parse(&bytes[..end]);
            // Once there is a result, it stays.
            if earlier != Ok(None) {
                prop_assert_eq!(&now, &earlier);
            }
            earlier = now;
        }
        prop_assert_eq!(earlier, whole);
    }
}
