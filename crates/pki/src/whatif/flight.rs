//! Bytes of a TLS 1.3 handshake (RFC 8446), and the round trips that they take over TCP and QUIC.
//!
//! With TLS_AES_256_GCM_SHA384, the server's messages after ServerHello in as few records as possible, and without
//! certificate compression (RFC 8879): this is what Outlast's own server sends, and a test compares the two.

/// Bytes that a TCP segment carries on Ethernet with IPv4.
pub const TCP_SEGMENT: usize = 1460;
/// Segments that may be sent before the first acknowledgement (RFC 6928).
pub const INITIAL_SEGMENTS: usize = 10;
/// Bytes of a QUIC datagram before the limit of the path is known (RFC 9000, section 14.1).
pub const QUIC_DATAGRAM: usize = 1200;
/// Datagrams that may be sent before the first acknowledgement (RFC 9002, section 7.2).
pub const QUIC_INITIAL_DATAGRAMS: usize = 10;
/// A server may send so many times the bytes it has received, until the client's address is validated (RFC 9000,
/// 8.1).
pub const AMPLIFICATION: usize = 3;
/// Approximate overhead of one datagram: long header, CRYPTO frame and AEAD tag, 27 + 7 + 16 bytes (RFC 9000,
/// sections 17.2 and 19.6).
const QUIC_OVERHEAD: usize = 50;
/// Header, inner content type and AEAD tag of an encrypted record.
const RECORD_OVERHEAD: usize = 5 + 1 + 16;
/// Most bytes in a record (RFC 8446, section 5.1).
const MAX_RECORD: usize = 16_384;
/// change_cipher_spec, sent for middleboxes only (RFC 8446, appendix D.4).
const CHANGE_CIPHER_SPEC: usize = 6;
/// Header of a handshake message.
const MESSAGE: usize = 4;
/// The empty server_name extension, which acknowledges the client's (RFC 6066, section 3).
const SERVER_NAME: usize = 4;
/// The Finished message under SHA-384.
const FINISHED: usize = MESSAGE + 48;
/// The server's share under X25519MLKEM768: an ML-KEM-768 ciphertext and a point.
pub const HYBRID_SERVER_SHARE: usize = 1088 + 32;
/// The same under X25519.
pub const CLASSICAL_SERVER_SHARE: usize = 32;
/// Bytes of an OCSP response without its signature, by the issuer itself, for one certificate, without a nonce.
pub const OCSP_BASE: usize = 213;

/// What the size of a handshake depends on.
#[derive(Debug, Clone)]
pub struct Shape<'a> {
    /// Certificates that the server sends: the leaf first, without the root; DER.
    pub chain: &'a [Vec<u8>],
    /// Bytes of a signature by the leaf's key.
    pub signature: usize,
    /// Bytes of the server's key share.
    pub share: usize,
    /// Bytes of the chosen ALPN protocol, if any.
    pub protocol: Option<usize>,
    /// Bytes of the stapled OCSP response, if any.
    pub staple: Option<usize>,
    /// The request for the client's certificate, if there is one.
    pub request: Option<Request>,
}

/// A request for the client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Number of signature schemes.
    pub schemes: usize,
    /// Bytes of the CAs' names, each with its two bytes of length.
    pub authorities: usize,
}

/// Part of a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The message, or the overhead of all messages.
    pub name: &'static str,
    /// Bytes.
    pub bytes: usize,
}

/// What one side sends at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight {
    /// Its parts, in order; the last is the overhead of the records.
    pub parts: Vec<Part>,
}

impl Flight {
    fn of(clear: usize, encrypted: Vec<Part>) -> Self {
        let content: usize = encrypted.iter().map(|part| part.bytes).sum();
        let records = content.div_ceil(MAX_RECORD).max(1);
        let mut parts = Vec::new();
        let mut around = CHANGE_CIPHER_SPEC + records * RECORD_OVERHEAD;
        if clear > 0 {
            parts.push(Part { name: "ServerHello", bytes: clear });
            around += 5;
        }
        parts.extend(encrypted);
        parts.push(Part { name: RECORDS, bytes: around });
        Self { parts }
    }

    /// Bytes over TCP.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Bytes in QUIC datagrams, without records.
    pub fn quic_bytes(&self) -> usize {
        let around = self.parts.iter().filter(|part| part.name == RECORDS);
        quic_bytes(self.bytes() - around.map(|part| part.bytes).sum::<usize>())
    }
}

const RECORDS: &str = "records";

