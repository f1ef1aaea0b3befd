//! `docs/aws-parity.md`: what is served of AWS's models, held against the models that botocore carries.
//!
//! The tables are generated here and compared with the file; `OUTLAST_BLESS=1` writes it. What a model has and its
//! service has not must be listed in the service's file below `parity` with the reason. A service more is one file
//! and its line in [`PARTS`].
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

#[path = "parity/acm.rs"]
mod acm;
#[path = "parity/acm_pca.rs"]
mod acm_pca;
#[path = "parity/kms.rs"]
mod kms;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use outlast_api::ops::{Row, ServiceRow};
use serde_json::Value;

/// The services that are compared.
static PARTS: &[&Part] = &[&kms::PART, &acm_pca::PART, &acm::PART];

/// What operations do otherwise than AWS on purpose, members and values being the same.
static OTHERWISE: &[(&str, &str)] = &[(
    "IssueCertificate",
    "on purpose: `ApiPassthrough` with a template that takes nothing from it is refused with InvalidArgsException (AWS \
     ignores it)",
)];

/// A service, and in what it differs from its model.
struct Part {
    /// AWS's name of it.
    title: &'static str,
    /// botocore's name of its model.
    model: &'static str,
    /// Its row.
    service: &'static ServiceRow,
    /// Members of requests that are refused by name, with the reason.
    refused: &'static [(&'static str, &'static str)],
    /// Members of requests that are checked and have no effect: of what, which, and the reason.
    idle: &'static [(&'static str, &'static str, &'static str)],
    /// Members of answers and structures that are never there: of what (`*` for all), which, and the reason.
    absent: &'static [(&'static str, &'static str, &'static str)],
    /// Values of enumerations that are not served, with the reason.
    values: &'static [(&'static str, &'static str, &'static str)],
    /// Members that AWS has not: of what, and which.
    beyond: &'static [(&'static str, &'static str)],
    /// What an operation answers instead, if it answers with an error always.
    answers_error: fn(&str) -> Option<&'static str>,
    /// Structures that are not compared, with the reason.
    elsewhere: &'static [(&'static str, &'static str)],
    /// Structures inside requests and answers, with the members that are read or written.
    structures: fn() -> Vec<(&'static str, &'static [&'static str])>,
    /// Enumerations, with the values that are served.
    enumerations: fn() -> Vec<(&'static str, BTreeSet<String>)>,
}

fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The public service models, and botocore's version.
fn service_models() -> Option<(Vec<Value>, String)> {
    let python = outlast_testing::peer("python")?.join("bin/python");
    let script = "import botocore.session as s, json, botocore, sys\n\
                  load = s.Session().get_component('data_loader').load_service_model\n\
                  m = [load(name, 'service-2') for name in sys.argv[1:]]\n\
                  print(json.dumps({'version': botocore.__version__, 'models': m}))";
    let names = PARTS.iter().map(|part| part.model);
    let output = Command::new(python).args(["-c", script]).args(names).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let version = value["version"].as_str().unwrap().to_owned();
    let Value::Array(models) = value["models"].take() else { panic!("no models") };
    Some((models, version))
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

fn noted(notes: &[String]) -> String {
    if notes.is_empty() { "-".to_owned() } else { notes.join("; ") }
}

impl Part {
    fn absent(&self, of: &str, member: &str) -> &'static str {
        let found = self
            .absent
            .iter()
            .find(|(known, name, _)| (*known == "*" || *known == of) && *name == member);
        let Some((_, _, why)) = found else {
            panic!("{of}.{member} is in the model, not here, and not excused")
        };
        why
    }

    /// Takes the members out that AWS has not, which must be listed.
    fn without_beyond(
        &self,
        of: &str,
        found: &mut BTreeSet<String>,
        wanted: &BTreeSet<String>,
    ) -> Vec<String> {
        let more: Vec<_> = found.difference(wanted).cloned().collect();
        for member in &more {
            let listed = self.beyond.iter().any(|(known, name)| *known == of && name == member);
            assert!(listed, "{of}: AWS has no {member}");
            found.remove(member);
        }
        more.into_iter().map(|member| format!("beyond AWS: `{member}`")).collect()
    }

    fn operation(&self, model: &Value, row: &Row, out: &mut String) {
        let shape = &model["operations"][row.name];
        let (wanted_in, wanted_out) =
            (members(model, &shape["input"]), members(model, &shape["output"]));
        let mut found_in = set((row.input_fields)().iter().copied());
        let mut found_out = set((row.output_fields)().iter().copied());
        let mut more = self.without_beyond(row.name, &mut found_in, &wanted_in);
        more.extend(self.without_beyond(row.name, &mut found_out, &wanted_out));
        let missing: Vec<_> = wanted_in.difference(&found_in).collect();
        assert!(missing.is_empty(), "{} does not read {missing:?}", row.name);
        let mut notes = Vec::new();
        let (mut refused, mut without) = (0, 0);
        if let Some(why) = (self.answers_error)(row.name) {
            notes.push(why.to_owned());
            without = wanted_out.len();
        } else {
            for (name, why) in self.refused {
                if wanted_in.contains(*name) {
                    refused += 1;
                    notes.push(format!("`{name}` refused: {why}"));
                }
            }
            for (_, name, why) in self.idle.iter().filter(|(of, ..)| *of == row.name) {
                assert!(wanted_in.contains(*name), "{} has no {name}", row.name);
                notes.push(format!("`{name}` is checked and has no effect: {why}"));
            }
            for name in wanted_out.difference(&found_out) {
                without += 1;
                notes.push(format!("`{name}`: {}", self.absent(row.name, name)));
            }
        }
        notes.extend(more);
        let otherwise = OTHERWISE.iter().filter(|(operation, _)| *operation == row.name);
        notes.extend(otherwise.map(|(_, what)| (*what).to_owned()));
        writeln!(
            out,
            "| {} | {} of {} | {} of {} | {} |",
            row.name,
            wanted_in.len() - refused,
            wanted_in.len(),
            wanted_out.len() - without,
            wanted_out.len(),
            noted(&notes)
        )
        .unwrap();
    }

    /// A structure inside requests or answers.
    fn structure(&self, model: &Value, name: &str, found: &[&str], out: &mut String) {
        let wanted = members(model, &serde_json::json!({ "shape": name }));
        let mut found = set(found.iter().copied());
        let more = self.without_beyond(name, &mut found, &wanted);
        let mut notes: Vec<_> = wanted
            .difference(&found)
            .map(|member| format!("`{member}`: {}", self.absent(name, member)))
            .collect();
        notes.extend(more);
        writeln!(out, "| {name} | {} of {} | {} |", found.len(), wanted.len(), noted(&notes))
            .unwrap();
    }

    /// An enumeration; what we have beyond AWS is named.
    fn enumeration(&self, model: &Value, name: &str, found: &BTreeSet<String>, out: &mut String) {
        let wanted = values(model, name);
        let mut notes = Vec::new();
        for value in wanted.difference(found) {
            let why = self
                .values
                .iter()
                .find(|(of, known, _)| *of == name && known == value)
                .unwrap_or_else(|| {
                    panic!("{name} {value} is in the model, not here, and not excused")
                });
            notes.push(format!("`{value}`: {}", why.2));
        }
        let beyond: Vec<_> = found.difference(&wanted).map(|value| format!("`{value}`")).collect();
        if !beyond.is_empty() {
            notes.push(format!("beyond AWS: {}", beyond.join(", ")));
        }
        let served = wanted.intersection(found).count();
        writeln!(out, "| {name} | {served} of {} | {} |", wanted.len(), noted(&notes)).unwrap();
    }

    /// Every structure that is neither a whole request or answer nor an error must be compared, or be listed.
    fn check_structures(&self, model: &Value, listed: &[(&str, &[&str])]) {
        let operations = model["operations"].as_object().unwrap();
        let whole: BTreeSet<_> = operations
            .values()
            .flat_map(|operation| [&operation["input"]["shape"], &operation["output"]["shape"]])
            .filter_map(Value::as_str)
            .collect();
        for (name, shape) in model["shapes"].as_object().unwrap() {
            let inner = shape["type"] == "structure"
                && shape["exception"] != true
                && !whole.contains(name.as_str());
            let known = listed.iter().any(|(listed, _)| listed == name)
                || self.elsewhere.iter().any(|(listed, _)| listed == name);
            assert!(!inner || known, "{}: the structure {name} is not compared", self.title);
        }
    }

    fn write(&self, model: &Value, out: &mut String) {
        let all = model["operations"].as_object().unwrap();
        let operations = self.service.operations;
        for name in all.keys() {
            assert!(operations.iter().any(|row| row.name == name), "{name} is missing");
        }
        writeln!(
            out,
            "\n## {}: {} of {} operations\n\nAPI version {}.\n\n\
             | operation | request members | response members | not served, and why |\n|---|---|---|---|",
            self.title,
            operations.len(),
            all.len(),
            model["metadata"]["apiVersion"].as_str().unwrap()
        )
        .unwrap();
        for row in operations {
            self.operation(model, row, out);
        }
        out.push_str("\n| structure | members | not served, and why |\n|---|---|---|\n");
        let structures = (self.structures)();
        self.check_structures(model, &structures);
        for (name, found) in structures {
            self.structure(model, name, found, out);
        }
        for (name, why) in self.elsewhere {
            writeln!(out, "| {name} | - | {why} |").unwrap();
        }
        out.push_str("\n| enumeration | values | not served, and why |\n|---|---|---|\n");
        for (name, found) in (self.enumerations)() {
            self.enumeration(model, name, &found, out);
        }
    }
}

#[test]
fn the_tables_are_up_to_date() {
    let Some((models, version)) = service_models() else { return };
    let mut text = format!(
        "# Parity with AWS\n\n\
         Generated by `crates/api/tests/parity.rs` from the public service models (as botocore {version} carries \
         them) and from the structures that the services read and write. Every member of every operation is there \
         or has its reason here. What is refused is refused by name, never ignored; what is checked and \
         has no effect, such as how domains of public certificates are validated, is noted as that.\n"
    );
    for (part, model) in PARTS.iter().zip(&models) {
        part.write(model, &mut text);
        println!("{}: {} operations compared", part.title, part.service.operations.len());
    }
    for (operation, what) in OTHERWISE {
        assert!(text.contains(what), "there is no operation {operation}");
    }
    let path = checkout().join("docs/aws-parity.md");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/aws-parity.md is stale: run the test with OUTLAST_BLESS=1");
}
