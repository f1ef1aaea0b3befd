//! Key material that the owner brings: import, expiry, deletion, rotation.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{ACCOUNT, Answer, Fixture, Who, b64, code, text, unb64, with};
use outlast_crypto::keys::{KEY_SPECS, KeySpec, KeyUsage};
use outlast_crypto::wrap::{WRAPPING, WrappingAlgorithm};
use outlast_store::Store;
use serde_json::{Value, json};

const BY_AES: &str = "RSA_AES_KEY_WRAP_SHA_256";
const DAY: i64 = 86_400;

/// The answer of GetParametersForImport.
struct Parameters {
    token: String,
    public_key: Vec<u8>,
    algorithm: &'static WrappingAlgorithm,
}

fn parameters(fixture: &Fixture, who: &Who, key: &str, algorithm: &str, spec: &str) -> Parameters {
    let body = json!({ "KeyId": key, "WrappingAlgorithm": algorithm, "WrappingKeySpec": spec });
    let made = fixture.kms_as(who, "GetParametersForImport", body).unwrap();
    assert_eq!(made["ParametersValidTo"], fixture.now.get() + DAY);
    Parameters {
        token: text(&made["ImportToken"]).to_owned(),
        public_key: unb64(&made["PublicKey"]),
        algorithm: WrappingAlgorithm::by_name(algorithm).unwrap(),
    }
}

impl Parameters {
    /// The body of an import that does not expire.
    fn body(&self, key: &str, material: &[u8]) -> Value {
        let wrapped = self.algorithm.wrap(&self.public_key, material).unwrap();
        json!({
            "KeyId": key, "ImportToken": self.token, "EncryptedKeyMaterial": b64(&wrapped),
            "ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE",
        })
    }
}

fn import_as(fixture: &Fixture, who: &Who, key: &str, material: &[u8], more: Value) -> Answer {
    let parameters = parameters(fixture, who, key, BY_AES, "RSA_2048");
    let mut body = with(&parameters.body(key, material), more);
    if body.get("ValidTo").is_some() {
        body["ExpirationModel"] = json!("KEY_MATERIAL_EXPIRES");
    }
    fixture.kms_as(who, "ImportKeyMaterial", body)
}

pub fn import(fixture: &Fixture, key: &str, material: &[u8], more: Value) -> Answer {
    import_as(fixture, &Who::admin(), key, material, more)
}

fn empty_key(fixture: &Fixture, spec: &str, usage: &str) -> String {
    fixture.key(json!({ "KeySpec": spec, "KeyUsage": usage, "Origin": "EXTERNAL" }))
}

pub fn symmetric(fixture: &Fixture) -> String {
    empty_key(fixture, "SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT")
}

fn materials(fixture: &Fixture, who: &Who, key: &str) -> Vec<Value> {
    let body = json!({ "KeyId": key, "IncludeKeyMaterial": "ALL_KEY_MATERIAL" });
    let found = fixture.kms_as(who, "ListKeyRotations", body).unwrap();
    found["Rotations"].as_array().unwrap().clone()
}

fn states(fixture: &Fixture, who: &Who, key: &str) -> Vec<(String, String)> {
    let found = materials(fixture, who, key);
    let both = found.iter().map(|one| {
        (text(&one["KeyMaterialState"]).to_owned(), text(&one["ImportState"]).to_owned())
    });
    both.collect()
}

fn secrets(fixture: &Fixture) -> usize {
    fixture.store.scan("kms/material/", "", 1000).unwrap().len()
}

