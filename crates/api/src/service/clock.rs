//! Whether the clock can be trusted before anything is erased, rotated, renewed or forgotten because its time is
//! over.
//!
//! A clock that is days ahead would erase records that must be kept for days. So every reading is compared with
//! another clock: the clock of the database, which all its servers share; or, where the store belongs to this process
//! alone, the time of the last audit event at the start, and from then on a clock that nobody can set
//! ([`Reading::monotonic_ms`]). If they differ by more than [`limits::CLOCK_TOLERANCE_MS`], nothing is swept until
//! they agree again.
//!
//! Requests are still served: they refuse what has expired, and erase nothing because of the time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_domain::{Fault, limits};
use outlast_pki::time::{from_rfc3339, rfc3339};
use serde_json::Value;

use super::Service;

/// Readings of this machine's clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The time, in milliseconds since 1970 (UTC).
    pub wall_ms: i64,
    /// Milliseconds since a fixed moment, from a clock that nobody can set and that keeps running while the machine
    /// sleeps.
    pub monotonic_ms: i64,
}

/// The state of the comparison.
#[derive(Default)]
pub(super) struct State(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The last reading that agreed with the reference.
    agreed: Option<Reading>,
    /// The last reading that was compared with the reference.
    held: Option<Reading>,
    /// What is wrong with that reading, if anything.
    wrong: Option<String>,
    /// Time of the last log line about it, by the monotonic clock.
    logged_ms: Option<i64>,
    /// Time of the monotonic clock before which nothing is swept.
    sweeps_from_ms: i64,
    /// The operator says that the clock is right, even if the last audit event disagrees.
    trusted: bool,
}

impl Service {
    /// Trusts the clock at the start even if it is far from the last audit event: for an operator who has corrected a
    /// wrong clock. The database's clock is still compared.
    pub fn trust_clock(&self) {
        self.clock.known().trusted = true;
    }

    /// Compares a reading with the database's clock or, without one, with the last audit event and the monotonic clock.
    ///
    /// # Errors
    /// [`Fault::Clock`] if the clock is wrong: the fault is logged, and nothing is swept. [`Fault::Store`]
    /// if the reference could not be read.
    pub fn hold_clock(&self, reading: Reading) -> Result<(), Fault> {
        let outcome = match self.fresh.clock_ms() {
            Ok(Some(there_ms)) => Ok(compared("the database's", reading.wall_ms - there_ms)),
            Ok(None) => self.compare_with_events(reading),
            Err(error) => Err(error.into()),
        };
        let mut known = self.clock.known();
        match &outcome {
            Ok(None) => {
                if known.wrong.take().is_some() {
                    tracing::warn!("the clock is right again: housekeeping continues");
                }
                known.agreed = Some(reading);
            }
            Ok(Some(wrong)) => {
                let due = known.logged_ms.is_none_or(|logged_ms| {
                    reading.monotonic_ms - logged_ms >= limits::CLOCK_LOG_INTERVAL_MS
                });
                if known.wrong.is_none() || due {
                    known.logged_ms = Some(reading.monotonic_ms);
                    tracing::error!(
                        clock = rfc3339(reading.wall_ms.div_euclid(1000)),
                        reason = wrong,
                        "the clock is wrong: nothing is erased, rotated, renewed or forgotten until it is right; set \
                         it, or the clock that it is compared with"
                    );
                }
                known.wrong = Some(wrong.clone());
            }
            Err(_) => {}
        }
        known.held = Some(reading);
        drop(known);
        outcome?.map_or(Ok(()), |wrong| Err(Fault::Clock(wrong)))
    }

    /// What was wrong with the clock in the last comparison, if anything.
    pub fn clock_problem(&self) -> Option<String> {
        self.clock.known().wrong.clone()
    }

    /// Compares a reading with the reference, and then does what is due at that time: [`Service::run_housekeeping`].
    ///
    /// # Errors
    /// Those of [`Service::hold_clock`] and [`Service::run_housekeeping`].
    pub fn sweep(&self, reading: Reading) -> Result<(), Fault> {
        self.hold_clock(reading)?;
        self.run_housekeeping(reading.wall_ms)
    }

