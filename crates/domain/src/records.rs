//! The kinds of records: the form of their keys, their protection, their owner, and their name for operators.
//!
//! A kind is one row ([`RecordKind`]). The seal ([`crate::seal`]), the rotation of root keys, the register
//! ([`crate::register`]) and the check of the store ([`crate::check`]) work by the row. This module reads records
//! only for the names that titles need.

mod table;

use outlast_store::Store;
use serde_json::Value;

use crate::partition::Partition;
use crate::seal::layout;

pub use table::KINDS;

/// How the records of a kind are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Secrets, sealed for their record key under the root key.
    Sealed,
    /// By a tag, and a stamp that is greater than the one before.
    Ordered,
    /// By a tag. The stamp is the time: writers do not read the record, so that they do not conflict.
    Unordered,
    /// Not at all in this crate.
    Plain,
}

/// The owner of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Key of the owner's record; names of [`RecordKind::below`] stand in braces.
    pub key: &'static str,
    /// The problem of a record without its owner.
    pub missing: &'static str,
}

/// The source of the record of this kind in the test of all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// Using the service creates one. The test fails if none exists.
    Made,
    /// This record, which belongs to a moment that a test cannot wait for, or to an earlier version: its key, and its
    /// JSON or, if the kind is sealed, its secret.
    Is(&'static str, &'static str),
}

/// A kind of record.
#[derive(Debug, Clone, Copy)]
pub struct RecordKind {
    /// Prefix of the keys, if it ends with a slash; otherwise the key of the only record.
    pub key: &'static str,
    /// Names of the parts that follow, separated by slashes. The last one takes the rest.
    pub below: &'static str,
    /// Protection of the records.
    pub protection: Protection,
    /// Why that is enough, unless they are sealed or ordered.
    pub why: &'static str,
    /// Whether audit events record every change ([`crate::register`]): true for records that decide who may do what.
    pub is_registered: bool,
    /// Whether most records of which requests ask are absent, and only a record that exists leads there.
    pub is_often_absent: bool,
    /// Name for operators. Names of [`RecordKind::below`] stand in braces, and `{partition}`.
    pub title: &'static str,
    /// Key of a record whose JSON has names that the title needs and the key lacks; empty if there is none.
    pub named_by: &'static str,
    /// The owner, if a record must have one.
    pub owner: Option<Owner>,
    /// By how many parts of [`RecordKind::below`] the store counts the records ([`crate::quotas`]); 0 if it does not.
    pub counted: usize,
    /// The record for the test of all kinds.
    pub sample: Sample,
}

/// The kind of the record with this key.
pub fn kind(record_key: &str) -> Option<&'static RecordKind> {
    // The table is sorted, and no key is a prefix of another, so only the last row before it can match.
    let after = KINDS.partition_point(|row| row.key <= record_key);
    KINDS.get(after.checked_sub(1)?).filter(|row| row.has(record_key))
}

/// Whether a cache may remember that there is no record with this key.
pub fn is_often_absent(record_key: &str) -> bool {
    kind(record_key).is_some_and(|kind| kind.is_often_absent)
}

/// The protection of the record with this key, unless it is sealed. A record of an unknown kind is authenticated.
pub(crate) fn protection(record_key: &str) -> Protection {
    match kind(record_key).map(|kind| kind.protection) {
        None | Some(Protection::Sealed) => Protection::Ordered,
        Some(protection) => protection,
    }
}

/// The name for operators of the record with this key: with the ARN of its resource, if it has one. `store` has the
/// names that the key lacks.
pub fn title(store: &dyn Store, record_key: &str) -> String {
    let Some(kind) = kind(record_key) else {
        return format!("the record {record_key}, whose kind is unknown");
    };
    let mut named = kind.names(record_key);
    if !kind.named_by.is_empty()
        && let Ok(Some(record)) = store.read(&fill(kind.named_by, &named))
        && let Ok(Value::Object(said)) = serde_json::from_slice(layout::json(&record.value))
    {
        let texts = said.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
        named.extend(texts.map(|(name, value)| (name.clone(), value.to_owned())));
    }
    let region = named.iter().find(|(name, _)| name == "region").map(|(_, region)| region.as_str());
    let partition = Partition::of(region.unwrap_or_default()).id;
    named.push(("partition".to_owned(), partition.to_owned()));
    let title = fill(kind.title, &named);
    // If the record with the name is damaged, too, the key gives what it can.
    if title.contains('{') { format!("{} ({record_key})", unfilled(kind.title)) } else { title }
}

impl RecordKind {
    /// Whether the record with this key is of this kind.
    pub fn has(&self, record_key: &str) -> bool {
        if self.is_single() { record_key == self.key } else { record_key.starts_with(self.key) }
    }

    /// Whether there is at most one record of this kind.
    pub fn is_single(&self) -> bool {
        !self.key.ends_with('/')
    }

