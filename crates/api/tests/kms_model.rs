//! Random sequences of operations on keys, against a simple model of what a key is.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Fixture, b64, text, unb64, with};
use outlast_crypto::wrap::WrappingAlgorithm;
use proptest::prelude::*;
use serde_json::json;

const DAY: i64 = 86_400;
const WRAPPING: &str = "RSAES_OAEP_SHA_256";

#[derive(Debug, Clone)]
enum Step {
    Enable,
    Disable,
    Schedule,
    Cancel,
    Rotate,
    /// Imports the material of this number, until so many days from now.
    Import {
        number: u8,
        is_new: Option<bool>,
        days: Option<i64>,
    },
    /// Deletes the material of this number.
    Forget(u8),
    Days(i64),
    KeepHouse,
}

fn step() -> impl Strategy<Value = Step> {
    let is_new = prop::option::weighted(0.6, any::<bool>());
    let days = prop::option::weighted(0.3, 1i64..9);
    prop_oneof![
        3 => Just(Step::Enable),
        2 => Just(Step::Disable),
        1 => Just(Step::Schedule),
        2 => Just(Step::Cancel),
        3 => Just(Step::Rotate),
        6 => (1u8..4, is_new, days)
            .prop_map(|(number, is_new, days)| Step::Import { number, is_new, days }),
        2 => (1u8..4).prop_map(Step::Forget),
        2 => (1i64..5).prop_map(Step::Days),
        2 => Just(Step::KeepHouse),
    ]
}

/// An imported material: its number, and when it expires.
#[derive(Debug)]
struct Material {
    number: u8,
    here: bool,
    until: Option<i64>,
}

/// The simplest description of a key's state.
#[derive(Debug, Default)]
struct Model {
    imported: bool,
    enabled: bool,
    deleted_at: Option<i64>,
    rotations: usize,
    materials: Vec<Material>,
    waiting: Option<Material>,
}

impl Model {
    fn exists(&self, now: i64) -> bool {
        self.deleted_at.is_none_or(|at| at > now)
    }

    fn has_all(&self, now: i64) -> bool {
        let here = |one: &Material| one.here && one.until.is_none_or(|until| until > now);
        !self.imported || (!self.materials.is_empty() && self.materials.iter().all(here))
    }

    fn is_usable(&self, now: i64) -> bool {
        self.deleted_at.is_none() && self.has_all(now) && self.enabled
    }

    /// Whether the step succeeds; if so, the model takes it.
    fn take(&mut self, step: &Step, now: i64) -> bool {
        let kept = self.deleted_at.is_none();
        match step {
            Step::Enable | Step::Disable => {
                let possible = kept && self.has_all(now);
                if possible {
                    self.enabled = matches!(step, Step::Enable);
                }
                possible
            }
            Step::Schedule => {
                if kept {
                    self.deleted_at = Some(now + 7 * DAY);
                }
                kept
            }
            Step::Cancel => {
                let possible = !kept && self.exists(now);
                if possible {
                    self.deleted_at = None;
                    self.enabled = false;
                }
                possible
            }
            Step::Rotate => {
                if !self.is_usable(now) || self.rotations == 25 {
                    return false;
                }
                if self.imported {
                    let ready = |one: &Material| one.here && one.until.is_none_or(|at| at > now);
                    if !self.waiting.as_ref().is_some_and(ready) {
                        return false;
                    }
                    self.materials.extend(self.waiting.take());
                }
                self.rotations += 1;
                true
            }
            Step::Import { number, is_new, days } => {
                let known = self.find(*number).is_some();
                let wants_new = is_new.unwrap_or(self.materials.is_empty());
                if !self.imported || !kept || known == wants_new {
                    return false;
                }
                // Importing the missing material enables the key.
                self.enabled |= !self.has_all(now);
                let until = days.map(|days| now + days * DAY);
                let new = Material { number: *number, here: true, until };
                let is_first = self.materials.is_empty();
                match self.find(*number) {
                    Some(known) => *known = new,
                    None if is_first => self.materials.push(new),
                    None => self.waiting = Some(new),
                }
                true
            }
            Step::Forget(number) => {
                if !self.imported || !self.exists(now) || self.find(*number).is_none() {
                    return false;
                }
                if self.waiting.as_ref().is_some_and(|one| one.number == *number) {
                    self.waiting = None;
                } else if let Some(one) = self.find(*number) {
                    one.here = false;
                }
                true
            }
            Step::Days(_) | Step::KeepHouse => true,
        }
    }

    fn find(&mut self, number: u8) -> Option<&mut Material> {
        self.materials.iter_mut().chain(&mut self.waiting).find(|one| one.number == number)
    }
}

