//! What `outlast sign` is to sign, and where the signatures go.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use outlast_pki::pattern::Pattern;

use super::signature_path;
use crate::artifact_log::proof_path;
use crate::failure::{Failure, USAGE};
use crate::{files, output};

/// Stands for standard input, or standard output.
pub(crate) const DASH: &str = "-";

/// Files below a folder that are examined, at most.
const MAX_FOUND: usize = 1_000_000;

/// Most of them that are left out with a warning each.
const MAX_NAMED: usize = 10;

/// One signature to make. `-` is standard input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its signature.
    pub(crate) target: PathBuf,
    /// The signature by the classical keys alone.
    pub(crate) classical: Option<PathBuf>,
    /// The proof that the log has the signatures.
    pub(crate) proof: Option<PathBuf>,
}

impl Job {
    /// Whether the content comes from standard input.
    pub(crate) fn is_stdin(&self) -> bool {
        self.file.as_os_str() == DASH
    }

    /// Whether the signature goes to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.target.as_os_str() == DASH
    }
}

/// The arguments that say what to sign.
pub(crate) struct Wanted<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) recursive: Option<&'a Path>,
    pub(crate) include: &'a [Pattern],
    pub(crate) signature: Option<&'a Path>,
    pub(crate) output_dir: Option<&'a Path>,
    pub(crate) classical_copy: bool,
    pub(crate) log: bool,
    pub(crate) force: bool,
}

impl Wanted<'_> {
    fn job(&self, file: PathBuf, target: PathBuf) -> Job {
        let classical = self.classical_copy.then(|| classical_path(&target));
        let proof = self.log.then(|| proof_of(&target));
        Job { file, target, classical, proof }
    }

    /// All signatures to make. Refuses what would overwrite something: all of it is checked before anything is
    /// signed.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, Failure> {
        let usage = |text: &str| Failure::new(text).code(USAGE);
        let mut jobs = Vec::new();
        if let Some(folder) = self.recursive {
            for file in found(folder, self.include)? {
                let below = file.strip_prefix(folder).unwrap_or(&file);
                let target = match self.output_dir {
                    Some(out) => signature_path(&out.join(below)),
                    None => signature_path(&file),
                };
                jobs.push(self.job(file, target));
            }
        }
        for file in self.files {
            let target = match (self.signature, file.as_os_str() == DASH) {
                (Some(signature), _) => signature.to_path_buf(),
                (None, true) => PathBuf::from(DASH),
                (None, false) => beside(file, self.output_dir),
            };
            jobs.push(self.job(file.clone(), target));
        }
        if jobs.len() > 1 {
            if self.signature.is_some() {
                return Err(usage("--signature is for a single file")
                    .hint("name a folder for the signatures with --output-dir"));
            }
            if jobs.iter().any(Job::is_stdin) {
                return Err(usage("standard input is signed alone")
                    .hint("sign the other files with another command"));
            }
        }
        if jobs.iter().any(Job::is_stdout) && std::io::stdout().is_terminal() {
            return Err(usage("a signature is not text for a terminal")
                .hint("write it to a file: --signature FILE"));
        }
        if self.classical_copy && jobs.iter().any(Job::is_stdout) {
            return Err(usage("a classical copy needs a file beside the signature")
                .hint("write the signature to a file: --signature FILE"));
        }
        if self.log && jobs.iter().any(Job::is_stdout) {
            return Err(usage("a proof needs a file beside the signature")
                .hint("write the signature to a file: --signature FILE"));
        }
        distinct(&jobs)?;
        if !self.force {
            let written = jobs.iter().filter(|job| !job.is_stdout()).map(|job| &job.target);
            let beside = jobs.iter().flat_map(|job| [&job.classical, &job.proof]).flatten();
            for target in written.chain(beside) {
                if files::exists(target)? {
                    return Err(files::exists_already(target).prefixed("nothing is signed"));
                }
            }
        }
        Ok(jobs)
    }
}

/// Refuses a name that no report could say exactly: another file may have the name that would be shown, and a line end in a name
/// would be the beginning of another line.
pub(crate) fn check_name(path: &Path) -> Result<(), Failure> {
    match path.to_str() {
        Some(name) if name.chars().any(char::is_control) => {
            Err(Failure::new(format!("{name:?}: its name has control characters"))
                .hint("rename it"))
        }
        Some(_) => Ok(()),
        None => Err(Failure::file(path, &"its name is not UTF-8").hint("rename it")),
    }
}

/// Path of the classical signature next to `FILE.p7s`: `FILE.classical.p7s`.
pub(crate) fn classical_path(target: &Path) -> PathBuf {
    let mut name = unsigned(target).into_os_string();
    name.push(".classical.p7s");
    PathBuf::from(name)
}

/// Path of the proof next to `FILE.p7s`: `FILE.tlog-proof`.
pub(crate) fn proof_of(target: &Path) -> PathBuf {
    proof_path(&unsigned(target))
}

/// The path of a signature without `.p7s`.
fn unsigned(target: &Path) -> PathBuf {
    let is_p7s = target.extension().is_some_and(|kind| kind == "p7s");
    if is_p7s { target.with_extension("") } else { target.to_path_buf() }
}

