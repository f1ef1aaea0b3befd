//! Functions that decide about logins of SFTP servers (`AWS_LAMBDA`): programs, or Lambda's invocation interface at a URL.
//!
//! A function gets AWS's event, a user's password in it, and answers with AWS's JSON. A program gets both over its standard input
//! and output: no argument, variable or log has the password.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_crypto::Secret;
use outlast_domain::arn::Arn;
use outlast_domain::limits::MAX_PROVIDER_ANSWER;
use outlast_net::invoke;
use outlast_net::providers::CallFunction;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::failure::Failure;
use crate::function_file::{self, Reached};
use crate::program;

/// Seconds that a call may take, unless the file says otherwise.
const TIMEOUT_SECONDS: u32 = 10;
/// Seconds that a call may take at most: a login waits no longer for its provider.
const MAX_TIMEOUT_SECONDS: u32 = 30;
/// Calls at a time. Further ones wait, for as long as their logins do.
const AT_ONCE: usize = 32;

/// Functions by their ARNs.
pub(crate) struct LoginFunctions(BTreeMap<String, Function>);

/// A function.
struct Function {
    arn: Arn,
    kind: Reached,
    timeout: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Option<String>,
    program: Option<Vec<String>>,
    ca_bundle: Option<PathBuf>,
    timeout_seconds: Option<u32>,
}

impl LoginFunctions {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        function_file::read(path, Entry::function).map(Self)
    }

    /// The ARNs.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }

    /// Calls them, [`AT_ONCE`] at a time.
    pub(crate) fn call(self) -> CallFunction {
        let (functions, room) = (Arc::new(self.0), Arc::new(Semaphore::new(AT_ONCE)));
        Arc::new(move |arn, event| {
            let (functions, room) = (functions.clone(), room.clone());
            Box::pin(async move {
                let function = functions.get(&arn).ok_or_else(|| {
                    format!("the function {arn} is not in the file of sftp.identity_functions")
                })?;
                // The semaphore is never closed.
                let _place = room.acquire().await.map_err(|error| error.to_string())?;
                function.call(event).await
            })
        })
    }
}

impl Function {
    async fn call(&self, event: Secret) -> Result<Vec<u8>, String> {
        match &self.kind {
            Reached::Url { url, tls } => {
                invoke::answer(url, tls.as_ref(), event, self.timeout, MAX_PROVIDER_ANSWER).await
            }
            Reached::Program(words) => {
                let region = self.arn.region().to_owned();
                let name = self.arn.of("lambda", "function:").unwrap_or_default().to_owned();
                let environment = [
                    ("AWS_REGION", region.clone()),
                    ("AWS_DEFAULT_REGION", region),
                    ("AWS_LAMBDA_FUNCTION_NAME", name),
                ];
                let max = MAX_PROVIDER_ANSWER;
                program::answer(words, event, &environment, self.timeout, max).await
            }
        }
    }
}

impl Entry {
    fn function(self, arn: &Arn, beside: &Path) -> Result<Function, Failure> {
        let seconds = self.timeout_seconds.unwrap_or(TIMEOUT_SECONDS);
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
            return Err(Failure::new(format!(
                "timeout_seconds must be between 1 and {MAX_TIMEOUT_SECONDS}"
            )));
        }
        // The event has a password.
        let kind = Reached::of(self.url, self.program, self.ca_bundle, beside)?;
        Ok(Function { arn: arn.clone(), kind, timeout: Duration::from_secs(seconds.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:f";

    fn parse(entry: &str) -> Result<LoginFunctions, Failure> {
        function_file::parse(&format!("['{ARN}']\n{entry}\n"), Path::new("."), Entry::function)
            .map(LoginFunctions)
    }

    #[test]
    fn each_kind_of_function_is_read() {
        for entry in [
            "url = 'http://127.0.0.1:9000/2015-03-31/functions/function/invocations'",
            "program = ['/bin/login', '-v']\ntimeout_seconds = 30",
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
            ("url = 'http://idp.example/'", "HTTPS"),
            ("program = ['a']\ntimeout_seconds = 31", "timeout_seconds"),
            ("program = ['a']\ntimeout_seconds = 0", "timeout_seconds"),
            ("program = ['a']\nrole = 'x'", "unknown field"),
        ] {
            let message = parse(entry).err().unwrap().message().to_owned();
            assert!(message.contains(expected), "{entry}: {message}");
        }
        assert!(
            function_file::parse("[f]\nprogram = ['a']", Path::new("."), Entry::function).is_err()
        );
    }
}
