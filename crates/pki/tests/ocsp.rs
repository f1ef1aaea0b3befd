//! OCSP: requests and responses in both directions, and everything for which a response must be refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::authority;

use authority::{Authority, DAY, START, plan};
use outlast_pki::crl::reason::UNSPECIFIED;
use outlast_pki::crl::{REASONS, Reason};
use outlast_pki::ocsp::cert_id::hashes;
use outlast_pki::ocsp::verify::CLOCK_SKEW_SECONDS;
use outlast_pki::ocsp::{
    CertId, Content, Failure, MAX_CERT_IDS, MAX_NONCE_LEN, OcspError, Request, Response, Single,
    Status,
};
use proptest::prelude::*;
use x509_cert::ext::pkix::KeyUsages;

/// Some public key.
static KEY: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
    plan("ECC_NIST_P256", "CA").issue(None).certificate.public_key().unwrap()
});

const OCSP_SIGNING: &str = "1.3.6.1.5.5.7.3.9";
const NO_CHECK: &str = "1.3.6.1.5.5.7.48.1.5";
const NOW: i64 = START + 10 * DAY;

struct World {
    ca: Authority,
    leaf: Authority,
    responder: Authority,
}

fn responder(spec: &'static str, ca: &Authority) -> Authority {
    plan(spec, "Responder")
        .usage(&[KeyUsages::DigitalSignature])
        .purpose(&[OCSP_SIGNING])
        .with(NO_CHECK, false, &der::asn1::Null)
        .issue(Some(ca))
}

fn world(spec: &'static str) -> World {
    let ca = plan(spec, "CA").ca(None).issue(None);
    let leaf = plan(spec, "leaf").serial(0x1234).issue(Some(&ca));
    let responder = responder(spec, &ca);
    World { ca, leaf, responder }
}

fn single(request: &Request, status: Status) -> Single {
    Single { id: request.ids[0].clone(), status, this_update: NOW, next_update: Some(NOW + DAY) }
}

fn answer(request: &Request, signer: &Authority, chain: &[&Authority], status: Status) -> Vec<u8> {
    let key = signer.certificate.public_key().unwrap();
    let unsigned = Content {
        responder_key: &key,
        produced_at: NOW,
        responses: vec![single(request, status)],
        nonce: request.nonce.clone(),
    }
    .prepare(signer.algorithm)
    .unwrap();
    let signature = signer.sign(&unsigned.to_be_signed);
    let chain: Vec<_> = chain.iter().map(|one| one.der()).collect();
    unsigned.assemble(&signature, &chain).unwrap()
}

#[test]
fn every_status_comes_back_from_issuer_and_delegate() {
    let revoked = Reason::by_aws_name("KEY_COMPROMISE").unwrap();
    let states = [
        Status::Good,
        Status::Unknown,
        Status::Revoked { at: START + DAY, reason: UNSPECIFIED },
        Status::Revoked { at: START + DAY, reason: revoked },
    ];
    for spec in ["ML_DSA_65", "ECC_NIST_P256", "RSA_2048"] {
        let World { ca, leaf, responder } = world(spec);
        let request = Request::new(&ca.certificate, &leaf.certificate, Some(&[7; 32])).unwrap();
        let request = Request::parse(&request.to_der().unwrap()).unwrap();
        assert!(
            request.ids[0].is_of(ca.certificate.subject(), &ca.certificate.public_key().unwrap())
        );
        assert_eq!(request.ids[0].serial(), leaf.certificate.serial());
        for status in states {
            let direct = answer(&request, &ca, &[], status);
            let delegated = answer(&request, &responder, &[&responder], status);
            for (der, by_delegate) in [(direct, false), (delegated, true)] {
                let response = Response::parse(&der).unwrap();
                let verified = response
                    .verify(&ca.certificate, &leaf.certificate, request.nonce.as_deref(), NOW)
                    .unwrap();
                assert_eq!(verified.status, status, "{spec}");
                assert!(verified.nonce_echoed);
                assert_eq!(verified.delegate.is_some(), by_delegate);
                assert_eq!(response.responses[0].id, request.ids[0]);
            }
        }
    }
}

