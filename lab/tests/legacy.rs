//! The literature's algorithms: sizes as published, function, and agreement of two libraries where there are two.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]
#![cfg(feature = "legacy")]

use std::collections::HashSet;
use std::path::PathBuf;

use outlast_lab::legacy::certificate::schemes;
use outlast_lab::legacy::{self, pqmagic};
use outlast_lab::legacy::{kems, signature_algorithms as signatures};
use outlast_lab::subject::{self, Kind, Subject};
use outlast_lab::tls::stack;
use outlast_lab::trace::Side;
use outlast_native::pqmagic as native;

/// Public key, secret key, ciphertext.
const PUBLISHED_KEMS: &[(&str, [usize; 3])] = &[
    ("kyber512_r2", [800, 1632, 736]),
    ("kyber768_r2", [1184, 2400, 1088]),
    ("kyber1024_r2", [1568, 3168, 1568]),
    ("kyber512_90s_r2", [800, 1632, 736]),
    ("kyber768_90s_r2", [1184, 2400, 1088]),
    ("kyber1024_90s_r2", [1568, 3168, 1568]),
    ("kyber512_r3", [800, 1632, 768]),
    ("kyber768_r3", [1184, 2400, 1088]),
    ("kyber1024_r3", [1568, 3168, 1568]),
    ("lightsaber", [672, 1568, 736]),
    ("saber", [992, 2304, 1088]),
    ("firesaber", [1312, 3040, 1472]),
    ("ntru_hps2048509", [699, 935, 699]),
    ("ntru_hps2048677", [930, 1234, 930]),
    ("ntru_hps4096821", [1230, 1590, 1230]),
    ("ntru_hrss701", [1138, 1450, 1138]),
    ("aigis_enc_1", [672, 1568, 736]),
    ("aigis_enc_2", [896, 2208, 992]),
    ("aigis_enc_3", [992, 2304, 1056]),
    ("aigis_enc_4", [1440, 3168, 1568]),
];

/// Public key, secret key, signature.
const PUBLISHED_SIGNATURES: &[(&str, [usize; 3])] = &[
    ("dilithium2_r2", [1184, 2800, 2044]),
    ("dilithium3_r2", [1472, 3504, 2701]),
    ("dilithium4_r2", [1760, 3856, 3366]),
    ("dilithium2_r3", [1312, 2528, 2420]),
    ("dilithium3_r3", [1952, 4000, 3293]),
    ("dilithium5_r3", [2592, 4864, 4595]),
    ("falcon512", [897, 1281, 690]),
    ("falcon1024", [1793, 2305, 1330]),
    ("fn_dsa_512_draft", [897, 1281, 666]),
    ("fn_dsa_1024_draft", [1793, 2305, 1280]),
    ("aigis_sig1", [1056, 2448, 1852]),
    ("aigis_sig2", [1312, 3376, 2445]),
    ("aigis_sig3", [1568, 3888, 3046]),
];

/// With PQMagic, if it is installed.
fn prepare() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let usual = here.join("../target/peers/pqmagic/lib");
    pqmagic::look_in(vec![std::env::var_os("OUTLAST_PQMAGIC").map_or(usual, PathBuf::from)]);
}

#[test]
fn sizes_are_those_published() {
    prepare();
    for kem in kems() {
        let (_, sizes) = PUBLISHED_KEMS.iter().find(|(name, _)| *name == kem.name).unwrap();
        assert_eq!(
            [kem.public_key_len, kem.secret_key_len, kem.ciphertext_len],
            *sizes,
            "{}",
            kem.name
        );
    }
    for row in signatures() {
        let (_, sizes) = PUBLISHED_SIGNATURES.iter().find(|(name, _)| *name == row.name).unwrap();
        assert_eq!(
            [row.public_key_len, row.secret_key_len, row.signature_len],
            *sizes,
            "{}",
            row.name
        );
    }
    let installed = pqmagic::library().is_ok();
    assert_eq!(kems().len(), PUBLISHED_KEMS.len() - if installed { 0 } else { 4 });
    assert_eq!(signatures().len(), PUBLISHED_SIGNATURES.len() - if installed { 0 } else { 3 });
}

#[test]
fn every_mechanism_rejects_foreign_input() {
    prepare();
    for kem in kems() {
        let name = kem.name;
        for _ in 0..20 {
            let (public, secret) = kem.mechanism.generate().unwrap();
            assert_eq!((public.len(), secret.len()), (kem.public_key_len, kem.secret_key_len));
            let (mut ciphertext, shared) = kem.mechanism.encapsulate(&public).unwrap();
            assert_eq!((ciphertext.len(), shared.len()), (kem.ciphertext_len, 32), "{name}");
            assert_eq!(kem.mechanism.decapsulate(&secret, &ciphertext).unwrap(), shared, "{name}");
            ciphertext[7] ^= 1;
            assert_ne!(kem.mechanism.decapsulate(&secret, &ciphertext).unwrap(), shared, "{name}");
            assert!(kem.mechanism.encapsulate(&public[1..]).is_err(), "{name}");
            assert!(kem.mechanism.decapsulate(&secret, &ciphertext[1..]).is_err(), "{name}");
        }
    }
}

