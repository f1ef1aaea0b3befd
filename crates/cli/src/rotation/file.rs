//! The file of rotation functions: a TOML table whose keys are the ARNs that secrets name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use outlast_domain::arn::Arn;
use outlast_net::client::Connector;
use serde::Deserialize;

use super::postgresql::{Database, Users};
use crate::failure::Failure;
use crate::{function_file, trust};

/// Seconds that a call may take, unless the file says otherwise.
const TIMEOUT_SECONDS: u32 = 60;
/// Seconds that a call may take at most: AWS's limit for a function.
const MAX_TIMEOUT_SECONDS: u32 = 900;

/// Functions by their ARNs.
#[derive(Default)]
pub(crate) struct Functions(BTreeMap<String, Function>);

/// A function.
pub(super) struct Function {
    /// ARN of the role whose credentials it gets.
    pub(super) role: Option<String>,
    pub(super) kind: Kind,
    timeout_seconds: u32,
}

/// What is called.
pub(super) enum Kind {
    /// Lambda's invocation interface at a URL.
    Url { url: String, tls: Option<Connector> },
    /// A program that reads the event from its standard input.
    Program(Vec<String>),
    /// The built-in rotation of PostgreSQL's users.
    Postgresql(Database),
}

impl Function {
    pub(super) fn timeout_seconds(&self) -> u32 {
        self.timeout_seconds
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Option<String>,
    program: Option<Vec<String>>,
    postgresql: Option<Users>,
    role: Option<String>,
    ca_bundle: Option<PathBuf>,
    hosts: Option<BTreeSet<String>>,
    timeout_seconds: Option<u32>,
}

impl Functions {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        function_file::read(path, Entry::function).map(Self)
    }

    pub(super) fn get(&self, arn: &str) -> Option<&Function> {
        self.0.get(arn)
    }

    /// The ARNs.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }
}

impl Entry {
    fn function(self, arn: &Arn, beside: &Path) -> Result<Function, Failure> {
        let tls = self.ca_bundle.as_ref().map(|path| beside.join(path));
        let timeout_seconds = self.timeout_seconds.unwrap_or(TIMEOUT_SECONDS);
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&timeout_seconds) {
            return Err(Failure::new(format!(
                "timeout_seconds must be between 1 and {MAX_TIMEOUT_SECONDS}"
            )));
        }
        if let Some(role) = &self.role {
            let parsed = Arn::parse(role).filter(|role| role.of("iam", "role/").is_some());
            if parsed.is_none_or(|role| role.account() != arn.account()) {
                return Err(Failure::new(format!(
                    "role must be the ARN of a role of account {}",
                    arn.account()
                )));
            }
        }
        if self.hosts.is_some() && self.postgresql.is_none() {
            return Err(Failure::new("hosts belongs to postgresql"));
        }
        let kind = match (self.url, self.program, self.postgresql) {
            (Some(url), None, None) => {
                if self.role.is_some() {
                    return Err(Failure::new(
                        "a function at a URL has credentials of its own: leave role out",
                    ));
                }
                let tls = tls.as_deref().map(trust::connector).transpose()?;
                if url.starts_with("https://") && tls.is_none() {
                    return Err(Failure::new("ca_bundle is needed to verify the URL's server"));
                }
                Kind::Url { url, tls }
            }
            (None, Some(words), None) if !words.is_empty() => Kind::Program(words),
            (None, None, Some(users)) => {
                let hosts = self.hosts.filter(|hosts| !hosts.is_empty()).ok_or_else(|| {
                    Failure::new(
                        "hosts must name the database servers that secrets may have: HOST:PORT",
                    )
                })?;
                if self.role.is_none() {
                    return Err(Failure::new(
                        "role is needed: the rotation reads and writes secrets as it",
                    ));
                }
                Kind::Postgresql(Database { users, hosts, ca_bundle: tls })
            }
            _ => return Err(Failure::new("exactly one of url, program and postgresql is needed")),
        };
        Ok(Function { role: self.role, kind, timeout_seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:f";
    const ROLE: &str = "role = 'arn:aws:iam::123456789012:role/r'";

    fn parse(entry: &str) -> Result<Functions, Failure> {
        function_file::parse(&format!("['{ARN}']\n{entry}\n"), Path::new("."), Entry::function)
            .map(Functions)
    }

    #[test]
    fn each_kind_of_function_is_read() {
        for entry in [
            "url = 'http://127.0.0.1:9000/2015-03-31/functions/function/invocations'".to_owned(),
            "program = ['/bin/rotate', '-v']\ntimeout_seconds = 900".to_owned(),
            format!("program = ['/bin/rotate']\n{ROLE}"),
            format!("postgresql = 'single-user'\nhosts = ['db:5432']\n{ROLE}"),
            format!("postgresql = 'alternating-users'\nhosts = ['db:5432']\n{ROLE}"),
        ] {
            assert_eq!(parse(&entry).unwrap().names().len(), 1, "{entry}");
        }
    }

    #[test]
    fn other_entries_are_refused() {
        for (entry, expected) in [
            ("", "exactly one of"),
            ("program = []", "exactly one of"),
            ("url = 'http://a'\nprogram = ['a']", "exactly one of"),
            ("url = 'https://a'", "ca_bundle"),
            (
                "url = 'http://a'\nrole = 'arn:aws:iam::123456789012:role/r'",
                "credentials of its own",
            ),
            ("program = ['a']\nrole = 'arn:aws:iam::210987654321:role/r'", "account 123456789012"),
            ("program = ['a']\nrole = 'arn:aws:iam::123456789012:user/r'", "role must be"),
            ("program = ['a']\ntimeout_seconds = 901", "timeout_seconds"),
            ("program = ['a']\nhosts = ['b']", "hosts belongs"),
            (
                "postgresql = 'single-user'\nrole = 'arn:aws:iam::123456789012:role/r'",
                "hosts must name",
            ),
            ("postgresql = 'single-user'\nhosts = ['db:5432']", "role is needed"),
            ("postgresql = 'both'", "unknown variant"),
            ("lambda = 'x'", "unknown field"),
        ] {
            let message = parse(entry).err().unwrap().message().to_owned();
            assert!(message.contains(expected), "{entry}: {message}");
        }
        let other = function_file::parse(
            "['arn:aws:s3:::x']\nurl = 'http://a'",
            Path::new("."),
            Entry::function,
        )
        .map(Functions);
        assert!(other.err().unwrap().message().contains("not the ARN of a function"));
    }
}
