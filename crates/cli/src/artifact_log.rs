//! The artifact log, as its clients see it: signatures are entered with their proofs (`outlast sign --log`), and proofs
//! are verified without any service (`outlast verify`).

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outlast_api::aws::outlast::NewLogEntry;
use outlast_api::ops::outlast::{add_log_entries, get_log_proof};
use outlast_api::wire::Blob;
use outlast_domain::artifacts::LogEntry;
use outlast_pki::cms::verify::SignedMessage;
use outlast_pki::time::rfc3339;
use outlast_tlog::policy::{MAX_POLICY, Policy, Verified, verify_proof};
use outlast_tlog::proof_file::{MAX_FILE, ProofFile};
use serde_json::{Value, json};

use crate::endpoint::{CallError, Endpoint};
use crate::failure::{Failure, REFUSED};
use crate::files;

/// Interval between two questions whether the witnesses have cosigned.
const PAUSE: Duration = Duration::from_millis(500);

/// Path of a file's proof: the file's, with `.tlog-proof` added.
pub(crate) fn proof_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tlog-proof");
    PathBuf::from(name)
}

/// An entry that was made.
pub(crate) struct Entered {
    /// Its index.
    pub(crate) index: u64,
    /// The text of its proof.
    pub(crate) proof: String,
    /// Whether as many witnesses have cosigned the proof's head as verifiers must see.
    pub(crate) is_cosigned: bool,
}

/// Enters the messages about one file. `name` is that of the file, if everybody may know it.
pub(crate) async fn enter(
    endpoint: &mut Endpoint,
    messages: &[&[u8]],
    name: Option<String>,
) -> Result<Entered, Failure> {
    let reduced = |message: &&[u8]| {
        let message = SignedMessage::parse(message)?;
        message.reduced().map(Blob)
    };
    let messages = messages.iter().map(reduced).collect::<Result<Vec<_>, _>>();
    let messages = messages.map_err(|error| Failure::new(error.to_string()))?;
    let input = add_log_entries::Input { entries: vec![NewLogEntry { messages, file_name: name }] };
    let outcome = endpoint.call::<add_log_entries::AddLogEntries>(&input).await;
    let answer = outcome.map_err(|error| explained(error, "outlast:AddLogEntries"))?;
    let added = answer.entries.into_iter().next();
    let added = added.ok_or_else(|| Failure::new("the log has returned no proof"))?;
    Ok(Entered {
        index: added.index.unsigned_abs(),
        proof: added.proof,
        is_cosigned: answer.is_cosigned,
    })
}

/// A failed call of the log, with advice.
pub(crate) fn explained(error: CallError, permission: &str) -> Failure {
    let hint = match &error {
        CallError::Service(error) if error.code == "AccessDeniedException" => {
            Some(format!("the caller needs the permission {permission} for the artifact log"))
        }
        _ => None,
    };
    let failure = Failure::from(error).prefixed("the artifact log");
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Proofs that lack cosignatures.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<Vec<(PathBuf, u64)>>);

