//! Lists of secrets, filtered and sorted, and of a secret's versions.
//!
//! Source: "Filters" and "Search" of ListSecrets in the API reference. Lists by date of creation, the default, and by
//! name follow an index; other orders read all secrets of the account in the Region.

use serde::{Deserialize, Serialize};

use super::secret::{Record, Secret, Version, prefix, record_key};
use super::{CURRENT, PENDING, PREVIOUS, SecretError};
use crate::Fault;
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::{Page, Work};

/// What a filter compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterKey {
    /// The beginning of words of the description.
    Description,
    /// The beginning of the name.
    Name,
    /// The beginning of a tag's key.
    TagKey,
    /// The beginning of a tag's value.
    TagValue,
    /// The beginning of the primary Region.
    PrimaryRegion,
    /// The service that manages the secret; none does here.
    OwningService,
    /// All of them.
    All,
}

impl FilterKey {
    /// Keys by AWS's names.
    pub const ROWS: &[(&str, Self)] = &[
        ("description", Self::Description),
        ("name", Self::Name),
        ("tag-key", Self::TagKey),
        ("tag-value", Self::TagValue),
        ("primary-region", Self::PrimaryRegion),
        ("owning-service", Self::OwningService),
        ("all", Self::All),
    ];

    /// The key with AWS's name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ROWS.iter().find(|row| row.0 == name).map(|row| row.1)
    }
}

/// A filter: a secret passes if one of the values matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// What it compares.
    pub key: FilterKey,
    /// Values; a `!` in front negates one.
    pub values: Vec<String>,
}

/// Key of the order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortBy {
    /// `created-date`
    #[default]
    Created,
    /// `last-accessed-date`
    Accessed,
    /// `last-changed-date`
    Changed,
    /// `name`
    Name,
}

impl SortBy {
    /// Orders by AWS's names.
    pub const ROWS: &[(&str, Self)] = &[
        ("created-date", Self::Created),
        ("last-accessed-date", Self::Accessed),
        ("last-changed-date", Self::Changed),
        ("name", Self::Name),
    ];

    /// The order with AWS's name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ROWS.iter().find(|row| row.0 == name).map(|row| row.1)
    }
}

/// Order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    /// Key.
    pub by: SortBy,
    /// Whether the greatest comes first.
    pub descending: bool,
}

/// Secrets that are read for one page of an order with an index, at most: with a filter that few secrets pass, a page
/// has fewer items than asked for.
const MAX_READ: usize = 2000;

/// A page of the secrets of an account in a Region. The marker is what an earlier page returned as `next`.
pub fn secrets(
    work: &Work<'_>,
    scope: &Scope,
    filters: &[Filter],
    order: Order,
    (marker, limit): (Option<&str>, usize),
    with_deleted: bool,
    permit: &Permit<impl action::ListsSecrets>,
) -> Result<Page<Secret>, SecretError> {
    permit.opens(&scope.arn("secretsmanager", "secret:*"))?;
    let passes = |secret: &Secret| {
        let erase_ms = secret.record.erase_ms;
        let is_shown = erase_ms.is_none_or(|erase_ms| with_deleted && erase_ms > work.now_ms());
        is_shown && filters.iter().all(|filter| filter.passes(secret))
    };
    match order {
        Order { by: SortBy::Created, descending: false } => {
            let index = created_prefix(scope);
            walk(work, &index, marker, limit, |work, (_, name): (String, String)| {
                let found = work.scan::<Record>(&record_key(scope, &name), "", 1)?;
                let found = found.into_iter().find(|(key, _)| *key == record_key(scope, &name));
                Ok(found.map(|(_, record)| Secret::new(scope.clone(), record)).filter(passes))
            })
        }
        Order { by: SortBy::Name, descending: false } => {
            walk(work, &prefix(scope), marker, limit, |_, (_, record): (String, Record)| {
                Ok(Some(Secret::new(scope.clone(), record)).filter(passes))
            })
        }
        order => sorted(work, scope, order, (marker, limit), passes),
    }
}

