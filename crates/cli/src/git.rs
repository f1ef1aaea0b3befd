//! Git's interface to programs that sign for it (`gpg.x509.program`): the arguments by which git calls them, the status
//! lines that it reads (GnuPG's `doc/DETAILS`), and the configuration that it keeps for them.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use outlast_crypto::digests;
use outlast_pki::certificate::Certificate;

use crate::failure::Failure;
use crate::output;

/// First argument of every call by git: no command of ours begins like this.
const CALL: &str = "--status-fd";

/// Options of `outlast git sign` and `outlast git verify` that git's configuration gives, with the commands that have
/// them.
const CONFIGURED: &[(&str, &str, &[&str])] = &[
    ("outlast.profile", "--profile", &["sign"]),
    ("outlast.revocation", "--revocation", &["sign", "verify"]),
    ("outlast.trust", "--trust", &["verify"]),
    ("outlast.policy", "--policy", &["verify"]),
    ("outlast.crl", "--crl", &["verify"]),
];

/// Our own command line for a call by git: `--status-fd=2 -bsau KEY` signs, `--status-fd=1 --verify FILE -` verifies.
/// Options come from git's configuration. `None` if git did not call.
pub(crate) fn call(words: &[OsString]) -> Option<Vec<OsString>> {
    let (program, words) = words.split_first()?;
    let first = words.first()?.to_str()?;
    let (fd, rest) = match first.strip_prefix(CALL)?.strip_prefix('=') {
        Some(fd) => (OsString::from(fd), words.get(1..)?),
        None if first == CALL => (words.get(1)?.clone(), words.get(2..)?),
        None => return None,
    };
    let mut out = vec![program.clone(), "git".into()];
    let command = match rest {
        [flags, key] if flags == "-bsau" => {
            out.extend(["sign".into(), "--key".into(), key.clone()]);
            "sign"
        }
        [verify, file, _] if verify == "--verify" => {
            out.extend(["verify".into(), file.clone()]);
            "verify"
        }
        // The parser of the command line says what is wrong.
        _ => return None,
    };
    out.extend([CALL.into(), fd]);
    for (name, value) in configuration() {
        let known = CONFIGURED.iter().find(|(key, _, of)| *key == name && of.contains(&command));
        if let Some((_, option, _)) = known {
            out.push(format!("{option}={value}").into());
        }
    }
    Some(out)
}

/// Git's configuration of Outlast; of a value that is given more than once, the last. Empty if git cannot be asked.
fn configuration() -> Vec<(String, String)> {
    // `path` expands ~ and leaves other values as they are.
    let asked = ["config", "--null", "--type=path", "--get-regexp", r"^outlast\."];
    let Ok(answer) = Command::new("git").args(asked).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&answer.stdout);
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in text.split('\0') {
        let Some((name, value)) = entry.split_once('\n') else { continue };
        found.retain(|(known, _)| known != name);
        found.push((name.to_owned(), value.to_owned()));
    }
    found
}

/// Sets one value of git's configuration, of the user or of the repository in the current folder.
pub(crate) fn configure(is_global: bool, name: &str, value: &OsStr) -> Result<(), Failure> {
    let scope = if is_global { "--global" } else { "--local" };
    let outcome = Command::new("git").args(["config", scope, name]).arg(value).output();
    let answer = outcome.map_err(|error| {
        Failure::new(format!("git cannot be started: {error}")).hint("install git")
    })?;
    if answer.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&answer.stderr);
    let failure = Failure::new(format!("git config {scope} {name}: {}", reason.trim_end()));
    Err(match is_global {
        true => failure,
        false => failure.hint("run it in a repository, or for all of yours: --global"),
    })
}

/// Name by which policies know what git had signed: `git:commit`, `git:tag/NAME`, or `git:push` (a push certificate).
/// Anything else that is signed through git's interface is `git:other`.
pub(crate) fn name(object: &[u8]) -> String {
    // The headers end with the first empty line; a message cannot add to them.
    let headers = || object.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let starts = |word: &[u8]| headers().next().is_some_and(|line| line.starts_with(word));
    if starts(b"tree ") {
        return "git:commit".into();
    }
    if starts(b"certificate version ") {
        return "git:push".into();
    }
    let tag = headers().find_map(|line| line.strip_prefix(b"tag "));
    match tag.and_then(|name| std::str::from_utf8(name).ok()) {
        Some(name) if starts(b"object ") && is_tag(name) => format!("git:tag/{name}"),
        _ => "git:other".into(),
    }
}

