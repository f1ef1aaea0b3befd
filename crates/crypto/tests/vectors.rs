//! Wycheproof, the private keys of RFC 9881 and the composite draft's vectors, if the machine has them.
//!
//! They are not in this repository: [`vectors`] says where to get them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{
    array, both_form, bytes, expanded_form, import, parameter_set, pkcs8, seed_form, spki,
};
use outlast_crypto::CryptoError;
use outlast_crypto::keys::{Form, Key, KeySpec, composite, ml_dsa, ml_kem};
use outlast_crypto::signatures::{ML_DSA_65_ECDSA_P256_SHA512, Message, SignatureAlgorithm};
use outlast_testing::vectors;
use serde_json::Value;

/// Runs `check(parameter set, group, test)` on each test of a Wycheproof file for each of `sets`.
fn wycheproof(kind: &str, sets: &[&str], check: impl Fn(&str, &Value, &Value)) {
    let Some(folder) = vectors("wycheproof") else { return };
    for set in sets {
        let name = format!("{set}_{kind}");
        let path = folder.join(format!("{name}_test.json").replace("__", "_"));
        let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut seen = 0;
        for group in array(&file, "testGroups") {
            for test in array(group, "tests") {
                check(set, group, test);
                seen += 1;
            }
        }
        assert_eq!(Some(seen), file["numberOfTests"].as_u64());
        println!("{}: {seen} vectors", name.trim_end_matches('_'));
    }
}

const ML_DSA: &[&str] = &["mldsa_44", "mldsa_65", "mldsa_87"];
const ML_KEM: &[&str] = &["mlkem_512", "mlkem_768", "mlkem_1024"];

fn known(set: &str) -> (&'static KeySpec, &'static str) {
    parameter_set(&set.replace("mldsa", "ML-DSA").replace("mlkem", "ML-KEM"))
}

fn valid(test: &Value) -> bool {
    match test["result"].as_str() {
        Some("valid") => true,
        Some("invalid") => false,
        other => panic!("{other:?}"),
    }
}

fn context(test: &Value) -> Vec<u8> {
    test.get("ctx").map_or_else(Vec::new, |ctx| hex::decode(ctx.as_str().unwrap()).unwrap())
}

/// Verifies with AWS-LC, which takes no context, and with `ml-dsa` from mu.
#[test]
fn ml_dsa_verify() {
    wycheproof("verify", ML_DSA, |set, group, test| {
        let (spec, oid) = known(set);
        let spki = spki(oid, b"", &bytes(group, "publicKey"));
        let (context, message, signature) = (context(test), bytes(test, "msg"), bytes(test, "sig"));
        let algorithm = spec.signing[0];
        if context.is_empty() {
            let outcome = algorithm.verify(&spki, Message::Raw(&message), &signature);
            assert_eq!(outcome.is_ok(), valid(test), "{test}");
        }
        let outcome = ml_dsa::external_mu_in_context(&spki, &context, &message)
            .and_then(|mu| algorithm.verify(&spki, Message::ExternalMu(&mu), &signature));
        assert_eq!(outcome.is_ok(), valid(test), "{test}");
    });
}

#[test]
fn ml_dsa_sign_seed() {
    wycheproof("sign_seed", ML_DSA, |set, group, test| {
        let (spec, oid) = known(set);
        let seed = bytes(group, "privateSeed");
        let material = seed_form(oid, &seed);
        // Empty if the seed has the wrong length.
        if let Some(pkcs8) = group["privateKeyPkcs8"].as_str().filter(|pkcs8| !pkcs8.is_empty()) {
            assert_eq!(hex::encode(&material), pkcs8);
        }
        ml_dsa_sign(import(spec, &material), Form::Seed, (spec, oid), group, test);
    });
}

#[test]
fn ml_dsa_sign_noseed() {
    wycheproof("sign_noseed", ML_DSA, |set, group, test| {
        let (spec, oid) = known(set);
        let material = expanded_form(oid, &bytes(group, "privateKey"));
        ml_dsa_sign(import(spec, &material), Form::Expanded, (spec, oid), group, test);
    });
}

type ImportedKey = Result<(outlast_crypto::keys::Imported, Box<dyn Key>), CryptoError>;

/// The vectors' signatures are deterministic and Outlast's are not: the expected signature must verify, and so must a
/// new one from the same key and mu.
fn ml_dsa_sign(
    key: ImportedKey,
    form: Form,
    (spec, oid): (&KeySpec, &str),
    group: &Value,
    test: &Value,
) {
    let context = context(test);
    let Ok((imported, key)) = key else {
        assert!(!valid(test), "{test}");
        return;
    };
    assert_eq!(imported.form, form);
    let public = key.public_key().unwrap();
    assert_eq!(public, spki(oid, b"", &bytes(group, "publicKey")));
    let from_message = test.get("msg").map(|_| bytes(test, "msg")).map(|message| {
        ml_dsa::external_mu_in_context(public, &context, &message).map(|mu| mu.to_vec())
    });
    if !valid(test) {
        assert_eq!(from_message, Some(Err(CryptoError::InvalidLength)), "{test}");
        return;
    }
    let mu = bytes(test, "mu");
    assert!(from_message.is_none_or(|made| made.as_ref() == Ok(&mu)), "{test}");
    let algorithm = spec.signing[0];
    let verify = |signature: &[u8]| algorithm.verify(public, Message::ExternalMu(&mu), signature);
    verify(&bytes(test, "sig")).unwrap();
    verify(&key.sign(algorithm, Message::ExternalMu(&mu)).unwrap()).unwrap();
}

