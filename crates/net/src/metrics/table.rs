//! Tables of numbers by labels. Counting takes a lookup under a shared lock and an atomic addition.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use foldhash::HashMap;

use crate::limits;

/// Name of a table, and its labels.
pub(super) struct Instrument<const N: usize> {
    /// Without the prefix, the unit and `_total`.
    pub(super) name: &'static str,
    /// Description for people.
    pub(super) help: &'static str,
    /// `seconds` or `bytes`.
    pub(super) unit: Option<&'static str>,
    /// Names of the labels.
    pub(super) labels: [&'static str; N],
}

/// An instrument without its labels.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) unit: Option<&'static str>,
}

impl<const N: usize> Instrument<N> {
    pub(super) fn head(&self) -> Head {
        Head { name: self.name, help: self.help, unit: self.unit }
    }
}

/// Labels and their values.
pub(super) type Pairs = Vec<(&'static str, &'static str)>;

/// Values of a table.
pub(super) enum Samples {
    /// Values of counters.
    Counts(Vec<(Pairs, u64)>),
    /// Values of gauges.
    Levels(Vec<(Pairs, i64)>),
    /// Values of distributions.
    Spreads(Vec<(Pairs, SpreadSample)>),
}

/// A distribution at one moment.
pub(super) struct SpreadSample {
    pub(super) sum_seconds: f64,
    pub(super) count: u64,
    /// Upper bounds in seconds, and the number of samples in each bucket alone.
    pub(super) buckets: Vec<(f64, u64)>,
}

/// Something from which numbers can be read.
pub(super) trait Readable: Send + Sync {
    fn head(&self) -> Head;
    fn samples(&self) -> Samples;
}

/// Value of a row.
pub(super) trait Cell: Default + Send + Sync + 'static {
    fn collect(rows: Vec<(Pairs, Arc<Self>)>) -> Samples;
}

/// Numbers by labels.
pub(super) struct Table<const N: usize, C> {
    instrument: &'static Instrument<N>,
    /// Keys are chosen by this program, so the hash need not resist attackers.
    rows: RwLock<HashMap<[&'static str; N], Arc<C>>>,
}

impl<const N: usize, C: Cell> Table<N, C> {
    pub(super) fn new(instrument: &'static Instrument<N>) -> Self {
        Self { instrument, rows: RwLock::default() }
    }

    /// The row with these labels. If there are too many rows, further label combinations share one.
    pub(super) fn row(&self, labels: [&'static str; N]) -> Arc<C> {
        if let Some(row) = self.rows.read().unwrap_or_else(PoisonError::into_inner).get(&labels) {
            return row.clone();
        }
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = rows.len() >= limits::MAX_METRIC_ROWS && !rows.contains_key(&labels);
        rows.entry(if is_full { [super::OTHER; N] } else { labels }).or_default().clone()
    }
}

impl<const N: usize, C: Cell> Readable for Table<N, C> {
    fn head(&self) -> Head {
        self.instrument.head()
    }

    fn samples(&self) -> Samples {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let pairs = |labels: &[&'static str; N]| {
            self.instrument.labels.iter().copied().zip(labels.iter().copied()).collect()
        };
        let mut rows: Vec<(Pairs, _)> =
            rows.iter().map(|(labels, row)| (pairs(labels), row.clone())).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        C::collect(rows)
    }
}

/// A value that only increases.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}

impl Cell for Counter {
    fn collect(rows: Vec<(Pairs, Arc<Self>)>) -> Samples {
        let read = |(pairs, row): (Pairs, Arc<Self>)| (pairs, row.0.load(Ordering::Relaxed));
        Samples::Counts(rows.into_iter().map(read).collect())
    }
}

/// A value that increases and decreases.
#[derive(Default)]
pub(super) struct Gauge(AtomicI64);

impl Gauge {
    pub(super) fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn add(&self, more: i64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}

impl Cell for Gauge {
    fn collect(rows: Vec<(Pairs, Arc<Self>)>) -> Samples {
        let read = |(pairs, row): (Pairs, Arc<Self>)| (pairs, row.0.load(Ordering::Relaxed));
        Samples::Levels(rows.into_iter().map(read).collect())
    }
}

/// Upper bounds of the buckets of times, in microseconds: from half a millisecond to ten seconds.
pub(super) const BOUNDS_MICROS: [u64; 14] = [
    500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    2_000_000, 5_000_000, 10_000_000,
];

/// A distribution of times.
#[derive(Default)]
pub(super) struct Spread {
    /// The last bucket has no bound.
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    sum_micros: AtomicU64,
}

impl Spread {
    pub(super) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn sample(&self) -> SpreadSample {
        let bounds = BOUNDS_MICROS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<_> = bounds.zip(counts).collect();
        SpreadSample {
            sum_seconds: self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6,
            // From the buckets just read, so that the two agree.
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }
}

impl Cell for Spread {
    fn collect(rows: Vec<(Pairs, Arc<Self>)>) -> Samples {
        Samples::Spreads(rows.into_iter().map(|(pairs, row)| (pairs, row.sample())).collect())
    }
}

/// Names that are not in this program's tables: those that the operator chose. They live as long as the process, and
/// their number is limited; further ones share a name.
pub(super) fn named(name: &str) -> &'static str {
    static NAMES: LazyLock<RwLock<HashSet<&'static str>>> = LazyLock::new(RwLock::default);
    if name.is_empty() {
        return super::NONE;
    }
    if let Some(known) = NAMES.read().unwrap_or_else(PoisonError::into_inner).get(name) {
        return known;
    }
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    if names.len() >= limits::MAX_METRIC_NAMES || name.len() > limits::MAX_METRIC_NAME {
        return super::OTHER;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}