#[test]
fn every_wrapping_brings_a_symmetric_key() {
    let fixture = Fixture::new();
    for row in WRAPPING {
        for spec in ["RSA_2048", "RSA_3072", "RSA_4096"] {
            if spec == "RSA_4096" && row.name != BY_AES {
                continue; // Making them takes its time; one is enough.
            }
            let key = symmetric(&fixture);
            assert_eq!(fixture.state(&key), "PendingImport");
            let parameters = parameters(&fixture, &Who::admin(), &key, row.name, spec);
            let made = fixture.kms("ImportKeyMaterial", parameters.body(&key, &[7; 32])).unwrap();
            assert_eq!(text(&made["KeyMaterialId"]).len(), 64);
            let found = fixture.kms("DescribeKey", json!({ "KeyId": key })).unwrap();
            let found = &found["KeyMetadata"];
            assert_eq!(
                (&found["KeyState"], &found["Origin"]),
                (&json!("Enabled"), &json!("EXTERNAL"))
            );
            assert_eq!(found["ExpirationModel"], "KEY_MATERIAL_DOES_NOT_EXPIRE");
            assert_eq!(found["CurrentKeyMaterialId"], made["KeyMaterialId"]);
            assert_eq!(fixture.decrypted(&fixture.encrypted(&key, b"x")), b"x");
            let all = serde_json::to_string(&fixture.events()).unwrap();
            assert!(!all.contains(&parameters.token) && !all.contains(&b64(&[7; 32])));
        }
    }
    let own = fixture.key(json!({}));
    for operation in ["GetParametersForImport", "DeleteImportedKeyMaterial"] {
        let body = match operation {
            "GetParametersForImport" => {
                json!({ "KeyId": own, "WrappingAlgorithm": BY_AES, "WrappingKeySpec": "RSA_2048" })
            }
            _ => json!({ "KeyId": own }),
        };
        assert_eq!(code(fixture.kms(operation, body)), "UnsupportedOperationException");
    }
    for wrong in
        [json!({ "WrappingAlgorithm": "SM2PKE" }), json!({ "WrappingKeySpec": "RSA_1024" })]
    {
        let good =
            json!({ "KeyId": own, "WrappingAlgorithm": BY_AES, "WrappingKeySpec": "RSA_2048" });
        let answer = fixture.kms("GetParametersForImport", with(&good, wrong));
        assert_eq!(code(answer), "ValidationException");
    }
}

/// A new key in its PKCS #8 form, and in the other forms, with the name of each.
fn forms(spec: &KeySpec) -> Vec<(&'static str, Vec<u8>)> {
    let stored = spec.generate().unwrap();
    let seed_form = spec.to_pkcs8(&stored).unwrap().expose().to_vec();
    let is_lattice = spec.name.starts_with("ML_KEM")
        || (spec.name.starts_with("ML_DSA") && !spec.name.contains("ECDSA"));
    if !is_lattice {
        return vec![("pkcs8", seed_form)];
    }
    vec![("seed", seed_form)]
}

#[test]
fn keys_of_every_type_come_in_and_are_what_they_were() {
    let fixture = Fixture::new();
    let slow = ["RSA_3072", "RSA_4096"];
    for spec in KEY_SPECS.iter().filter(|spec| !slow.contains(&spec.name)) {
        let usage = spec.usages[0];
        if spec.is_symmetric() {
            let stored = spec.generate().unwrap();
            let key = empty_key(&fixture, spec.name, usage.name());
            let short = &stored.expose()[1..];
            let code_of = code(import(&fixture, &key, short, json!({})));
            assert_eq!(code_of, "IncorrectKeyMaterialException", "{}", spec.name);
            assert_eq!(fixture.state(&key), "PendingImport");
            import(&fixture, &key, stored.expose(), json!({})).unwrap();
            if usage == KeyUsage::GenerateVerifyMac {
                let body =
                    json!({ "KeyId": key, "Message": b64(b"m"), "MacAlgorithm": spec.mac[0] });
                let made = fixture.kms("GenerateMac", body).unwrap();
                let expected = spec.load(&stored).unwrap().mac(spec.mac[0], b"m").unwrap();
                assert_eq!(unb64(&made["Mac"]), expected);
            }
            continue;
        }
        for (form, material) in forms(spec) {
            let key = empty_key(&fixture, spec.name, usage.name());
            import(&fixture, &key, &material, json!({})).unwrap();
            let event = fixture.events().pop().unwrap();
            assert_eq!(event["responseElements"]["keyMaterialForm"], form, "{}", spec.name);
            let imported = spec.import(&material).unwrap();
            let loaded = spec.load(&imported.stored).unwrap();
            let public = fixture.kms("GetPublicKey", json!({ "KeyId": key })).unwrap();
            assert_eq!(unb64(&public["PublicKey"]), loaded.public_key().unwrap());
            // The same material may be imported again; other material is refused for good.
            import(&fixture, &key, &material, json!({})).unwrap();
            let (_, other) = forms(spec).remove(0);
            let refused = code(import(&fixture, &key, &other, json!({})));
            assert_eq!(refused, "IncorrectKeyMaterialException");
            let description = json!({ "KeyMaterialDescription": "x" });
            assert_eq!(code(import(&fixture, &key, &material, description)), "ValidationException");
            fixture.kms("DeleteImportedKeyMaterial", json!({ "KeyId": key })).unwrap();
            assert_eq!(fixture.state(&key), "PendingImport");
            assert_eq!(
                code(import(&fixture, &key, &other, json!({}))),
                "IncorrectKeyMaterialException"
            );
            import(&fixture, &key, &material, json!({})).unwrap();
            assert_eq!(fixture.state(&key), "Enabled");
        }
        // Material of another key type is refused.
        let other = KeySpec::by_name(match spec.name {
            "ECC_NIST_P256" => "ECC_NIST_P384",
            _ => "ECC_NIST_P256",
        });
        let (_, other) = forms(other.unwrap()).remove(0);
        let key = empty_key(&fixture, spec.name, usage.name());
        for wrong in [other.as_slice(), b"garbage", &[0x30, 0x80, 0, 0]] {
            let refused = code(import(&fixture, &key, wrong, json!({})));
            assert_eq!(refused, "IncorrectKeyMaterialException", "{}", spec.name);
        }
    }
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    let head = match len {
        0..=0x7f => vec![tag, u8::try_from(len).unwrap()],
        _ => {
            let [high, low] = u16::try_from(len).unwrap().to_be_bytes();
            vec![tag, 0x82, high, low]
        }
    };
    [head, content.to_vec()].concat()
}