#[test]
fn ml_kem_keygen() {
    wycheproof("keygen_seed", ML_KEM, |set, _, test| {
        let (spec, oid) = known(set);
        let (seed, mut expanded) = (bytes(test, "seed"), bytes(test, "dk"));
        let (_, key) = import(spec, &seed_form(oid, &seed)).unwrap();
        assert_eq!(key.public_key().unwrap(), spki(oid, b"", &bytes(test, "ek")));
        let (imported, _) = import(spec, &both_form(oid, &seed, &expanded)).unwrap();
        assert_eq!((imported.form, imported.stored.expose()), (Form::Both, seed.as_slice()));
        let (imported, key) = import(spec, &expanded_form(oid, &expanded)).unwrap();
        assert_eq!((imported.form, imported.stored.expose()), (Form::Expanded, &*expanded));
        assert_eq!(key.public_key().unwrap(), spki(oid, b"", &bytes(test, "ek")));
        assert_eq!(
            spec.to_pkcs8(&imported.stored).unwrap().expose(),
            expanded_form(oid, &expanded)
        );
        expanded[0] ^= 1;
        for bad in [both_form(oid, &seed, &expanded), expanded_form(oid, &expanded)] {
            assert_eq!(spec.import(&bad).map(|_| ()), Err(CryptoError::InvalidKey));
        }
        assert!(valid(test));
    });
}

/// AWS-LC's safe interface takes no randomness from the caller, so the ciphertext is Outlast's own.
#[test]
fn ml_kem_encapsulate() {
    wycheproof("encaps", ML_KEM, |set, _, test| {
        let (_, oid) = known(set);
        match ml_kem::encapsulate(&spki(oid, b"", &bytes(test, "ek"))) {
            Ok((secret, ciphertext)) => {
                assert!(valid(test), "{test}");
                assert_eq!(secret.len(), bytes(test, "K").len());
                assert_eq!(ciphertext.len(), bytes(test, "c").len());
            }
            Err(error) => assert!(!valid(test) && error == CryptoError::InvalidKey, "{test}"),
        }
    });
}

#[test]
fn ml_kem_decapsulate_from_seed() {
    wycheproof("", ML_KEM, |set, _, test| {
        let (spec, oid) = known(set);
        let seed = bytes(test, "seed");
        match import(spec, &seed_form(oid, &seed)) {
            Err(error) => assert!(!valid(test) && error == CryptoError::InvalidKey, "{test}"),
            Ok((_, key)) => {
                if test.get("ek").is_some() {
                    assert_eq!(key.public_key().unwrap(), spki(oid, b"", &bytes(test, "ek")));
                }
                decapsulate(key.as_ref(), test);
            }
        }
    });
}

#[test]
fn ml_kem_decapsulate_from_an_expanded_key() {
    wycheproof("semi_expanded_decaps", ML_KEM, |set, _, test| {
        let (spec, oid) = known(set);
        match import(spec, &expanded_form(oid, &bytes(test, "dk"))) {
            Err(error) => assert!(!valid(test) && error == CryptoError::InvalidKey, "{test}"),
            Ok((_, key)) => decapsulate(key.as_ref(), test),
        }
    });
}

fn decapsulate(key: &dyn Key, test: &Value) {
    match key.decapsulate(&bytes(test, "c")) {
        Err(error) => assert!(!valid(test) && error == CryptoError::InvalidCiphertext, "{test}"),
        Ok(secret) => {
            assert!(valid(test), "{test}");
            assert_eq!(secret.expose(), bytes(test, "K"), "{test}");
        }
    }
}

