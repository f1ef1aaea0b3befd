//! Trust policies (c2sp.org/tlog-policy): which logs, which witnesses, and how many of these must cosign.

use crate::VerifierKey;
use crate::checkpoint::SignedCheckpoint;
use crate::note::NoteError;
use crate::proof::ProofError;
use crate::proof_file::ProofFile;

mod parse;
mod text;

pub use parse::{KeysError, MAX_LINES, MAX_POLICY, Part, PolicyError, Problem};
pub use text::text;

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Keys of logs and witnesses, in the order of their lines.
    keys: Vec<VerifierKey>,
    logs: Vec<Log>,
    /// Witnesses and groups, in the order of their lines, so that members come before their groups.
    members: Vec<Member>,
    /// Index in `members`; `None` for `quorum none`.
    quorum: Option<usize>,
}

/// A log of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Its key, whose name is its origin.
    pub key: VerifierKey,
    /// Its URL, if the policy has one.
    pub url: Option<String>,
}

/// A witness of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Name in the policy, not the key's.
    pub name: String,
    /// Its key.
    pub key: VerifierKey,
    /// Its URL, if the policy has one.
    pub url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    name: Vec<u8>,
    kind: MemberKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MemberKind {
    Witness(Witness),
    Group { threshold: usize, members: Vec<usize> },
}

/// Why a checkpoint or proof does not satisfy a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The note has an invalid signature, or none by a key of the policy.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// No log of the policy has signed with this origin.
    #[error("the checkpoint of \"{0}\" is not signed by a log in the policy")]
    Log(String),
    /// Too few witnesses have cosigned.
    #[error("the checkpoint's cosignatures do not make the policy's quorum; counted: {}", names(.0))]
    Quorum(Vec<String>),
    /// The entry is not the one at this index.
    #[error("the proof does not show that the entry is in the log: {0}")]
    Inclusion(#[from] ProofError),
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A witness that has cosigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosigned {
    /// Name in the policy.
    pub witness: String,
    /// Its key's name.
    pub key_name: String,
    /// When, in seconds since 1970, according to the cosignature; the latest, if it has signed more than once.
    pub time: Option<u64>,
}

/// A checkpoint that satisfies a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The log's key that signed.
    pub log: VerifierKey,
    /// When, in seconds since 1970, according to the log, if its signature has a time.
    pub time: Option<u64>,
    /// The policy's witnesses that have cosigned, whether the quorum needs them or not.
    pub cosigned_by: Vec<Cosigned>,
}

impl Policy {
    /// The logs.
    pub fn logs(&self) -> &[Log] {
        &self.logs
    }

    /// The witnesses.
    pub fn witnesses(&self) -> impl Iterator<Item = &Witness> {
        self.members.iter().filter_map(|member| match &member.kind {
            MemberKind::Witness(witness) => Some(witness),
            MemberKind::Group { .. } => None,
        })
    }

    /// Checks that a log of the policy has signed the checkpoint with its origin, and that a quorum has cosigned it.
    /// An invalid signature that names any key of the policy refuses it.
    pub fn evaluate(&self, checkpoint: &SignedCheckpoint) -> Result<Accepted, Refused> {
        let verified = checkpoint.note().verify(&self.keys)?;
        let origin = checkpoint.checkpoint().origin();
        let by_log = verified
            .iter()
            .find(|by| by.key.name() == origin && self.logs.iter().any(|log| log.key == *by.key));
        let by_log = by_log.ok_or_else(|| Refused::Log(origin.to_owned()))?;

        let mut cosigned_by = Vec::new();
        let mut satisfied: Vec<bool> = Vec::with_capacity(self.members.len());
        for member in &self.members {
            satisfied.push(match &member.kind {
                MemberKind::Witness(witness) => {
                    let times = verified.iter().filter(|by| *by.key == witness.key);
                    let time = times.map(|by| by.time).max();
                    if let Some(time) = time {
                        let (witness, key_name) =
                            (witness.name.clone(), witness.key.name().to_owned());
                        cosigned_by.push(Cosigned { witness, key_name, time });
                    }
                    time.is_some()
                }
                MemberKind::Group { threshold, members } => {
                    let count = members.iter().filter(|at| satisfied.get(**at) == Some(&true));
                    count.count() >= *threshold
                }
            });
        }
        let quorum = self.quorum.is_none_or(|at| satisfied.get(at) == Some(&true));
        if !quorum {
            return Err(Refused::Quorum(cosigned_by.into_iter().map(|by| by.witness).collect()));
        }
        Ok(Accepted { log: by_log.key.clone(), time: by_log.time, cosigned_by })
    }
}

/// Result of verifying a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The log.
    pub origin: String,
    /// Index of the entry, from 0.
    pub index: u64,
    /// Size of the tree in the proof.
    pub size: u64,
    /// The signatures.
    pub accepted: Accepted,
}

/// Verifies offline that `entry` is in a log, as the policy requires.
pub fn verify_proof(policy: &Policy, proof: &ProofFile, entry: &[u8]) -> Result<Verified, Refused> {
    let accepted = policy.evaluate(&proof.checkpoint)?;
    proof.verify_inclusion(entry)?;
    let head = proof.checkpoint.checkpoint();
    Ok(Verified {
        origin: head.origin().to_owned(),
        index: proof.index,
        size: head.size(),
        accepted,
    })
}
