//! Known answers in this repository: from RFCs, and from NIST's ACVP server in `tests/data`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{
    array, both_form, bytes, der, expanded_form, import, parameter_set, pkcs8, seed_form, spki,
};
use outlast_crypto::CryptoError;
use outlast_crypto::digests::{Digest, sha256};
use outlast_crypto::keys::{Form, KeySpec};
use outlast_crypto::signatures::{ED25519, ED25519_PH, Message};
use serde_json::Value;

const EC_PUBLIC_KEY: &str = "1.2.840.10045.2.1";
const ED25519_OID: &str = "1.3.101.112";

/// RFC 5903, section 8: (key spec, curve in DER, i, r, grx ‖ gry, gix ‖ giy, girx).
const ECDH: &[[&str; 7]] = &[
    [
        "ECC_NIST_P256",
        "06082a8648ce3d030107",
        "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433",
        "c6ef9c5d78ae012a011164acb397ce2088685d8f06bf9be0b283ab46476bee53",
        "d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf6356fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
        "dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c37725811805271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3",
        "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de",
    ],
    [
        "ECC_NIST_P384",
        "06052b81040022",
        "099f3c7034d4a2c699884d73a375a67f7624ef7c6b3c0f160647b67414dce655e35b538041e649ee3faef896783ab194",
        "41cb0779b4bdb85d47846725fbec3c9430fab46cc8dc5060855cc9bda0aa2942e0308312916b8ed2960e4bd55a7448fc",
        "e558dbef53eecde3d3fccfc1aea08a89a987475d12fd950d83cfa41732bc509d0d1ac43a0336def96fda41d0774a3571dcfbec7aacf3196472169e838430367f66eebe3c6e70c416dd5f0c68759dd1fff83fa40142209dff5eaad96db9e6386c",
        "667842d7d180ac2cde6f74f37551f55755c7645c20ef73e31634fe72b4c55ee6de3ac808acb4bdb4c88732aee95f41aa9482ed1fc0eeb9cafc4984625ccfc23f65032149e0e144ada024181535a0f38eeb9fcff3c2c947dae69b4c634573a81c",
        "11187331c279962d93d604243fd592cb9d0a926f422e47187521287e7156c5c4d603135569b9e9d09cf5d4a270f59746",
    ],
    [
        "ECC_NIST_P521",
        "06052b81040023",
        "0037ade9319a89f4dabdb3ef411aaccca5123c61acab57b5393dce47608172a095aa85a30fe1c2952c6771d937ba9777f5957b2639bab072462f68c27a57382d4a52",
        "0145ba99a847af43793fdd0e872e7cdfa16be30fdc780f97bccc3f078380201e9c677d600b343757a3bdbf2a3163e4c2f869cca7458aa4a4effc311f5cb151685eb9",
        "00d0b3975ac4b799f5bea16d5e13e9af971d5e9b984c9f39728b5e5739735a219b97c356436adc6e95bb0352f6be64a6c2912d4ef2d0433ced2b6171640012d9460f015c68226383956e3bd066e797b623c27ce0eac2f551a10c2c724d9852077b87220b6536c5c408a1d2aebb8e86d678ae49cb57091f4732296579ab44fcd17f0fc56a",
        "0015417e84dbf28c0ad3c278713349dc7df153c897a1891bd98bab4357c9ecbee1e3bf42e00b8e380aeae57c2d107564941885942af5a7f4601723c4195d176ced3e017cae20b6641d2eeb695786d8c946146239d099e18e1d5a514c739d7cb4a10ad8a788015ac405d7799dc75e7b7d5b6cf2261a6a7f1507438bf01beb6ca3926f9582",
        "01144c7d79ae6956bc8edb8e7c787c4521cb086fa64407f97894e5e6b2d79b04d1427e73ca4baa240a34786859810c06b3c715a3a8cc3151f2bee417996d19f3ddea",
    ],
];

#[test]
fn ecdh_of_rfc_5903() {
    for [spec, curve, i, r, gr, gi, girx] in ECDH {
        let spec = KeySpec::by_name(spec).unwrap();
        let curve = hex::decode(curve).unwrap();
        for (private, own, peer) in [(i, gi, gr), (r, gr, gi)] {
            // ECPrivateKey of RFC 5915 without a public key.
            let scalar = hex::decode(private).unwrap();
            let inner = der(0x30, &[der(0x02, &[1]), der(0x04, &scalar)].concat());
            let material = pkcs8(EC_PUBLIC_KEY, &curve, &inner);
            let (imported, key) = import(spec, &material).unwrap();
            assert_eq!(imported.form, Form::Pkcs8);
            let point = |xy: &str| [vec![4], hex::decode(xy).unwrap()].concat();
            let public = spki(EC_PUBLIC_KEY, &curve, &point(own));
            assert_eq!(key.public_key(), Some(public.as_slice()));
            let public = spki(EC_PUBLIC_KEY, &curve, &point(peer));
            assert_eq!(hex::encode(key.derive_shared_secret(&public).unwrap().expose()), *girx);

            // The public key in the structure must belong to the private key.
            let mut off_curve = point(own);
            *off_curve.last_mut().unwrap() ^= 1;
            for (public, fits) in [(point(own), true), (point(peer), false), (off_curve, false)] {
                let public = der(0xa1, &der(0x03, &[vec![0], public].concat()));
                let inner = der(0x30, &[der(0x02, &[1]), der(0x04, &scalar), public].concat());
                let outcome = spec.import(&pkcs8(EC_PUBLIC_KEY, &curve, &inner));
                assert_eq!(outcome.is_ok(), fits);
            }
        }
    }
}

