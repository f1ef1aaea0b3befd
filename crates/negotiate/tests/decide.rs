//! Which certificate a client gets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_negotiate::decide::CertificateFacts;
use outlast_negotiate::failing::FAILING;
use outlast_negotiate::{Decision, Offer, Refusal, Rules, Transport, decide};

const MLDSA44: u16 = 0x0904;
const MLDSA65: u16 = 0x0905;
const P256: u16 = 0x0403;
const ALPS: u16 = 17613;

fn certificate(kind: &str, scheme: u16, chain: u16) -> CertificateFacts {
    CertificateFacts { kind: kind.into(), schemes: vec![scheme], chain: vec![chain] }
}

fn offer(transport: Transport, schemes: &[u16]) -> Offer {
    Offer {
        transport,
        versions: vec![0x0304],
        suites: vec![0x1302, 0x1301],
        groups: vec![0x11ec, 0x001d],
        shares: Some(vec![0x11ec]),
        schemes: schemes.to_vec(),
        certificate_schemes: None,
        sni: None,
        protocols: Vec::new(),
        extensions: vec![10, 13, 43, 51],
        resumes: false,
    }
}

fn chosen(offer: &Offer, certificates: &[CertificateFacts]) -> Result<usize, Refusal> {
    match decide(&Rules::default(), offer, certificates) {
        Decision::Serve(choice) => Ok(choice.certificate),
        Decision::Refuse(refusal) => Err(refusal),
    }
}

#[test]
fn first_certificate_that_the_client_can_verify_wins() {
    let dual = [certificate("ml-dsa-65", MLDSA65, MLDSA65), certificate("ecdsa-p256", P256, P256)];
    for transport in [Transport::Tcp, Transport::Quic] {
        for (schemes, certificate_schemes, expected) in [
            (&[P256, MLDSA65][..], None, Ok(0)),
            (&[P256], None, Ok(1)),
            (&[MLDSA44, P256], None, Ok(1)),
            (&[MLDSA65], None, Ok(0)),
            (&[MLDSA44], None, Err(Refusal::Scheme)),
            // Go 1.27 only verifies ML-DSA in the handshake.
            (&[P256, MLDSA65], Some(vec![P256]), Ok(1)),
            (&[P256, MLDSA65], Some(vec![P256, MLDSA65]), Ok(0)),
        ] {
            let offer = Offer { certificate_schemes, ..offer(transport, schemes) };
            assert_eq!(chosen(&offer, &dual), expected, "{offer:?}");
        }
    }
    // ML-DSA in the chain counts as in the leaf.
    let below = [certificate("ecdsa-p256", P256, MLDSA65), certificate("other", P256, P256)];
    assert_eq!(chosen(&offer(Transport::Tcp, &[P256]), &below), Ok(1));
    assert_eq!(chosen(&offer(Transport::Tcp, &[P256, MLDSA65]), &below), Ok(0));
}

/// RFC 8422, section 5.1: in TLS 1.2 the client's groups also restrict the keys of certificates.
#[test]
fn tls_12_needs_the_curve_of_the_certificate_key() {
    let p384 = 0x0503;
    let both = [certificate("ecdsa-p384", p384, p384), certificate("ecdsa-p256", P256, P256)];
    for (versions, groups, expected) in [
        (&[0x0303][..], &[0x001d, 0x0017, 0x0018][..], Ok(0)),
        (&[0x0303], &[0x001d, 0x0017], Ok(1)),
        (&[0x0303], &[0x001d], Err(Refusal::Scheme)),
        // In TLS 1.3 only the schemes count.
        (&[0x0304], &[0x001d], Ok(0)),
    ] {
        let offer = Offer {
            versions: versions.to_vec(),
            suites: vec![0x1301, 0xc02b, 0xc02c],
            groups: groups.to_vec(),
            shares: Some(vec![0x001d]),
            ..offer(Transport::Tcp, &[P256, p384])
        };
        assert_eq!(chosen(&offer, &both), expected, "{offer:?}");
    }
}

#[test]
fn policy_restricts_certificate_chains() {
    let sha1 = 0x0203;
    let both = [certificate("old", P256, sha1), certificate("new", P256, P256)];
    assert_eq!(chosen(&offer(Transport::Tcp, &[P256, sha1]), &both), Ok(1));
    assert_eq!(chosen(&offer(Transport::Tcp, &[P256, sha1]), &both[..1]), Err(Refusal::Scheme));
}

#[test]
fn clients_with_known_faults_get_what_they_can_do() {
    let dual = [certificate("ml-dsa-65", MLDSA65, MLDSA65), certificate("ecdsa-p256", P256, P256)];
    for (transport, expected) in [(Transport::Quic, 1), (Transport::Tcp, 0)] {
        let mut offer = offer(transport, &[P256, MLDSA65]);
        offer.extensions.push(ALPS);
        assert_eq!(chosen(&offer, &dual), Ok(expected));
        let below = [certificate("ecdsa-p256", P256, MLDSA65), dual[1].clone()];
        assert_eq!(chosen(&offer, &below), Ok(expected));
    }
    let mut offer = offer(Transport::Quic, &[P256, MLDSA65]);
    offer.extensions.push(ALPS);
    assert_eq!(chosen(&offer, &dual[..1]), Err(Refusal::Scheme), "it comes over TCP then");
    assert!(FAILING.iter().all(|row| row.seen.contains("Chromium")));
}