/// The server's first flight: ServerHello to Finished.
pub fn server(shape: &Shape<'_>) -> Flight {
    let protocol = shape.protocol.map_or(0, |len| 4 + 2 + 1 + len);
    let bytes = MESSAGE + 2 + SERVER_NAME + protocol;
    let mut parts = vec![Part { name: "EncryptedExtensions", bytes }];
    if let Some(request) = shape.request {
        // signature_algorithms, and certificate_authorities if there are any.
        let schemes = 4 + 2 + 2 * request.schemes;
        let authorities = if request.authorities == 0 { 0 } else { 4 + 2 + request.authorities };
        let bytes = MESSAGE + 1 + 2 + schemes + authorities;
        parts.push(Part { name: "CertificateRequest", bytes });
    }
    parts.push(Part { name: "Certificate", bytes: certificate(shape.chain, shape.staple) });
    parts.push(Part { name: "CertificateVerify", bytes: MESSAGE + 2 + 2 + shape.signature });
    parts.push(Part { name: "Finished", bytes: FINISHED });
    // Version, random, session id echoed, suite, compression; supported_versions and key_share.
    let extensions = 2 + (4 + 2) + (4 + 2 + 2 + shape.share);
    Flight::of(MESSAGE + 2 + 32 + 1 + 32 + 2 + 1 + extensions, parts)
}

/// A client's answer to a request for its certificate, with this chain: Certificate to Finished.
pub fn client(chain: &[Vec<u8>], signature: usize) -> Flight {
    let parts = vec![
        Part { name: "Certificate", bytes: certificate(chain, None) },
        Part { name: "CertificateVerify", bytes: MESSAGE + 2 + 2 + signature },
        Part { name: "Finished", bytes: FINISHED },
    ];
    Flight::of(0, parts)
}

/// RFC 8446, section 4.4.2: context, list, and each certificate with its extensions.
fn certificate(chain: &[Vec<u8>], staple: Option<usize>) -> usize {
    let entries: usize = chain.iter().map(|der| 3 + der.len() + 2).sum();
    MESSAGE + 1 + 3 + entries + staple.map_or(0, |len| 4 + 1 + 3 + len)
}

/// Bytes in QUIC datagrams for this many bytes of handshake messages.
pub fn quic_bytes(messages: usize) -> usize {
    messages + messages.div_ceil(QUIC_DATAGRAM - QUIC_OVERHEAD) * QUIC_OVERHEAD
}

/// Bytes that a client sends over QUIC for a ClientHello of this size: full datagrams (RFC 9000, section 14.1).
pub fn quic_client_bytes(client_hello: usize) -> usize {
    client_hello.div_ceil(QUIC_DATAGRAM - QUIC_OVERHEAD).max(1) * QUIC_DATAGRAM
}

/// Further round trips of a flight over TCP, after the first: the window doubles with each.
pub fn extra_tcp_round_trips(bytes: usize) -> usize {
    rounds(bytes, INITIAL_SEGMENTS * TCP_SEGMENT, INITIAL_SEGMENTS * TCP_SEGMENT)
}

/// The same over QUIC, where the first is also limited by the bytes that the client has sent.
pub fn extra_quic_round_trips(bytes: usize, received: usize) -> usize {
    let window = QUIC_INITIAL_DATAGRAMS * QUIC_DATAGRAM;
    rounds(bytes, window.min(AMPLIFICATION * received), window)
}

fn rounds(bytes: usize, first: usize, window: usize) -> usize {
    let (mut sent, mut window, mut extra) = (first.max(1), window, 0);
    let mut last = sent;
    while sent < bytes {
        window += last;
        last = window;
        sent += window;
        extra += 1;
    }
    extra
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_at_the_edges_of_the_windows() {
        for (bytes, extra) in [(0, 0), (14_600, 0), (14_601, 1), (43_800, 1), (43_801, 2)] {
            assert_eq!(extra_tcp_round_trips(bytes), extra, "{bytes}");
        }
        for (bytes, received, extra) in
            [(3600, 1200, 0), (3601, 1200, 1), (7200, 2400, 0), (7201, 2400, 1), (12_001, 6000, 1)]
        {
            assert_eq!(extra_quic_round_trips(bytes, received), extra, "{bytes}");
        }
        assert_eq!(quic_client_bytes(400), 1200);
        assert_eq!(quic_client_bytes(1500), 2400);
    }

    #[test]
    fn a_flight_beyond_a_record_needs_a_second_one() {
        let shape = |len: usize| Shape {
            chain: &[],
            signature: len,
            share: CLASSICAL_SERVER_SHARE,
            protocol: None,
            staple: None,
            request: None,
        };
        let small = server(&shape(100)).bytes();
        assert_eq!(server(&shape(20_000)).bytes(), small + 19_900 + RECORD_OVERHEAD);
    }
}
