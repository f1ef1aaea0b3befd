//! `docs/aws-parity.md`: what is served of AWS's models, from the models themselves and `deviations.toml`.
//!
//! `OUTLAST_BLESS=1` writes it. Structures and members cannot be missing: the server's types come from the same two
//! files. Values of enumerations come from the code's tables, and are compared with the model here.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

#[path = "parity/acm.rs"]
mod acm;
#[path = "parity/acm_pca.rs"]
mod acm_pca;
#[path = "parity/kms.rs"]
mod kms;
#[path = "parity/rolesanywhere.rs"]
mod rolesanywhere;
#[path = "parity/secretsmanager.rs"]
mod secretsmanager;
#[path = "parity/transfer.rs"]
mod transfer;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use outlast_api::aws::schema::{Kind, Shape};
use outlast_api::ops::{
    ACM, ACM_PCA, KMS, OUTLAST, ROLES_ANYWHERE, SECRETS_MANAGER, SERVICES, STS, TRANSFER,
};
use outlast_api::table::ServiceRow;
use serde_json::Value;

type Enumerations = fn() -> Vec<(&'static str, BTreeSet<String>)>;

/// The services: module, operations, and the values of their enumerations.
static PARTS: &[(&str, &ServiceRow, Enumerations)] = &[
    ("kms", &KMS, kms::enumerations),
    ("acm_pca", &ACM_PCA, acm_pca::enumerations),
    ("acm", &ACM, acm::enumerations),
    ("secretsmanager", &SECRETS_MANAGER, secretsmanager::enumerations),
    ("sts", &STS, Vec::new),
    ("rolesanywhere", &ROLES_ANYWHERE, rolesanywhere::enumerations),
    ("transfer", &TRANSFER, transfer::enumerations),
];

/// Services that AWS does not have.
static OWN: &[(&str, &ServiceRow)] = &[("outlast", &OUTLAST)];

fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn noted(notes: &[String]) -> String {
    if notes.is_empty() { "-".to_owned() } else { notes.join("; ") }
}

/// A service's model with our deviations.
struct Part {
    model: Value,
    deviations: toml::Table,
    used: std::cell::RefCell<BTreeSet<String>>,
}

impl Part {
    fn read(module: &str) -> Self {
        let folder = checkout().join("crates/api/models");
        let text = std::fs::read_to_string(folder.join(format!("{module}.json"))).unwrap();
        let all = std::fs::read_to_string(folder.join("deviations.toml")).unwrap();
        let all: toml::Table = all.parse().unwrap();
        Self {
            model: serde_json::from_str(&text).unwrap(),
            deviations: all[module].as_table().unwrap().clone(),
            used: std::cell::RefCell::default(),
        }
    }

    /// The note on a key in a table of deviations; the key counts as used then.
    fn note(&self, table: &str, key: &str) -> Option<&str> {
        let found = self.deviations.get(table)?.get(key)?.as_str()?;
        self.used.borrow_mut().insert(format!("{table}.{key}"));
        Some(found)
    }

    fn members(&self, shape: &str) -> Vec<String> {
        let members = self.model["shapes"][shape]["members"].as_object();
        members.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    fn beyond(&self, of: &str) -> Vec<String> {
        let table = self.deviations.get("more_members").and_then(toml::Value::as_table);
        let paths = table.into_iter().flatten().filter_map(|(path, _)| path.split_once('.'));
        paths
            .filter(|(structure, _)| *structure == of)
            .map(|(_, member)| format!("beyond AWS: `{member}`"))
            .collect()
    }

    fn absent(&self, of: &str, member: &str) -> Option<&str> {
        self.note("absent", &format!("{of}.{member}"))
            .or_else(|| self.note("absent", &format!("*.{member}")))
    }

    fn operation(&self, name: &str, out: &mut String) {
        let shape = &self.model["operations"][name];
        let of = |end: &str| shape[end].as_str().unwrap_or_default().to_owned();
        let (input, output) = (of("input"), of("output"));
        let (asked, answered) = (self.members(&input), self.members(&output));
        let mut notes = Vec::new();
        let (mut refused, mut without) = (0, 0);
        if let Some(why) = self.note("answers_error", name) {
            notes.push(why.to_owned());
            without = answered.len();
        } else {
            for member in &asked {
                let path = format!("{name}.{member}");
                let why = self.note("refused", &path).or_else(|| self.note("refused", member));
                if let Some(why) = why.or_else(|| self.note("declined", &path)) {
                    refused += 1;
                    notes.push(format!("`{member}` refused: {why}"));
                }
                let longer = self.deviations.get("longer");
                if let Some(max) = longer.and_then(|rows| rows.get(format!("{input}.{member}"))) {
                    notes.push(format!("beyond AWS: `{member}` may have {max} bytes"));
                }
                if let Some(why) = self.note("idle", &path) {
                    notes.push(format!("`{member}` is checked and has no effect: {why}"));
                }
            }
            for member in &answered {
                if let Some(why) = self.absent(&output, member) {
                    without += 1;
                    notes.push(format!("`{member}`: {why}"));
                }
            }
        }
        notes.extend(self.beyond(&input));
        notes.extend(self.beyond(&output));
        notes.extend(self.note("otherwise", name).map(str::to_owned));
        writeln!(
            out,
            "| {name} | {} of {} | {} of {} | {} |",
            asked.len() - refused,
            asked.len(),
            answered.len() - without,
            answered.len(),
            noted(&notes)
        )
        .unwrap();
    }

    /// The structures inside requests and answers, in order of name.
    fn structures(&self, out: &mut String) {
        let whole: BTreeSet<_> = self.model["operations"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|operation| [operation["input"].as_str(), operation["output"].as_str()])
            .flatten()
            .collect();
        let shapes = self.model["shapes"].as_object().unwrap();
        let mut names: Vec<_> = shapes
            .iter()
            .filter(|(name, shape)| {
                shape["type"] == "structure"
                    && shape.get("error").is_none()
                    && !whole.contains(name.as_str())
            })
            .map(|(name, _)| name)
            .collect();
        names.sort_unstable();
        for name in names {
            if let Some(why) = self.note("elsewhere", name) {
                writeln!(out, "| {name} | - | {why} |").unwrap();
                continue;
            }
            let members = self.members(name);
            let mut notes: Vec<_> = members
                .iter()
                .filter_map(|member| Some(format!("`{member}`: {}", self.absent(name, member)?)))
                .collect();
            let served = members.len() - notes.len();
            notes.extend(self.beyond(name));
            writeln!(out, "| {name} | {served} of {} | {} |", members.len(), noted(&notes))
                .unwrap();
        }
    }

    /// An enumeration, with our values beyond AWS.
    fn enumeration(&self, name: &str, found: &BTreeSet<String>, out: &mut String) {
        let list = self.model["shapes"][name]["enum"].as_array().unwrap();
        let wanted = set(list.iter().map(|value| value.as_str().unwrap()));
        let mut notes = Vec::new();
        for value in wanted.difference(found) {
            let why = self.note("values", &format!("{name}.{value}")).unwrap_or_else(|| {
                panic!("{name} {value} is in the model, not here, and not excused")
            });
            notes.push(format!("`{value}`: {why}"));
        }
        let more = self.deviations.get("more_values").and_then(|table| table.get(name));
        let more = more.and_then(toml::Value::as_array).into_iter().flatten();
        let more = set(more.map(|value| value.as_str().unwrap()));
        let beyond: BTreeSet<_> = found.difference(&wanted).cloned().collect();
        assert_eq!(beyond, more, "{name}: values beyond AWS");
        if !beyond.is_empty() {
            let names: Vec<_> = beyond.iter().map(|value| format!("`{value}`")).collect();
            notes.push(format!("beyond AWS: {}", names.join(", ")));
        }
        let served = wanted.intersection(found).count();
        writeln!(out, "| {name} | {served} of {} | {} |", wanted.len(), noted(&notes)).unwrap();
    }

    /// A deviation of something that the model lacks is out of date.
    fn check_used(&self, module: &str) {
        let tables = [
            "answers_error",
            "refused",
            "declined",
            "idle",
            "absent",
            "elsewhere",
            "values",
            "otherwise",
            "absent_operations",
        ];
        for table in tables {
            let rows = self.deviations.get(table).and_then(toml::Value::as_table);
            for (key, _) in rows.into_iter().flatten() {
                let path = format!("{table}.{key}");
                assert!(self.used.borrow().contains(&path), "{module}: {path} is said of nothing");
            }
        }
    }
}

#[test]
fn the_tables_are_up_to_date() {
    let mut text = String::new();
    for (module, service, enumerations) in PARTS {
        let part = Part::read(module);
        if text.is_empty() {
            write!(
                text,
                "# Parity with AWS\n\n\
                 Generated by `crates/api/tests/parity.rs` from the public service models (as botocore {} carries \
                 them, in `crates/api/models`), from `deviations.toml` beside them, and from the tables of the code. \
                 Every member of every operation is there or has its reason here. What is refused is refused by \
                 name, never ignored; what is checked and has no effect, such as how domains of public \
                 certificates are validated, is noted as that.\n",
                part.model["botocore"].as_str().unwrap()
            )
            .unwrap();
        }
        let all = part.model["operations"].as_object().unwrap();
        let served: Vec<_> = all
            .keys()
            .filter(|name| part.note("absent_operations", name).is_none())
            .map(String::as_str)
            .collect();
        let rows: Vec<_> = service.operations.iter().map(|row| row.name).collect();
        assert_eq!(served, rows, "{module}: operations");
        writeln!(
            text,
            "\n## {}: {} of {} operations\n\nAPI version {}.\n\n\
             | operation | request members | response members | not served, and why |\n|---|---|---|---|",
            part.deviations["title"].as_str().unwrap(),
            served.len(),
            all.len(),
            part.model["metadata"]["apiVersion"].as_str().unwrap()
        )
        .unwrap();
        for name in all.keys() {
            match part.note("absent_operations", name) {
                Some(why) => writeln!(text, "| {name} | - | - | not served: {why} |").unwrap(),
                None => part.operation(name, &mut text),
            }
        }
        text.push_str("\n| structure | members | not served, and why |\n|---|---|---|\n");
        part.structures(&mut text);
        let values = enumerations();
        if !values.is_empty() {
            text.push_str("\n| enumeration | values | not served, and why |\n|---|---|---|\n");
        }
        for (name, found) in values {
            part.enumeration(name, &found, &mut text);
        }
        part.check_used(module);
        println!("{module}: {} operations compared", served.len());
    }
    for (module, service) in OWN {
        let part = Part::read(module);
        assert_eq!(part.deviations.get("own"), Some(&toml::Value::Boolean(true)), "{module}");
        let all = part.model["operations"].as_object().unwrap();
        let rows: Vec<_> = service.operations.iter().map(|row| row.name).collect();
        assert_eq!(all.keys().collect::<Vec<_>>(), rows, "{module}: operations");
        let title = part.deviations["title"].as_str().unwrap();
        let version = part.model["metadata"]["apiVersion"].as_str().unwrap();
        let names: Vec<_> = rows.iter().map(|name| format!("`{name}`")).collect();
        write!(
            text,
            "\n## {title}: our own, without comparison\n\n\
             API version {version}. AWS has no such operations: {}. They are described by a model in the same form \
             (decision [37](decisions/0037-an-own-service.md)).\n",
            names.join(", ")
        )
        .unwrap();
    }
    let known: BTreeSet<_> =
        PARTS.iter().map(|part| part.0).chain(OWN.iter().map(|own| own.0)).collect();
    assert_eq!(known.len(), SERVICES.len(), "each service is compared, or our own");
    let path = checkout().join("docs/aws-parity.md");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/aws-parity.md is stale: run the test with OUTLAST_BLESS=1");
}

/// Every pattern in the models is valid in Rust's syntax.
#[test]
fn patterns_can_be_matched() {
    fn look(
        shape: &'static Shape,
        seen: &mut BTreeSet<usize>,
        patterns: &mut BTreeSet<&'static str>,
    ) {
        if !seen.insert(std::ptr::from_ref(shape).addr()) {
            return;
        }
        if let Some(pattern) = shape.pattern {
            assert!(pattern.regex().is_some(), "{}", pattern.text);
            patterns.insert(pattern.text);
        }
        match shape.kind {
            Kind::Structure(_, members) => {
                for shape in members.iter().filter_map(|member| member.shape) {
                    look(shape, seen, patterns);
                }
            }
            Kind::List(of) => look(of, seen, patterns),
            Kind::Map(key, of) => {
                look(key, seen, patterns);
                look(of, seen, patterns);
            }
            _ => {}
        }
    }
    let (mut seen, mut patterns) = (BTreeSet::new(), BTreeSet::new());
    for row in PARTS.iter().flat_map(|part| part.1.operations) {
        look(row.input, &mut seen, &mut patterns);
        look(row.output, &mut seen, &mut patterns);
    }
    assert!(patterns.len() > 40, "{}", patterns.len());
}

/// The models are those that the script extracts from botocore.
#[test]
fn the_models_are_botocores() {
    let Some(python) = outlast_testing::peer("python") else { return };
    let folder = checkout().join("crates/api/models");
    let copy = tempfile::tempdir().unwrap();
    // The script writes next to itself, and finds the list of peers from there.
    let beside = copy.path().join("crates/api/models");
    let peers = copy.path().join("tests/interop/peers");
    std::fs::create_dir_all(&beside).unwrap();
    std::fs::create_dir_all(&peers).unwrap();
    let list = "python-requirements.txt";
    std::fs::copy(checkout().join("tests/interop/peers").join(list), peers.join(list)).unwrap();
    std::fs::copy(folder.join("extract.py"), beside.join("extract.py")).unwrap();
    let output = Command::new(python.join("bin/python"))
        .arg(beside.join("extract.py"))
        .args(["kms", "acm-pca", "acm", "sts", "rolesanywhere", "secretsmanager", "transfer"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for module in PARTS.iter().map(|part| part.0) {
        let name = format!("{module}.json");
        let made = std::fs::read_to_string(beside.join(&name)).unwrap();
        let kept = std::fs::read_to_string(folder.join(&name)).unwrap();
        assert!(made == kept, "crates/api/models/{name} is stale: run extract.py");
    }
}