fn beside(file: &Path, folder: Option<&Path>) -> PathBuf {
    match folder {
        None => signature_path(file),
        Some(folder) => {
            folder.join(signature_path(Path::new(file.file_name().unwrap_or_default())))
        }
    }
}

/// Refuses jobs that would write the same file, or one that is to be signed: signatures, classical copies and proofs.
fn distinct(jobs: &[Job]) -> Result<(), Failure> {
    let mut written: Vec<(&Path, &Path)> = Vec::new();
    for job in jobs {
        let target = Some(&job.target).filter(|_| !job.is_stdout());
        let all = [target, job.classical.as_ref(), job.proof.as_ref()];
        written.extend(all.into_iter().flatten().map(|path| (path.as_path(), job.file.as_path())));
    }
    let signed: Vec<_> = jobs.iter().map(|job| job.file.as_path()).collect();
    check_places(&written, &signed)
}

/// Refuses to write the same file for two others, or one that is to be signed. `written` has each path with the file that it is
/// for.
pub(crate) fn check_places(written: &[(&Path, &Path)], signed: &[&Path]) -> Result<(), Failure> {
    let signed: BTreeSet<PathBuf> = signed.iter().map(|path| place(path)).collect();
    let mut written: Vec<_> =
        written.iter().map(|(path, file)| (place(path), *path, *file)).collect();
    if let Some((_, path, file)) = written.iter().find(|(place, ..)| signed.contains(place)) {
        let reason =
            format!("signing {} would overwrite it, and it is to be signed", file.display());
        return Err(Failure::file(path, &reason).hint(
            "sign it in a separate command, or name a folder for the signatures: --output-dir DIR",
        ));
    }
    written.sort();
    for ((place, path, first), (next, _, second)) in written.iter().zip(written.iter().skip(1)) {
        if place != next {
            continue;
        }
        return Err(if first == second {
            Failure::file(first, &"the file is given more than once").hint("name each file once")
        } else {
            let (one, other) = (first.display(), second.display());
            Failure::file(path, &format!("{one} and {other} would both write it"))
                .hint("sign them in separate commands with different --output-dir")
        });
    }
    Ok(())
}

/// Where a path leads, however it is spelled. The file itself is not followed: what is written replaces a link.
fn place(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    match folder.canonicalize() {
        Ok(folder) => folder.join(name),
        // A folder that is made later.
        Err(_) => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
    }
}

/// The files below a folder that match one of the patterns, or all but signatures; sorted. Links to folders are not
/// followed, because they may lead in a circle; a warning names them.
pub(crate) fn found(folder: &Path, include: &[Pattern]) -> Result<Vec<PathBuf>, Failure> {
    let wanted = |path: &Path, below: &str| {
        let matches = || include.iter().any(|pattern| pattern.matches(below));
        !is_kind(path, "p7s") && !is_proof(path) && (include.is_empty() || matches())
    };
    walk(
        folder,
        wanted,
        "signatures (.p7s), and evidence (.ers) and proofs (.tlog-proof) beside their file, are left out, and what \
         --include does not match",
    )
}

/// Whether a file is evidence, or a proof, of a file beside it. Another one with such a name is a file like any other.
fn is_proof(path: &Path) -> bool {
    if !["ers", "tlog-proof"].iter().any(|kind| is_kind(path, kind)) {
        return false;
    }
    let file = path.with_extension("");
    // FILE.classical.ers is FILE's, too.
    file.is_file() || (is_kind(&file, "classical") && file.with_extension("").is_file())
}

/// The signatures below a folder, sorted.
pub(crate) fn signatures(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    walk(folder, |path, _| is_kind(path, "p7s"), "signatures are named FILE.p7s")
}

fn is_kind(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|kind| kind == extension)
}

/// The files below a folder that are wanted, by their path and the part of it below the folder.
fn walk(
    folder: &Path,
    wanted: impl Fn(&Path, &str) -> bool,
    hint: &str,
) -> Result<Vec<PathBuf>, Failure> {
    let mut out = Vec::new();
    let mut left_out = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    let mut count = 0_usize;
    while let Some(next) = waiting.pop() {
        let failed = |error: std::io::Error| files::io_failure(&next, &error);
        for entry in std::fs::read_dir(&next).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            count += 1;
            if count > MAX_FOUND {
                return Err(Failure::file(
                    folder,
                    &format!("it holds more than {MAX_FOUND} files"),
                )
                .hint("name a folder further down"));
            }
            let is_link = path.is_symlink();
            if path.is_dir() {
                match is_link {
                    true => left_out.push((path, "a link to a folder is not followed")),
                    false => waiting.push(path),
                }
                continue;
            }
            let below = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if !wanted(&path, &below) {
                continue;
            }
            match path.is_file() {
                true => out.push(path),
                false => left_out.push((path, "it is no file, and is left out")),
            }
        }
    }
    left_out.sort();
    for (path, why) in left_out.iter().take(MAX_NAMED) {
        output::warning(&format!("{}: {why}", path.display()));
    }
    if let Some(more) = left_out.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        output::warning(&format!("{}: {more} more were left out", folder.display()));
    }
    if out.is_empty() {
        return Err(Failure::file(folder, &"there is no such file in it").hint(hint));
    }
    out.sort();
    Ok(out)
}
