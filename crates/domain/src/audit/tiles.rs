//! The tiles of a log: 256 hashes each (C2SP tlog-tiles).
//!
//! The tiles of level 0 of the audit log are the leaf hashes that are stored with the events; those above are records.
//! All tiles of the artifact log are records. A record at the right edge grows until it is full. No tile is trusted:
//! its hashes are compared with the log's head before they count.

use std::cell::RefCell;
use std::collections::BTreeMap;

use outlast_tlog::{CompactRange, Hash, hash};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::work::Work;

/// Prefix of the records of the audit log's tiles of level 1 and above: level in 2 digits, index in 16.
pub const TILES: &str = "audit/tile/";
/// Hashes in a full tile.
pub const WIDTH: u64 = 256;

/// A tile as stored.
#[derive(Serialize, Deserialize)]
struct Tile {
    /// Its hashes one after the other, in hexadecimal.
    hashes: String,
}

/// The record key of a tile below the prefix of its log's tiles.
pub(crate) fn record_key(prefix: &str, level: u8, index: u64) -> String {
    format!("{prefix}{level:02}/{index:016}")
}

/// Level and index in a record key.
pub(crate) fn at(prefix: &str, record_key: &str) -> Option<(u8, u64)> {
    let (level, index) = record_key.strip_prefix(prefix)?.split_once('/')?;
    let found = (level.parse().ok()?, index.parse().ok()?);
    (self::record_key(prefix, found.0, found.1) == record_key).then_some(found)
}

/// The hashes of a stored tile.
pub(crate) fn hashes(value: &serde_json::Value) -> Option<Vec<Hash>> {
    let bytes = hex::decode(value.get("hashes")?.as_str()?).ok()?;
    let (hashes, rest) = bytes.as_chunks::<32>();
    rest.is_empty().then(|| hashes.to_vec())
}

fn read(
    work: &mut Work<'_>,
    prefix: &str,
    level: u8,
    index: u64,
    width: usize,
) -> Result<Vec<Hash>, Fault> {
    let wrong = || match prefix {
        TILES => Fault::Audit(format!("tile {index} of level {level} is missing or damaged")),
        // Another log: that is no reason to stop the audit trail.
        other => Fault::Damaged(record_key(other, level, index)),
    };
    let found = match work.get::<serde_json::Value>(&record_key(prefix, level, index)) {
        Ok(found) => found.as_ref().and_then(hashes),
        Err(Fault::Store(error)) => return Err(error.into()),
        Err(_) => None,
    };
    let mut found = found.filter(|hashes| hashes.len() >= width).ok_or_else(wrong)?;
    found.truncate(width);
    Ok(found)
}

/// The tiles at the right edge of a log, where entries are appended.
pub(crate) struct Edge {
    size: u64,
    /// Whether the tiles of level 0 are records, too.
    keeps_leaves: bool,
    /// The hashes of each level's last tile, which has fewer than 256.
    levels: Vec<Vec<Hash>>,
    /// Tiles that have changed and are records.
    grown: BTreeMap<(u8, u64), Vec<Hash>>,
}

impl Edge {
    /// The edge of an empty log.
    pub(crate) fn empty() -> Self {
        Self { size: 0, keeps_leaves: false, levels: vec![Vec::new()], grown: BTreeMap::new() }
    }

    /// The edge of an empty log all of whose tiles are records.
    pub(crate) fn of_records() -> Self {
        Self { keeps_leaves: true, ..Self::empty() }
    }

    /// Reads the edge of a log as of `size`, all of whose tiles are records below `prefix`.
    pub(crate) fn load_records(
        work: &mut Work<'_>,
        prefix: &str,
        size: u64,
    ) -> Result<Self, Fault> {
        let mut edge = Self { size, ..Self::of_records() };
        let width = usize::try_from(size % WIDTH).unwrap_or(0);
        if width > 0 {
            edge.levels = vec![read(work, prefix, 0, size / WIDTH, width)?];
        }
        edge.fill(|level, index, width| read(work, prefix, level, index, width))?;
        Ok(edge)
    }

    /// Reads the edge of the log as of `size`.
    pub(super) fn load(work: &mut Work<'_>, size: u64) -> Result<Self, Fault> {
        let store = work.store();
        let mut edge = Self { size, ..Self::empty() };
        let partial = size % WIDTH;
        let page = store.leaves(size - partial, usize::try_from(partial).unwrap_or(0))?;
        for (sequence, (found, leaf)) in (size - partial + 1..=size).zip(&page) {
            if *found != sequence {
                return Err(Fault::Audit(format!("event {sequence} is missing")));
            }
            edge.levels[0].push(*leaf);
        }
        if page.len() as u64 != partial {
            return Err(Fault::Audit(format!("events up to {size} were signed and are missing")));
        }
        edge.fill(|level, index, width| read(work, TILES, level, index, width))?;
        Ok(edge)
    }

    /// The edge of a log whose size is a whole number of tiles, from the tiles above its leaves.
    pub(crate) fn of_tiles(
        size: u64,
        tile: impl FnMut(u8, u64, usize) -> Result<Vec<Hash>, Fault>,
    ) -> Result<Self, Fault> {
        let mut edge = Self { size, ..Self::empty() };
        edge.fill(tile)?;
        Ok(edge)
    }

