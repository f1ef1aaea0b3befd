//! The outbox: events that wait for their delivery, by target.
//!
//! A server takes a delivery on under a lease. If it dies, the lease ends and the delivery is made again: at least once, with the
//! same id. A failed delivery is repeated with growing intervals for [`limits::KEEP_EVENT_MS`]. Targets do not wait for each other:
//! each event has a record for each of its targets.

use serde::{Deserialize, Serialize};

use super::Event;
use crate::work::{Sweep, Work};
use crate::{Fault, ids, limits};

/// Prefix of the records, by target and id of the event. Ids begin with the time.
pub const PREFIX: &str = "events/outbox/";

/// An event that waits.
#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    event: Event,
    /// When to deliver it, milliseconds since 1970; while a server does, the end of its lease.
    due_ms: i64,
    /// Failed attempts.
    failures: u32,
    /// Id of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
}

impl Waiting {
    fn is_old(&self, now_ms: i64) -> bool {
        self.event.at_ms + limits::KEEP_EVENT_MS <= now_ms
    }
}

/// A delivery that this server makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// Failed attempts before this one.
    pub failures: u32,
    record_key: String,
    lease: String,
}

/// What a search for deliveries found.
#[derive(Debug, Default)]
pub struct Found {
    /// Record keys of those that are due, oldest first.
    pub due: Vec<String>,
    /// Record keys of those that cannot be read.
    pub damaged: Vec<String>,
    /// Where the next search for newer ones begins.
    pub last: Option<String>,
}

/// What was taken on.
#[derive(Debug, Default)]
pub struct Taken {
    /// Deliveries to make now.
    pub deliveries: Vec<Delivery>,
    /// Events that were given up, because they are too old.
    pub given_up: Vec<Event>,
}

/// Puts an event into the outbox of a target.
pub(super) fn put(work: &mut Work<'_>, target: &str, event: &Event) -> Result<(), Fault> {
    let waiting = Waiting { event: event.clone(), due_ms: work.now_ms(), failures: 0, lease: None };
    work.create(&format!("{}{}", prefix(target), event.id), &waiting)
}

/// Number of events that wait for a target.
pub fn count(work: &Work<'_>, target: &str) -> Result<u64, Fault> {
    Ok(work.store().count(&prefix(target))?)
}

/// Searches for up to `most` due deliveries to a target, after a record key.
pub fn due(work: &Work<'_>, target: &str, after: &str, most: usize) -> Result<Found, Fault> {
    let mut found = Found::default();
    let mut from = after.to_owned();
    while found.due.len() < most {
        let is_due = |waiting: &Waiting, now_ms: i64| waiting.due_ms <= now_ms;
        let page = work.due(&prefix(target), &from, limits::EVENTS_PAGE, is_due)?;
        found.due.extend(page.record_keys);
        found.damaged.extend(page.damaged);
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    found.due.truncate(most);
    found.last = found.due.last().cloned();
    Ok(found)
}

/// Takes deliveries on that are still due. `may_give_up` says whether the clock is trusted to tell which are too old.
pub fn claim(
    work: &mut Work<'_>,
    record_keys: &[String],
    lease_ms: i64,
    may_give_up: bool,
) -> Result<Taken, Fault> {
    let now_ms = work.now_ms();
    let mut taken = Taken::default();
    for record_key in record_keys {
        let Some(mut waiting) = work.get::<Waiting>(record_key)? else { continue };
        if waiting.due_ms > now_ms {
            continue;
        }
        if may_give_up && waiting.is_old(now_ms) {
            work.delete(record_key);
            taken.given_up.push(waiting.event);
            continue;
        }
        let lease = ids::uuid()?;
        waiting.lease = Some(lease.clone());
        waiting.due_ms = now_ms + lease_ms;
        work.put(record_key, &waiting)?;
        taken.deliveries.push(Delivery {
            event: waiting.event,
            failures: waiting.failures,
            record_key: record_key.clone(),
            lease,
        });
    }
    Ok(taken)
}

/// Records the outcome of a delivery, if its lease still holds.
pub fn complete(work: &mut Work<'_>, delivery: &Delivery, is_delivered: bool) -> Result<(), Fault> {
    let found = work.get::<Waiting>(&delivery.record_key)?;
    let held = found.filter(|waiting| waiting.lease.as_deref() == Some(&delivery.lease));
    let Some(mut waiting) = held else { return Ok(()) };
    if is_delivered {
        work.delete(&delivery.record_key);
        return Ok(());
    }
    waiting.due_ms = work.now_ms() + pause_ms(waiting.failures);
    waiting.failures = waiting.failures.saturating_add(1);
    waiting.lease = None;
    work.put(&delivery.record_key, &waiting)
}

/// Pause after an attempt that follows so many failed ones, in milliseconds.
fn pause_ms(failures: u32) -> i64 {
    limits::FIRST_RETRY_MS.saturating_mul(1 << failures.min(16)).min(limits::LAST_RETRY_MS)
}

/// Gives up the oldest events of a target whose outbox is too full, some in one step; returns how many.
pub fn trim(work: &mut Work<'_>, target: &str) -> Result<usize, Fault> {
    let now_ms = work.now_ms();
    let excess = count(work, target)?.saturating_sub(limits::MAX_WAITING_EVENTS);
    let step = usize::try_from(excess).unwrap_or(usize::MAX).min(limits::EVENTS_PAGE);
    if step == 0 {
        return Ok(0);
    }
    let oldest = work.store().scan(&prefix(target), "", step)?;
    let mut given_up = 0;
    for (record_key, _) in oldest {
        // Read as part of the work, so that no two servers count one event. One that is being delivered stays.
        let found = work.get::<Waiting>(&record_key)?;
        let is_held = |waiting: &Waiting| waiting.lease.is_some() && waiting.due_ms > now_ms;
        if found.is_some_and(|waiting| !is_held(&waiting)) {
            work.delete(&record_key);
            given_up += 1;
        }
    }
    Ok(given_up)
}

/// Forgets events for targets that no server delivers to any more. Those of other targets are given up before.
pub const FORGET: Sweep = Sweep {
    find: |work, after, limit| work.due(PREFIX, after, limit, is_abandoned),
    handle: |work, record_key, _| {
        let now_ms = work.now_ms();
        if work.get::<Waiting>(record_key)?.is_some_and(|waiting| is_abandoned(&waiting, now_ms)) {
            work.delete(record_key);
        }
        Ok(())
    },
};

fn is_abandoned(waiting: &Waiting, now_ms: i64) -> bool {
    waiting.event.at_ms + limits::KEEP_EVENT_MS + 4 * limits::LAST_RETRY_MS <= now_ms
}

fn prefix(target: &str) -> String {
    format!("{PREFIX}{target}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_quarter_of_an_hour() {
        let pauses: Vec<_> = [0, 1, 2, 9, 10, 99].into_iter().map(pause_ms).collect();
        assert_eq!(pauses, [1000, 2000, 4000, 512_000, 900_000, 900_000]);
    }
}
