//! An archive of a results folder: one JSON file that can be cited and sent, and that `report` and `compare` read on
//! another machine.
//!
//! It has the settings with version and seed, the state of the machine, and the results of all passes, each file with its SHA-256. Raw samples are
//! large, and are left out unless they are asked for; their hashes are in it in any case. What can be made again (the page, CSV,
//! pictures of charts) is not in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::compare::baseline;
use crate::error::LabError;
use crate::report::Results;
use crate::run::folder::{repetition, write};
use crate::state::at_ms;

/// Largest archive that is read or written, in bytes.
const MAX_LEN: u64 = 512 << 20;
/// Most files in it.
const MAX_FILES: usize = 10_000;
/// Most parts of a path in it: `repetition-2/EXPERIMENT/result.json`.
const MAX_DEPTH: usize = 3;
/// What an archive says that it is.
const FORMAT: &str = "outlast-lab-archive-1";

/// An archive.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Archive {
    format: String,
    /// When it was made, in milliseconds since 1970.
    made_ms: u64,
    /// Version of the program that measured.
    version: Option<String>,
    /// Seed of the run.
    seed: Option<u64>,
    /// Number of passes.
    passes: usize,
    /// Facts about the machine that measured.
    machine: Vec<(String, String)>,
    files: Vec<Packed>,
    /// Files that are not in it.
    left_out: Vec<LeftOut>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packed {
    path: String,
    sha256: String,
    text: String,
}

/// A file of the folder that is not in its archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Its path in the folder.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its hash.
    pub sha256: String,
}

/// What was packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// SHA-256 of the archive, for citing it.
    pub sha256: String,
    /// Number of files in it.
    pub files: usize,
    /// Length in bytes.
    pub bytes: u64,
    /// What is not in it.
    pub left_out: Vec<LeftOut>,
}

/// Packs a results folder with all of its passes.
pub fn pack(folder: &Path, raw: bool, file: &Path) -> Result<Summary, LabError> {
    let first = Results::read(folder)?;
    let mut packed = Vec::new();
    let mut left_out = Vec::new();
    let mut passes = 0;
    for number in 1.. {
        let pass = repetition(folder, number);
        if !pass.join("run.json").exists() {
            break;
        }
        passes += 1;
        for path in files(&pass)? {
            let name = name(folder, &path)?;
            let is_raw = path.ends_with("points.ndjson");
            let bytes = read(&path)?;
            let sha256 = sha256(&bytes);
            if is_raw && !raw {
                left_out.push(LeftOut { path: name, bytes: bytes.len() as u64, sha256 });
                continue;
            }
            let text = String::from_utf8(bytes)
                .map_err(|_| LabError::Plan(format!("{} is not text", path.display())))?;
            packed.push(Packed { path: name, sha256, text });
        }
    }
    let summary = (packed.len(), left_out.clone());
    let archive = Archive {
        format: FORMAT.to_owned(),
        made_ms: at_ms(),
        version: first.asked.version.clone(),
        seed: first.asked.seed,
        passes,
        machine: first.state.map(|state| state.facts).unwrap_or_default(),
        files: packed,
        left_out,
    };
    let mut bytes = serde_json::to_vec_pretty(&archive).map_err(LabError::failed)?;
    bytes.push(b'\n');
    if bytes.len() as u64 > MAX_LEN {
        return Err(LabError::Plan(format!(
            "the archive would have {} MiB; at most {} are read: leave out the raw samples",
            bytes.len() >> 20,
            MAX_LEN >> 20
        )));
    }
    write(file, &bytes)?;
    let (files, left_out) = summary;
    Ok(Summary { sha256: sha256(&bytes), files, bytes: bytes.len() as u64, left_out })
}

