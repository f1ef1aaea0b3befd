//! The differences between two policies, list by list, and the clients that they affect.

use serde::Serialize;

use crate::crowd::CROWD;
use crate::decide::Decision;
use crate::explain::verdict;
pub use crate::fare::Change;
use crate::policy::{Rules, SecurityPolicy};
use crate::ssh;

/// The difference of one list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListDiff {
    /// Name of the list, such as `groups`.
    pub list: &'static str,
    /// What only the first policy has, in its order.
    pub removed: Vec<&'static str>,
    /// What only the second has, in its order.
    pub added: Vec<&'static str>,
    /// What both have, in the second one's order, if the order differs.
    pub reordered: Option<Vec<&'static str>>,
}

/// All differences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Name of the first policy.
    pub from: &'static str,
    /// Name of the second.
    pub to: &'static str,
    /// Lists that are not the same.
    pub lists: Vec<ListDiff>,
    /// Both modes, if they are not the same.
    pub mode: Option<(&'static str, &'static str)>,
    /// Common clients that are affected.
    pub clients: Vec<Change>,
}

/// Compares two policies, each in its own mode.
pub fn diff(from: &'static SecurityPolicy, to: &'static SecurityPolicy) -> Diff {
    let lists = from.lists().into_iter().zip(to.lists()).filter_map(|(before, after)| {
        let without = |list: &[&'static str], other: &[&'static str]| -> Vec<_> {
            list.iter().filter(|name| !other.contains(name)).copied().collect()
        };
        let removed = without(&before.values, &after.values);
        let added = without(&after.values, &before.values);
        let kept_before = without(&before.values, &removed);
        let kept_after = without(&after.values, &added);
        let reordered = (kept_before != kept_after).then_some(kept_after);
        let differs = !removed.is_empty() || !added.is_empty() || reordered.is_some();
        differs.then_some(ListDiff { list: before.name, removed, added, reordered })
    });
    let of = |policy: &'static SecurityPolicy| Rules { policy, mode: policy.mode };
    let clients = CROWD.iter().filter(|_| from.has_tls() && to.has_tls()).filter_map(|client| {
        let (before, after) = (verdict(&of(from), client), verdict(&of(to), client));
        let lost = matches!(before.decision, Decision::Serve(_))
            && matches!(after.decision, Decision::Refuse(_));
        (before.text != after.text).then_some(Change {
            client: client.name,
            before: before.text,
            after: after.text,
            lost,
        })
    });
    Diff {
        from: from.name,
        to: to.name,
        lists: lists.collect(),
        mode: (from.mode != to.mode).then_some((from.mode.name(), to.mode.name())),
        clients: clients.chain(ssh::changes(from, to)).collect(),
    }
}

impl Diff {
    /// Whether there are no differences.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.mode.is_none()
    }
}
