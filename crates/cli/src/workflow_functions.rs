//! Functions that custom steps of workflows call: programs, or Lambda's invocation interface at a URL.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_domain::arn::Arn;
use outlast_net::invoke::invoke;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::function_file::{self, Reached};
use crate::program;

/// Functions by their ARNs.
#[derive(Default)]
pub(crate) struct WorkflowFunctions(BTreeMap<String, Reached>);

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

    pub(crate) fn get(&self, arn: &str) -> Option<&Reached> {
        self.0.get(arn)
    }
}

impl Reached {
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
    fn function(self, _: &Arn, beside: &Path) -> Result<Reached, Failure> {
        // The event has a token.
        Reached::of(self.url, self.program, self.ca_bundle, beside)
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
