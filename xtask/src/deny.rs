//! Checks licences, bans, duplicates and sources of all dependencies by `deny.toml`.
//!
//! cargo-deny reads the same file and checks more, but building it takes as long as many of our own crates together,
//! so CI reads the file itself. Only cargo-deny checks advisories, where it is installed and can fetch its database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A package in the output of `cargo metadata`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    /// SPDX expression.
    licence: Option<String>,
    /// `None` for crates of this workspace.
    source: Option<String>,
    /// Dependencies with a wildcard version.
    wildcards: Vec<String>,
}

/// Checks everything but advisories; returns a line that says whether those were checked.
pub fn check(root: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join("deny.toml"))
        .map_err(|error| format!("deny.toml: {error}"))?;
    let rules = Rules::parse(&text)?;
    let mut all = BTreeSet::new();
    for target in &rules.targets {
        all.extend(packages(root, target)?);
    }
    let mut problems = rules.versions(&all);
    problems.extend(rules.each(&all));
    if !problems.is_empty() {
        return Err(format!("deny.toml: {}", problems.join("\nerror: deny.toml: ")));
    }
    println!(
        "{} packages: licences, bans, duplicates and sources are as deny.toml says",
        all.len()
    );
    advisories(root)
}

/// Runs cargo-deny if it is installed and can fetch its database.
fn advisories(root: &Path) -> Result<String, String> {
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.arg("deny").args(arguments).current_dir(root);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let unchecked = |why: &str| Ok(format!("advisories: not checked ({why})"));
    if !deny(&["--version"]) {
        return unchecked("cargo-deny is not installed");
    }
    if !deny(&["fetch", "db"]) {
        return unchecked("the database of advisories cannot be fetched");
    }
    if deny(&["check", "advisories"]) {
        Ok("advisories: none".into())
    } else {
        Err("there are advisories: run cargo deny check advisories".into())
    }
}

/// Packages that are built for a target. `cargo metadata` also lists packages that no enabled feature needs; `cargo
/// tree` leaves them out.
fn packages(root: &Path, target: &str) -> Result<Vec<Package>, String> {
    let cargo = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .args(["--locked", "--all-features"])
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo {}: {error}", arguments[0]))?;
        let failed = || format!("cargo {} failed", arguments[0]);
        if output.status.success() { Ok(output.stdout) } else { Err(failed()) }
    };
    let tree = ["tree", "--workspace", "--target", target, "--edges", "normal,build,dev"];
    let tree = cargo(&[&tree[..], &["--prefix", "none", "--format", "{p}"]].concat())?;
    let tree = String::from_utf8_lossy(&tree);
    // `NAME vVERSION`, then the source.
    let built: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or(rest)))
        .collect();
    let metadata = cargo(&["metadata", "--format-version", "1", "--filter-platform", target])?;
    let value: Value =
        serde_json::from_slice(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let list = value["packages"].as_array().ok_or("cargo metadata gives no packages")?;
    let packages = list.iter().map(package);
    Ok(packages.filter(|one| built.contains(&(one.name.as_str(), one.version.as_str()))).collect())
}

fn package(value: &Value) -> Package {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let wildcards = value["dependencies"].as_array().into_iter().flatten();
    let wildcards = wildcards
        .filter(|one| one["req"] == "*" && one["path"].is_null())
        .filter_map(|one| text(&one["name"]));
    Package {
        name: text(&value["name"]).unwrap_or_default(),
        version: text(&value["version"]).unwrap_or_default(),
        licence: text(&value["license"]),
        source: text(&value["source"]),
        wildcards: wildcards.collect(),
    }
}

/// Contents of `deny.toml`.
#[derive(Debug, Default)]
struct Rules {
    targets: Vec<String>,
    licences: BTreeSet<String>,
    /// Additional licences of single crates.
    exceptions: BTreeMap<String, Vec<String>>,
    /// Licences of crates whose manifests name none.
    clarified: BTreeMap<String, String>,
    /// Banned crates and the reasons.
    banned: BTreeMap<String, String>,
    /// `NAME` or `NAME@VERSION` that may exist beside another version.
    duplicates: BTreeSet<String>,
}

/// Where packages may come from; deny.toml allows no other registry and no repository.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

