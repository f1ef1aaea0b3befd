//! Traces from published sizes: the study's algorithms where no implementation of them is compiled in. Their bytes
//! are right; their processor time is left out or taken from elsewhere, and every name says so.

use crate::experiments::play::Contender;
use crate::subject::Subject;
use crate::trace::{Side, Trace};

/// A KEM from the literature, joined with P-256 as in the study.
#[derive(Debug)]
pub(super) struct Kem {
    pub(super) name: &'static str,
    /// Bytes of a public key.
    pub(super) public_key: u32,
    /// Bytes of a ciphertext.
    pub(super) ciphertext: u32,
}

/// A signature algorithm from the literature, joined with ECDSA P-256 as in the study.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    /// Bytes of a public key.
    pub(super) public_key: u32,
    /// Bytes of a signature, at most.
    pub(super) signature: u32,
}

/// The study's KEMs at levels 1 and 2, in the versions that it measured (round 2); AKCN-MLWE is from the Chinese
/// competition.
pub(super) const KEMS: [Kem; 5] = [
    Kem { name: "Kyber512", public_key: 800, ciphertext: 736 },
    Kem { name: "LightSaber", public_key: 672, ciphertext: 736 },
    Kem { name: "NTRU-hps2048509", public_key: 699, ciphertext: 699 },
    Kem { name: "Aigis-enc-2", public_key: 896, ciphertext: 992 },
    Kem { name: "AKCN-MLWE", public_key: 992, ciphertext: 1056 },
];

/// Its signature algorithms at the same levels; Falcon's at their longest.
pub(super) const SIGNATURES: [Signature; 4] = [
    Signature { name: "Dilithium2", public_key: 1184, signature: 2044 },
    Signature { name: "Falcon-512", public_key: 897, signature: 752 },
    Signature { name: "Aigis-sig-2", public_key: 1312, signature: 2445 },
    Signature { name: "Mulan", public_key: 1312, signature: 2573 },
];

/// An uncompressed point on P-256.
pub(super) const POINT: u32 = 65;
/// The study's hybrid signature: uint32 length, classical signature, post-quantum signature.
const LENGTH: u32 = 4;

/// Bytes of a TLS segment on Ethernet: 1500 minus IP, TCP and its timestamps.
pub(super) const MSS: u64 = 1448;

/// Bytes that replace a subject's own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes {
    /// The client's share.
    pub(super) client_share: u32,
    /// The server's share.
    pub(super) server_share: u32,
    /// Bytes that a public key has more than the subject's.
    pub(super) key: u32,
    /// Bytes that a signature has more than the subject's.
    pub(super) signature: u32,
}

/// The handshake of a measured subject with other algorithms: the shares, a public key and a signature in each
/// certificate that is sent, and one more signature in CertificateVerify. Processor time is zero.
pub(super) fn replace(base: &Trace, subject: &Subject, bytes: Bytes) -> Option<Trace> {
    let mut trace = base.clone();
    let certificates = u32::from(subject.certificates);
    let client = u32::try_from(subject.key_exchange.client_share_len).ok()?;
    let server = u32::try_from(subject.key_exchange.server_share_len).ok()?;
    let more = certificates * (bytes.key + bytes.signature) + bytes.signature;
    let hello = trace.steps.iter_mut().find(|step| step.from == Side::Client)?;
    hello.bytes = (hello.bytes + bytes.client_share).checked_sub(client)?;
    let flight = trace.steps.iter_mut().find(|step| step.from == Side::Server)?;
    flight.bytes = (flight.bytes + bytes.server_share + more).checked_sub(server)?;
    for step in &mut trace.steps {
        step.cpu_ns = 0;
    }
    trace.server_after_ns = 0;
    Some(trace)
}

/// The study's hybrids in place of a measured subject with ECDSA P-256, whose own signatures stay beside the new
/// ones.
pub(super) fn compose(
    base: &Trace,
    subject: &Subject,
    kem: &Kem,
    signature: &Signature,
) -> Option<Contender> {
    let bytes = Bytes {
        client_share: POINT + kem.public_key,
        server_share: POINT + kem.ciphertext,
        key: signature.public_key,
        signature: signature.signature + LENGTH,
    };
    let trace = replace(base, subject, bytes)?;
    Some(Contender { name: format!("{} (sizes)", pair(kem.name, signature.name)), trace })
}

/// The study's pair with this name.
pub(super) fn pair(kem: &str, signature: &str) -> String {
    format!("P256_{kem} + P256_{signature}")
}

/// Packets of the server's flight.
pub(super) fn packets(trace: &Trace) -> u64 {
    trace.bytes(Side::Server).div_ceil(MSS)
}

/// The same handshake, with so much processor time of the server before its flight.
pub(super) fn with_cpu(contender: &Contender, name: &str, cpu_ns: u64) -> Contender {
    let mut trace = contender.trace.clone();
    if let Some(flight) = trace.steps.iter_mut().find(|step| step.from == Side::Server) {
        flight.cpu_ns = cpu_ns;
    }
    Contender { name: name.to_owned(), trace }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{STUDY_PACKETS_DILITHIUM, STUDY_PACKETS_FALCON};
    use crate::trace::Step;

    fn classical() -> Trace {
        let step = |from, bytes| Step { from, bytes, cpu_ns: 1000 };
        Trace {
            steps: vec![
                step(Side::Client, 230),
                step(Side::Server, 1_150),
                step(Side::Client, 74),
                step(Side::Server, 200),
            ],
            client_done: 2,
            server_after_ns: 10,
            hello_retry: false,
            resumed: false,
            cpu_spread: Vec::new(),
        }
    }

    #[test]
    fn sizes_replace_sizes_and_give_the_studys_packets() {
        let subject = Subject::new("x25519", "ECDSA P-256", 2).unwrap();
        let made = |kem, signature| compose(&classical(), &subject, kem, signature).unwrap();
        let dilithium = made(&KEMS[0], &SIGNATURES[0]);
        assert_eq!(dilithium.trace.steps[0].bytes, 230 - 32 + 65 + 800);
        let flight = 1_150 - 32 + 65 + 736 + 2 * (1184 + 2044 + 4) + 2044 + 4;
        assert_eq!(dilithium.trace.steps[1].bytes, flight);
        assert_eq!(dilithium.trace.cpu_ns(Side::Server), 0);
        assert!(dilithium.name.ends_with("(sizes)"), "a name says what was not measured");
        let falcon = made(&KEMS[0], &SIGNATURES[1]);
        // As the study counts them.
        let counted = (STUDY_PACKETS_DILITHIUM.whole(), STUDY_PACKETS_FALCON.whole());
        assert_eq!((packets(&dilithium.trace), packets(&falcon.trace)), counted);
        assert_eq!(with_cpu(&falcon, "x", 7).trace.cpu_ns(Side::Server), 7);
    }
}