#[test]
fn every_signature_algorithm_signs() {
    prepare();
    for scheme in schemes() {
        let row = scheme.signature();
        let name = row.name;
        for round in 0..10_u8 {
            let (public, secret) = row.algorithm.generate().unwrap();
            assert_eq!(public.len(), row.public_key_len, "{name}");
            let message = [round; 100];
            let mut signature = secret.sign(&message).unwrap();
            assert!(signature.len() <= row.signature_len, "{name}: {}", signature.len());
            assert!(row.algorithm.verify(&public, &message, &signature), "{name}");
            assert!(!row.algorithm.verify(&public, &message[1..], &signature), "{name}");
            assert!(!row.algorithm.verify(&public[1..], &message, &signature), "{name}");
            assert!(!row.algorithm.verify(&public, &message, &signature[..40]), "{name}");
            assert!(!row.algorithm.verify(&public, &message, b""), "{name}");
            // In the classical part of a hybrid, and in the rest. All bits of a byte: Falcon of 2020 accepts a zero
            // with either sign, and any bits after the last coefficient, for the same signature.
            for place in [20, signature.len() / 2] {
                signature[place] ^= 0xff;
                assert!(!row.algorithm.verify(&public, &message, &signature), "{name} at {place}");
                signature[place] ^= 0xff;
            }
        }
    }
}

#[test]
fn names_and_code_points_are_unique_and_reach_the_other_side() {
    prepare();
    let groups = subject::key_exchanges();
    let schemes = subject::authentications();
    let names: HashSet<_> = groups.iter().map(|row| row.name.to_ascii_lowercase()).collect();
    let points: HashSet<_> = groups.iter().map(|row| row.code_point).collect();
    assert_eq!((names.len(), points.len()), (groups.len(), groups.len()));
    let names: HashSet<_> = schemes.iter().map(|row| row.name.to_ascii_lowercase()).collect();
    assert_eq!(names.len(), schemes.len());
    let private: Vec<_> =
        schemes.iter().filter(|row| row.legacy).map(|row| row.code_point).collect();
    assert_eq!(private.iter().collect::<HashSet<_>>().len(), private.len());
    assert_eq!(private.len(), 2 * signatures().len());
    // rustls drops schemes that look like TLS 1.2's with old hashes, and the groups' range for private use ends at
    // 0xfeff.
    assert!(private.iter().all(|point| (0xfe10..=0xfeff).contains(point) && point & 0xff > 2));
    let groups = groups.iter().filter(|row| row.legacy);
    assert!(
        groups
            .clone()
            .all(|row| row.code_point < 0xfe00 || (0xfe10..=0xfeff).contains(&row.code_point))
    );
    assert_eq!(groups.count(), 2 * kems().len() + 6);
}

#[test]
fn every_key_exchange_shakes_hands() {
    prepare();
    let rustls = stack("rustls").unwrap();
    let mut sizes = Vec::new();
    for row in subject::key_exchanges().iter().filter(|row| row.legacy || row.name == "x25519") {
        let subject = Subject::new(row.name, "ECDSA P-256", 1).unwrap();
        let trace = rustls.prepare(&subject).unwrap().handshake().unwrap();
        assert!(!trace.hello_retry);
        let shares = (row.client_share_len, row.server_share_len);
        sizes.push((row.name, shares, trace.bytes(Side::Client), trace.bytes(Side::Server)));
    }
    // The bytes on the wire differ by the shares, and by nothing else.
    let (_, (client, server), sent, received) =
        *sizes.iter().find(|row| row.0 == "x25519").unwrap();
    for (name, shares, client_bytes, server_bytes) in sizes {
        let more = (client_bytes - sent, server_bytes - received);
        assert_eq!(more, ((shares.0 - client) as u64, (shares.1 - server) as u64), "{name}");
    }
}

#[test]
fn every_signature_algorithm_authenticates_a_chain_of_three() {
    prepare();
    let rustls = stack("rustls").unwrap();
    for row in subject::authentications().iter().filter(|row| row.legacy) {
        let subject = Subject::new("x25519", row.name, 3).unwrap();
        let trace = rustls.prepare(&subject).unwrap().handshake().unwrap();
        let least = 3 * (row.public_key_len + row.signature_len - 60) + row.signature_len;
        assert!(trace.bytes(Side::Server) > least as u64, "{}: {trace:?}", row.name);
    }
}

