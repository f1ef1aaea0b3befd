//! Functions that custom steps of workflows call: programs, or Lambda's invocation interface at a URL.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_domain::arn::Arn;
use outlast_net::client::Connector;
use outlast_net::invoke::invoke;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::{function_file, program, trust};

/// Functions by their ARNs.
#[derive(Default)]
pub(crate) struct WorkflowFunctions(BTreeMap<String, Kind>);

/// What is called.
pub(crate) enum Kind {
    /// Lambda's invocation interface.
    Url { url: String, tls: Option<Connector> },
    /// A program, with its arguments. It gets credentials of the execution role.
    Program(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Option<String>,
    program: Option<Vec<String>>,
    ca_bundle: Option<PathBuf>,
}

/// What a program finds in its environment.
pub(crate) type Environment = Vec<(&'static str, String)>;

impl WorkflowFunctions {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        function_file::read(path, Entry::function).map(Self)
    }

    /// The ARNs.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn get(&self, arn: &str) -> Option<&Kind> {
        self.0.get(arn)
    }
}

impl Kind {
    /// Whether it runs on this machine, with credentials.
    pub(crate) fn has_credentials(&self) -> bool {
        matches!(self, Self::Program(_))
    }

    /// Calls it with an event.
    pub(crate) async fn call(
        &self,
        event: &Value,
        environment: &Environment,
        timeout: Duration,
    ) -> Result<(), String> {
        match self {
            Self::Url { url, tls } => invoke(url, tls.as_ref(), event, timeout).await,
            Self::Program(words) => program::run(words, event, environment, timeout).await,
        }
    }
}

impl Entry {
    fn function(self, _: &Arn, beside: &Path) -> Result<Kind, Failure> {
        let tls = self.ca_bundle.map(|path| trust::connector(&beside.join(path))).transpose()?;
        match (self.url, self.program) {
            (Some(url), None) => {
                // The event has a token.
                outlast_net::post::check_url(&url, false).map_err(|_| {
                    Failure::new("url must be one of HTTPS, or of HTTP on this machine")
                })?;
                if url.starts_with("https://") && tls.is_none() {
                    return Err(Failure::new("ca_bundle is needed to verify the URL's server"));
                }
                Ok(Kind::Url { url, tls })
            }
            (None, Some(words)) if !words.is_empty() => Ok(Kind::Program(words)),
            _ => Err(Failure::new("exactly one of url and program is needed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:f";

    fn parse(entry: &str) -> Result<WorkflowFunctions, Failure> {
        function_file::parse(&format!("['{ARN}']\n{entry}\n"), Path::new("."), Entry::function)
            .map(WorkflowFunctions)
    }

    #[test]
    fn each_kind_of_function_is_read() {
        for entry in [
            "url = 'http://127.0.0.1:9000/2015-03-31/functions/function/invocations'",
            "program = ['/bin/scan', '-v']",
        ] {
            assert_eq!(parse(entry).unwrap().names(), BTreeSet::from([ARN.to_owned()]), "{entry}");
        }
    }

    #[test]
    fn other_entries_are_refused() {
        for (entry, expected) in [
            ("", "exactly one of"),
            ("program = []", "exactly one of"),
            ("url = 'http://127.0.0.1'\nprogram = ['a']", "exactly one of"),
            ("url = 'https://a'", "ca_bundle"),
            ("url = 'http://functions.example/'", "HTTPS"),
            ("program = ['a']\ntimeout_seconds = 1", "unknown field"),
            ("program = ['a']\nrole = 'x'", "unknown field"),
        ] {
            let message = parse(entry).err().unwrap().message().to_owned();
            assert!(message.contains(expected), "{entry}: {message}");
        }
    }
}