/// RFC 8032, sections 7.1 (tests 2 and 3) and 7.3: (algorithm, private key, public key, message, signature).
#[test]
fn ed25519_of_rfc_8032() {
    let spec = KeySpec::by_name("ECC_NIST_EDWARDS25519").unwrap();
    for (row, private, public, message, expected) in [
        (
            &ED25519,
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            &b"\x72"[..],
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            &ED25519,
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            b"\xaf\x82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
        (
            &ED25519_PH,
            "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
            "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
            b"abc",
            "98a70222f0b8121aa9d30f813d683f809e462b469c7ff87639499bb94e6dae4131f85042463c2a355a2003d062adf5aaa10b8c61e636062aaad11c2a26083406",
        ),
    ] {
        let seed = der(0x04, &hex::decode(private).unwrap());
        let (_, key) = import(spec, &pkcs8(ED25519_OID, b"", &seed)).unwrap();
        let spki = spki(ED25519_OID, b"", &hex::decode(public).unwrap());
        assert_eq!(key.public_key(), Some(spki.as_slice()));
        let signature = key.sign(row, Message::Raw(message)).unwrap();
        assert_eq!(hex::encode(&signature), expected, "{row:?}");
        row.verify(&spki, Message::Raw(message), &signature).unwrap();
        let null = pkcs8(ED25519_OID, &der(0x05, b""), &seed);
        assert_eq!(spec.import(&null).map(|_| ()), Err(CryptoError::InvalidKey));
    }
}

#[test]
fn ml_kem_of_acvp() {
    let vectors = data(include_str!("data/acvp_ml_kem.json"));
    for test in array(&vectors, "keyGen") {
        let (spec, oid) = parameter_set(test["set"].as_str().unwrap());
        let seed = [bytes(test, "d"), bytes(test, "z")].concat();
        let (imported, key) = import(spec, &seed_form(oid, &seed)).unwrap();
        assert_eq!(imported.form, Form::Seed);
        let public = key.public_key().unwrap();
        let bare = &public[public.len() - public_len(spec.name)..];
        assert_eq!(sha256(bare).to_vec(), bytes(test, "ek_sha256"));
        assert_eq!(public, spki(oid, b"", bare));
    }
    for group in array(&vectors, "decapsulation") {
        let (spec, oid) = parameter_set(group["set"].as_str().unwrap());
        let (imported, key) = import(spec, &expanded_form(oid, &bytes(group, "dk"))).unwrap();
        assert_eq!(imported.form, Form::Expanded);
        for test in array(group, "tests") {
            let secret = key.decapsulate(&bytes(test, "c")).unwrap();
            assert_eq!(secret.expose(), bytes(test, "k"));
        }
    }
    count("acvp_ml_kem keyGen", array(&vectors, "keyGen").len());
    count("acvp_ml_kem decapsulation", tests(&vectors, "decapsulation"));
}

#[test]
fn ml_dsa_of_acvp() {
    let vectors = data(include_str!("data/acvp_ml_dsa.json"));
    let shake = Digest::by_name("shake256").unwrap();
    for test in array(&vectors, "keyGen") {
        let (spec, oid) = parameter_set(test["set"].as_str().unwrap());
        let (_, key) = import(spec, &seed_form(oid, &bytes(test, "seed"))).unwrap();
        let public = key.public_key().unwrap();
        let bare = &public[public.len() - public_len(spec.name)..];
        assert_eq!(sha256(bare).to_vec(), bytes(test, "pk_sha256"));
        assert_eq!(public, spki(oid, b"", bare));
    }
    for group in array(&vectors, "sigVer") {
        let (spec, oid) = parameter_set(group["set"].as_str().unwrap());
        let public = bytes(group, "pk");
        let spki = spki(oid, b"", &public);
        for test in array(group, "tests") {
            // ML-DSA.Verify_internal (FIPS 204, algorithm 8, line 7): mu over the bare M'. SHAKE256 gives 64 bytes.
            let mu = shake.digest(&[shake.digest(&public), bytes(test, "message")].concat());
            let outcome =
                spec.signing[0].verify(&spki, Message::ExternalMu(&mu), &bytes(test, "signature"));
            assert_eq!(outcome.is_ok(), test["passed"].as_bool().unwrap(), "{}", spec.name);
        }
    }
    count("acvp_ml_dsa keyGen", array(&vectors, "keyGen").len());
    count("acvp_ml_dsa sigVer with external mu", tests(&vectors, "sigVer"));
}

#[test]
fn slh_dsa_of_acvp() {
    let vectors = data(include_str!("data/acvp_slh_dsa.json"));
    for test in array(&vectors, "keyGen") {
        let (spec, oid) = parameter_set(test["set"].as_str().unwrap());
        // The import recomputes PK.root from the seeds and refuses any other value.
        let mut private = bytes(test, "sk");
        let (imported, key) = import(spec, &pkcs8(oid, b"", &private)).unwrap();
        assert_eq!(imported.form, Form::Pkcs8);
        assert!(private.starts_with(&bytes(test, "seeds")));
        assert_eq!(key.public_key().unwrap(), spki(oid, b"", &bytes(test, "pk")));
        *private.last_mut().unwrap() ^= 1;
        let outcome = spec.import(&pkcs8(oid, b"", &private)).map(|_| ());
        assert_eq!(outcome, Err(CryptoError::InvalidKey));
    }
    for test in array(&vectors, "sigGen") {
        let (spec, oid) = parameter_set(test["set"].as_str().unwrap());
        let (_, key) = import(spec, &pkcs8(oid, b"", &bytes(test, "sk"))).unwrap();
        let message = bytes(test, "message");
        let verify = |signature: &[u8]| {
            let public = key.public_key().unwrap();
            spec.signing[0].verify(public, Message::Raw(&message), signature)
        };
        let mut signature = bytes(test, "signature");
        verify(&signature).unwrap();
        signature[100] ^= 1;
        assert_eq!(verify(&signature), Err(CryptoError::InvalidSignature));
    }
    count("acvp_slh_dsa keyGen", array(&vectors, "keyGen").len());
    count("acvp_slh_dsa sigGen, verified", array(&vectors, "sigGen").len());
}

/// Forms of ML-DSA and ML-KEM keys that must be refused whatever they contain.
#[test]
fn seeds_and_expanded_keys_have_one_form_each() {
    for name in ["ML_DSA_44", "ML_DSA_65", "ML_DSA_87", "ML_KEM_512", "ML_KEM_768", "ML_KEM_1024"] {
        let (spec, oid) = parameter_set(name);
        let stored = spec.generate().unwrap();
        let seed = stored.expose();
        let public = spec.load(&stored).unwrap().public_key().unwrap().to_vec();
        let good = seed_form(oid, seed);
        assert_eq!(spec.to_pkcs8(&stored).unwrap().expose(), good);
        let version_2 = |key: &[u8]| {
            let key = der(0x81, &[&[0], key].concat());
            let mut fields = pkcs8_fields(&good);
            fields[2] = 1;
            der(0x30, &[fields, key].concat())
        };
        let bare = &public[public.len() - public_len(name)..];
        assert!(spec.import(&version_2(bare)).is_ok(), "{name} with its public key");
        for bad in [
            seed_form(oid, &seed[1..]),
            seed_form(oid, &[seed, b"\0"].concat()),
            expanded_form(oid, seed),
            both_form(oid, seed, seed),
            pkcs8(oid, b"", seed),
            pkcs8(oid, b"", &[der(0x80, seed), vec![5, 0]].concat()),
            pkcs8(oid, b"", &der(0x81, seed)),
            pkcs8(oid, b"", &der(0xa0, &der(0x04, seed))),
            pkcs8(oid, &der(0x05, b""), &der(0x80, seed)),
            version_2(&bare[1..]),
            version_2(&[0; 32]),
        ] {
            let outcome = spec.import(&bad).map(|_| ());
            assert_eq!(outcome, Err(CryptoError::InvalidKey), "{name} {}", hex::encode(bad));
        }
    }
}

fn pkcs8_fields(pkcs8: &[u8]) -> Vec<u8> {
    assert!(pkcs8[1] < 0x80, "a seed form is short");
    pkcs8[2..].to_vec()
}

fn public_len(name: &str) -> usize {
    match name {
        "ML_DSA_44" => 1312,
        "ML_DSA_65" => 1952,
        "ML_DSA_87" => 2592,
        "ML_KEM_512" => 800,
        "ML_KEM_768" => 1184,
        "ML_KEM_1024" => 1568,
        _ => panic!("{name}"),
    }
}

fn data(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn tests(vectors: &Value, name: &str) -> usize {
    array(vectors, name).iter().map(|group| array(group, "tests").len()).sum()
}

fn count(name: &str, count: usize) {
    println!("{name}: {count} vectors");
}