/// The expanded private key of a seed, as other libraries make it.
#[expect(deprecated, reason = "the expanded form is deprecated and tested here")]
fn expanded_key(spec: &str, seed: &[u8]) -> Vec<u8> {
    use ml_kem::ExpandedKeyEncoding;
    fn ml_dsa<P: ml_dsa::MlDsaParams>(seed: &[u8]) -> Vec<u8> {
        let seed: [u8; 32] = seed.try_into().unwrap();
        ml_dsa::ExpandedSigningKey::<P>::from_seed(&seed.into()).to_expanded().to_vec()
    }
    fn kem<K: From<ml_kem::Seed> + ExpandedKeyEncoding>(seed: &[u8]) -> Vec<u8> {
        K::from(ml_kem::Seed::try_from(seed).unwrap()).to_expanded_bytes().to_vec()
    }
    match spec {
        "ML_DSA_44" => ml_dsa::<ml_dsa::MlDsa44>(seed),
        "ML_DSA_65" => ml_dsa::<ml_dsa::MlDsa65>(seed),
        "ML_DSA_87" => ml_dsa::<ml_dsa::MlDsa87>(seed),
        "ML_KEM_512" => kem::<ml_kem::ml_kem_512::DecapsulationKey>(seed),
        "ML_KEM_768" => kem::<ml_kem::ml_kem_768::DecapsulationKey>(seed),
        _ => kem::<ml_kem::ml_kem_1024::DecapsulationKey>(seed),
    }
}

/// PKCS #8 of ML-DSA or ML-KEM with this private key, under an OID that ends like this.
fn pkcs8(arc: [u8; 2], private_key: &[u8]) -> Vec<u8> {
    let prefix = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04];
    let oid = der(0x06, &[prefix.as_slice(), &arc].concat());
    let body = [der(0x02, &[0]), der(0x30, &oid), der(0x04, private_key)].concat();
    der(0x30, &body)
}

