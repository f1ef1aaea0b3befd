//! Dependencies: which crate may use which, by ARCHITECTURE.md's table, and cycles among the modules of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The lab, which is outside `crates`.
const LAB: &str = "lab";

/// Folder of a crate.
pub fn folder(root: &Path, name: &str) -> PathBuf {
    if name == LAB { root.join(LAB) } else { root.join("crates").join(name) }
}

/// Crates of ARCHITECTURE.md's table, each with its allowed dependencies.
pub fn may_use(architecture: &str) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let rows: Vec<(String, String)> = architecture
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let path = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
            let name = if path == LAB { path } else { path.strip_prefix("crates/")? };
            (cells.len() == 6).then(|| (name.to_owned(), (*cells.get(3).unwrap_or(&"")).to_owned()))
        })
        .collect();
    let all: BTreeSet<String> = rows.iter().map(|(name, _)| name.clone()).collect();
    let mut table = BTreeMap::new();
    for (name, cell) in rows {
        let listed = |text: &str| -> BTreeSet<String> {
            text.split([',', ' '])
                .filter(|word| !word.is_empty() && *word != "and" && *word != "-")
                .map(str::to_owned)
                .collect()
        };
        let uses = match cell.strip_prefix("all but ") {
            Some(others) => all.difference(&listed(others)).cloned().collect(),
            None => listed(&cell),
        };
        if let Some(unknown) = uses.difference(&all).next() {
            return Err(format!(
                "ARCHITECTURE.md: `crates/{name}` may use {unknown}, which is not a crate"
            ));
        }
        table.insert(name, uses);
    }
    if table.len() < 10 {
        return Err("ARCHITECTURE.md has no table of crates".to_owned());
    }
    Ok(table)
}

/// Faults in the cycles of modules in a crate, from its sources and their paths.
pub fn circles(name: &str, source: &Path, files: &[(&Path, &str)]) -> Option<String> {
    let modules: BTreeMap<Vec<String>, &str> =
        files.iter().filter_map(|(path, text)| Some((module(source, path)?, *text))).collect();
    let edges: BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>> = modules
        .iter()
        .map(|(path, text)| {
            let used = used(path, text);
            let found = used.iter().filter_map(|path| nearest(&modules, path));
            (path, found.filter(|other| *other != path).collect())
        })
        .collect();
    let inside: Vec<String> =
        edges.keys().filter(|start| reaches(&edges, start)).map(|path| path.join("::")).collect();
    (!inside.is_empty()).then(|| {
        format!(
            "crates/{name}: {} files are part of circular dependencies between modules: {}; move what both need into a separate file",
            inside.len(),
            inside.join(", ")
        )
    })
}

/// `a/b.rs` and `a/b/mod.rs` become `[a, b]`; the root of a crate is empty.
fn module(source: &Path, path: &Path) -> Option<Vec<String>> {
    let relative = path.strip_prefix(source).ok()?.with_extension("");
    let mut parts: Vec<String> =
        relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    let is_root =
        parts.len() == 1 && parts.first().is_some_and(|one| one == "lib" || one == "main");
    (!is_root && parts.last().is_none_or(|last| last != "tests")).then_some(parts)
}

/// Paths in its own crate that a module names, apart from its tests.
fn used(path: &[String], text: &str) -> Vec<Vec<String>> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text = lines.collect::<Vec<_>>().join(" ");
    let parent = path.get(..path.len().saturating_sub(1)).unwrap_or_default();
    let mut found = Vec::new();
    for (start, prefix) in [("crate::", &[][..]), ("super::", parent)] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                continue;
            }
            follow(prefix, &text[at + start.len()..], &mut found);
        }
    }
    found
}

/// Paths at the start of a text; several if it ends in braces.
fn follow(prefix: &[String], text: &str, found: &mut Vec<Vec<String>>) {
    let mut whole = prefix.to_vec();
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let (head, rest) = text.split_at(end.unwrap_or(text.len()));
    for part in head.split("::").filter(|part| !part.is_empty()) {
        if part == "super" {
            whole.pop();
        } else {
            whole.push(part.to_owned());
        }
    }
    let Some(inner) = rest.strip_prefix('{').filter(|_| head.is_empty() || head.ends_with("::"))
    else {
        found.push(whole);
        return;
    };
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                follow(&whole, inner[begin..at].trim_start(), found);
                begin = at + 1;
                if c == '}' {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// The module that contains a path.
fn nearest<'a>(
    modules: &'a BTreeMap<Vec<String>, &str>,
    path: &[String],
) -> Option<&'a Vec<String>> {
    (1..=path.len()).rev().find_map(|len| modules.get_key_value(&path[..len]).map(|(key, _)| key))
}

/// Whether a module depends on itself through others.
fn reaches(edges: &BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>>, start: &Vec<String>) -> bool {
    let mut seen: BTreeSet<&Vec<String>> = BTreeSet::new();
    let mut todo: Vec<&Vec<String>> = edges.get(start).into_iter().flatten().copied().collect();
    while let Some(path) = todo.pop() {
        if path == start {
            return true;
        }
        if seen.insert(path) {
            todo.extend(edges.get(path).into_iter().flatten().copied());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found() {
        let source = Path::new("src");
        let two = [
            (Path::new("src/a.rs"), "use crate::b::B;"),
            (Path::new("src/b.rs"), "use super::{d::D,\n    a::{A, B}};"),
            (Path::new("src/c.rs"), "// crate::a\nuse crate::a::A;"),
        ];
        let found = circles("x", source, &two).unwrap_or_default();
        assert!(found.contains("2 files") && found.contains("modules: a, b;"), "{found}");
        assert_eq!(circles("x", source, &two[1..]), None);
    }

    #[test]
    fn the_table_of_crates_is_read() {
        let rows: String =
            ('a'..='j').map(|c| format!("| `crates/{c}` | what | - | none |\n")).collect();
        let text = format!("{rows}| `crates/k` | all | all but a and b | none |\n");
        let table = may_use(&text).unwrap();
        assert!(table["k"].contains("c") && !table["k"].contains("a") && table["a"].is_empty());
        assert!(may_use(&text.replace("| what | - |", "| what | nothing |")).is_err());
    }
}
