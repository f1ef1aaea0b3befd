//! Keys on hardware (`sk-`), whose signatures are made here as OpenSSH's PROTOCOL.u2f describes them.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};

use super::hostile::keyed;
use super::pair::key;
use crate::public_key::Material;
use crate::wire::{Reader, Writer};
use crate::*;

const APPLICATION: &[u8] = b"ssh:";
const TOUCHED: u8 = 1;
const VERIFIED: u8 = 4;

/// A hardware key that is a software key with another encoding, and its algorithm.
fn hardware(software: &PrivateKey) -> (PublicKey, &'static str) {
    let material = match software.public_key().material() {
        Material::Ed25519(key) => Material::SkEd25519(*key, APPLICATION.to_vec()),
        Material::Ecdsa(_, point) => Material::SkEcdsa(point.clone(), APPLICATION.to_vec()),
        _ => panic!("there are two kinds"),
    };
    let key = PublicKey::new(material);
    let algorithm = key.key_type();
    (key, algorithm)
}

fn sign(software: &PrivateKey, algorithm: &str, flags: u8, message: &[u8]) -> Vec<u8> {
    let mut signed = digest(&SHA256, APPLICATION).as_ref().to_vec();
    signed.put_byte(flags);
    signed.put_u32(77);
    signed.put(digest(&SHA256, message).as_ref());
    let blob = software.sign(software.algorithm(), &signed).unwrap();
    let mut reader = Reader::new(&blob);
    reader.string().unwrap();
    let mut out = Vec::new();
    out.put_string(algorithm.as_bytes());
    out.put_string(reader.string().unwrap());
    out.put_byte(flags);
    out.put_u32(77);
    out
}

/// How the server judges a signature with these flags, by a certificate with these options if there are any.
fn judged(software: &Arc<PrivateKey>, flags: u8, options: Option<(&[&str], &[&str])>) -> Signed {
    let (key, algorithm) = hardware(software);
    let mut pair = keyed();
    let mut payload = vec![message::USERAUTH_REQUEST];
    payload.put_string(b"alice");
    payload.put_string(b"ssh-connection");
    payload.put_string(b"publickey");
    payload.put_bool(true);
    match options {
        None => {
            payload.put_string(algorithm.as_bytes());
            payload.put_string(key.blob());
        }
        Some((critical, extensions)) => {
            let named =
                |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), vec![])).collect();
            let fields = CertificateFields {
                critical_options: named(critical),
                extensions: named(extensions),
                ..super::keys::fields(CertificateKind::User, &["alice"])
            };
            let authority = super::pair::key(KeyKind::EcdsaP384);
            let issued = Certificate::issue(&key, &fields, &authority).unwrap();
            let (row, _) = signature::Algorithm::by_name(algorithm).unwrap();
            payload.put_string(row.with_certificate.as_bytes());
            payload.put_string(issued.blob());
        }
    }
    let mut message = Vec::new();
    message.put_string(pair.client.transport.session_id());
    message.put(&payload);
    payload.put_string(&sign(software, algorithm, flags, &message));
    pair.client.transport.send(&[&payload]).unwrap();
    let bytes = pair.client.outgoing().to_vec();
    pair.server.receive(&bytes, 0);
    match pair.server.poll() {
        Some(ServerEvent::Authenticate(attempt)) => match attempt.method {
            Method::PublicKey(offer) => offer.signed,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn hardware_must_be_touched() {
    for kind in [KeyKind::Ed25519, KeyKind::EcdsaP256] {
        let software = key(kind);
        assert_eq!(judged(&software, TOUCHED, None), Signed::Valid);
        assert_eq!(judged(&software, TOUCHED | VERIFIED, None), Signed::Valid);
        assert_eq!(judged(&software, 0, None), Signed::Invalid);
        let certified =
            |flags, critical, extensions| judged(&software, flags, Some((critical, extensions)));
        assert_eq!(certified(0, &[], &[]), Signed::Invalid);
        assert_eq!(certified(0, &[], &["no-touch-required"]), Signed::Valid);
        assert_eq!(certified(TOUCHED, &["verify-required"], &[]), Signed::Invalid);
        assert_eq!(certified(TOUCHED | VERIFIED, &["verify-required"], &[]), Signed::Valid);
    }
}

#[test]
fn flags_and_counter_are_signed() {
    for kind in [KeyKind::Ed25519, KeyKind::EcdsaP256] {
        let software = key(kind);
        let (key, algorithm) = hardware(&software);
        let (row, _) = signature::Algorithm::by_name(algorithm).unwrap();
        let blob = sign(&software, algorithm, TOUCHED, b"message");
        let touch = signature::verify(&key, row, b"message", &blob).flatten();
        assert_eq!(touch, Some(signature::Touch { present: true, verified: false }));
        for at in blob.len() - 5..blob.len() {
            let mut changed = blob.clone();
            changed[at] ^= 4;
            assert!(signature::verify(&key, row, b"message", &changed).is_none());
        }
        assert!(signature::verify(&key, row, b"message", &blob[..blob.len() - 5]).is_none());
        assert_eq!(PublicKey::parse(key.blob()).unwrap(), key);
    }
}