struct Subject {
    fixture: Fixture,
    key: String,
    /// Ids of the materials by their numbers, as the imports returned them.
    ids: std::collections::BTreeMap<u8, String>,
}

impl Subject {
    fn new(imported: bool) -> Self {
        let fixture = Fixture::new();
        let origin = if imported { "EXTERNAL" } else { "AWS_KMS" };
        let key = fixture.key(json!({ "Origin": origin }));
        Self { fixture, key, ids: Default::default() }
    }

    /// Whether the service carries the step out.
    fn take(&mut self, step: &Step) -> bool {
        let Self { fixture, key, ids } = self;
        let id = json!({ "KeyId": key });
        let operation = match step {
            Step::Enable => "EnableKey",
            Step::Disable => "DisableKey",
            Step::Cancel => "CancelKeyDeletion",
            Step::Rotate => "RotateKeyOnDemand",
            Step::Schedule => {
                let body = with(&id, json!({ "PendingWindowInDays": 7 }));
                return fixture.kms("ScheduleKeyDeletion", body).is_ok();
            }
            Step::Import { number, is_new, days } => {
                let spec = json!({ "WrappingAlgorithm": WRAPPING, "WrappingKeySpec": "RSA_2048" });
                let Ok(made) = fixture.kms("GetParametersForImport", with(&id, spec)) else {
                    return false;
                };
                let row = WrappingAlgorithm::by_name(WRAPPING).unwrap();
                let wrapped = row.wrap(&unb64(&made["PublicKey"]), &[*number; 32]).unwrap();
                let mut body = json!({
                    "KeyId": key, "ImportToken": made["ImportToken"],
                    "EncryptedKeyMaterial": b64(&wrapped),
                    "ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE",
                });
                if let Some(days) = days {
                    let until = fixture.now.get() + days * DAY;
                    let expiry = json!({ "ExpirationModel": null, "ValidTo": until });
                    body = with(&body, expiry);
                }
                if let Some(is_new) = is_new {
                    let kind = if *is_new { "NEW_KEY_MATERIAL" } else { "EXISTING_KEY_MATERIAL" };
                    body["ImportType"] = json!(kind);
                }
                let Ok(made) = fixture.kms("ImportKeyMaterial", body) else { return false };
                ids.insert(*number, text(&made["KeyMaterialId"]).to_owned());
                return true;
            }
            Step::Forget(number) => {
                let unknown = "0".repeat(64);
                let material = ids.get(number).unwrap_or(&unknown);
                let body = with(&id, json!({ "KeyMaterialId": material }));
                return fixture.kms("DeleteImportedKeyMaterial", body).is_ok();
            }
            Step::Days(days) => {
                fixture.advance(days * DAY);
                return true;
            }
            Step::KeepHouse => {
                fixture.run_housekeeping();
                return true;
            }
        };
        fixture.kms(operation, id).is_ok()
    }
}

fn run(imported: bool, steps: &[Step]) {
    let mut subject = Subject::new(imported);
    let mut model = Model { imported, enabled: true, ..Model::default() };
    let mut blobs: Vec<String> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let now = subject.fixture.now.get();
        let expected = model.exists(now) && model.take(step, now);
        let expected = expected || matches!(step, Step::Days(_) | Step::KeepHouse);
        let done = subject.take(step);
        assert_eq!(done, expected, "step {at}: {step:?} in {:?}", &steps[..at]);
        let now = subject.fixture.now.get();
        let usable = model.exists(now) && model.is_usable(now);
        let body = json!({ "KeyId": subject.key, "Plaintext": b64(b"x") });
        let made = subject.fixture.kms("Encrypt", body);
        assert_eq!(made.is_ok(), usable, "encryption after step {at} of {steps:?}: {model:?}");
        blobs.extend(made.ok().map(|made| text(&made["CiphertextBlob"]).to_owned()));
        for blob in &blobs {
            let opened = subject.fixture.kms("Decrypt", json!({ "CiphertextBlob": blob }));
            assert_eq!(opened.is_ok(), usable, "decryption after step {at} of {steps:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 64, ..ProptestConfig::default() })]

    /// A key whose material the service made encrypts and decrypts exactly when the model says so.
    #[test]
    fn own_keys_are_what_the_model_says(steps in prop::collection::vec(step(), 1..40)) {
        run(false, &steps);
    }

    /// The same for a key with imported material.
    #[test]
    fn imported_keys_are_what_the_model_says(steps in prop::collection::vec(step(), 1..24)) {
        run(true, &steps);
    }
}