    /// The key of the owner of the record with this key.
    pub fn owner_of(&self, record_key: &str) -> Option<String> {
        Some(fill(self.owner?.key, &self.names(record_key)))
    }

    /// Prefix of the records that are counted together with the one with this key, if it is counted.
    pub fn tally_of(&self, record_key: &str) -> Option<String> {
        let parts: Vec<_> =
            record_key.strip_prefix(self.key)?.splitn(self.counted + 1, '/').collect();
        let (_, counted) = parts.split_last().filter(|_| parts.len() > self.counted)?;
        (self.counted > 0).then(|| format!("{}{}/", self.key, counted.join("/")))
    }

    /// The parts of a key, by name.
    fn names(&self, record_key: &str) -> Vec<(String, String)> {
        let rest = record_key.strip_prefix(self.key).unwrap_or_default();
        let count = self.below.split('/').count();
        let parts = rest.splitn(count, '/').map(str::to_owned);
        self.below.split('/').map(str::to_owned).zip(parts).collect()
    }
}

/// Replaces the names in braces; unknown ones stay.
fn fill(text: &str, named: &[(String, String)]) -> String {
    let mut filled = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some((before, name, after)) = brace(rest) {
        filled.push_str(before);
        match named.iter().find(|(known, _)| known == name) {
            Some((_, value)) => filled.push_str(value),
            None => filled.extend(["{", name, "}"]),
        }
        rest = after;
    }
    filled + rest
}

/// The text before the first name in braces, the name, and the rest.
fn brace(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// A title up to its last word before a name.
fn unfilled(title: &str) -> &str {
    let end = title.find('{').unwrap_or(title.len());
    let before = title.get(..end).unwrap_or_default();
    // Text that is joined to a name, as in an ARN, belongs to it.
    before.rfind(' ').and_then(|at| before.get(..at)).unwrap_or(before).trim_end_matches(" of")
}

#[cfg(test)]
mod tests {
    use outlast_store::memory::MemoryStore;
    use outlast_store::{Store, Transaction};

    use super::*;

    #[test]
    fn rows_are_in_order_and_none_hides_another() {
        for pair in KINDS.windows(2) {
            let [first, second] = pair else { panic!("two") };
            assert!(first.key < second.key, "{} comes after {}", first.key, second.key);
            assert!(first.is_single() || !second.key.starts_with(first.key), "{}", second.key);
        }
        for row in KINDS {
            assert_eq!(row.is_single(), row.below.is_empty(), "{}", row.key);
            let record_key = format!("{}{}", row.key, row.below);
            assert_eq!(kind(&record_key).map(|found| found.key), Some(row.key));
            let needs_reason = matches!(row.protection, Protection::Plain | Protection::Unordered);
            assert_eq!(needs_reason, !row.why.is_empty(), "{}", row.key);
            assert!(!row.is_registered || row.protection == Protection::Ordered, "{}", row.key);
        }
        for record_key in ["", "x", "meta/", "meta/rooty", "meta/root/x", "zzz/", "kms/keys/1"] {
            assert!(kind(record_key).is_none(), "{record_key}");
        }
    }

    #[test]
    fn every_title_and_owner_is_filled() {
        let store = MemoryStore::new();
        for row in KINDS {
            let record_key = format!("{}{}", row.key, row.below);
            if !row.named_by.is_empty() {
                let json = r#"{"account":"1","region":"cn-x-1","authority":"x","user":"u"}"#;
                let key = fill(row.named_by, &row.names(&record_key));
                assert!(kind(&key).is_some(), "{}: {key}", row.key);
                let writes = vec![(key, Some(json.as_bytes().to_vec()))];
                store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
            }
            let title = title(&store, &record_key);
            assert!(!title.contains(['{', '(']), "{title}");
            if let Some(owner) = row.owner_of(&record_key) {
                assert!(kind(&owner).is_some() && !owner.contains('{'), "{}: {owner}", row.key);
            }
            if let Sample::Is(key, _) = row.sample {
                assert!(row.has(key), "{key}");
                assert_eq!(row.names(key).len(), row.below.split('/').count(), "{key}");
            }
        }
    }

    #[test]
    fn an_operator_reads_arns() {
        let store = MemoryStore::new();
        let der = "ca/crl-der/5d0c";
        assert_eq!(title(&store, der), "the CRL of CA (ca/crl-der/5d0c)");
        let made = br#"{"account":"123456789012","region":"cn-north-1","authority":"aa"}"#;
        let writes = vec![("ca/crl/5d0c".to_owned(), Some(made.to_vec()))];
        store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
        let arn = "arn:aws-cn:acm-pca:cn-north-1:123456789012:certificate-authority/aa";
        assert_eq!(title(&store, der), format!("the CRL of CA {arn}"));
        assert_eq!(
            title(&store, "kms/alias/1/us-east-1/alias/a/b"),
            "the alias arn:aws:kms:us-east-1:1:alias/a/b"
        );
        assert!(title(&store, "x/y").contains("kind is unknown"));
    }
}
