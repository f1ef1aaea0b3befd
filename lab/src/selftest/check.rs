//! A promise that can be checked.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::LabError;
use crate::run::Settings;

/// What came of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// What was measured, in words, with units.
    pub measured: String,
    /// The limit.
    pub limit: String,
    /// Whether it was met.
    pub met: bool,
}

/// A promise.
pub struct Check {
    /// What is promised.
    pub name: &'static str,
    /// How long it takes; the short form takes less.
    pub estimate: fn(short: bool) -> Duration,
    /// Whether it measures times, so that other work on the machine may make it miss: then a second try is fair.
    pub timed: bool,
    /// Measures, in a short form if asked, until the flag is raised. `Unavailable` is reported as not checked.
    pub run: fn(&Settings, short: bool, stop: &AtomicBool) -> Result<Vec<Checked>, LabError>,
}
