//! DER written by hand, so that the tests do not rely on the code under test, and hexadecimal in JSON.
#![allow(dead_code, reason = "each test file takes what it needs")]

use const_oid::ObjectIdentifier;
use outlast_crypto::CryptoError;
use outlast_crypto::keys::{Imported, Key, KeySpec};
use serde_json::Value;

/// One DER element.
pub fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap().to_be_bytes();
    let head = match content.len() {
        0..0x80 => vec![tag, len[3]],
        0x80..0x100 => vec![tag, 0x81, len[3]],
        _ => vec![tag, 0x82, len[2], len[3]],
    };
    [&head, content].concat()
}

/// `AlgorithmIdentifier`; `parameters` is DER or empty.
fn algorithm(oid: &str, parameters: &[u8]) -> Vec<u8> {
    let oid = ObjectIdentifier::new(oid).unwrap();
    der(0x30, &[&der(0x06, oid.as_bytes()), parameters].concat())
}

/// PKCS #8 structure around a private key.
pub fn pkcs8(oid: &str, parameters: &[u8], private_key: &[u8]) -> Vec<u8> {
    let fields = [&der(0x02, &[0])[..], &algorithm(oid, parameters), &der(0x04, private_key)];
    der(0x30, &fields.concat())
}

/// `SubjectPublicKeyInfo`.
pub fn spki(oid: &str, parameters: &[u8], public_key: &[u8]) -> Vec<u8> {
    let bits = der(0x03, &[&[0], public_key].concat());
    der(0x30, &[algorithm(oid, parameters), bits].concat())
}

/// The three forms of an ML-DSA or ML-KEM private key.
pub fn seed_form(oid: &str, seed: &[u8]) -> Vec<u8> {
    pkcs8(oid, b"", &der(0x80, seed))
}

pub fn expanded_form(oid: &str, key: &[u8]) -> Vec<u8> {
    pkcs8(oid, b"", &der(0x04, key))
}

pub fn both_form(oid: &str, seed: &[u8], key: &[u8]) -> Vec<u8> {
    pkcs8(oid, b"", &der(0x30, &[der(0x04, seed), der(0x04, key)].concat()))
}

/// Imports key material and loads it.
pub fn import(spec: &KeySpec, material: &[u8]) -> Result<(Imported, Box<dyn Key>), CryptoError> {
    let imported = spec.import(material)?;
    let key = spec.load(&imported.stored).expect("what was imported can be loaded");
    Ok((imported, key))
}

/// The hexadecimal string under `name`.
pub fn bytes(value: &Value, name: &str) -> Vec<u8> {
    hex::decode(value[name].as_str().unwrap_or_else(|| panic!("no {name}"))).unwrap()
}

pub fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("no {name}"))
}

/// KMS key spec and OID of a parameter set named in test vectors.
pub fn parameter_set(name: &str) -> (&'static KeySpec, &'static str) {
    const SETS: &[(&str, &str)] = &[
        ("ML_DSA_44", "2.16.840.1.101.3.4.3.17"),
        ("ML_DSA_65", "2.16.840.1.101.3.4.3.18"),
        ("ML_DSA_87", "2.16.840.1.101.3.4.3.19"),
        ("SLH_DSA_SHA2_128S", "2.16.840.1.101.3.4.3.20"),
        ("SLH_DSA_SHA2_256S", "2.16.840.1.101.3.4.3.24"),
        ("ML_KEM_512", "2.16.840.1.101.3.4.4.1"),
        ("ML_KEM_768", "2.16.840.1.101.3.4.4.2"),
        ("ML_KEM_1024", "2.16.840.1.101.3.4.4.3"),
    ];
    let name = name.replace('-', "_").to_ascii_uppercase();
    let (name, oid) = SETS.iter().find(|(set, _)| *set == name).expect("a known parameter set");
    (KeySpec::by_name(name).unwrap(), oid)
}