#[test]
fn ml_dsa_and_ml_kem_come_as_seed_expanded_key_or_both() {
    let fixture = Fixture::new();
    for (spec, arc, seed_len, usage) in [
        ("ML_DSA_44", [3, 17], 32, "SIGN_VERIFY"),
        ("ML_DSA_65", [3, 18], 32, "SIGN_VERIFY"),
        ("ML_DSA_87", [3, 19], 32, "SIGN_VERIFY"),
        ("ML_KEM_512", [4, 1], 64, "ENCAPSULATE_DECAPSULATE"),
        ("ML_KEM_768", [4, 2], 64, "ENCAPSULATE_DECAPSULATE"),
        ("ML_KEM_1024", [4, 3], 64, "ENCAPSULATE_DECAPSULATE"),
    ] {
        let row = KeySpec::by_name(spec).unwrap();
        let seed: Vec<u8> = (0..seed_len).collect();
        let seed_form = pkcs8(arc, &der(0x80, &seed));
        let public = row.load(&row.import(&seed_form).unwrap().stored).unwrap();
        let public = public.public_key().unwrap().to_vec();
        let key = empty_key(&fixture, spec, usage);
        import(&fixture, &key, &seed_form, json!({})).unwrap();
        let found = fixture.kms("GetPublicKey", json!({ "KeyId": key })).unwrap();
        assert_eq!(unb64(&found["PublicKey"]), public);
        let expanded = expanded_key(spec, &seed);
        let expanded_form = pkcs8(arc, &der(0x04, &expanded));
        let pair = |seed: &[u8], expanded: &[u8]| {
            let both = [der(0x04, seed), der(0x04, expanded)].concat();
            pkcs8(arc, &der(0x30, &both))
        };
        for (form, material) in [("expanded", expanded_form), ("both", pair(&seed, &expanded))] {
            let key = empty_key(&fixture, spec, usage);
            import(&fixture, &key, &material, json!({})).unwrap();
            let event = fixture.events().pop().unwrap();
            assert_eq!(event["responseElements"]["keyMaterialForm"], form);
            let found = fixture.kms("GetPublicKey", json!({ "KeyId": key })).unwrap();
            assert_eq!(unb64(&found["PublicKey"]), public, "{spec} {form}");
        }
        let mut other = seed.clone();
        other[0] ^= 1;
        let mut changed = expanded.clone();
        *changed.last_mut().unwrap() ^= 1;
        let key = empty_key(&fixture, spec, usage);
        for wrong in [
            pair(&other, &expanded),
            pair(&seed, &changed),
            pair(&seed[1..], &expanded),
            pkcs8(arc, &der(0x80, &seed[1..])),
            pkcs8(arc, &der(0x04, &expanded[1..])),
            pkcs8([arc[0], arc[1] ^ 8], &der(0x80, &seed)),
            [seed_form.as_slice(), b"\0"].concat(),
        ] {
            let refused = code(import(&fixture, &key, &wrong, json!({})));
            assert_eq!(refused, "IncorrectKeyMaterialException", "{spec}");
        }
        assert_eq!(fixture.state(&key), "PendingImport");
    }
}

#[test]
fn material_expires_and_is_erased() {
    let fixture = Fixture::new();
    let key = symmetric(&fixture);
    let now = fixture.now.get();
    let good = parameters(&fixture, &Who::admin(), &key, BY_AES, "RSA_2048").body(&key, &[1; 32]);
    for wrong in [
        json!({ "ExpirationModel": "KEY_MATERIAL_EXPIRES" }),
        json!({ "ExpirationModel": null }),
        json!({ "ValidTo": now + 100 }),
        json!({ "ExpirationModel": null, "ValidTo": now }),
        json!({ "ExpirationModel": null, "ValidTo": now + 365 * DAY + 1 }),
        json!({ "ExpirationModel": "NEVER" }),
    ] {
        let refused = fixture.kms("ImportKeyMaterial", with(&good, wrong.clone()));
        assert_eq!(code(refused), "ValidationException", "{wrong}");
    }
    let body = with(&good, json!({ "ExpirationModel": null, "ValidTo": now + 100 }));
    fixture.kms("ImportKeyMaterial", body).unwrap();
    let found = fixture.kms("DescribeKey", json!({ "KeyId": key })).unwrap();
    assert_eq!(found["KeyMetadata"]["ExpirationModel"], "KEY_MATERIAL_EXPIRES");
    assert_eq!(found["KeyMetadata"]["ValidTo"], now + 100);
    let blob = fixture.encrypted(&key, b"x");
    fixture.advance(99);
    fixture.run_housekeeping();
    assert_eq!(fixture.decrypted(&blob), b"x");
    fixture.advance(1);
    // At its time callers lose it, and the next sweep erases it from the disk.
    let open = json!({ "CiphertextBlob": blob });
    assert_eq!(code(fixture.kms("Decrypt", open.clone())), "KMSInvalidStateException");
    assert_eq!((fixture.state(&key).as_str(), secrets(&fixture)), ("PendingImport", 1));
    fixture.run_housekeeping();
    assert_eq!(secrets(&fixture), 0);
    let event = fixture.events().pop().unwrap();
    assert_eq!(event["eventName"], "DeleteExpiredKeyMaterial");
    assert!(text(&event["resources"][0]["ARN"]).ends_with(&key));
    let count = fixture.events().len();
    fixture.run_housekeeping();
    assert_eq!(fixture.events().len(), count, "once");
    assert_eq!(code(fixture.kms("Decrypt", open)), "KMSInvalidStateException");
    let other = code(import(&fixture, &key, &[2; 32], json!({})));
    assert_eq!(other, "IncorrectKeyMaterialException");
    import(&fixture, &key, &[1; 32], json!({})).unwrap();
    assert_eq!(fixture.decrypted(&blob), b"x");
    fixture.advance(400 * DAY);
    fixture.run_housekeeping();
    assert_eq!(fixture.decrypted(&blob), b"x", "the new import does not expire");
}

