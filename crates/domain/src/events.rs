//! Events for programs outside, in EventBridge's sense: a certificate is about to end, a key was erased, a rotation failed.
//!
//! An event enters the outbox in the transaction of its cause, once for each target that wants it ([`tell`]); the server delivers it
//! from there ([`outbox`]). Without targets nothing is kept. An event consists of facts; `api` writes AWS's JSON. The audit
//! log's events are something else: they record every call, and stay.

mod note;
pub mod outbox;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::arn::Scope;
use crate::work::Work;
use crate::{Fault, ids, limits};

pub(crate) use note::is_news;
pub use note::{FORGET, PREFIX as NOTES};
pub use table::*;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// `id`, a UUID that begins with the time. It is the same in all deliveries.
    pub id: String,
    /// Its kind.
    pub kind: &'static Kind,
    /// When its cause was committed, milliseconds since 1970.
    pub at_ms: i64,
    /// The account.
    pub account: String,
    /// The Region.
    pub region: String,
    /// ARNs, or for a report its id.
    pub resources: Vec<String>,
    /// What it says.
    pub facts: BTreeMap<Fact, Told>,
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(i64),
    /// A text of [`limits::MAX_EVENT_TEXT`] characters at most.
    Text(String),
    /// A time, milliseconds since 1970.
    Time(i64),
    /// A file of a bucket.
    Object {
        /// Name of the bucket.
        bucket: String,
        /// Path in it.
        key: String,
    },
}

impl From<bool> for Told {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<i64> for Told {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Told {
    fn from(value: &str) -> Self {
        Self::Text(value.chars().take(limits::MAX_EVENT_TEXT).collect())
    }
}

impl From<String> for Told {
    fn from(value: String) -> Self {
        value.as_str().into()
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for &'static Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Kind::by_name(&name).ok_or_else(|| de::Error::custom("an unknown kind of event"))
    }
}

impl Event {
    /// An event at this time. Facts that its kind does not have are left out.
    pub fn new(
        at_ms: i64,
        kind: &'static Kind,
        scope: &Scope,
        resources: Vec<String>,
        facts: impl IntoIterator<Item = (Fact, Told)>,
    ) -> Result<Self, Fault> {
        let has = |fact: Fact| match kind.detail {
            Detail::Facts(members) => members.iter().any(|(_, member)| *member == fact),
            Detail::Trail(_) => matches!(fact, Fact::Secret | Fact::Error),
        };
        Ok(Self {
            id: ids::event_id(at_ms)?,
            kind,
            at_ms,
            account: scope.account.clone(),
            region: scope.region.clone(),
            resources,
            facts: facts.into_iter().filter(|(fact, _)| has(*fact)).collect(),
        })
    }
}

/// Whether any target wants one of these kinds: if not, their causes need not be searched for.
pub(crate) fn is_wanted(work: &Work<'_>, kinds: &[&Kind]) -> bool {
    let settings = work.settings();
    let mut targets = settings.events.targets.iter();
    targets.any(|target| kinds.iter().any(|kind| target.wants(kind.source, kind.detail_type)))
}

/// Puts an event of Transfer Family's files into the outbox, for each target that wants it. Its cause is in the same transaction.
///
/// # Errors
/// There are no random numbers for its id.
pub fn tell_of_files(
    work: &mut Work<'_>,
    kind: &'static Kind,
    scope: &Scope,
    server_arn: &str,
    facts: impl IntoIterator<Item = (Fact, Told)>,
) -> Result<(), Fault> {
    tell(work, kind, scope, vec![server_arn.to_owned()], facts)
}

/// Puts an event into the outbox, for each target that wants it.
pub(crate) fn tell(
    work: &mut Work<'_>,
    kind: &'static Kind,
    scope: &Scope,
    resources: Vec<String>,
    facts: impl IntoIterator<Item = (Fact, Told)>,
) -> Result<(), Fault> {
    if !is_wanted(work, &[kind]) {
        return Ok(());
    }
    let event = Event::new(work.now_ms(), kind, scope, resources, facts)?;
    let settings = work.settings();
    let targets = settings.events.targets.iter();
    for target in targets.filter(|target| target.wants(kind.source, kind.detail_type)) {
        outbox::put(work, &target.name, &event)?;
    }
    Ok(())
}

/// The day of a time, by which daily events are told once: days since 1970 in UTC.
pub(crate) fn day(now_ms: i64) -> i64 {
    now_ms.div_euclid(DAY_MS)
}

/// Days from now to an end, both in milliseconds since 1970, rounded down.
pub(crate) fn days_left(now_ms: i64, end_ms: i64) -> i64 {
    (end_ms - now_ms).div_euclid(DAY_MS)
}

/// Whether an end is at most so many days ahead.
pub(crate) fn is_near(now_ms: i64, end_ms: i64, days: i64) -> bool {
    end_ms - now_ms <= days.saturating_mul(DAY_MS)
}

/// Whether an end has passed, and not so long ago that nobody needs to be told any more.
pub(crate) fn has_just_ended(now_ms: i64, end_ms: i64) -> bool {
    end_ms < now_ms && is_recent(now_ms, end_ms)
}

/// Whether an end is ahead, or at most [`limits::ENDED_EVENT_MS`] ago.
pub(crate) fn is_recent(now_ms: i64, end_ms: i64) -> bool {
    now_ms - end_ms <= limits::ENDED_EVENT_MS
}