impl Rules {
    fn parse(text: &str) -> Result<Self, String> {
        let file: toml::Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
        let file = toml::Value::Table(file);
        let at = |path: &[&str]| path.iter().try_fold(&file, |value, name| value.get(name));
        let rows =
            |path: &[&str]| at(path).and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let text = |value: &toml::Value| value.as_str().map(str::to_owned);
        let field = |row: &toml::Value, name: &str| row.get(name).and_then(text);
        let word = |value: Option<&toml::Value>| value.and_then(text).unwrap_or_default();
        for path in [&["bans", "multiple-versions"][..], &["bans", "wildcards"]] {
            if word(at(path)) != "deny" {
                return Err(format!("deny.toml: {} must be \"deny\"", path.join(".")));
            }
        }
        for name in ["unknown-registry", "unknown-git"] {
            if word(at(&["sources", name])) != "deny" {
                return Err(format!("deny.toml: sources.{name} must be \"deny\""));
            }
        }
        let pairs = |path: &[&str], value: &str| -> Vec<(String, String)> {
            let rows = rows(path);
            let pair = |row: &toml::Value| Some((field(row, "crate")?, field(row, value)?));
            rows.iter().filter_map(pair).collect()
        };
        let exceptions = rows(&["licenses", "exceptions"]).into_iter().filter_map(|row| {
            let allowed = row.get("allow")?.as_array()?.iter().filter_map(text).collect();
            Some((field(&row, "crate")?, allowed))
        });
        Ok(Self {
            targets: rows(&["graph", "targets"]).iter().filter_map(text).collect(),
            licences: rows(&["licenses", "allow"]).iter().filter_map(text).collect(),
            exceptions: exceptions.collect(),
            clarified: pairs(&["licenses", "clarify"], "expression").into_iter().collect(),
            banned: pairs(&["bans", "deny"], "reason").into_iter().collect(),
            duplicates: pairs(&["bans", "skip"], "reason").into_iter().map(|row| row.0).collect(),
        })
    }

    /// Faults of single packages.
    fn each(&self, all: &BTreeSet<Package>) -> Vec<String> {
        let mut problems = Vec::new();
        for package in all {
            let label = format!("{} {}", package.name, package.version);
            for name in &package.wildcards {
                if package.source.is_none() {
                    problems.push(format!("{label} accepts any version of {name}"));
                }
            }
            let Some(source) = &package.source else { continue };
            if source != REGISTRY {
                problems.push(format!("{label} comes from {source}"));
            }
            if let Some(reason) = self.banned.get(&package.name) {
                problems.push(format!("{label} is banned: {reason}"));
            }
            let own = self.exceptions.get(&package.name);
            let allowed = |licence: &str| {
                self.licences.contains(licence)
                    || own.is_some_and(|own| own.iter().any(|one| one == licence))
            };
            let expression = self.clarified.get(&package.name).or(package.licence.as_ref());
            match expression.map(|text| satisfies(text, &allowed)) {
                Some(Ok(true)) => {}
                Some(Ok(false)) => problems.push(format!(
                    "{label} has a licence that is not allowed: {}",
                    expression.map_or("", |text| text)
                )),
                Some(Err(error)) => problems.push(format!("{label}: {error}")),
                None => problems.push(format!("{label} names no licence")),
            }
        }
        problems
    }

    /// Packages in several versions without a reason.
    fn versions(&self, all: &BTreeSet<Package>) -> Vec<String> {
        let mut problems = Vec::new();
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in all {
            versions.entry(&package.name).or_default().insert(&package.version);
        }
        let mut used = BTreeSet::new();
        for (name, versions) in &versions {
            let mut left = Vec::new();
            for version in versions {
                match self.duplicates.iter().find(|row| fits(row, name, version)) {
                    Some(row) if versions.len() > 1 => drop(used.insert(row)),
                    _ => left.push(*version),
                }
            }
            if left.len() > 1 {
                problems
                    .push(format!("{name} occurs in more than one version: {}", left.join(", ")));
            }
        }
        for row in &self.duplicates {
            if !used.contains(row) {
                problems
                    .push(format!("bans.skip names {row}, of which there is no second version"));
            }
        }
        problems
    }
}

/// Whether `NAME` or `NAME@VERSION` matches this version; `1` and `1.2` match the whole series.
fn fits(row: &str, name: &str, version: &str) -> bool {
    match row.split_once('@') {
        None => row == name,
        Some((of, series)) => {
            let rest = version.strip_prefix(series);
            of == name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }
    }
}

/// Whether the allowed licences satisfy an SPDX expression. `A/B` is the old form of `A OR B`.
fn satisfies(expression: &str, allowed: &impl Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let outcome = either(&mut words, allowed)?;
    match words.next() {
        None => Ok(outcome),
        Some(word) => Err(format!("{word} is unexpected in the licence {expression}")),
    }
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>, allowed: &impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut outcome = both(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        outcome |= both(words, allowed)?;
    }
    Ok(outcome)
}

