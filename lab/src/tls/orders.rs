//! Orders for helper processes, and their answers.

use serde::{Deserialize, Serialize};

use crate::subject::SubjectNames;
use crate::trace::Trace;

/// An order for a process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Which of these subjects does the stack support?
    Ask { stack: String, subjects: Vec<SubjectNames> },
    /// Make rounds of handshakes.
    Rounds(Rounds),
    /// Run [`super::typical()`].
    Typical { stack: String, subject: SubjectNames, rounds: usize },
    /// Make a handshake for each line of input.
    Serve { stack: String, subject: SubjectNames },
    /// Make so many handshakes of each in turn, for profilers: silently, with a mark before each and at the end.
    Repeat { stack: String, subjects: Vec<SubjectNames>, count: u64, named: bool },
}

/// A line of a process's output.
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
    /// A handshake failed.
    Failed(String),
}

/// What a TLS implementation supports on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its version.
    pub version: String,
    /// Whether it supports each of the subjects.
    pub supported: Vec<bool>,
}

/// CPU time of one handshake in nanoseconds: the client's and the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times(pub u64, pub u64);

/// Costs that occur once per process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cold {
    /// CPU time of the first random bytes in nanoseconds: AWS-LC gathers jitter entropy.
    pub entropy_ns: u64,
    /// The first handshake of each subject.
    pub first: Vec<Times>,
}

/// Parameters of a process of [`super::rounds::measure`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rounds {
    pub(super) stack: String,
    pub(super) subjects: Vec<SubjectNames>,
    pub(super) rounds: usize,
    pub(super) seed: u64,
}
