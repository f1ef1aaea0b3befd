//! What the compiler does not check: crate directions, module headers, generated text, paths in documents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Which workspace crates each crate may depend on; ARCHITECTURE.md says why.
const MAY_USE: &[(&str, &[&str])] = &[
    ("crypto", &[]),
    ("tlog", &["crypto"]),
    // Its servers for tests are behind a feature.
    ("store", &["crypto", "testing", "tlog"]),
    ("testing", &[]),
    ("pki", &["crypto"]),
    ("domain", &["crypto", "pki", "store", "tlog"]),
    ("api", &["crypto", "domain", "pki", "store", "tlog"]),
    ("negotiate", &["crypto"]),
    ("ledger", &["crypto", "negotiate"]),
    ("net", &["api", "crypto", "domain", "ledger", "negotiate", "pki", "store", "tlog"]),
    ("native", &[]),
    ("lab", &["api", "crypto", "domain", "ledger", "native", "negotiate", "net", "pki", "store"]),
    (
        "bench",
        &["api", "crypto", "domain", "lab", "ledger", "negotiate", "net", "pki", "store", "tlog"],
    ),
    (
        "cli",
        &["api", "crypto", "domain", "lab", "ledger", "negotiate", "net", "pki", "store", "tlog"],
    ),
];

/// Longest source file, in lines: past that it holds two rooms.
const MAX_LINES: usize = 700;

/// Runs all checks; gives their number.
pub fn check(root: &Path) -> Result<usize, String> {
    let mut problems = Vec::new();
    let mut count = 0;
    for path in crate::codegen::stale(root)? {
        problems.push(format!("{} is stale: run cargo xtask gen", path.display()));
    }
    count += 1;
    for (name, allowed) in MAY_USE {
        count += 1;
        let manifest = read(&root.join(format!("crates/{name}/Cargo.toml")))?;
        // Tests may use what they like.
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for line in dependencies.lines() {
            let Some(used) =
                line.strip_prefix("outlast-").and_then(|rest| rest.split(['.', ' ']).next())
            else {
                continue;
            };
            if !allowed.contains(&used) {
                problems.push(format!("crates/{name} must not depend on crates/{used}"));
            }
        }
    }
    let mut sources = Vec::new();
    for folder in ["crates", "xtask", "fuzz"] {
        collect(&root.join(folder), &mut sources)?;
    }
    for path in &sources {
        count += 1;
        let text = read(path)?;
        let name = path.strip_prefix(root).unwrap_or(path).display();
        if !text.starts_with("//!") && !text.starts_with("#![no_main]") {
            problems.push(format!("{name} does not open with //!"));
        }
        if path.starts_with(root.join("crates")) {
            problems.extend(ignored_permits(&text).into_iter().map(|parameter| {
                format!("{name} ignores the permit {parameter}: hold it against the resource with `opens`")
            }));
        }
        if text.lines().count() > MAX_LINES {
            problems.push(format!("{name} has more than {MAX_LINES} lines"));
        }
    }
    for document in ["README.md", "ARCHITECTURE.md", "docs/dependencies.md"] {
        let text = read(&root.join(document))?;
        for path in paths_in(&text) {
            count += 1;
            if !root.join(&path).exists() {
                problems.push(format!("{document} names {path}, which does not exist"));
            }
        }
    }
    let manifest = read(&root.join("Cargo.toml"))?;
    let table = read(&root.join("docs/dependencies.md"))?;
    count += 1;
    problems.extend(undocumented(&manifest, &table));
    if problems.is_empty() { Ok(count) } else { Err(problems.join("\nerror: ")) }
}

/// Parameters that are permits and have a name that says that nobody looks at them.
fn ignored_permits(text: &str) -> Vec<String> {
    // However the lines are broken.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parameters = text.match_indices("Permit<").filter_map(|(at, _)| {
        let before = text[..at].trim_end_matches(['&', '(', '<', ' ']);
        let before = before.strip_suffix("Option").unwrap_or(before);
        let name = before.trim_end_matches(['&', '(', ' ']).strip_suffix(':')?;
        let name = name.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        name.starts_with('_').then(|| name.to_owned())
    });
    parameters.collect()
}

/// Direct dependencies without a row in `docs/dependencies.md`, and rows without a dependency.
fn undocumented(manifest: &str, table: &str) -> Vec<String> {
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let dependencies: BTreeSet<&str> = section
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim())
        .filter(|name| !name.starts_with("outlast-"))
        .collect();
    // Up to the next heading: further tables are about some of them.
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    for row in &rows {
        let name = row[0].trim_matches('`');
        if row.len() != 4 || row.iter().any(|cell| cell.is_empty()) {
            problems.push(format!("docs/dependencies.md: the row of {name} lacks something"));
        }
        if !dependencies.contains(name) {
            problems.push(format!("docs/dependencies.md names {name}, which is no dependency"));
        }
        if !named.insert(name) {
            problems.push(format!("docs/dependencies.md names {name} twice"));
        }
    }
    for name in dependencies.difference(&named) {
        problems.push(format!("docs/dependencies.md has no row of {name}"));
    }
    problems
}

/// Words in backquotes that look like paths of this repository.
fn paths_in(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| {
            ["crates/", "docs/", "tests/", "xtask/", "fuzz/", ".ci/"]
                .iter()
                .any(|folder| word.starts_with(folder))
                && !word.contains(['<', '*', ' ', '{'])
        })
        .map(|word| word.trim_end_matches('/').to_owned())
        .collect()
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, out)?;
            }
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            out.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_that_is_ignored_is_found() {
        for (text, expected) in [
            ("fn f(_: &Permit<action::kms::Sign>)", &["_"][..]),
            ("fn f(a: &Key, _: Permit<impl action::Encrypts>)", &["_"]),
            ("fn f(\n    _permit: Option<&Permit<A>>,\n)", &["_permit"]),
            ("fn f(_: (\n    &Permit<A>,\n    &Permit<B>,\n))", &["_"]),
            ("fn f(permit: &Permit<A>, other_: Option<&Permit<B>>) -> Option<Permit<C>>", &[]),
            ("type Both = (Permit<A>, Permit<B>);", &[]),
        ] {
            assert_eq!(ignored_permits(text), expected, "{text}");
        }
    }

    #[test]
    fn each_dependency_has_its_row() {
        let manifest = "[workspace.dependencies]\noutlast-x = 1\n# why\na = \"1\"\nb = { version = \"2\" }\n\n[x]\nc = 1\n";
        let row = |name: &str| format!("| `{name}` | what | who | MIT |\n");
        let both = row("a") + &row("b");
        assert_eq!(undocumented(manifest, &(both.clone() + "\n## Pins\n" + &row("z"))), [""; 0]);
        for (table, why) in [
            (row("a"), "has no row of b"),
            (both.clone() + &row("c"), "names c, which is no"),
            (both.clone() + &row("a"), "names a twice"),
            (row("a") + "| `b` | what | | MIT |\n", "the row of b lacks"),
        ] {
            let found = undocumented(manifest, &table);
            assert!(found.len() == 1 && found[0].contains(why), "{found:?}");
        }
    }
}