/// Unpacks an archive into a new or empty folder, after all of its hashes were checked.
pub fn unpack(file: &Path, folder: &Path) -> Result<(), LabError> {
    let wrong = |what: String| LabError::Plan(format!("{}: {what}", file.display()));
    let archive: Archive = serde_json::from_slice(&read(file)?)
        .map_err(|error| wrong(format!("not an archive of the lab: {error}")))?;
    if archive.format != FORMAT {
        return Err(wrong(format!("its format is {}, not {FORMAT}", shown(&archive.format))));
    }
    if archive.files.len() > MAX_FILES {
        return Err(wrong(format!("more than {MAX_FILES} files")));
    }
    let mut known = BTreeSet::new();
    for Packed { path, sha256, text } in &archive.files {
        if !is_plain(path) || !known.insert(path) {
            return Err(wrong(format!("a file is named {}, which is not accepted", shown(path))));
        }
        if self::sha256(text.as_bytes()) != *sha256 {
            return Err(wrong(format!(
                "{} does not have the hash that is said of it",
                shown(path)
            )));
        }
    }
    fs::create_dir_all(folder).map_err(|error| LabError::file(folder, error))?;
    let mut entries = fs::read_dir(folder).map_err(|error| LabError::file(folder, error))?;
    if entries.next().is_some() {
        return Err(LabError::Plan(format!("{} is not empty", folder.display())));
    }
    for Packed { path, text, .. } in &archive.files {
        let place = folder.join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(|error| LabError::file(parent, error))?;
        }
        write(&place, text.as_bytes())?;
    }
    Ok(())
}

/// The files of a pass that cannot be made again.
fn files(pass: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut found: Vec<PathBuf> = ["run.json", "state.json", baseline::FILE]
        .iter()
        .map(|name| pass.join(name))
        .filter(|path| path.is_file())
        .collect();
    let entries = fs::read_dir(pass).map_err(|error| LabError::file(pass, error))?;
    let mut experiments: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("result.json").is_file() && !path.join("run.json").exists())
        .collect();
    experiments.sort();
    for experiment in experiments {
        found.push(experiment.join("result.json"));
        found.extend(Some(experiment.join("points.ndjson")).filter(|path| path.is_file()));
    }
    Ok(found)
}

/// The path in the archive.
fn name(folder: &Path, path: &Path) -> Result<String, LabError> {
    let inside = path.strip_prefix(folder).ok().and_then(Path::to_str);
    inside.filter(|name| is_plain(name)).map(str::to_owned).ok_or_else(|| {
        LabError::Plan(format!("{} has a name that an archive cannot have", path.display()))
    })
}

/// Whether a path stays in its folder, and has no surprises in its name.
fn is_plain(path: &str) -> bool {
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let plain = |part: &Component<'_>| match part {
        Component::Normal(name) => name.to_str().is_some_and(|name| {
            name.len() <= 100
                && !name.starts_with('.')
                && name.chars().all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one))
        }),
        _ => false,
    };
    (1..=MAX_DEPTH).contains(&parts.len()) && parts.iter().all(plain) && !path.contains("//")
}

fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    let error = |error| LabError::file(path, error);
    if fs::metadata(path).map_err(error)?.len() > MAX_LEN {
        return Err(error(std::io::ErrorKind::FileTooLarge.into()));
    }
    fs::read(path).map_err(error)
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes))
}

/// Somebody's text for a terminal.
fn shown(text: &str) -> String {
    let short: String = text.chars().filter(|one| !one.is_control()).take(60).collect();
    format!("\"{short}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(path: &str, text: &str, sha256: &str) -> String {
        serde_json::json!({
            "format": FORMAT, "made_ms": 1, "version": "1", "seed": 1, "passes": 1, "machine": [],
            "files": [{ "path": path, "sha256": sha256, "text": text }], "left_out": [],
        })
        .to_string()
    }

    /// An archive comes from somebody else: nothing of it is written outside the folder, or if anything is wrong.
    #[test]
    fn hostile_archives_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let (file, folder) = (root.path().join("a.json"), root.path().join("out"));
        let good = sha256(b"{}");
        let refused = |text: &str, part: &str| {
            fs::write(&file, text).unwrap();
            let said = unpack(&file, &folder).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
            assert!(!folder.exists(), "{said}");
        };
        for path in
            ["../run.json", "/etc/passwd", "a/b/c/d", ".hidden", "", "a//b", "a\u{7}", "a/../b"]
        {
            refused(&archive(path, "{}", &good), "which is not accepted");
        }
        refused(&archive("run.json", "{ }", &good), "does not have the hash");
        refused("{}", "not an archive of the lab");
        refused("[1, 2", "not an archive of the lab");
        refused(&archive("run.json", "{}", &good).replace(FORMAT, "zip"), "its format is \"zip\"");
        fs::write(&file, archive("run.json", "{}", &good)).unwrap();
        unpack(&file, &folder).unwrap();
        assert_eq!(fs::read(folder.join("run.json")).unwrap(), b"{}");
        assert!(unpack(&file, &folder).unwrap_err().to_string().contains("is not empty"));
    }
}