fn both(words: &mut Words<'_>, allowed: &impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut outcome = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        outcome &= one(words, allowed)?;
    }
    Ok(outcome)
}

fn one(words: &mut Words<'_>, allowed: &impl Fn(&str) -> bool) -> Result<bool, String> {
    match words.next() {
        Some("(") => {
            let outcome = either(words, allowed)?;
            words.next_if_eq(&")").ok_or("a licence has an open bracket")?;
            Ok(outcome)
        }
        None | Some(")" | "OR" | "AND" | "WITH") => Err("a licence is missing".into()),
        Some(name) => match words.next_if_eq(&"WITH") {
            None => Ok(allowed(name)),
            Some(_) => {
                let exception = words.next().ok_or("a licence's exception is missing")?;
                Ok(allowed(&format!("{name} WITH {exception}")))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let text = r#"
            graph.targets = ["a"]
            [licenses]
            allow = ["MIT", "Apache-2.0"]
            exceptions = [{ crate = "drawing", allow = ["CDDL-1.0"] }]
            clarify = [{ crate = "silent", expression = "MIT" }]
            [bans]
            multiple-versions = "deny"
            wildcards = "deny"
            deny = [{ crate = "openssl", reason = "no" }]
            skip = [{ crate = "rand@0.8", reason = "old" }]
            [sources]
            unknown-registry = "deny"
            unknown-git = "deny"
        "#;
        Rules::parse(text).unwrap()
    }

    fn package(name: &str, version: &str, licence: &str) -> Package {
        Package {
            name: name.into(),
            version: version.into(),
            licence: (!licence.is_empty()).then(|| licence.into()),
            source: Some(REGISTRY.into()),
            wildcards: Vec::new(),
        }
    }

    /// With two versions of rand, which `skip` allows.
    fn problems(packages: &[Package]) -> Vec<String> {
        let rand = ["0.8.5", "0.9.1"].map(|version| package("rand", version, "MIT"));
        let all = packages.iter().cloned().chain(rand).collect();
        [rules().each(&all), rules().versions(&all)].concat()
    }

    fn refused(package: Package, why: &str) {
        let found = problems(&[package]);
        assert!(found.len() == 1 && found[0].contains(why), "{found:?}");
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let fine = package("fine", "1.0.0", "MIT OR GPL-3.0");
        assert_eq!(problems(std::slice::from_ref(&fine)), [""; 0]);
        refused(package("strict", "1.0.0", "MIT AND GPL-3.0"), "strict 1.0.0 has a licence");
        refused(package("none", "1.0.0", ""), "names no licence");
        refused(package("openssl", "1.0.0", "MIT"), "banned: no");
        let source = Some("git+https://example.com/x".to_owned());
        refused(Package { source, ..fine.clone() }, "comes from git");
        let wildcards = vec!["any".to_owned()];
        refused(Package { wildcards, source: None, ..fine.clone() }, "any version of any");
        assert_eq!(problems(&[package("drawing", "1.0.0", "CDDL-1.0")]), [""; 0]);
        refused(package("other", "1.0.0", "CDDL-1.0"), "not allowed");
        assert_eq!(problems(&[package("silent", "1.0.0", "")]), [""; 0]);
    }

    #[test]
    fn versions_beside_each_other_are_listed_or_refused() {
        let two = ["1.0.0", "2.0.0"].map(|version| package("two", version, "MIT"));
        assert!(problems(&two)[0].contains("two occurs in more than one version: 1.0.0, 2.0.0"));
        // A row that is no longer needed.
        let one = BTreeSet::from([package("rand", "0.8.5", "MIT")]);
        assert!(rules().versions(&one)[0].contains("bans.skip names rand@0.8"));
        assert!(
            fits("a@1", "a", "1.2.3") && !fits("a@1", "a", "10.0.0") && fits("a", "a", "3.0.0")
        );
    }

    #[test]
    fn expressions() {
        let allowed = |name: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&name);
        for (text, expected) in [
            ("MIT", true),
            ("GPL-2.0", false),
            ("GPL-2.0/MIT", true),
            ("GPL-2.0 OR MIT AND ISC", true),
            ("(GPL-2.0 OR MIT) AND BSD-3-Clause", false),
            ("(GPL-2.0 OR MIT) AND (ISC)", true),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
            ("Apache-2.0", false),
        ] {
            assert_eq!(satisfies(text, &allowed), Ok(expected), "{text}");
        }
        for wrong in ["", "MIT OR", "(MIT", "MIT ISC", "MIT)", "OR MIT", "MIT WITH"] {
            assert!(satisfies(wrong, &allowed).is_err(), "{wrong}");
        }
    }
}
