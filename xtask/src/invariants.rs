//! What ARCHITECTURE.md's table says that crates must not use: sockets, files, clocks, AWS names.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

/// Something that only some crates may use.
struct Absence {
    what: &'static str,
    /// Words in source code that show its use.
    words: &'static [&'static str],
    /// Crates that may use it.
    only_in: &'static [&'static str],
}

const ABSENCES: &[Absence] = &[
    Absence {
        what: "a socket",
        words: &[
            "TcpStream",
            "TcpListener",
            "TcpSocket",
            "UdpSocket",
            "UnixStream",
            "UnixListener",
        ],
        // cli binds the listeners of net; store uses it in its test server.
        only_in: &["bench", "cli", "harness", "lab", "net", "store"],
    },
    Absence {
        what: "an asynchronous runtime",
        words: &["tokio"],
        only_in: &["bench", "cli", "harness", "lab", "net", "store"],
    },
    Absence {
        what: "a file",
        words: &["std::fs", "fs::", "File::open", "File::create", "OpenOptions"],
        only_in: &[
            "bench", "cli", "harness", "lab", "ledger", "native", "net", "sftp", "store",
            "terminal", "testing",
        ],
    },
    Absence {
        what: "a clock",
        words: &["SystemTime", "Instant", "system_clock"],
        only_in: &["bench", "cli", "harness", "lab", "ledger", "net", "store", "testing"],
    },
    Absence {
        what: "the environment",
        words: &["std::env", "env::var", "env::args"],
        only_in: &[
            "bench", "cli", "harness", "lab", "native", "store", "terminal", "testing", "tlog",
        ],
    },
    Absence {
        what: "another process, or the end of this one",
        words: &["std::process", "process::exit", "process::Command"],
        only_in: &["bench", "cli", "harness", "lab", "store", "terminal", "testing"],
    },
    Absence {
        what: "the terminal",
        words: &["println!", "eprintln!", "print!", "eprint!", "io::stdout", "io::stderr"],
        only_in: &["bench", "cli", "lab", "terminal", "testing"],
    },
    Absence { what: "AWS's spelling of members", words: &["\"PascalCase\""], only_in: &["api"] },
];

/// Crates that must not name an AWS operation, because they treat all operations alike.
const NO_OPERATIONS: &[&str] =
    &["crypto", "ledger", "negotiate", "net", "pki", "ssh", "store", "terminal", "tlog"];

/// Names of operations that also have another meaning.
const WORDS: &[&str] = &["Decapsulate", "Decrypt", "Encapsulate", "Encrypt", "Sign", "Verify"];

/// The operations of AWS's models.
pub fn operations(root: &Path) -> Result<BTreeSet<String>, String> {
    let folder = root.join("crates/api/models");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read(&path).map_err(|error| failed(&error))?;
        let model: Value = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
        let operations = model["operations"].as_object().into_iter().flat_map(|all| all.keys());
        names.extend(operations.filter(|name| !WORDS.contains(&name.as_str())).cloned());
    }
    if names.len() < 100 {
        return Err(failed(&"there are few operations in the models"));
    }
    Ok(names)
}

/// Forbidden uses in a crate, by file.
pub fn broken(name: &str, files: &[(&Path, &str)], operations: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        // Tests may use everything.
        let is_tests = |part: &std::ffi::OsStr| part == "tests" || part == "testing";
        if path.with_extension("").iter().any(is_tests) {
            continue;
        }
        let code = code(text);
        for absence in ABSENCES.iter().filter(|absence| !absence.only_in.contains(&name)) {
            if let Some(word) = absence.words.iter().find(|word| has(&code, word)) {
                let (path, what) = (path.display(), absence.what);
                found.push(format!("{path}: {word}: {name} must do without {what}"));
            }
        }
        if NO_OPERATIONS.contains(&name) {
            let named = operations.iter().filter(|operation| has(&code, operation));
            let told = |operation| {
                format!("{}: no operation is named in {name}: {operation}", path.display())
            };
            found.extend(named.map(told));
        }
    }
    found
}

/// Source code without comments and tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a word or path of words occurs in source code, not as part of a longer word.
fn has(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let ends = word.chars().next_back().is_some_and(is_part);
        let goes_on = ends && after.is_some_and(is_part);
        !goes_on && !before.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crate_is_to_do_without_is_found() {
        let path = Path::new("src/a.rs");
        let operations = BTreeSet::from(["CreateKey".to_owned()]);
        let in_crate = |name: &str, text: &str| broken(name, &[(path, text)], &operations).len();
        let socket = "use std::net::TcpStream;";
        assert_eq!((in_crate("domain", socket), in_crate("net", socket)), (1, 0));
        assert_eq!(in_crate("pki", "let now = SystemTime::now();"), 1);
        assert_eq!(in_crate("domain", "#[serde(rename_all = \"PascalCase\")]"), 1);
        assert_eq!((in_crate("net", "call(\"CreateKey\")"), in_crate("api", "CreateKey")), (1, 0));
        assert_eq!(in_crate("pki", "// a TcpStream\nlet tcp = 1;\n#[cfg(test)]\nuse std::fs;"), 0);
        let tests = broken("pki", &[(Path::new("src/a/tests.rs"), socket)], &operations);
        assert!(tests.is_empty());
        assert!(broken("pki", &[(Path::new("src/tests/b.rs"), socket)], &operations).is_empty());
    }
}