#[test]
fn both_hashes_are_understood_and_echoed() {
    let World { ca, leaf, .. } = world("ECC_NIST_P256");
    let key = ca.certificate.public_key().unwrap();
    let mut lengths = Vec::new();
    for hash in hashes() {
        let id =
            CertId::new(hash, ca.certificate.subject(), &key, leaf.certificate.serial()).unwrap();
        let request = Request { ids: vec![id], nonce: None };
        let parsed = Request::parse(&request.to_der().unwrap()).unwrap();
        assert_eq!(parsed, request);
        assert!(parsed.ids[0].is_of(ca.certificate.subject(), &key));
        assert!(!parsed.ids[0].is_of(leaf.certificate.subject(), &key));
        lengths.push(parsed.ids[0].issuer_key_hash().len());
        let response = Response::parse(&answer(&parsed, &ca, &[], Status::Good)).unwrap();
        assert_eq!(response.responses[0].id.der(), parsed.ids[0].der());
        response.verify(&ca.certificate, &leaf.certificate, None, NOW).unwrap();
    }
    assert_eq!(lengths, [20, 32]);
}

/// (content, signer, whether it is accepted)
#[test]
fn only_the_issuer_and_its_own_delegates_are_believed() {
    let spec = "ECC_NIST_P256";
    let World { ca, leaf, responder: good } = world(spec);
    let other = plan(spec, "CA").ca(None).issue(None);
    let sub = plan(spec, "Sub").ca(None).issue(Some(&ca));
    let base = || plan(spec, "Responder").usage(&[KeyUsages::DigitalSignature]);
    let no_check = &der::asn1::Null;
    let cases = [
        ("not included", &good, None, "the response does not contain its certificate"),
        (
            "not for OCSP",
            &base().with(NO_CHECK, false, no_check).issue(Some(&ca)),
            Some(()),
            "not for OCSP signing",
        ),
        (
            "without ocsp-nocheck",
            &base().purpose(&[OCSP_SIGNING]).issue(Some(&ca)),
            Some(()),
            "lacks ocsp-nocheck",
        ),
        ("of another CA", &responder(spec, &other), Some(()), "not issued by the CA itself"),
        ("of a CA below", &responder(spec, &sub), Some(()), "not issued by the CA itself"),
        (
            "expired",
            &base()
                .purpose(&[OCSP_SIGNING])
                .with(NO_CHECK, false, no_check)
                .valid(START, START + DAY)
                .issue(Some(&ca)),
            Some(()),
            "not valid at this time",
        ),
        (
            "without digitalSignature",
            &plan(spec, "Responder")
                .usage(&[KeyUsages::KeyAgreement])
                .purpose(&[OCSP_SIGNING])
                .with(NO_CHECK, false, no_check)
                .issue(Some(&ca)),
            Some(()),
            "lacks digitalSignature",
        ),
    ];
    let request = Request::new(&ca.certificate, &leaf.certificate, None).unwrap();
    for (what, signer, included, reason) in cases {
        let chain: Vec<_> = included.map(|()| signer).into_iter().collect();
        let response = Response::parse(&answer(&request, signer, &chain, Status::Good)).unwrap();
        match response.verify(&ca.certificate, &leaf.certificate, None, NOW) {
            Err(OcspError::Responder(said)) => assert!(said.contains(reason), "{what}: {said}"),
            other => panic!("{what}: {other:?}"),
        }
    }
    let mut broken = answer(&request, &ca, &[], Status::Good);
    *broken.last_mut().unwrap() ^= 1;
    let outcome = Response::parse(&broken)
        .unwrap()
        .verify(&ca.certificate, &leaf.certificate, None, NOW)
        .map(|_| ());
    assert_eq!(outcome, Err(OcspError::Signature));
}

#[test]
fn old_foreign_and_replayed_responses_are_refused() {
    let World { ca, leaf, responder } = world("ECC_NIST_P256");
    let (ca_cert, leaf_cert) = (&ca.certificate, &leaf.certificate);
    let request = Request::new(ca_cert, leaf_cert, Some(b"nonce")).unwrap();
    let response = Response::parse(&answer(&request, &ca, &[], Status::Good)).unwrap();
    let at = |at| response.verify(ca_cert, leaf_cert, Some(b"nonce"), at).map(|_| ());
    assert_eq!(at(NOW - CLOCK_SKEW_SECONDS), Ok(()));
    assert_eq!(at(NOW + DAY), Ok(()));
    assert!(matches!(at(NOW - CLOCK_SKEW_SECONDS - 1), Err(OcspError::Time { .. })));
    assert!(matches!(at(NOW + DAY + 1), Err(OcspError::Time { .. })));
    let other = response.verify(ca_cert, leaf_cert, Some(b"other"), NOW).map(|_| ());
    assert_eq!(other, Err(OcspError::Nonce));
    let foreign = response.verify(ca_cert, &responder.certificate, None, NOW).map(|_| ());
    assert_eq!(foreign, Err(OcspError::OtherCertificate));
    // Made in advance: it has no nonce, and the result says so.
    let early = Request { nonce: None, ..request.clone() };
    let response = Response::parse(&answer(&early, &ca, &[], Status::Good)).unwrap();
    let verified = response.verify(ca_cert, leaf_cert, Some(b"nonce"), NOW).unwrap();
    assert!(!verified.nonce_echoed);
}

