//! What the link needs to know of a packet: its connection, and its position in it. Reads IPv4 with TCP or UDP,
//! changes nothing.

use crate::link::mix;
use crate::trace::Side;

/// A connection: protocol number, port at the client's end, port at the server's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// 6 for TCP, 17 for UDP, or another number.
    pub protocol: u8,
    /// At the client's end; 0 without ports.
    pub client: u16,
    /// At the server's end; 0 without ports.
    pub server: u16,
}

/// A TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Its sequence number.
    pub sequence: u32,
    /// Sequence numbers that it covers: bytes, and one each for SYN and FIN.
    pub length: u32,
    /// Whether it opens a connection in this direction.
    pub syn: bool,
    /// Whether it acknowledges.
    pub ack: bool,
    /// Whether it resets the connection.
    pub rst: bool,
}

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    /// Its connection.
    pub key: Key,
    /// Its segment, if it is TCP.
    pub segment: Option<Segment>,
    /// Its long header, if it is UDP and looks like QUIC.
    pub long: Option<Long>,
}

/// A long header of QUIC, with its connection ids as digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Long {
    /// Whether it is an Initial.
    pub initial: bool,
    /// Destination connection id.
    pub destination: u64,
    /// Source connection id.
    pub source: u64,
}

/// Reads a packet from this side; `None` if it is not IPv4.
pub(super) fn read(bytes: &[u8], from: Side) -> Option<Packet> {
    // RFC 791, section 3.1.
    let first = *bytes.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let header = usize::from(first & 15) * 4;
    let protocol = *bytes.get(9)?;
    let total = usize::from(u16_at(bytes, 2)?).min(bytes.len());
    let payload = bytes.get(header..total)?;
    let ports =
        matches!(protocol, TCP | UDP).then(|| Some((u16_at(payload, 0)?, u16_at(payload, 2)?)));
    let (source, destination) = ports.flatten().unwrap_or((0, 0));
    let (client, server) = match from {
        Side::Client => (source, destination),
        Side::Server => (destination, source),
    };
    let segment = if protocol == TCP { segment(payload) } else { None };
    let long = if protocol == UDP { payload.get(8..).and_then(long) } else { None };
    Some(Packet { key: Key { protocol, client, server }, segment, long })
}

/// RFC 8999, section 5.1; the type of an Initial by RFC 9000, section 17.2, and RFC 9369, section 3.2.
fn long(bytes: &[u8]) -> Option<Long> {
    let first = *bytes.first()?;
    if first & 0xc0 != 0xc0 {
        return None;
    }
    let kind = (first >> 4) & 3;
    let initial = match u32_at(bytes, 1)? {
        // Version negotiation.
        0 => false,
        0x6b33_43cf => kind == 1,
        _ => kind == 0,
    };
    let (destination, rest) = id(bytes.get(5..)?)?;
    let (source, _) = id(rest)?;
    Some(Long { initial, destination, source })
}

/// A connection id after its length, and the rest.
fn id(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (id, rest) = rest.split_at_checked(usize::from(*length))?;
    let digest = id.iter().fold(u64::from(*length), |digest, byte| mix(digest ^ u64::from(*byte)));
    Some((digest, rest))
}

/// RFC 9293, section 3.1.
fn segment(bytes: &[u8]) -> Option<Segment> {
    let header = usize::from(*bytes.get(12)? >> 4) * 4;
    let flags = *bytes.get(13)?;
    let (fin, syn, rst, ack) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0, flags & 16 != 0);
    let data = u32::try_from(bytes.len().saturating_sub(header)).ok()?;
    Some(Segment {
        sequence: u32_at(bytes, 4)?,
        length: data + u32::from(syn) + u32::from(fin),
        syn,
        ack,
        rst,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Protocol numbers of IANA.
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN with options as Linux sends it.
    fn syn() -> Vec<u8> {
        let mut bytes =
            vec![0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
        bytes.extend([
            0x9c, 0x40, 0x01, 0xbb, 0, 0, 1, 0, 0, 0, 0, 0, 0xa0, 2, 0xff, 0xff, 0, 0, 0, 0,
        ]);
        bytes.extend([0; 20]);
        bytes
    }

    #[test]
    fn a_syn_is_read_from_both_ends() {
        let read_one = read(&syn(), Side::Client).unwrap();
        assert_eq!(read_one.key, Key { protocol: TCP, client: 40000, server: 443 });
        let segment = read_one.segment.unwrap();
        assert_eq!(
            (segment.sequence, segment.length, segment.syn, segment.ack),
            (256, 1, true, false)
        );
        assert_eq!(read(&syn(), Side::Server).unwrap().key.client, 443);
    }

    #[test]
    fn data_counts_without_padding() {
        let mut bytes = syn();
        bytes[20 + 13] = 0x10;
        bytes.extend([7; 5]);
        // The IP header says 60 bytes: what follows does not belong to the packet.
        assert_eq!(read(&bytes, Side::Client).unwrap().segment.unwrap().length, 0);
        bytes[3] = 65;
        assert_eq!(read(&bytes, Side::Client).unwrap().segment.unwrap().length, 5);
    }

    #[test]
    fn a_long_header_of_quic_is_read() {
        let udp = |payload: &[u8]| {
            let length = u8::try_from(28 + payload.len()).unwrap();
            let mut bytes =
                vec![0x45, 0, 0, length, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
            bytes.extend([0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 0]);
            bytes.extend(payload);
            bytes
        };
        let initial = udp(&[0xc3, 0, 0, 0, 1, 2, 7, 8, 1, 9, 0]);
        let long = read(&initial, Side::Client).unwrap().long.unwrap();
        assert!(long.initial && long.destination != long.source);
        let handshake = udp(&[0xe3, 0, 0, 0, 1, 2, 7, 8, 1, 9, 0]);
        let other = read(&handshake, Side::Client).unwrap().long.unwrap();
        assert_eq!(other, Long { initial: false, ..long });
        assert!(read(&udp(&[0x43, 0, 0, 0, 1]), Side::Client).unwrap().long.is_none());
        for length in 0..initial.len() {
            let _ = read(&initial[..length], Side::Client);
        }
    }

    #[test]
    fn anything_cut_short_is_no_panic() {
        let whole = syn();
        for length in 0..whole.len() {
            let _ = read(&whole[..length], Side::Client);
        }
        assert!(read(&[0x60; 40], Side::Client).is_none());
        assert!(read(&[], Side::Client).is_none());
    }
}
