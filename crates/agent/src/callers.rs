//! Who may read which secret over the unix socket.
//!
//! The kernel names a caller's uid, gid and process. A rule may also name the executable, which is compared as a file,
//! not by its path: a container's `/usr/bin/app` is another file than the host's.

use std::path::{Path, PathBuf};

/// Identity of a file: its device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
}

/// A caller, as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Process; 0 if unknown.
    pub pid: i32,
    /// Its executable; `None` if the agent may not see it.
    pub executable: Option<FileId>,
}

/// A rule: callers, and the secrets that they may read. What is absent does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Name, for the log.
    pub name: String,
    /// User.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Executable.
    pub executable: Option<PathBuf>,
    /// Patterns of names or ARNs; `*` stands for any text.
    pub secrets: Vec<Pattern>,
}

/// A name or ARN in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

/// What a caller may read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Granted {
    /// Names of the rules that apply.
    pub rules: Vec<String>,
    secrets: Vec<Pattern>,
}

impl Pattern {
    /// A pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether it describes this text.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let mut parts: Vec<_> = parts.collect();
        let Some(last) = parts.pop() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

/// What the rules grant to a caller. `identify` says which file a path is now.
pub fn granted(
    rules: &[Rule],
    caller: &Caller,
    identify: impl Fn(&Path) -> Option<FileId>,
) -> Granted {
    let applies = |rule: &&Rule| {
        rule.uid.is_none_or(|uid| uid == caller.uid)
            && rule.gid.is_none_or(|gid| gid == caller.gid)
            && rule.executable.as_ref().is_none_or(|path| {
                let (wanted, found) = (identify(path), caller.executable);
                wanted.is_some() && wanted == found
            })
    };
    let mut granted = Granted::default();
    for rule in rules.iter().filter(applies) {
        granted.rules.push(rule.name.clone());
        granted.secrets.extend(rule.secrets.iter().cloned());
    }
    granted
}

impl Granted {
    /// Everything: for callers that are known by the token.
    pub fn everything() -> Self {
        Self { rules: Vec::new(), secrets: vec![Pattern::new("*")] }
    }

    /// Whether a secret may be asked for under this name or ARN. An ARN may be abbreviated, so that only the answer says
    /// which secret it is: [`Granted::covers`] decides then.
    pub fn may_ask(&self, id: &str) -> bool {
        let names = names(id);
        self.secrets.iter().any(|pattern| names.iter().any(|name| pattern.matches(name)))
    }

    /// Whether the secret with this name and this ARN may be read.
    pub fn covers(&self, name: &str, arn: &str) -> bool {
        self.secrets.iter().any(|pattern| pattern.matches(name) || pattern.matches(arn))
    }
}

/// Under which names the secret with this name or ARN may stand in a rule.
fn names(id: &str) -> Vec<&str> {
    let mut names = vec![id];
    let resource = id.starts_with("arn:").then(|| id.splitn(7, ':').nth(6)).flatten();
    if let Some(resource) = resource {
        names.push(resource);
        // Secrets Manager appends a hyphen and six characters to the name.
        if let Some((name, suffix)) = resource.rsplit_once('-')
            && suffix.len() == 6
        {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, expected) in [
            ("prod/db", "prod/db", true),
            ("prod/db", "prod/db2", false),
            ("prod/db", "xprod/db", false),
            ("prod/*", "prod/", true),
            ("prod/*", "prod/a/b", true),
            ("prod/*", "test/prod/a", false),
            ("*", "", true),
            ("*/db", "a/b/db", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("**", "x", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }
}