impl Waiting {
    /// Adds the proof in a file, by the index of its entry.
    pub(crate) fn add(&self, path: &Path, index: u64) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.push((path.to_path_buf(), index));
    }

    /// Replaces each proof by one with cosignatures, as soon as there is one; returns the files that still lack them
    /// after this time.
    pub(crate) async fn complete(
        self,
        endpoint: &mut Endpoint,
        time: Duration,
    ) -> Result<Vec<PathBuf>, Failure> {
        let mut list = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        // One head covers the last entry and with it all before.
        list.sort_by_key(|(_, index)| *index);
        let end = tokio::time::Instant::now() + time;
        while let Some((path, index)) = list.last() {
            let (proof, is_cosigned) = proof(endpoint, *index).await?;
            if is_cosigned {
                files::write(path, proof.as_bytes(), 0o644)?;
                list.pop();
            } else if tokio::time::Instant::now() >= end {
                break;
            } else {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(list.into_iter().map(|(path, _)| path).collect())
    }
}

/// The text of the proof of an entry by the best head, and whether enough witnesses have cosigned that head.
pub(crate) async fn proof(endpoint: &mut Endpoint, index: u64) -> Result<(String, bool), Failure> {
    let index = i64::try_from(index).unwrap_or(i64::MAX);
    let input = get_log_proof::Input { index };
    let outcome = endpoint.call::<get_log_proof::GetLogProof>(&input).await;
    let answer = outcome.map_err(|error| explained(error, "outlast:GetLogProof"))?;
    Ok((answer.proof, answer.is_cosigned))
}

/// Reads a policy with the log and the witnesses to trust.
pub(crate) fn read_policy(path: &Path) -> Result<Policy, Failure> {
    let bytes = files::read(path, MAX_POLICY)?;
    Policy::parse(&bytes).map_err(|error| {
        Failure::file(path, &error).hint("get the service's own with: outlast log policy")
    })
}

/// The refusal of something that is in no log although a log is asked for: only signatures of files have proofs.
pub(crate) fn without_proof(path: &Path, what: &str) -> Failure {
    let reason = format!("a proof that a log has it is asked for, and there is none for {what}");
    Failure::file(path, &reason)
        .hint("sign the file itself with outlast sign --log, or ask for no log")
        .code(REFUSED)
}

/// A signature that is in a log.
pub(crate) struct Logged {
    entry: LogEntry,
    verified: Verified,
}

impl Logged {
    /// Verifies the proof in a file: the policy trusts the log and enough of the witnesses, and the entry has every
    /// signer of the message. A refusal has exit code 3. `file` is the signed file.
    pub(crate) fn verify(
        file: &Path,
        proof: &Path,
        policy: &Policy,
        signature: &[u8],
    ) -> Result<Self, Failure> {
        let refused = |reason: &dyn std::fmt::Display| {
            Failure::file(file, &format!("its proof {}: {reason}", proof.display())).code(REFUSED)
        };
        if !files::exists(proof)? {
            return Err(refused(&"the file does not exist").hint(
                "a proof that the signature is in a log is asked for: sign with --log, or name the proof with --log-proof",
            ));
        }
        let bytes = files::read(proof, MAX_FILE)?;
        let proof_file = ProofFile::parse(&bytes).map_err(|error| refused(&error))?;
        let bytes = proof_file.extra.as_deref();
        let bytes = bytes.ok_or_else(|| refused(&"the entry is not in it"))?;
        let verified = verify_proof(policy, &proof_file, bytes).map_err(|error| {
            let failure = refused(&error);
            match error {
                outlast_tlog::policy::Refused::Quorum(_) => failure
                    .hint("get one with more cosignatures: outlast log proof FILE.tlog-proof"),
                _ => failure,
            }
        })?;
        let entry = LogEntry::parse(bytes).map_err(|error| refused(&error))?;
        let message = SignedMessage::parse(signature).map_err(|error| refused(&error))?;
        match entry.lacks(&message) {
            Some(algorithm) => Err(refused(&format!(
                "the entry is about other signatures: it lacks the one with {algorithm}"
            ))),
            None => Ok(Self { entry, verified }),
        }
    }

    /// One line about it.
    pub(crate) fn text(&self, file: &Path) -> String {
        let by: Vec<_> =
            self.verified.accepted.cosigned_by.iter().map(|by| by.witness.as_str()).collect();
        format!(
            "logged {}: entry {} of {}, entered {}, cosigned by {}\n",
            file.display(),
            self.verified.index,
            self.verified.origin,
            rfc3339(self.entry.time()),
            if by.is_empty() { "nobody".to_owned() } else { by.join(", ") }
        )
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> Value {
        let by = |by: &outlast_tlog::policy::Cosigned| json!({ "witness": by.witness, "key": by.key_name, "time": by.time.map(time) });
        json!({
            "origin": self.verified.origin,
            "index": self.verified.index,
            "size": self.verified.size,
            "entered_at": rfc3339(self.entry.time()),
            "cosigned_by": self.verified.accepted.cosigned_by.iter().map(by).collect::<Vec<_>>(),
        })
    }
}

fn time(seconds: u64) -> String {
    rfc3339(i64::try_from(seconds).unwrap_or(i64::MAX))
}
