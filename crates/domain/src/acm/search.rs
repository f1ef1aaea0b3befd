//! Lists and searches of certificates, in any order, a page at a time.

use std::collections::BTreeMap;

use super::AcmError;
use super::certificate::{self, Certificate, Record};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::limits;
use crate::work::Work;

/// A sort key: text, number, or none, which comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// There is no value.
    None,
    /// A number: a time, or 0 and 1 for no and yes.
    Number(i64),
    /// A text.
    Text(String),
}

impl From<Option<i64>> for SortKey {
    fn from(value: Option<i64>) -> Self {
        value.map_or(Self::None, Self::Number)
    }
}

impl From<Option<&str>> for SortKey {
    fn from(value: Option<&str>) -> Self {
        value.map_or(Self::None, |text| Self::Text(text.to_owned()))
    }
}

impl From<bool> for SortKey {
    fn from(value: bool) -> Self {
        Self::Number(i64::from(value))
    }
}

/// A search.
pub struct Search<'a> {
    /// Whether a certificate matches.
    pub matches: &'a dyn Fn(&Record) -> bool,
    /// Sort key of a match; those with equal keys are sorted by their id.
    pub key: &'a dyn Fn(&Record) -> SortKey,
    /// Whether to sort in descending order.
    pub descending: bool,
    /// Sort key and id of the last match on the previous page.
    pub after: Option<(SortKey, String)>,
    /// Most certificates on a page.
    pub limit: usize,
}

/// A page of results.
pub struct Found {
    /// The matches on this page.
    pub items: Vec<Certificate>,
    /// Where the next page begins, if there is one: a value for [`Search::after`].
    pub next: Option<(SortKey, String)>,
}

/// Searches the certificates of an account in a Region. Keeps no more than a page of matches in memory, however many
/// certificates there are.
pub fn search(
    work: &Work<'_>,
    scope: &Scope,
    search: &Search<'_>,
    permit: &Permit<impl action::ListsCertificates>,
) -> Result<Found, AcmError> {
    permit.opens(&scope.arn("acm", "certificate/*"))?;
    let prefix = certificate::prefix(scope);
    let mut best: BTreeMap<(SortKey, String), Record> = BTreeMap::new();
    let mut more = false;
    let mut from = String::new();
    loop {
        let step = work.scan::<Record>(&prefix, &from, limits::SEARCH_STEP)?;
        let Some((last, _)) = step.last() else { break };
        from.clone_from(last);
        let whole = step.len() == limits::SEARCH_STEP;
        for (_, record) in step {
            let key = ((search.key)(&record), record.id.clone());
            if !(search.matches)(&record) || !search.is_after(&key) {
                continue;
            }
            best.insert(key, record);
            if best.len() > search.limit {
                more = true;
                if search.descending {
                    best.pop_first()
                } else {
                    best.pop_last()
                };
            }
        }
        if !whole {
            break;
        }
    }
    let last = if search.descending { best.first_key_value() } else { best.last_key_value() };
    let next = last.map(|(key, _)| key.clone()).filter(|_| more);
    let mut items: Vec<_> =
        best.into_values().map(|record| Certificate { scope: scope.clone(), record }).collect();
    if search.descending {
        items.reverse();
    }
    Ok(Found { items, next })
}

impl Search<'_> {
    fn is_after(&self, key: &(SortKey, String)) -> bool {
        match &self.after {
            None => true,
            Some(last) if self.descending => key < last,
            Some(last) => key > last,
        }
    }
}