    /// Whether a sweep may run at this time; false after a reading failed the comparison, until one passes. Before
    /// the first reading the caller vouches for the time.
    ///
    /// # Errors
    /// [`Fault::Clock`] if the clock is wrong, or this is not the time that was compared with the reference.
    pub fn may_sweep(&self, now_ms: i64) -> Result<bool, Fault> {
        let known = self.clock.known();
        if let Some(wrong) = &known.wrong {
            return Err(Fault::Clock(wrong.clone()));
        }
        let Some(held) = known.held else { return Ok(true) };
        if (now_ms - held.wall_ms).abs() > limits::CLOCK_TOLERANCE_MS {
            return Err(Fault::Clock("it has just been set".to_owned()));
        }
        Ok(held.monotonic_ms >= known.sweeps_from_ms)
    }

    /// What is wrong with a reading, as far as this process can tell alone.
    fn compare_with_events(&self, reading: Reading) -> Result<Option<String>, Fault> {
        if let Some(agreed) = self.clock.known().agreed {
            let went_on = reading.monotonic_ms - agreed.monotonic_ms;
            let jumped = reading.wall_ms - agreed.wall_ms - went_on;
            return Ok(compared("the time that this server's monotonic clock gives", jumped));
        }
        let last = self.last_event_ms()?;
        let mut known = self.clock.known();
        let Some(last_ms) = last.filter(|_| !known.trusted) else { return Ok(None) };
        let since = reading.wall_ms - last_ms;
        if since < -limits::CLOCK_TOLERANCE_MS {
            return Ok(compared("the last audit event's", since));
        }
        if since > limits::CLOCK_TOLERANCE_MS {
            // Either nobody used the server for that long, or the clock is ahead. The process cannot tell, so it
            // gives the operator time to.
            let wait = (since / limits::CLOCK_WAIT_SHARE).min(limits::MAX_CLOCK_WAIT_MS);
            known.sweeps_from_ms = reading.monotonic_ms + wait;
            tracing::warn!(
                last_event = rfc3339(last_ms.div_euclid(1000)),
                clock = rfc3339(reading.wall_ms.div_euclid(1000)),
                wait = span(wait),
                "by this clock the last audit event is long ago; if the clock is wrong, set it and restart the server: \
                 nothing is erased before this wait is over"
            );
        }
        Ok(None)
    }

    /// Time of the last audit event, if there is one.
    fn last_event_ms(&self) -> Result<Option<i64>, Fault> {
        let last = self.fresh.last_event()?;
        let events = self.fresh.events(last.saturating_sub(1), 1)?;
        let time = events.first().and_then(|event| {
            let event = serde_json::from_slice::<Value>(&event.body).ok()?;
            from_rfc3339(event.get("eventTime")?.as_str()?)
        });
        Ok(time.map(|seconds| seconds * 1000))
    }
}

impl State {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change leaves the state consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong with a clock that is so many milliseconds ahead of the reference; nothing within the tolerance.
fn compared(reference: &str, ahead_ms: i64) -> Option<String> {
    let by = ahead_ms.saturating_abs();
    let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
    (by > limits::CLOCK_TOLERANCE_MS).then(|| format!("it is {} {side} {reference}", span(by)))
}

/// A duration in its two largest units.
fn span(ms: i64) -> String {
    let minutes = ms / 60_000;
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min"),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_with_their_side() {
        let minute = 60_000;
        assert_eq!(compared("x", limits::CLOCK_TOLERANCE_MS), None);
        assert_eq!(compared("x", -limits::CLOCK_TOLERANCE_MS), None);
        for (ahead_ms, expected) in [
            (limits::CLOCK_TOLERANCE_MS + minute, "it is 6 min ahead of x"),
            (-61 * minute, "it is 1 h 1 min behind x"),
            (8 * 1440 * minute + 59 * minute, "it is 8 d 0 h ahead of x"),
        ] {
            assert_eq!(compared("x", ahead_ms).as_deref(), Some(expected));
        }
        assert!(compared("x", i64::MIN).is_some());
    }
}