#[test]
fn deleted_material_comes_back() {
    let fixture = Fixture::new();
    let key = symmetric(&fixture);
    let id =
        import(&fixture, &key, &[1; 32], json!({ "KeyMaterialDescription": "first" })).unwrap();
    let id = text(&id["KeyMaterialId"]).to_owned();
    let blob = fixture.encrypted(&key, b"x");
    let delete = |more: Value| {
        fixture.kms("DeleteImportedKeyMaterial", with(&json!({ "KeyId": key }), more))
    };
    assert_eq!(code(delete(json!({ "KeyMaterialId": "0".repeat(64) }))), "NotFoundException");
    assert_eq!(code(delete(json!({ "KeyMaterialId": "0" }))), "ValidationException");
    assert_eq!(delete(json!({})).unwrap()["KeyMaterialId"], id.as_str());
    assert_eq!((fixture.state(&key).as_str(), secrets(&fixture)), ("PendingImport", 0));
    delete(json!({})).unwrap();
    assert_eq!(
        states(&fixture, &Who::admin(), &key),
        [("CURRENT".into(), "PENDING_IMPORT".into())]
    );
    assert_eq!(code(fixture.kms("EnableKey", json!({ "KeyId": key }))), "KMSInvalidStateException");
    for (material, more) in [
        (2, json!({})),
        (2, json!({ "KeyMaterialId": id })),
        (2, json!({ "ImportType": "EXISTING_KEY_MATERIAL" })),
        (1, json!({ "KeyMaterialId": "0".repeat(64) })),
        (1, json!({ "ImportType": "NEW_KEY_MATERIAL" })),
    ] {
        let refused = code(import(&fixture, &key, &[material; 32], more.clone()));
        assert_eq!(refused, "IncorrectKeyMaterialException", "{more}");
    }
    let both = json!({ "ImportType": "NEW_KEY_MATERIAL", "KeyMaterialId": id });
    assert_eq!(code(import(&fixture, &key, &[1; 32], both)), "ValidationException");
    import(&fixture, &key, &[1; 32], json!({ "KeyMaterialId": id })).unwrap();
    assert_eq!(fixture.decrypted(&blob), b"x");
    assert_eq!(materials(&fixture, &Who::admin(), &key)[0]["KeyMaterialDescription"], "first");
    // Whatever state the key had before its material was deleted: importing it again enables the key.
    fixture.kms("DisableKey", json!({ "KeyId": key })).unwrap();
    delete(json!({})).unwrap();
    import(&fixture, &key, &[1; 32], json!({})).unwrap();
    assert_eq!(fixture.state(&key), "Enabled");
    // Importing material that is still there does not enable a key that somebody disabled.
    fixture.kms("DisableKey", json!({ "KeyId": key })).unwrap();
    import(&fixture, &key, &[1; 32], json!({})).unwrap();
    assert_eq!(fixture.state(&key), "Disabled");
    fixture.kms("EnableKey", json!({ "KeyId": key })).unwrap();
    // In another key the same material has another id and decrypts nothing.
    let other = symmetric(&fixture);
    let made = import(&fixture, &other, &[1; 32], json!({})).unwrap();
    assert_ne!(made["KeyMaterialId"], id.as_str());
    let crossed = json!({ "CiphertextBlob": blob, "KeyId": other });
    assert_eq!(code(fixture.kms("Decrypt", crossed)), "IncorrectKeyException");
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": key })).unwrap();
    delete(json!({})).unwrap();
    assert_eq!(fixture.state(&key), "PendingDeletion");
    let body = json!({ "KeyId": key, "WrappingAlgorithm": BY_AES, "WrappingKeySpec": "RSA_2048" });
    assert_eq!(code(fixture.kms("GetParametersForImport", body)), "KMSInvalidStateException");
}