#[test]
fn rfc9881_private_keys() {
    let Some(folder) = vectors("rfc9881") else { return };
    let mut seen = 0;
    for set in ["44", "65", "87"] {
        let spec = KeySpec::by_name(&format!("ML_DSA_{set}")).unwrap();
        let public = pem(&folder.join(format!("ML-DSA-{set}.pub")));
        for form in [Form::Seed, Form::Expanded, Form::Both] {
            let material = pem(&folder.join(format!("ML-DSA-{set}-{}.priv", form.name())));
            let (imported, key) = import(spec, &material).unwrap();
            assert_eq!(imported.form, form);
            assert_eq!(key.public_key(), Some(public.as_slice()));
            assert_eq!(imported.stored.len() == ml_dsa::SEED_LEN, form != Form::Expanded);
            if form != Form::Both {
                assert_eq!(spec.to_pkcs8(&imported.stored).unwrap().expose(), material);
            }
            signs_in_every_way(spec.signing[0], key.as_ref());
            seen += 1;
        }
    }
    println!("rfc9881 private keys accepted: {seen}");
    let mut refused = 0;
    for number in 1..=3 {
        let material = pem(&folder.join(format!("bad-ML-DSA-44-{number}.priv")));
        let outcome = KeySpec::by_name("ML_DSA_44").unwrap().import(&material).map(|_| ());
        assert_eq!(outcome, Err(CryptoError::InvalidKey), "{number}");
        refused += 1;
    }
    println!("rfc9881 private keys refused: {refused}");
}

fn signs_in_every_way(algorithm: &SignatureAlgorithm, key: &dyn Key) {
    let public = key.public_key().unwrap();
    let mu = ml_dsa::external_mu(public, b"message").unwrap();
    for message in [Message::Raw(b"message"), Message::ExternalMu(&mu)] {
        let signature = key.sign(algorithm, message).unwrap();
        algorithm.verify(public, Message::Raw(b"message"), &signature).unwrap();
        algorithm.verify(public, Message::ExternalMu(&mu), &signature).unwrap();
    }
}

/// Outlast's one composite, and the three pure ML-DSA vectors in the same file.
#[test]
fn composite_draft() {
    let Some(folder) = vectors("composite") else { return };
    let file = std::fs::read(folder.join("testvectors.json")).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let (message, context) = (base64(&file, "m"), base64(&file, "ctx"));
    let mut seen = 0;
    for test in array(&file, "tests") {
        let (public, private) = (base64(test, "pk"), base64(test, "sk_pkcs8"));
        let (signature, with_context) = (base64(test, "s"), base64(test, "sWithContext"));
        let id = test["tcId"].as_str().unwrap();
        if id == "id-MLDSA65-ECDSA-P256-SHA512" {
            let row = &ML_DSA_65_ECDSA_P256_SHA512;
            let spec = KeySpec::by_name("ML_DSA_65_ECDSA_P256").unwrap();
            let (imported, key) = import(spec, &private).unwrap();
            assert_eq!(imported.stored.expose(), base64(test, "sk"));
            assert_eq!(spec.to_pkcs8(&imported.stored).unwrap().expose(), private);
            let spki = spki("1.3.6.1.5.5.7.6.45", b"", &public);
            assert_eq!(key.public_key(), Some(spki.as_slice()));
            row.verify(&spki, Message::Raw(&message), &signature).unwrap();
            let verify = |context: &[u8], signature: &[u8]| {
                composite::verify_in_context(&spki, context, Message::Raw(&message), signature)
            };
            assert_eq!(verify(&context, &with_context), Ok(true));
            assert_eq!(verify(&context, &signature), Ok(false));
            assert_eq!(verify(b"", &with_context), Ok(false));
            // One half alone does not verify.
            for at in [0, 3308, 3309 + 8, signature.len() - 1] {
                let mut bad = signature.clone();
                bad[at] ^= 1;
                assert_eq!(verify(b"", &bad), Ok(false), "byte {at}");
                assert_eq!(verify(b"", &signature[..at]), Ok(false), "cut at {at}");
            }
            let own = key.sign(row, Message::Raw(&message)).unwrap();
            row.verify(&spki, Message::Raw(&message), &own).unwrap();
            let swapped = [&own[..3309], &signature[3309..]].concat();
            row.verify(&spki, Message::Raw(&message), &swapped).unwrap();
            let longer =
                pkcs8("1.3.6.1.5.5.7.6.45", b"", &[&base64(test, "sk")[..], b"\0"].concat());
            assert_eq!(spec.import(&longer).map(|_| ()), Err(CryptoError::InvalidKey));
        } else if let Some(set) = id.strip_prefix("id-ML-DSA-") {
            let (spec, oid) = parameter_set(&format!("ML-DSA-{set}"));
            let (_, key) = import(spec, &private).unwrap();
            let spki = spki(oid, b"", &public);
            assert_eq!(key.public_key(), Some(spki.as_slice()));
            spec.signing[0].verify(&spki, Message::Raw(&message), &signature).unwrap();
            let mu = ml_dsa::external_mu_in_context(&spki, &context, &message).unwrap();
            spec.signing[0].verify(&spki, Message::ExternalMu(&mu), &with_context).unwrap();
        } else {
            continue;
        }
        seen += 1;
    }
    assert_eq!(seen, 4);
    println!("composite: {seen} vectors with and without a context");
}

fn base64(value: &Value, name: &str) -> Vec<u8> {
    STANDARD.decode(value[name].as_str().unwrap()).unwrap()
}

fn pem(path: &Path) -> Vec<u8> {
    let text = std::fs::read_to_string(path).unwrap();
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(body).unwrap()
}
