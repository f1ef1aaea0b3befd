//! What evaluating policies may cost: who writes a policy and who calls choose how much there is to compare.
//!
//! Steps are counted and not seconds, so that the same question has the same answer on every machine. What is stopped
//! denies (see [`super::decide`]); nothing here knows what is compared.

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

/// Why a policy was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It takes more than [`limits::MAX_POLICY_STEPS`].
    Steps,
    /// It asks for a condition key (its name in lower case) whose value is longer than
    /// [`limits::MAX_CONDITION_VALUES`] allows.
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
    /// For reading a document, whose patterns are held against a few short words.
    pub(super) fn of_reading() -> Self {
        Self { left: Cell::new(u64::MAX), ..Self::default() }
    }

    /// Takes so many steps; false once there are none left.
    pub(super) fn take(&self, count: usize) -> bool {
        match self.left.get().checked_sub(count as u64) {
            Some(left) => self.left.set(left),
            None => self.stop(Stopped::Steps),
        }
        !self.are_spent()
    }

    /// Whether nothing may be compared any more.
    pub(super) fn are_spent(&self) -> bool {
        self.stopped.get().is_some()
    }

    /// What stopped the evaluation, if something did.
    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped.get()
    }

    /// How many were taken.
    pub fn taken(&self) -> u64 {
        limits::MAX_POLICY_STEPS.saturating_sub(self.left.get())
    }

    fn stop(&self, why: Stopped) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(why));
        }
    }
}

/// A question, with the steps that are left to answer it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub question: &'a Question<'a>,
    pub steps: &'a Steps,
}

impl<'a> Asked<'a> {
    /// The values of a condition key, whose name is in lower case; none, and no more steps, if one is too long.
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
