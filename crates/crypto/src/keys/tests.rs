//! Tries everything that the row of each key type promises.

use std::collections::HashSet;

use der::Decode;
use spki::SubjectPublicKeyInfoRef;

use super::*;
use crate::digests::Digest;
use crate::signatures::Message;

#[test]
fn every_row_signs_and_verifies_and_refuses_what_was_changed() {
    for spec in KEY_SPECS {
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        for algorithm in spec.signing {
            let spki = key.public_key().expect("a signing key has a public half");
            let mut signature = key.sign(algorithm, Message::Raw(b"message")).unwrap();
            algorithm.verify(spki, Message::Raw(b"message"), &signature).unwrap();
            assert_eq!(
                algorithm.verify(spki, Message::Raw(b"massage"), &signature),
                Err(CryptoError::InvalidSignature)
            );
            if let Some(name) = algorithm.digest {
                let digest = Digest::by_name(name).unwrap().digest(b"message");
                algorithm.verify(spki, Message::Digest(&digest), &signature).unwrap();
                let second = key.sign(algorithm, Message::Digest(&digest)).unwrap();
                algorithm.verify(spki, Message::Raw(b"message"), &second).unwrap();
                assert!(key.sign(algorithm, Message::Digest(&digest[1..])).is_err());
                assert!(algorithm.verify(spki, Message::Digest(&digest[1..]), &signature).is_err());
            } else {
                let digest = Message::Digest(&[0; 64]);
                assert_eq!(key.sign(algorithm, digest), Err(CryptoError::UnsupportedAlgorithm));
            }
            *signature.last_mut().unwrap() ^= 1;
            assert!(algorithm.verify(spki, Message::Raw(b"message"), &signature).is_err());
            for other in sig::SIGNATURES.iter().filter(|row| !spec.signing.contains(row)) {
                assert!(key.sign(other, Message::Raw(b"message")).is_err(), "{other:?}");
                assert_eq!(
                    other.verify(spki, Message::Raw(b"message"), &signature),
                    Err(CryptoError::InvalidSignature),
                    "{} {other:?}",
                    spec.name
                );
            }
        }
    }
}

#[test]
fn every_row_encrypts_and_authenticates() {
    for spec in KEY_SPECS {
        let stored = spec.generate().unwrap();
        let key = spec.load(&stored).unwrap();
        for name in spec.encryption {
            let sealed = key.encrypt(name, b"", b"plaintext").unwrap();
            assert_eq!(key.decrypt(name, b"", &sealed).unwrap().expose(), b"plaintext");
            let mut bad = sealed.clone();
            bad[20] ^= 1;
            assert!(key.decrypt(name, b"", &bad).is_err(), "{} {name}", spec.name);
        }
        for name in spec.mac {
            let mut mac = key.mac(name, b"message").unwrap();
            key.verify_mac(name, b"message", &mac).unwrap();
            assert_eq!(key.verify_mac(name, b"massage", &mac), Err(CryptoError::InvalidMac));
            assert_eq!(key.verify_mac(name, b"message", &mac[1..]), Err(CryptoError::InvalidMac));
            mac[0] ^= 1;
            assert_eq!(key.verify_mac(name, b"message", &mac), Err(CryptoError::InvalidMac));
        }
        if spec.encryption.is_empty() {
            let outcome = key.encrypt("RSAES_OAEP_SHA_256", b"", b"plaintext");
            assert_eq!(outcome, Err(CryptoError::UnsupportedAlgorithm), "{}", spec.name);
        }
        if spec.mac.is_empty() {
            let outcome = key.mac("HMAC_SHA_256", b"message");
            assert_eq!(outcome, Err(CryptoError::UnsupportedAlgorithm), "{}", spec.name);
        }
    }
}

