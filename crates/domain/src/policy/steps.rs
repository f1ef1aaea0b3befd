//! Limits the work of evaluating policies: authors of policies and callers choose how much there is to compare.
//!
//! Steps are counted and not seconds, so that the same question has the same answer on every machine. An evaluation
//! that is stopped denies (see [`super::decide`]).

use std::cell::Cell;
use std::fmt;

use super::Question;
use crate::limits;

/// The steps that one decision may take.
#[derive(Debug)]
pub struct Steps {
    left: Cell<u64>,
    stopped: Cell<Option<Stopped>>,
}

/// Why a policy was not evaluated to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It needs more than [`limits::MAX_POLICY_STEPS`].
    Steps,
    /// It uses a condition key (its name in lower case) whose value is longer than [`limits::MAX_CONDITION_VALUES`]
    /// allows.
    LongValue(&'static str),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps => write!(
                f,
                "it takes more than {} steps with the values of this request",
                limits::MAX_POLICY_STEPS
            ),
            Self::LongValue(key) => {
                write!(f, "it asks for {key}, whose value is longer than {} bytes", longest(key).1)
            }
        }
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self { left: Cell::new(limits::MAX_POLICY_STEPS), stopped: Cell::new(None) }
    }
}

impl Steps {
    /// Steps for parsing a document, whose patterns are compared with a few short words.
    pub(super) fn of_reading() -> Self {
        Self { left: Cell::new(u64::MAX), ..Self::default() }
    }

    /// Takes so many steps; false if none are left.
    pub(super) fn take(&self, count: usize) -> bool {
        match self.left.get().checked_sub(count as u64) {
            Some(left) => self.left.set(left),
            None => self.stop(Stopped::Steps),
        }
        !self.are_spent()
    }

    /// Whether no steps are left.
    pub(super) fn are_spent(&self) -> bool {
        self.stopped.get().is_some()
    }

    /// What stopped the evaluation, if anything.
    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped.get()
    }

    /// Number of steps taken.
    pub fn taken(&self) -> u64 {
        limits::MAX_POLICY_STEPS.saturating_sub(self.left.get())
    }

    fn stop(&self, why: Stopped) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(why));
        }
    }
}

/// A question, with the remaining steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub question: &'a Question<'a>,
    pub steps: &'a Steps,
}

impl<'a> Asked<'a> {
    /// The values of a condition key, given in lower case; if one is too long, none, and no steps are left.
    pub fn values(self, key: &str) -> Vec<&'a str> {
        let values = self.question.values(key);
        self.steps.take(1 + values.len());
        let (name, most) = longest(key);
        if values.iter().all(|value| value.len() <= most) {
            return values;
        }
        self.steps.stop(Stopped::LongValue(name));
        Vec::new()
    }
}

fn longest(key: &str) -> (&'static str, usize) {
    let row = limits::MAX_CONDITION_VALUES.iter().find(|(name, _)| *name == key);
    row.copied().unwrap_or(("a condition key", limits::MAX_CONDITION_VALUE))
}
