//! Whether a verified signature is in the logs that are asked for.

use std::path::{Path, PathBuf};

use outlast_tlog::policy::Policy;

use super::{Arguments, Entry};
use crate::artifact_log::{Logged, proof_path, read_policy, without_proof};
use crate::failure::{Failure, USAGE};

/// What the command line asks for.
pub(super) struct Logs {
    policy: Option<Policy>,
    proof: Option<PathBuf>,
}

impl Logs {
    /// Reads the policy. A proof that nobody asks for is refused.
    pub(super) fn choose(arguments: &Arguments) -> Result<Self, Failure> {
        let proof = arguments.log_proof.clone();
        if proof.is_some() && arguments.files.len() > 1 {
            return Err(Failure::new("--log-proof is for a single file")
                .hint("keep the proof of each FILE in FILE.tlog-proof")
                .code(USAGE));
        }
        if proof.is_some() && arguments.log_policy.is_none() && arguments.policy.is_none() {
            return Err(Failure::new(
                "--log-proof alone proves nothing: which log is to be trusted?",
            )
            .hint("give the log and its witnesses with --log-policy FILE")
            .code(USAGE));
        }
        let policy = arguments.log_policy.as_deref().map(read_policy).transpose()?;
        Ok(Self { policy, proof })
    }

    /// Refuses what has no proofs, if a log is asked for.
    pub(super) fn refuse(
        &self,
        of_rule: Option<&Policy>,
        path: &Path,
        what: &str,
    ) -> Result<(), Failure> {
        match of_rule.or(self.policy.as_ref()) {
            Some(_) => Err(without_proof(path, what)),
            None => Ok(()),
        }
    }

    /// Refuses a signature that is not in a log: that of the rule, if there is one, and that of the command line.
    pub(super) fn require(
        &self,
        of_rule: Option<&Policy>,
        path: &Path,
        signature: &[u8],
        entry: &mut Entry,
    ) -> Result<(), Failure> {
        let proof = self.proof.clone().unwrap_or_else(|| proof_path(path));
        let mut found = None;
        for policy in of_rule.into_iter().chain(&self.policy) {
            let logged = Logged::verify(path, &proof, policy, signature);
            let logged = logged.inspect_err(|_| entry.text.clear())?;
            found = Some(logged);
        }
        match found {
            Some(logged) => {
                entry.text.push_str(&logged.text(path));
                entry.members.insert("log".into(), logged.json());
                Ok(())
            }
            None if self.proof.is_some() => {
                entry.text.clear();
                let reason = "its rule asks for no log, so that --log-proof proves nothing";
                Err(Failure::file(path, &reason)
                    .hint("give the log and its witnesses with --log-policy FILE, or as log in the rule")
                    .code(USAGE))
            }
            None => Ok(()),
        }
    }
}