/// Whether git allows a tag of this name (git-check-ref-format). An object may claim any other one: with control
/// characters for the terminal, or made to look like another name of ours.
fn is_tag(name: &str) -> bool {
    const FORBIDDEN: [char; 8] = [' ', '~', '^', ':', '?', '*', '[', '\\'];
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.contains(|one: char| one.is_control() || FORBIDDEN.contains(&one))
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && name.split('/').all(is_part)
}

/// Where git reads status lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    is_stdout: bool,
}

impl Status {
    /// The stream with this number.
    pub(crate) fn parse(fd: &str) -> Result<Self, String> {
        match fd {
            "1" => Ok(Self { is_stdout: true }),
            "2" => Ok(Self { is_stdout: false }),
            _ => Err("git reads 1 (standard output) or 2 (standard error)".into()),
        }
    }

    /// Writes one line.
    pub(crate) fn line(self, text: &str) {
        // A line break in a name would begin a status line of the name's author.
        let text: String =
            text.chars().map(|one| if one.is_control() { '?' } else { one }).collect();
        let text = format!("[GNUPG:] {text}");
        match self.is_stdout {
            true => output::line(&text),
            false => output::notice(&text),
        }
    }

    /// Whether results for people must go elsewhere.
    pub(crate) fn takes_stdout(self) -> bool {
        self.is_stdout
    }
}

/// SHA-256 of the certificate, by which git names a signer (`%GK`, `%GF`).
pub(crate) fn fingerprint(certificate: &Certificate) -> String {
    hex::encode_upper(digests::sha256(certificate.der()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn only_calls_by_git_are_understood() {
        let ours = |text: &str| {
            let found = call(&words(text))?;
            Some(found.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        let sign = ours("outlast --status-fd=2 -bsau alias/release").unwrap();
        assert_eq!(sign[..5], ["outlast", "git", "sign", "--key", "alias/release"]);
        let verify = ours("outlast-git --status-fd 1 --verify /tmp/x -").unwrap();
        assert_eq!(verify[1..6], ["git", "verify", "/tmp/x", "--status-fd", "1"]);
        for other in [
            "outlast",
            "outlast sign --status-fd=2",
            "outlast --status-fdx -bsau a",
            "outlast --status-fd",
            "outlast --status-fd=2 --decrypt a",
        ] {
            assert_eq!(ours(other), None, "{other}");
        }
    }

    #[test]
    fn objects_are_named_by_their_headers() {
        for (object, expected) in [
            ("tree 00\nauthor a\n\ntag v1\n", "git:commit"),
            ("object 00\ntype commit\ntag release/v1\ntagger a\n\ntext\n", "git:tag/release/v1"),
            ("object 00\ntype commit\n\ntag v1\n", "git:other"),
            ("object 00\ntype commit\ntag v1\x1b[2J\n\n", "git:other"),
            ("object 00\ntag v1/git:commit\n\n", "git:other"),
            ("object 00\ntag git:commit\n\n", "git:other"),
            ("object 00\ntag ../v1\n\n", "git:other"),
            ("object 00\ntag v1/\n\n", "git:other"),
            ("object 00\ntag /v1\n\n", "git:other"),
            ("object 00\ntag a//v1\n\n", "git:other"),
            ("object 00\ntag a/.v1\n\n", "git:other"),
            ("object 00\ntag v1.\n\n", "git:other"),
            ("object 00\ntag v1.lock\n\n", "git:other"),
            ("object 00\ntag v1@{0}\n\n", "git:other"),
            ("object 00\ntag v 1\n\n", "git:other"),
            ("object 00\ntag v*\n\n", "git:other"),
            ("object 00\ntag a\\v1\n\n", "git:other"),
            ("object 00\ntag \n\n", "git:other"),
            ("object 00\ntag a-b/v1.0_\u{e4}@c\n\n", "git:tag/a-b/v1.0_\u{e4}@c"),
            ("certificate version 0.1\npusher a\n\n", "git:push"),
            ("\ntree 00\n", "git:other"),
            ("", "git:other"),
        ] {
            assert_eq!(name(object.as_bytes()), expected, "{object}");
        }
    }
}