#[test]
fn both_sides_show_certificates_and_ask_again() {
    prepare();
    let rustls = stack("rustls").unwrap();
    for kind in [Kind::Mutual, Kind::HelloRetry, Kind::Resumed] {
        let subject = Subject::new("p256_kyber512_r2", "p256_dilithium2_r2", 2).unwrap().kind(kind);
        let trace = rustls.prepare(&subject).unwrap().handshake().unwrap();
        assert_eq!(
            (trace.hello_retry, trace.resumed),
            (kind == Kind::HelloRetry, kind == Kind::Resumed)
        );
    }
}

#[test]
fn a_wrong_share_is_refused() {
    prepare();
    for row in subject::key_exchanges().iter().filter(|row| row.legacy) {
        let share = row.group.start().unwrap().pub_key().to_vec();
        assert_eq!(share.len(), row.client_share_len, "{}", row.name);
        let longer = [share.as_slice(), &[0]].concat();
        assert!(row.group.start_and_complete(&longer).is_err(), "{}", row.name);
        assert!(row.group.start_and_complete(&share[1..]).is_err(), "{}", row.name);
        assert!(row.group.start_and_complete(b"").is_err(), "{}", row.name);
        let answer = row.group.start_and_complete(&share).unwrap();
        assert_eq!(answer.pub_key.len(), row.server_share_len, "{}", row.name);
        let cut = &answer.pub_key[1..];
        assert!(row.group.start().unwrap().complete(cut).is_err(), "{}", row.name);
    }
}

/// PQMagic also has Kyber and Dilithium of round 3, by other authors.
#[test]
fn two_libraries_agree() {
    prepare();
    let library = match pqmagic::library() {
        Ok(library) => library,
        Err(missing) => {
            outlast_testing::skip_for_want_of("pqmagic", missing);
            return;
        }
    };
    for (ours, theirs) in
        [("kyber512_r3", "kyber512"), ("kyber768_r3", "kyber768"), ("kyber1024_r3", "kyber1024")]
    {
        let ours = kems().iter().find(|row| row.name == ours).unwrap();
        let sizes = native::KEMS.iter().find(|row| row.name == theirs).unwrap();
        let theirs = library.kem(*sizes).unwrap();
        let (public, secret) = theirs.generate().unwrap();
        let (ciphertext, shared) = ours.mechanism.encapsulate(&public).unwrap();
        assert_eq!(theirs.decapsulate(&secret, &ciphertext).unwrap(), shared, "{}", ours.name);
        assert_eq!(ours.mechanism.decapsulate(&secret, &ciphertext).unwrap(), shared);
        let (public, secret) = ours.mechanism.generate().unwrap();
        let (ciphertext, shared) = theirs.encapsulate(&public).unwrap();
        assert_eq!(ours.mechanism.decapsulate(&secret, &ciphertext).unwrap(), shared);
        // Round 3 differs from the standard: ML-KEM derives another secret from the same ciphertext.
    }
    for (ours, theirs) in [
        ("dilithium2_r3", "dilithium2"),
        ("dilithium3_r3", "dilithium3"),
        ("dilithium5_r3", "dilithium5"),
    ] {
        let ours = signatures().iter().find(|row| row.name == ours).unwrap();
        let sizes = native::SIGNATURES.iter().find(|row| row.name == theirs).unwrap();
        let theirs = library.signature(*sizes).unwrap();
        let (public, secret) = theirs.generate().unwrap();
        let signature = theirs.sign(&secret, b"message", b"").unwrap();
        assert!(ours.algorithm.verify(&public, b"message", &signature), "{}", ours.name);
        let (public, secret) = ours.algorithm.generate().unwrap();
        let signature = secret.sign(b"message").unwrap();
        assert!(theirs.verify(&public, b"message", b"", &signature), "{}", ours.name);
    }
    assert!(legacy::key_exchanges().iter().any(|row| row.name == "p256_aigis_enc_2"));
}

/// PQClean's symbols have no version, and the shared files of 2021 keep another state on the stack: with two
/// snapshots in one binary, one would overwrite memory that is not its own.
#[test]
fn one_snapshot_of_pqclean_is_linked() {
    let lock = include_str!("../../Cargo.lock");
    assert!(!lock.contains("name = \"pqcrypto-internals\""), "a crate of 2021 or later is linked");
    for (name, version) in [
        ("pqcrypto-dilithium", "0.3.3"),
        ("pqcrypto-falcon", "0.2.4"),
        ("pqcrypto-kyber", "0.6.7"),
        ("pqcrypto-ntru", "0.5.2"),
        ("pqcrypto-saber", "0.1.5"),
    ] {
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert_eq!(lock.matches(&format!("name = \"{name}\"")).count(), 1, "{name}");
        assert!(lock.contains(&entry), "{name} is not of the snapshot of 2020-12-09");
    }
}
