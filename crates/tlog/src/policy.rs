//! Trust policies (c2sp.org/tlog-policy): which logs, which witnesses, and how many of these must have cosigned.

use crate::VerifierKey;
use crate::checkpoint::SignedCheckpoint;
use crate::note::NoteError;
use crate::proof::ProofError;
use crate::proof_file::ProofFile;

mod parse;

pub use parse::{MAX_LINES, MAX_POLICY, PolicyError, Problem};

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
    /// Where it is, if the policy says so.
    pub url: Option<String>,
}

/// A witness of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// What the policy calls it. Not a key's name.
    pub name: String,
    /// Its key.
    pub key: VerifierKey,
    /// Where it is, if the policy says so.
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

/// Why something is not what a policy asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The note has a false signature, or none by a key of the policy.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// No log of the policy has signed as this origin.
    #[error("the checkpoint of \"{0}\" is not signed by a log of the policy")]
    Log(String),
    /// Too few witnesses have cosigned.
    #[error("the checkpoint's cosignatures do not make the policy's quorum; counted: {}", names(.0))]
    Quorum(Vec<String>),
    /// The entry is not the one at the index.
    #[error("the entry is not proved to be in the log: {0}")]
    Inclusion(#[from] ProofError),
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A witness that has cosigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosigned {
    /// What the policy calls it.
    pub witness: String,
    /// Its key's name.
    pub key_name: String,
    /// When, in seconds since 1970, as it says; the latest, if it has signed more than once.
    pub time: Option<u64>,
}

/// A checkpoint that is what a policy asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The log's key that signed.
    pub log: VerifierKey,
    /// When, in seconds since 1970, as the log says, if its signature states a time.
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

    /// Whether a checkpoint is signed by a log of the policy, as whose origin it comes, and cosigned by a quorum. A false signature in the
    /// name of any key of the policy refuses it.
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

/// What a proof has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The log.
    pub origin: String,
    /// The entry's number in it, from 0.
    pub index: u64,
    /// The size of the tree that it was shown in.
    pub size: u64,
    /// Who signed.
    pub accepted: Accepted,
}

/// Verifies offline that `entry` is in a log as the policy asks for.
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
