//! What helper processes are asked for, and what they answer.

use serde::{Deserialize, Serialize};

use crate::subject::SubjectNames;
use crate::trace::Trace;

/// What a process is asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Which of these it can do.
    Ask { stack: String, subjects: Vec<SubjectNames> },
    /// Rounds of handshakes.
    Rounds(Rounds),
    /// What [`super::typical()`] says.
    Typical { stack: String, subject: SubjectNames, rounds: usize },
    /// A handshake for each line that comes in.
    Serve { stack: String, subject: SubjectNames },
    /// So many handshakes of each in turn, for others to look at: without a word, with a mark before each and at the end.
    Repeat { stack: String, subjects: Vec<SubjectNames>, count: u64, named: bool },
}

/// A line of what a process answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Unavailable {
        what: String,
        needs: String,
    },
    Offer(Offer),
    Cold(Cold),
    Round(Vec<Times>),
    Trace(Trace),
    /// A handshake that did not succeed.
    Failed(String),
}

/// What a TLS implementation can do on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its version.
    pub version: String,
    /// Whether it supports each of what was asked for.
    pub supported: Vec<bool>,
}

/// CPU time in nanoseconds of one handshake: the client's and the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times(pub u64, pub u64);

/// What a process does once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cold {
    /// CPU time in nanoseconds of the first random bytes: AWS-LC gathers jitter entropy.
    pub entropy_ns: u64,
    /// The first handshake of each subject.
    pub first: Vec<Times>,
}

/// What a process of [`super::rounds::measure`] does.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rounds {
    pub(super) stack: String,
    pub(super) subjects: Vec<SubjectNames>,
    pub(super) rounds: usize,
    pub(super) seed: u64,
}