#[test]
fn tokens_are_for_one_import_into_one_key() {
    let fixture = Fixture::new();
    let admin = Who::admin();
    let (key, other) = (symmetric(&fixture), symmetric(&fixture));
    let send = |body: Value| fixture.kms("ImportKeyMaterial", body);
    let first = parameters(&fixture, &admin, &key, BY_AES, "RSA_2048");
    let second = parameters(&fixture, &admin, &key, BY_AES, "RSA_2048");
    let good = first.body(&key, &[1; 32]);
    let foreign = with(&good, json!({ "KeyId": other }));
    assert_eq!(code(send(foreign)), "InvalidImportTokenException");
    for token in [vec![0; 32], vec![0; 31], b"garbage".to_vec()] {
        let wrong = with(&good, json!({ "ImportToken": b64(&token) }));
        assert_eq!(code(send(wrong)), "InvalidImportTokenException");
    }
    // Wrapped for another token's key, or not wrapped at all: nothing changes, and the token can be used again.
    let crossed = second.body(&key, &[1; 32])["EncryptedKeyMaterial"].clone();
    for wrong in [crossed, json!(b64(b"garbage")), json!(b64(&[0; 296]))] {
        let body = with(&good, json!({ "EncryptedKeyMaterial": wrong }));
        assert_eq!(code(send(body)), "InvalidCiphertextException");
    }
    assert_eq!(code(send(first.body(&key, &[1; 31]))), "IncorrectKeyMaterialException");
    assert_eq!(fixture.state(&key), "PendingImport");
    send(good.clone()).unwrap();
    assert_eq!(code(send(good)), "InvalidImportTokenException");
    assert_eq!(fixture.store.scan("kms/import-secret/", "", 10).unwrap().len(), 1);
    fixture.advance(DAY);
    fixture.run_housekeeping();
    assert_eq!(code(send(second.body(&key, &[1; 32]))), "ExpiredImportTokenException");
    fixture.advance(DAY);
    fixture.run_housekeeping();
    assert_eq!(code(send(second.body(&key, &[1; 32]))), "InvalidImportTokenException");
    assert!(fixture.store.scan("kms/import", "", 10).unwrap().is_empty());
    let long =
        with(&second.body(&key, &[1; 32]), json!({ "EncryptedKeyMaterial": b64(&[0; 8193]) }));
    assert_eq!(code(send(long)), "ValidationException");
    // Imports under way end with the key.
    parameters(&fixture, &admin, &key, BY_AES, "RSA_2048");
    for key in [&key, &other] {
        let body = json!({ "KeyId": key, "PendingWindowInDays": 7 });
        fixture.kms("ScheduleKeyDeletion", body).unwrap();
    }
    fixture.advance(8 * DAY);
    fixture.run_housekeeping();
    assert!(fixture.store.scan("kms/", "", 10).unwrap().is_empty());
}

#[test]
fn imported_keys_rotate_to_what_was_imported() {
    let fixture = Fixture::new();
    let admin = Who::admin();
    let key = symmetric(&fixture);
    let id = json!({ "KeyId": key });
    import(&fixture, &key, &[1; 32], json!({})).unwrap();
    let old = fixture.encrypted(&key, b"old");
    assert_eq!(code(fixture.kms("RotateKeyOnDemand", id.clone())), "KMSInvalidStateException");
    for operation in ["EnableKeyRotation", "DisableKeyRotation"] {
        assert_eq!(code(fixture.kms(operation, id.clone())), "UnsupportedOperationException");
    }
    assert_eq!(code(import(&fixture, &key, &[2; 32], json!({}))), "IncorrectKeyMaterialException");
    let new = json!({ "ImportType": "NEW_KEY_MATERIAL" });
    let replaced = import(&fixture, &key, &[9; 32], new.clone()).unwrap();
    let next = import(&fixture, &key, &[2; 32], new).unwrap();
    assert_eq!(secrets(&fixture), 2, "one new material waits at a time");
    let expected = |list: &[(&str, &str)]| {
        let list: Vec<_> = list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(states(&fixture, &admin, &key), list);
    };
    expected(&[("PENDING_ROTATION", "IMPORTED"), ("CURRENT", "IMPORTED")]);
    let rotations = fixture.kms("ListKeyRotations", id.clone()).unwrap();
    assert_eq!(rotations["Rotations"], json!([]), "nothing has rotated yet");
    assert_eq!(fixture.decrypted(&fixture.encrypted(&key, b"x")), b"x");
    // Pending material can be deleted, and the key stays usable.
    let delete = with(&id, json!({ "KeyMaterialId": next["KeyMaterialId"] }));
    fixture.kms("DeleteImportedKeyMaterial", delete).unwrap();
    assert_eq!((fixture.state(&key).as_str(), secrets(&fixture)), ("Enabled", 1));
    assert_eq!(code(fixture.kms("RotateKeyOnDemand", id.clone())), "KMSInvalidStateException");
    let new = json!({ "ImportType": "NEW_KEY_MATERIAL", "ValidTo": fixture.now.get() + 1000 });
    let next = import(&fixture, &key, &[2; 32], new).unwrap();
    let found = fixture.kms("DescribeKey", id.clone()).unwrap();
    assert!(found["KeyMetadata"].get("ValidTo").is_none(), "not of the material that waits");
    fixture.advance(10);
    fixture.kms("RotateKeyOnDemand", id.clone()).unwrap();
    expected(&[("CURRENT", "IMPORTED"), ("NON_CURRENT", "IMPORTED")]);
    let found = fixture.kms("DescribeKey", id.clone()).unwrap();
    assert_eq!(found["KeyMetadata"]["CurrentKeyMaterialId"], next["KeyMaterialId"]);
    assert_eq!(found["KeyMetadata"]["ValidTo"], fixture.now.get() + 990);
    let young = fixture.encrypted(&key, b"new");
    let opened = fixture.kms("Decrypt", json!({ "CiphertextBlob": young })).unwrap();
    assert_eq!(opened["KeyMaterialId"], next["KeyMaterialId"]);
    assert_eq!(fixture.decrypted(&old), b"old");
    let listed = fixture.kms("ListKeyRotations", id.clone()).unwrap();
    let listed = listed["Rotations"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["RotationType"], "ON_DEMAND");
    assert_eq!(listed[0]["RotationDate"], fixture.now.get());
    // If any of its materials is missing, the key cannot be used.
    let first = materials(&fixture, &admin, &key)[1]["KeyMaterialId"].clone();
    let delete = with(&id, json!({ "KeyMaterialId": first }));
    fixture.kms("DeleteImportedKeyMaterial", delete).unwrap();
    assert_eq!(fixture.state(&key), "PendingImport");
    expected(&[("CURRENT", "IMPORTED"), ("NON_CURRENT", "PENDING_IMPORT")]);
    assert_eq!(
        code(fixture.kms("Decrypt", json!({ "CiphertextBlob": young }))),
        "KMSInvalidStateException"
    );
    import(&fixture, &key, &[1; 32], json!({ "KeyMaterialId": first })).unwrap();
    assert_eq!(fixture.decrypted(&old), b"old");
    assert_ne!(replaced["KeyMaterialId"], next["KeyMaterialId"]);
}

