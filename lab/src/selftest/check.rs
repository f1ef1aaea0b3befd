//! A check of a promise.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::LabError;
use crate::run::Settings;

/// Result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// What was measured, in words, with units.
    pub measured: String,
    /// The limit.
    pub limit: String,
    /// Whether it was met; `None` if it was only reported, so that it cannot fail.
    pub met: Option<bool>,
}

/// A check.
pub struct Check {
    /// The promise.
    pub name: &'static str,
    /// Its duration, in the short or the full form.
    pub estimate: fn(short: bool) -> Duration,
    /// Whether it measures times, so that other work on the machine may make it fail: then a second try is fair.
    pub timed: bool,
    /// Measures, in the short form if requested, until the flag is set. `Unavailable` is reported as not checked.
    pub run: fn(&Settings, short: bool, stop: &AtomicBool) -> Result<Vec<Checked>, LabError>,
}