    /// Reads the last tile of each level above the leaves, unless it is full.
    fn fill(
        &mut self,
        mut tile: impl FnMut(u8, u64, usize) -> Result<Vec<Hash>, Fault>,
    ) -> Result<(), Fault> {
        for level in 1.. {
            let count = self.size >> (8 * u32::from(level));
            if count == 0 {
                break;
            }
            let width = usize::try_from(count % WIDTH).unwrap_or(0);
            self.levels.push(match width {
                0 => Vec::new(),
                width => tile(level, count / WIDTH, width)?,
            });
        }
        Ok(())
    }

    /// The number of entries.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The tiles that have changed, by level and index, with all their hashes.
    pub(crate) fn grown(&self) -> &BTreeMap<(u8, u64), Vec<Hash>> {
        &self.grown
    }

    /// Appends an entry by its leaf hash.
    pub(crate) fn append(&mut self, leaf: &Hash) {
        self.size += 1;
        let (mut level, mut next) = (0_u8, *leaf);
        loop {
            let at = usize::from(level);
            if self.levels.len() <= at {
                self.levels.push(Vec::new());
            }
            let hashes = &mut self.levels[at];
            hashes.push(next);
            if level > 0 || self.keeps_leaves {
                let count = self.size >> (8 * u32::from(level));
                self.grown.insert((level, (count - 1) / WIDTH), hashes.clone());
            }
            if (hashes.len() as u64) < WIDTH {
                return;
            }
            next = hash::root(hashes).unwrap_or(hash::EMPTY_ROOT);
            hashes.clear();
            level += 1;
        }
    }

    /// The compact range of the log up to here, computed from the tiles.
    pub(crate) fn range(&self) -> Result<CompactRange, Fault> {
        let mut subtrees = Vec::new();
        for hashes in self.levels.iter().rev() {
            let mut rest = hashes.as_slice();
            while let Some(bits) = rest.len().checked_ilog2() {
                let (subtree, after) = rest.split_at(1 << bits);
                subtrees.extend(hash::root(subtree));
                rest = after;
            }
        }
        CompactRange::from_parts(0, self.size, subtrees)
            .map_err(|error| Fault::Audit(format!("the tiles do not make a log: {error}")))
    }

    /// Writes the tiles that have changed, below the prefix of their log.
    pub(crate) fn write(self, work: &mut Work<'_>, prefix: &str) -> Result<(), Fault> {
        for ((level, index), hashes) in self.grown {
            let tile = Tile { hashes: hex::encode(hashes.concat()) };
            work.put(&record_key(prefix, level, index), &tile)?;
        }
        Ok(())
    }
}

/// Tiles of a log all of whose tiles are records, for proofs.
pub(crate) struct RecordTiles<'a, 'b> {
    work: RefCell<&'a mut Work<'b>>,
    prefix: &'static str,
}

impl<'a, 'b> RecordTiles<'a, 'b> {
    /// Tiles below `prefix`, read through `work`.
    pub(crate) fn new(work: &'a mut Work<'b>, prefix: &'static str) -> Self {
        Self { work: RefCell::new(work), prefix }
    }
}

impl outlast_tlog::tile::Tiles for RecordTiles<'_, '_> {
    type Error = Fault;

    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Vec<Hash>, Fault> {
        read(&mut self.work.borrow_mut(), self.prefix, level, index, width.into())
    }
}

/// Tiles of the audit log, for proofs. Those of level 0 are the events' stored leaf hashes, unless they are given.
pub struct StoredTiles<'a, 'b> {
    work: RefCell<&'a mut Work<'b>>,
    /// The leaf hashes of one tile of level 0, by its index, computed from the events themselves.
    computed: Option<(u64, Vec<Hash>)>,
}

impl<'a, 'b> StoredTiles<'a, 'b> {
    /// Tiles read through `work`.
    pub fn new(work: &'a mut Work<'b>) -> Self {
        Self { work: RefCell::new(work), computed: None }
    }

    /// The same, with the leaf hashes of the tile `index` of level 0.
    pub(super) fn with(work: &'a mut Work<'b>, index: u64, leaves: Vec<Hash>) -> Self {
        Self { computed: Some((index, leaves)), ..Self::new(work) }
    }
}

impl outlast_tlog::tile::Tiles for StoredTiles<'_, '_> {
    type Error = Fault;

    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Vec<Hash>, Fault> {
        let width = usize::from(width);
        let mut work = self.work.borrow_mut();
        if level > 0 {
            return read(&mut work, TILES, level, index, width);
        }
        if let Some((_, hashes)) = self.computed.as_ref().filter(|(at, _)| *at == index) {
            return Ok(hashes.iter().take(width).copied().collect());
        }
        let first = index * WIDTH;
        let page = work.store().leaves(first, width)?;
        let in_order = (first + 1..).zip(&page).all(|(sequence, (found, _))| sequence == *found);
        if page.len() != width || !in_order {
            let last = first + width as u64;
            return Err(Fault::Audit(format!(
                "some of the events {} to {last} are missing: they were pruned or removed",
                first + 1
            )));
        }
        Ok(page.into_iter().map(|(_, leaf)| leaf).collect())
    }
}
