//! `docs/aws-parity.md`: what is served of AWS's model of KMS, held against the model that botocore carries.
//!
//! The table is generated here and compared with the file; `OUTLAST_BLESS=1` writes it. What the model has and
//! this service has not must be listed below with the reason.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use outlast_api::model::kms as model;
use outlast_api::ops::kms as ops;
use outlast_api::ops::{KMS, Row};
use outlast_api::wire::fields::fields_of;
use outlast_crypto::keys::{KEY_SPECS, KeyUsage};
use outlast_crypto::signatures::SIGNATURES;
use outlast_crypto::wrap::WRAPPING;
use serde_json::Value;

/// Members of answers that are never there, with the reason.
const ABSENT: &[(&str, &str, &str)] = &[
    ("*", "CiphertextForRecipient", "answers Recipient, which is refused"),
    ("KeyMetadata", "CustomKeyStoreId", "no custom key stores"),
    ("KeyMetadata", "CloudHsmClusterId", "no custom key stores"),
    ("KeyMetadata", "XksKeyConfiguration", "no custom key stores"),
    ("DescribeCustomKeyStores", "CustomKeyStores", "always empty: no custom key stores"),
];

/// Values of enumerations that are not served, with the reason.
const VALUES: &[(&str, &str, &str)] = &[
    ("KeySpec", "SM2", "for AWS's regions in China only; AWS-LC's Rust interface has no SM2"),
    ("SigningAlgorithmSpec", "SM2DSA", "as SM2"),
    ("EncryptionAlgorithmSpec", "SM2PKE", "as SM2"),
    ("AlgorithmSpec", "SM2PKE", "as SM2"),
    ("WrappingKeySpec", "SM2", "as SM2"),
    ("DataKeyPairSpec", "SM2", "as SM2"),
    ("OriginType", "AWS_CLOUDHSM", "no custom key stores"),
    ("OriginType", "EXTERNAL_KEY_STORE", "no custom key stores"),
];

/// The operations of custom key stores: they answer with AWS's documented errors.
const CUSTOM: &str = "CustomKeyStore";

fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The public service model, and botocore's version.
fn service_model() -> Option<(Value, String)> {
    let peers = std::env::var_os("OUTLAST_PEERS")
        .map_or_else(|| checkout().join("target/peers"), PathBuf::from);
    let python = peers.join("python/bin/python");
    if !python.exists() {
        assert!(std::env::var_os("OUTLAST_REQUIRE_PEERS").is_none(), "python is missing");
        eprintln!("skipped: python is not installed; run cargo xtask peers");
        return None;
    }
    let script = "import botocore.session as s, json, botocore\n\
                  m = s.Session().get_component('data_loader').load_service_model('kms', 'service-2')\n\
                  print(json.dumps({'version': botocore.__version__, 'model': m}))";
    let output = Command::new(python).args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let version = value["version"].as_str().unwrap().to_owned();
    Some((value["model"].take(), version))
}