#[test]
fn every_row_agrees_and_encapsulates() {
    for spec in KEY_SPECS {
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        let peer = spec.load(&spec.generate().unwrap()).unwrap();
        if spec.key_agreement.is_empty() {
            let outcome = key.derive_shared_secret(peer.public_key().unwrap_or_default());
            assert!(matches!(outcome, Err(CryptoError::UnsupportedAlgorithm)), "{}", spec.name);
        } else {
            let ours = key.derive_shared_secret(peer.public_key().unwrap()).unwrap();
            let theirs = peer.derive_shared_secret(key.public_key().unwrap()).unwrap();
            assert_eq!(ours.expose(), theirs.expose(), "{}", spec.name);
            assert!(matches!(ours.len(), 32 | 48 | 66));
            refuses_other_points(spec, key.as_ref(), peer.public_key().unwrap());
        }
        if spec.encapsulation.is_empty() {
            let outcome = key.encapsulate().map(|_| ());
            assert_eq!(outcome, Err(CryptoError::UnsupportedAlgorithm), "{}", spec.name);
            let outcome = key.decapsulate(&[0; 768]).map(|_| ());
            assert_eq!(outcome, Err(CryptoError::UnsupportedAlgorithm), "{}", spec.name);
        } else {
            let (secret, mut ciphertext) = key.encapsulate().unwrap();
            assert_eq!(secret.len(), ml_kem::SHARED_SECRET_LEN);
            assert_eq!(key.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
            assert_ne!(peer.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
            let cut = key.decapsulate(&ciphertext[1..]).map(|_| ());
            assert_eq!(cut, Err(CryptoError::InvalidCiphertext), "{}", spec.name);
            ciphertext[0] ^= 1;
            let rejected = key.decapsulate(&ciphertext).unwrap();
            assert_ne!(rejected.expose(), secret.expose(), "{}", spec.name);
            let again = key.decapsulate(&ciphertext).unwrap();
            assert_eq!(rejected.expose(), again.expose(), "implicit rejection is deterministic");
            let (secret, ciphertext) = ml_kem::encapsulate(key.public_key().unwrap()).unwrap();
            assert_eq!(key.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
        }
    }
}

fn refuses_other_points(spec: &KeySpec, key: &dyn Key, peer: &[u8]) {
    let mut bad = vec![b"".to_vec(), peer[1..].to_vec(), [peer, b"\0"].concat()];
    let mut off_curve = peer.to_vec();
    *off_curve.last_mut().unwrap() ^= 1;
    bad.push(off_curve);
    let bare = SubjectPublicKeyInfoRef::from_der(peer).unwrap().subject_public_key;
    bad.push(bare.raw_bytes().to_vec());
    let others =
        KEY_SPECS.iter().filter(|row| row.name.starts_with("ECC") || row.name == "RSA_2048");
    for other in others.filter(|row| row.name != spec.name) {
        let other = other.load(&other.generate().unwrap()).unwrap();
        bad.push(other.public_key().unwrap().to_vec());
    }
    for peer in bad {
        let outcome = key.derive_shared_secret(&peer).map(|_| ());
        assert_eq!(outcome, Err(CryptoError::InvalidKey), "{} {}", spec.name, hex::encode(peer));
    }
}

#[test]
fn every_row_imports_what_it_exports_and_nothing_else() {
    for spec in KEY_SPECS {
        let stored = spec.generate().unwrap();
        let key = spec.load(&stored).unwrap();
        let material = if spec.is_symmetric() {
            Secret::new(stored.expose().to_vec())
        } else {
            spec.to_pkcs8(&stored).unwrap()
        };
        let imported = spec.import(material.expose()).unwrap();
        assert_eq!(imported.stored.expose(), stored.expose(), "{}", spec.name);
        assert_eq!(imported.form == Form::Raw, spec.is_symmetric());
        let again = spec.load(&imported.stored).unwrap();
        assert_eq!(again.public_key(), key.public_key());
        assert_eq!(key.public_key().is_none(), spec.is_symmetric());

        let longer = [material.expose(), b"\0"].concat();
        let shorter = &material.expose()[..material.len() - 1];
        for bad in [&b""[..], b"\x30\x00", &longer, shorter] {
            assert_eq!(spec.import(bad).map(|_| ()), Err(CryptoError::InvalidKey), "{}", spec.name);
        }
        for other in KEY_SPECS.iter().filter(|other| other.name != spec.name) {
            // Raw bytes have no type: any 32 bytes are an HMAC_256 key, and an Ed25519 key in PKCS #8 is as long as
            // an HMAC_384 key.
            if other.is_symmetric() && other.generate().unwrap().len() == material.len() {
                continue;
            }
            let outcome = other.import(material.expose()).map(|_| ());
            assert_eq!(outcome, Err(CryptoError::InvalidKey), "{} {}", spec.name, other.name);
        }
        assert!(spec.load(&Secret::new(vec![1, 2, 3])).is_err(), "{}", spec.name);
    }
}

#[test]
fn names_and_usages_belong_together() {
    let names: HashSet<_> = KEY_SPECS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), KEY_SPECS.len());
    for usage in KeyUsage::ALL {
        assert_eq!(KeyUsage::by_name(usage.name()), Some(*usage));
    }
    for spec in KEY_SPECS {
        assert!(!spec.usages.is_empty());
        for (usage, there) in [
            (KeyUsage::SignVerify, !spec.signing.is_empty()),
            (KeyUsage::EncryptDecrypt, !spec.encryption.is_empty()),
            (KeyUsage::GenerateVerifyMac, !spec.mac.is_empty()),
            (KeyUsage::KeyAgreement, !spec.key_agreement.is_empty()),
            (KeyUsage::EncapsulateDecapsulate, !spec.encapsulation.is_empty()),
        ] {
            assert_eq!(spec.usages.contains(&usage), there, "{} {}", spec.name, usage.name());
        }
    }
}

#[test]
fn every_form_of_a_key_reads_as_the_same_key() {
    for spec in KEY_SPECS.iter().filter(|spec| spec.name.starts_with("ML_") && !spec.draft) {
        let stored = spec.generate().unwrap();
        let public = spec.load(&stored).unwrap().public_key().unwrap().to_vec();
        for form in [Form::Seed, Form::Expanded, Form::Both] {
            let written = spec.to_form(&stored, form).unwrap();
            let read = spec.import(written.expose()).unwrap();
            assert_eq!(read.form, form, "{}", spec.name);
            assert_eq!(spec.load(&read.stored).unwrap().public_key().unwrap(), public);
            if form == Form::Expanded {
                assert!(spec.to_form(&read.stored, Form::Seed).is_err());
                assert!(spec.to_form(&read.stored, Form::Both).is_err());
                assert!(spec.to_form(&read.stored, Form::Expanded).is_ok());
            }
        }
    }
    let p256 = KeySpec::by_name("ECC_NIST_P256").unwrap();
    assert!(p256.to_form(&p256.generate().unwrap(), Form::Seed).is_err());
}