#[test]
fn failures_are_what_rfc_6960_says() {
    let codes = [
        (Failure::MalformedRequest, 1),
        (Failure::InternalError, 2),
        (Failure::TryLater, 3),
        (Failure::SigRequired, 5),
        (Failure::Unauthorized, 6),
    ];
    for (failure, code) in codes {
        let der = failure.to_der();
        assert_eq!(der, [0x30, 3, 0x0a, 1, code]);
        assert_eq!(Response::parse(&der).unwrap_err(), OcspError::Failure(failure));
    }
}

#[test]
fn requests_beyond_the_limits_are_malformed() {
    let World { ca, leaf, .. } = world("ECC_NIST_P256");
    let request = Request::new(&ca.certificate, &leaf.certificate, None).unwrap();
    let many = |count| Request { ids: vec![request.ids[0].clone(); count], nonce: None };
    assert!(Request::parse(&many(MAX_CERT_IDS).to_der().unwrap()).is_ok());
    assert!(Request::parse(&many(MAX_CERT_IDS + 1).to_der().unwrap()).is_err());
    assert!(Request::parse(&many(0).to_der().unwrap()).is_err());
    for (len, ok) in [(0, false), (1, true), (MAX_NONCE_LEN, true), (MAX_NONCE_LEN + 1, false)] {
        let with_nonce = Request { nonce: Some(vec![5; len]), ..request.clone() };
        assert_eq!(with_nonce.to_der().is_ok(), ok, "{len}");
    }
    // The same from a client that breaks the rule: an empty nonce.
    let one = Request { nonce: Some(vec![0x55]), ..request }.to_der().unwrap();
    let place = one.windows(5).position(|part| part == [0x04, 3, 0x04, 1, 0x55]).unwrap();
    let mut raw = one.clone();
    // Without an OCTET STRING of its own.
    raw[place + 2] = 0x05;
    assert!(Request::parse(&raw).is_err());
    assert!(Request::parse(&one).is_ok());
}

#[test]
fn reasons_have_their_codes() {
    let World { ca, leaf, .. } = world("ECC_NIST_P256");
    let request = Request::new(&ca.certificate, &leaf.certificate, None).unwrap();
    for reason in REASONS {
        let status = Status::Revoked { at: START, reason };
        let response = Response::parse(&answer(&request, &ca, &[], status)).unwrap();
        assert_eq!(response.responses[0].status, status);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = (Request::parse(&bytes), Response::parse(&bytes), CertId::parse(&bytes));
        bytes.insert(0, 0x30);
        let _ = (Request::parse(&bytes), Response::parse(&bytes), CertId::parse(&bytes));
    }

    #[test]
    fn requests_come_back(
        serials in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 1..MAX_CERT_IDS),
        nonce in proptest::option::of(proptest::collection::vec(any::<u8>(), 1..MAX_NONCE_LEN)),
        hash in 0usize..2,
    ) {
        let hash = hashes().nth(hash).unwrap();
        let len = hash.output_len;
        let ids = serials
            .iter()
            .map(|serial| CertId::from_hashes(hash, vec![1; len], vec![2; len], serial).unwrap())
            .collect();
        let request = Request { ids, nonce };
        prop_assert_eq!(Request::parse(&request.to_der().unwrap()).unwrap(), request);
    }

    #[test]
    fn flipped_bytes_do_not_panic(place in any::<usize>(), value in any::<u8>()) {
        let hash = hashes().next().unwrap();
        let id = CertId::from_hashes(hash, vec![1; 20], vec![2; 20], &[3]).unwrap();
        let request = Request { ids: vec![id.clone()], nonce: Some(vec![9; 16]) };
        let status = Status::Revoked { at: START, reason: &REASONS[1] };
        let key = KEY.as_slice();
        let response = Content {
            responder_key: key,
            produced_at: START,
            responses: vec![Single { id, status, this_update: START, next_update: Some(NOW) }],
            nonce: request.nonce.clone(),
        }
        .prepare(&outlast_crypto::signatures::ECDSA_SHA_256).unwrap()
        .assemble(&[1; 70], &[]).unwrap();
        for mut der in [request.to_der().unwrap(), response] {
            let place = place % der.len();
            der[place] = value;
            let _ = (Request::parse(&der), Response::parse(&der));
        }
    }
}