fn members(model: &Value, shape: &Value) -> BTreeSet<String> {
    let name = shape["shape"].as_str().unwrap_or_default();
    let members = model["shapes"][name]["members"].as_object();
    members.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn values(model: &Value, shape: &str) -> BTreeSet<String> {
    let list = model["shapes"][shape]["enum"].as_array().unwrap();
    list.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn absent(operation: &str, member: &str) -> &'static str {
    let found =
        ABSENT.iter().find(|(of, name, _)| (*of == "*" || *of == operation) && *name == member);
    let Some((_, _, why)) = found else {
        panic!("{operation}.{member} is in the model, not here, and not excused")
    };
    why
}
fn operation(model: &Value, row: &Row, out: &mut String) {
    let shape = &model["operations"][row.name];
    let (wanted_in, wanted_out) =
        (members(model, &shape["input"]), members(model, &shape["output"]));
    let (found_in, found_out) =
        (set((row.input_fields)().iter().copied()), set((row.output_fields)().iter().copied()));
    let unknown: Vec<_> =
        found_in.difference(&wanted_in).chain(found_out.difference(&wanted_out)).collect();
    assert!(unknown.is_empty(), "{}: AWS has no {unknown:?}", row.name);
    let missing: Vec<_> = wanted_in.difference(&found_in).collect();
    assert!(missing.is_empty(), "{} does not read {missing:?}", row.name);
    let mut notes = Vec::new();
    let mut refused = 0;
    let is_custom = row.name.contains(CUSTOM);
    for (name, why) in model::REFUSED {
        if wanted_in.contains(*name) && !is_custom {
            refused += 1;
            notes.push(format!("`{name}` refused: {why}"));
        }
    }
    let mut without = 0;
    if is_custom && row.name != "DescribeCustomKeyStores" {
        notes.push("answers with AWS's documented error: there are no custom key stores".into());
        without = wanted_out.len();
    } else {
        for name in wanted_out.difference(&found_out) {
            without += 1;
            notes.push(format!("`{name}`: {}", absent(row.name, name)));
        }
    }
    writeln!(
        out,
        "| {} | {} of {} | {} of {} | {} |",
        row.name,
        wanted_in.len() - refused,
        wanted_in.len(),
        wanted_out.len() - without,
        wanted_out.len(),
        if notes.is_empty() { "-".to_owned() } else { notes.join("; ") }
    )
    .unwrap();
}

/// A structure inside requests or answers.
fn structure(model: &Value, name: &str, found: &[&str], out: &mut String) {
    let wanted = members(model, &serde_json::json!({ "shape": name }));
    let found = set(found.iter().copied());
    assert!(found.is_subset(&wanted), "{name}: AWS has no {:?}", found.difference(&wanted));
    let notes: Vec<_> = wanted
        .difference(&found)
        .map(|member| format!("`{member}`: {}", absent(name, member)))
        .collect();
    let notes = if notes.is_empty() { "-".to_owned() } else { notes.join("; ") };
    writeln!(out, "| {name} | {} of {} | {notes} |", found.len(), wanted.len()).unwrap();
}

/// An enumeration; what we have beyond AWS is named.
fn enumeration(model: &Value, name: &str, found: &BTreeSet<String>, out: &mut String) {
    let wanted = values(model, name);
    let mut notes = Vec::new();
    for value in wanted.difference(found) {
        let why = VALUES
            .iter()
            .find(|(of, known, _)| *of == name && known == value)
            .unwrap_or_else(|| panic!("{name} {value} is in the model, not here, and not excused"));
        notes.push(format!("`{value}`: {}", why.2));
    }
    let beyond: Vec<_> = found.difference(&wanted).map(|value| format!("`{value}`")).collect();
    if !beyond.is_empty() {
        notes.push(format!("beyond AWS: {}", beyond.join(", ")));
    }
    let served = wanted.intersection(found).count();
    let notes = if notes.is_empty() { "-".to_owned() } else { notes.join("; ") };
    writeln!(out, "| {name} | {served} of {} | {notes} |", wanted.len()).unwrap();
}

fn document(model: &Value, version: &str) -> String {
    let all = model["operations"].as_object().unwrap();
    for name in all.keys() {
        assert!(KMS.operations.iter().any(|row| row.name == name), "{name} is missing");
    }
    let mut out = format!(
        "# Parity with AWS KMS\n\n\
         Generated by `crates/api/tests/parity.rs` from the public service model (API version 2014-11-01, as \
         botocore {version} carries it) and from the structures that the service reads and writes. Every member \
         of every operation is there or has its reason here. What is refused is refused by name, never \
         ignored.\n\n\
         ## Operations: {} of {}\n\n\
         | operation | request members | response members | not served, and why |\n|---|---|---|---|\n",
        KMS.operations.len(),
        all.len()
    );
    for row in KMS.operations {
        operation(model, row, &mut out);
    }
    out.push_str(
        "\n## Structures\n\n| structure | members | not served, and why |\n|---|---|---|\n",
    );
    let structures: &[(&str, &[&str])] = &[
        ("AliasListEntry", fields_of::<ops::list_aliases::AliasListEntry>()),
        ("GrantConstraints", fields_of::<model::GrantConstraints>()),
        ("GrantListEntry", fields_of::<model::GrantListEntry>()),
        ("KeyLastUsageData", fields_of::<ops::get_key_last_usage::KeyLastUsageData>()),
        ("KeyListEntry", fields_of::<ops::list_keys::KeyListEntry>()),
        ("KeyMetadata", fields_of::<model::KeyMetadata>()),
        ("MultiRegionConfiguration", fields_of::<model::MultiRegionConfiguration>()),
        ("MultiRegionKey", fields_of::<model::MultiRegionKey>()),
        ("RotationsListEntry", fields_of::<ops::list_key_rotations::RotationsListEntry>()),
        ("Tag", fields_of::<model::Tag>()),
    ];
    for (name, found) in structures {
        structure(model, name, found, &mut out);
    }
    out.push_str("\n## Values\n\n| enumeration | values | not served, and why |\n|---|---|---|\n");
    let specs = || set(KEY_SPECS.iter().map(|row| row.name));
    let enumerations: &[(&str, BTreeSet<String>)] = &[
        ("KeySpec", specs()),
        ("KeyUsageType", set(KeyUsage::ALL.iter().map(|usage| usage.name()))),
        ("SigningAlgorithmSpec", set(SIGNATURES.iter().map(|row| row.kms_name))),
        (
            "EncryptionAlgorithmSpec",
            set(KEY_SPECS.iter().flat_map(|row| row.encryption.iter().copied())),
        ),
        ("MacAlgorithmSpec", set(KEY_SPECS.iter().flat_map(|row| row.mac.iter().copied()))),
        (
            "KeyAgreementAlgorithmSpec",
            set(KEY_SPECS.iter().flat_map(|row| row.key_agreement.iter().copied())),
        ),
        (
            "EncapsulationAlgorithmSpec",
            set(KEY_SPECS.iter().flat_map(|row| row.encapsulation.iter().copied())),
        ),
        (
            "DataKeyPairSpec",
            set(KEY_SPECS.iter().filter(|row| row.data_key_pair).map(|row| row.name)),
        ),
        ("AlgorithmSpec", set(WRAPPING.iter().map(|row| row.name))),
        ("WrappingKeySpec", set(ops::get_parameters_for_import::WRAPPING_KEYS.iter().copied())),
        ("GrantOperation", set(outlast_domain::kms::GRANT_OPERATIONS.iter().copied())),
        ("OriginType", set(["AWS_KMS", "EXTERNAL"])),
    ];
    for (name, found) in enumerations {
        enumeration(model, name, found, &mut out);
    }
    out
}

#[test]
fn the_table_is_up_to_date() {
    let Some((model, version)) = service_model() else { return };
    let text = document(&model, &version);
    let path = checkout().join("docs/aws-parity.md");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/aws-parity.md is stale: run the test with OUTLAST_BLESS=1");
    println!("{} operations compared", KMS.operations.len());
}