/// A page in the order of the records below `prefix`.
fn walk<T: serde::de::DeserializeOwned>(
    work: &Work<'_>,
    prefix: &str,
    marker: Option<&str>,
    limit: usize,
    read: impl Fn(&Work<'_>, (String, T)) -> Result<Option<Secret>, Fault>,
) -> Result<Page<Secret>, SecretError> {
    let mut items = Vec::new();
    let mut after = marker.map(|marker| format!("{prefix}{marker}")).unwrap_or_default();
    // Without a filter the first step suffices, and reads no more than the page needs.
    let (mut step, mut left) = (limit.saturating_add(1).min(STEP), MAX_READ);
    while left > 0 {
        let found = work.scan::<T>(prefix, &after, step)?;
        let is_last = found.len() < step;
        left = left.saturating_sub(step);
        step = STEP;
        for (key, value) in found {
            key.clone_into(&mut after);
            items.extend(read(work, (key, value))?);
            if items.len() == limit {
                let more = !work.scan::<T>(prefix, &after, 1)?.is_empty();
                return Ok(Page { items, next: rest(prefix, &after).filter(|_| more) });
            }
        }
        if is_last {
            return Ok(Page { items, next: None });
        }
    }
    Ok(Page { items, next: rest(prefix, &after) })
}

const STEP: usize = 100;

fn rest(prefix: &str, key: &str) -> Option<String> {
    key.strip_prefix(prefix).map(str::to_owned)
}

/// A page of an order without an index. The marker is the place in the order of the last item: it holds if secrets come
/// and go meanwhile.
fn sorted(
    work: &Work<'_>,
    scope: &Scope,
    order: Order,
    (marker, limit): (Option<&str>, usize),
    passes: impl Fn(&Secret) -> bool,
) -> Result<Page<Secret>, SecretError> {
    let found = work.scan::<Record>(&prefix(scope), "", usize::MAX)?;
    let place = |secret: &Secret| {
        let record = &secret.record;
        match order.by {
            SortBy::Created => format!("{:020}/{}", record.created_ms, record.name),
            SortBy::Accessed => format!("{:020}/{}", record.accessed_ms.unwrap_or(0), record.name),
            SortBy::Changed => format!("{:020}/{}", record.changed_ms, record.name),
            SortBy::Name => record.name.clone(),
        }
    };
    let mut all: Vec<_> = found
        .into_iter()
        .map(|(_, record)| Secret::new(scope.clone(), record))
        .filter(passes)
        .map(|secret| (place(&secret), secret))
        .collect();
    all.sort_by(
        |(one, _), (other, _)| if order.descending { other.cmp(one) } else { one.cmp(other) },
    );
    let is_after = |place: &str| {
        marker.is_none_or(|marker| if order.descending { place < marker } else { place > marker })
    };
    let mut left = all.into_iter().filter(|(place, _)| is_after(place));
    let page: Vec<_> = left.by_ref().take(limit).collect();
    let next = page.last().map(|(place, _)| place.clone()).filter(|_| left.next().is_some());
    Ok(Page { items: page.into_iter().map(|(_, secret)| secret).collect(), next })
}

impl Filter {
    fn passes(&self, secret: &Secret) -> bool {
        // Negated values exclude what they match; if there are others, one of them must match.
        let (negated, plain): (Vec<_>, Vec<_>) =
            self.values.iter().map(String::as_str).partition(|value| value.starts_with('!'));
        !negated.iter().any(|value| self.matches(secret, &value[1..]))
            && (plain.is_empty() || plain.iter().any(|value| self.matches(secret, value)))
    }

    fn matches(&self, secret: &Secret, value: &str) -> bool {
        let (name, tags) = (secret.name(), secret.tags());
        let description = secret.description().unwrap_or_default();
        let region = secret.primary_region().unwrap_or_default();
        match self.key {
            FilterKey::Name => name.starts_with(value),
            FilterKey::Description => has_words(description, value),
            FilterKey::TagKey => tags.keys().any(|key| key.starts_with(value)),
            FilterKey::TagValue => tags.values().any(|tag| tag.starts_with(value)),
            FilterKey::PrimaryRegion => !region.is_empty() && region.starts_with(value),
            FilterKey::OwningService => false,
            FilterKey::All => {
                let texts = [name, description, region];
                let all = texts
                    .into_iter()
                    .chain(tags.iter().flat_map(|(key, value)| [key.as_str(), value]));
                let all: Vec<_> = all.collect();
                // "breaks the filter value string into words and then searches all attributes for matches"
                words(value).all(|word| all.iter().any(|text| has_words(text, word)))
            }
        }
    }
}

/// Whether each word of `value` begins a word of the text. Not case-sensitive.
fn has_words(text: &str, value: &str) -> bool {
    let begins = |word: &str, start: &str| {
        word.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    words(value).all(|wanted| words(text).any(|word| begins(word, wanted)))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '/', '_', '+', '=', '.', '@', '-']).filter(|word| !word.is_empty())
}

/// A version of a list.
#[derive(Debug, Clone)]
pub struct ListedVersion {
    /// Its id.
    pub id: String,
    /// Its properties.
    pub version: Version,
}

/// A page of a secret's versions, the newest first; those without labels only if asked for.
pub fn versions(
    secret: &Secret,
    deprecated: bool,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::secretsmanager::ListSecretVersionIds>,
) -> Result<Page<ListedVersion>, SecretError> {
    permit.opens(&secret.arn())?;
    let place =
        // Only a rotation under way has a version without a number: the newest.
        |listed: &ListedVersion| {
            let from_newest = listed.version.number.map_or(0, |number| u64::MAX - number);
            format!("{from_newest:020}/{}", listed.id)
        };
    let mut all: Vec<_> = secret
        .versions()
        .iter()
        .filter(|(_, version)| deprecated || !version.stages.is_empty())
        .map(|(id, version)| ListedVersion { id: id.clone(), version: version.clone() })
        .collect();
    all.sort_by_key(|listed| place(listed));
    let mut left = all
        .into_iter()
        .filter(|listed| marker.is_none_or(|marker| place(listed).as_str() > marker));
    let items: Vec<_> = left.by_ref().take(limit).collect();
    let next = items.last().map(place).filter(|_| left.next().is_some());
    Ok(Page { items, next })
}

impl Version {
    /// Its labels, AWS's own first.
    pub fn labels(&self) -> Vec<String> {
        let own = [CURRENT, PENDING, PREVIOUS];
        let first = own
            .iter()
            .filter(|stage| self.stages.contains(**stage))
            .map(|stage| (*stage).to_owned());
        let rest = self.stages.iter().filter(|stage| !own.contains(&stage.as_str())).cloned();
        first.chain(rest).collect()
    }
}

/// An entry of the index by date of creation: the secret's name.
#[derive(Serialize, Deserialize)]
struct Created(String);

pub(super) fn note_created(work: &mut Work<'_>, secret: &Secret) -> Result<(), Fault> {
    work.put(&created_record_key(secret), &Created(secret.name().to_owned()))
}

pub(super) fn forget_created(work: &mut Work<'_>, secret: &Secret) {
    work.delete(&created_record_key(secret));
}

fn created_prefix(scope: &Scope) -> String {
    format!("secrets/created/{}/{}/", scope.account, scope.region)
}

fn created_record_key(secret: &Secret) -> String {
    format!("{}{:015}/{}", created_prefix(secret.scope()), secret.created_ms(), secret.name())
}
