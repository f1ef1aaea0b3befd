//! The changes of registered records in an audit event.

use outlast_store::{Event, Store};
use serde_json::{Value, json};

use crate::Fault;
use crate::records;
use crate::seal::Stamps;

/// The member of an audit event with the changes of its transaction.
pub const MEMBER: &str = "outlastRecords";

/// Whether changes of the record with this key are registered: if it decides who may do what. Other records are
/// authenticated, and an older one gives nobody a permission: sessions never change and end by themselves, and sweeps
/// repeat what is due.
pub(crate) fn is_registered(record_key: &str) -> bool {
    records::kind(record_key).is_some_and(|kind| kind.is_registered)
}

/// A change of a record: its stamps before and after, if it existed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub record_key: String,
    pub was: Option<u64>,
    pub is: Option<u64>,
}

/// Notes changes in the first event of a transaction, or in a new one.
pub(crate) fn note(events: &mut Vec<Vec<u8>>, changes: &[Change], now_ms: i64) {
    if changes.is_empty() {
        return;
    }
    let list: Vec<_> =
        changes.iter().map(|change| json!([change.record_key, change.was, change.is])).collect();
    if !events.first().is_some_and(|event| event.starts_with(b"{")) {
        let event = json!({
            "eventVersion": "1.11",
            "userIdentity": { "invokedBy": "outlast" },
            "eventTime": outlast_pki::time::rfc3339(now_ms.div_euclid(1000)),
            "eventSource": "outlast",
            "eventName": "RecordsChanged",
            "eventType": "AwsServiceEvent",
        });
        events.insert(0, event.to_string().into_bytes());
    }
    if let Some(event) = events.first_mut() {
        // It comes first, so that the first bytes of an event tell whether it has any.
        let rest = event.strip_prefix(b"{").unwrap_or_default();
        let comma = if rest.starts_with(b"}") { "" } else { "," };
        let mut noted = format!("{BEGIN}{}{comma}", Value::Array(list)).into_bytes();
        noted.extend_from_slice(rest);
        *event = noted;
    }
}

/// First bytes of an event with changes.
const BEGIN: &str = "{\"outlastRecords\":";

/// The changes in an event.
pub(crate) fn changes(body: &[u8]) -> Vec<Change> {
    if !body.starts_with(BEGIN.as_bytes()) {
        return Vec::new();
    }
    let Ok(event) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    let list = event.get(MEMBER).and_then(Value::as_array);
    let change = |change: &Value| {
        Some(Change {
            record_key: change.get(0)?.as_str()?.to_owned(),
            was: change.get(1)?.as_u64(),
            is: change.get(2)?.as_u64(),
        })
    };
    list.into_iter().flatten().filter_map(change).collect()
}

/// Events that one read returns.
pub(super) const PAGE: usize = 1000;

/// The changes in an event whose records are registered now.
pub(super) fn registered(body: &[u8]) -> impl Iterator<Item = Change> {
    changes(body).into_iter().filter(|change| is_registered(&change.record_key))
}

/// Passes on all events after `after`, up to `last`.
pub(super) fn each_event(
    store: &dyn Store,
    after: u64,
    last: u64,
    mut each: impl FnMut(&Event),
) -> Result<(), Fault> {
    let mut reached = after;
    while reached < last {
        let page = store.events(reached, PAGE)?;
        for event in page.iter().take_while(|event| event.sequence <= last) {
            if event.sequence != reached + 1 {
                break;
            }
            each(event);
            reached = event.sequence;
        }
        if page.first().is_none_or(|first| first.sequence > reached) {
            return Err(Fault::Damaged(format!("event/{}", reached + 1)));
        }
    }
    Ok(())
}

/// In a process that has seen all registered records: reads the events since, to find out where a record comes from.
pub(crate) fn catch_up(store: &dyn Store, stamps: &Stamps) -> Result<(), Fault> {
    let last = store.last_event()?;
    each_event(store, stamps.followed(0), last, |event| tell(stamps, event))?;
    stamps.followed(last);
    Ok(())
}

fn tell(stamps: &Stamps, event: &Event) {
    for change in registered(&event.body) {
        stamps.told(&change.record_key, change.was, change.is);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(record_key: &str, was: Option<u64>, is: Option<u64>) -> Change {
        Change { record_key: record_key.into(), was, is }
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let noted = [change("iam/user/1/\"a", None, Some(7)), change("kms/key/b", Some(1), None)];
        for mut events in [vec![br#"{"eventName":"CreateUser"}"#.to_vec()], Vec::new()] {
            note(&mut events, &noted, 0);
            assert_eq!(events.len(), 1);
            assert_eq!(changes(&events[0]), noted);
            let event: Value = serde_json::from_slice(&events[0]).unwrap();
            assert!(event["eventName"].is_string());
        }
        let mut events = vec![b"{\"a\":1}".to_vec()];
        note(&mut events, &[], 0);
        assert_eq!(events, [b"{\"a\":1}"]);
        for odd in
            [r#"{"outlastRecords":1}"#, r#"{"outlastRecords":[1,[],["x"]]}"#, "outlastRecords"]
        {
            assert_eq!(changes(odd.as_bytes()), []);
        }
    }
}