#[test]
fn imported_keys_in_several_regions() {
    let fixture = Fixture::new();
    let (here, there) = (Who::admin(), Who::admin().at("us-east-1"));
    let key = fixture.key(json!({ "Origin": "EXTERNAL", "MultiRegion": true }));
    let id = json!({ "KeyId": key });
    let replica = with(&id, json!({ "ReplicaRegion": "us-east-1" }));
    fixture.kms("ReplicateKey", replica).unwrap();
    let new = json!({ "ImportType": "NEW_KEY_MATERIAL" });
    let early = import_as(&fixture, &there, &key, &[1; 32], json!({}));
    assert_eq!(code(early), "IncorrectKeyMaterialException");
    let made = import(&fixture, &key, &[1; 32], json!({})).unwrap();
    let blob = fixture.encrypted(&key, b"x");
    let open = json!({ "CiphertextBlob": blob });
    assert_eq!(code(fixture.kms_as(&there, "Decrypt", open.clone())), "KMSInvalidStateException");
    let other = import_as(&fixture, &there, &key, &[2; 32], json!({}));
    assert_eq!(code(other), "IncorrectKeyMaterialException");
    let same = import_as(&fixture, &there, &key, &[1; 32], json!({})).unwrap();
    assert_eq!(same["KeyMaterialId"], made["KeyMaterialId"]);
    assert_eq!(unb64(&fixture.kms_as(&there, "Decrypt", open.clone()).unwrap()["Plaintext"]), b"x");
    // A rotation waits for the material in every Region.
    let refused = import_as(&fixture, &there, &key, &[2; 32], new.clone());
    assert_eq!(code(refused), "IncorrectKeyMaterialException");
    import(&fixture, &key, &[9; 32], new.clone()).unwrap();
    import(&fixture, &key, &[2; 32], new.clone()).unwrap();
    for who in [&here, &there] {
        let waiting = states(&fixture, who, &key);
        assert_eq!(waiting.len(), 2, "what was replaced is forgotten everywhere");
        assert_eq!(waiting[0].0, "PENDING_MULTI_REGION_IMPORT_AND_ROTATION");
    }
    assert_eq!(code(fixture.kms("RotateKeyOnDemand", id.clone())), "KMSInvalidStateException");
    import_as(&fixture, &there, &key, &[2; 32], json!({})).unwrap();
    for who in [&here, &there] {
        assert_eq!(states(&fixture, who, &key)[0].0, "PENDING_ROTATION");
    }
    // Deleted in a replica's Region, it is missing there only; deleted in the primary Region, it is missing
    // everywhere.
    let waiting = materials(&fixture, &there, &key)[0]["KeyMaterialId"].clone();
    let delete = with(&id, json!({ "KeyMaterialId": waiting }));
    fixture.kms_as(&there, "DeleteImportedKeyMaterial", delete.clone()).unwrap();
    assert_eq!(states(&fixture, &here, &key)[0].0, "PENDING_MULTI_REGION_IMPORT_AND_ROTATION");
    import_as(&fixture, &there, &key, &[2; 32], json!({})).unwrap();
    assert_eq!(secrets(&fixture), 4);
    fixture.kms("DeleteImportedKeyMaterial", delete).unwrap();
    assert_eq!(secrets(&fixture), 2);
    assert_eq!(states(&fixture, &there, &key).len(), 1);
    import(&fixture, &key, &[2; 32], new).unwrap();
    // A replica that is made in the meantime waits for it, too.
    let third = Who::admin().at("eu-west-2");
    fixture.kms("ReplicateKey", with(&id, json!({ "ReplicaRegion": "eu-west-2" }))).unwrap();
    assert_eq!(
        fixture.kms_as(&third, "DescribeKey", id.clone()).unwrap()["KeyMetadata"]["KeyState"],
        "PendingImport"
    );
    import_as(&fixture, &there, &key, &[2; 32], json!({})).unwrap();
    assert_eq!(code(fixture.kms("RotateKeyOnDemand", id.clone())), "KMSInvalidStateException");
    for material in [1, 2] {
        import_as(&fixture, &third, &key, &[material; 32], json!({})).unwrap();
    }
    assert_eq!(
        code(fixture.kms_as(&there, "RotateKeyOnDemand", id.clone())),
        "UnsupportedOperationException"
    );
    fixture.kms("RotateKeyOnDemand", id).unwrap();
    let young = json!({ "CiphertextBlob": fixture.encrypted(&key, b"y") });
    for who in [&here, &there, &third] {
        assert_eq!(
            unb64(&fixture.kms_as(who, "Decrypt", open.clone()).unwrap()["Plaintext"]),
            b"x"
        );
        assert_eq!(
            unb64(&fixture.kms_as(who, "Decrypt", young.clone()).unwrap()["Plaintext"]),
            b"y"
        );
        assert_eq!(states(&fixture, who, &key)[0], ("CURRENT".into(), "IMPORTED".into()));
    }
    assert!(fixture.events().iter().all(|event| event["recipientAccountId"] == ACCOUNT));
}

/// If bad padding could be told from wrong material, an attacker could decrypt by asking often.
#[test]
fn replicas_reveal_no_more_than_the_primary_key() {
    let fixture = Fixture::new();
    let there = Who::admin().at("us-east-1");
    let key = fixture.key(json!({ "Origin": "EXTERNAL", "MultiRegion": true }));
    fixture.kms("ReplicateKey", json!({ "KeyId": key, "ReplicaRegion": "us-east-1" })).unwrap();
    for first in [true, false] {
        let mut answers = Vec::new();
        for who in [&Who::admin(), &there] {
            // The first import into a primary key accepts any material.
            let is_primary = who.region != there.region;
            if first && is_primary {
                continue;
            }
            let given = parameters(&fixture, who, &key, "RSAES_PKCS1_V1_5", "RSA_2048");
            let news: &[Option<&str>] = if is_primary {
                &[None, Some("EXISTING_KEY_MATERIAL")]
            } else {
                &[None, Some("EXISTING_KEY_MATERIAL"), Some("NEW_KEY_MATERIAL")]
            };
            for import_type in news {
                let padded = given.body(&key, &[8; 32]);
                let short = given.body(&key, &[8; 31]);
                let garbage = with(&padded, json!({ "EncryptedKeyMaterial": b64(&[1; 256]) }));
                for mut body in [padded, short, garbage] {
                    if let Some(import_type) = import_type {
                        body["ImportType"] = json!(import_type);
                    }
                    let refused = fixture.kms_as(who, "ImportKeyMaterial", body).unwrap_err();
                    answers.push((refused.code, refused.message));
                }
            }
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0].0, "InvalidCiphertextException");
        if first {
            import(&fixture, &key, &[1; 32], json!({})).unwrap();
        }
    }
}
