//! Tiles of 256 hashes (c2sp.org/tlog-tiles): their paths, and computing from them.
//!
//! The tile at level L and index N has the hashes of the perfect subtrees of `256^L` entries, from number `256 N` on.
//! Hashes between two levels are computed. So a tree of ten million entries has three levels, and a proof reads a
//! handful of tiles.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::range::{CompactRange, Piece, RangeError, pieces};
use crate::{Hash, MAX_SIZE, hash};

mod path;

pub use path::{Resource, TileId};

/// Hashes in a full tile, entries in a full bundle.
pub const WIDTH: u64 = 256;
/// Levels of the tree in a tile.
pub const HEIGHT: u8 = 8;
/// The longest entry of a bundle, in bytes.
pub const MAX_ENTRY: usize = u16::MAX as usize;

/// A source of tiles.
pub trait Tiles {
    /// Why a tile could not be read.
    type Error;

    /// The first `width` hashes (1 to 256) of the tile; it may return more.
    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Vec<Hash>, Self::Error>;
}

impl<T: Tiles + ?Sized> Tiles for &T {
    type Error = T::Error;

    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Vec<Hash>, Self::Error> {
        (**self).tile(level, index, width)
    }
}

/// Why a hash could not be computed from tiles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TileError<E> {
    /// The tiles could not be read.
    #[error("{0}")]
    Read(E),
    /// A tile has too few hashes for its tree's size.
    #[error("tile {tile} has {found} hashes")]
    Short {
        /// The tile.
        tile: TileId,
        /// Number of hashes that it has.
        found: usize,
    },
    /// An index or a size lies outside the tree.
    #[error("{asked} lies outside the tree of {size} entries")]
    Outside {
        /// The index or size.
        asked: u64,
        /// The tree's size.
        size: u64,
    },
}

/// Tiles read so far, by level and index.
type Read = HashMap<(u8, u64), Arc<[Hash]>>;

/// A tree of a certain size, in tiles. Each tile is read once in the lifetime of this value.
///
/// Nothing here is compared with a signed root: compare [`Tree::root`], or verify the proofs.
pub struct Tree<T: Tiles> {
    tiles: T,
    size: u64,
    read: RefCell<Read>,
}

impl<T: Tiles> Tree<T> {
    /// The tree of `size` entries. The source may have more.
    pub fn new(tiles: T, size: u64) -> Result<Self, TileError<T::Error>> {
        if size > MAX_SIZE {
            return Err(TileError::Outside { asked: size, size: MAX_SIZE });
        }
        Ok(Self { tiles, size, read: RefCell::new(HashMap::new()) })
    }

    /// The number of entries.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The root.
    pub fn root(&self) -> Result<Hash, TileError<T::Error>> {
        self.range_hash(0, self.size)
    }

    /// The hash of one leaf.
    pub fn leaf(&self, index: u64) -> Result<Hash, TileError<T::Error>> {
        self.inside(index.saturating_add(1))?;
        self.subtree(Piece { level: 0, index })
    }

    /// The compact range of the whole tree, for appending.
    pub fn frontier(&self) -> Result<CompactRange, TileError<T::Error>> {
        self.range(0, self.size)
    }

    /// The compact range of the entries `[begin, end)`.
    pub fn range(&self, begin: u64, end: u64) -> Result<CompactRange, TileError<T::Error>> {
        self.inside(end)?;
        let outside =
            |_: RangeError| TileError::<T::Error>::Outside { asked: begin, size: self.size };
        let hashes =
            pieces(begin, end).map(|piece| self.subtree(piece)).collect::<Result<_, _>>()?;
        CompactRange::from_parts(begin, end, hashes).map_err(outside)
    }

    /// The inclusion proof of an entry: the siblings' hashes from the leaf upwards (RFC 6962, section 2.1.1).
    pub fn inclusion(&self, index: u64) -> Result<Vec<Hash>, TileError<T::Error>> {
        self.inside(index.saturating_add(1))?;
        let mut siblings = Vec::new();
        let (mut begin, mut end) = (0, self.size);
        while end - begin > 1 {
            let middle = begin + split(end - begin);
            if index < middle {
                siblings.push((middle, end));
                end = middle;
            } else {
                siblings.push((begin, middle));
                begin = middle;
            }
        }
        siblings.iter().rev().map(|(begin, end)| self.range_hash(*begin, *end)).collect()
    }

    /// The consistency proof between the tree of the first `old` entries and this one (RFC 6962, section 2.1.2). It is empty if `old` is 0
    /// or this tree's size.
    pub fn consistency(&self, old: u64) -> Result<Vec<Hash>, TileError<T::Error>> {
        self.inside(old)?;
        if old == 0 || old == self.size {
            return Ok(Vec::new());
        }
        let mut parts = Vec::new();
        let (mut begin, mut end) = (0, self.size);
        while old != end {
            let middle = begin + split(end - begin);
            if old <= middle {
                parts.push((middle, end));
                end = middle;
            } else {
                parts.push((begin, middle));
                begin = middle;
            }
        }
        if begin != 0 {
            // The remaining subtree is not the whole old tree, whose root the verifier has.
            parts.push((begin, end));
        }
        parts.iter().rev().map(|(begin, end)| self.range_hash(*begin, *end)).collect()
    }

    fn inside(&self, asked: u64) -> Result<(), TileError<T::Error>> {
        if asked > self.size {
            return Err(TileError::Outside { asked, size: self.size });
        }
        Ok(())
    }

    /// The hash of the tree over `[begin, end)`, as RFC 6962 splits it.
    fn range_hash(&self, begin: u64, end: u64) -> Result<Hash, TileError<T::Error>> {
        let hashes =
            pieces(begin, end).map(|piece| self.subtree(piece)).collect::<Result<Vec<_>, _>>()?;
        let mut hashes = hashes.iter().rev();
        let Some(last) = hashes.next() else { return Ok(hash::EMPTY_ROOT) };
        Ok(hashes.fold(*last, |right, left| hash::node(left, &right)))
    }

    /// The hash of a perfect subtree within the tree.
    fn subtree(&self, piece: Piece) -> Result<Hash, TileError<T::Error>> {
        let (level, inner) = (piece.level / HEIGHT, piece.level % HEIGHT);
        // In units of the tile's own hashes.
        let first = piece.index << inner;
        let tile = self.tile(level, first / WIDTH)?;
        let begin = usize::from(first.to_le_bytes()[0]);
        let part = tile.get(begin..begin + (1 << inner)).and_then(hash::root);
        part.ok_or(TileError::Outside { asked: piece.begin(), size: self.size })
    }

    fn tile(&self, level: u8, index: u64) -> Result<Arc<[Hash]>, TileError<T::Error>> {
        if let Some(tile) = self.read.borrow().get(&(level, index)) {
            return Ok(Arc::clone(tile));
        }
        let Some(id) = TileId::at(level, index, self.size) else {
            return Err(TileError::Outside { asked: index, size: self.size });
        };
        let mut hashes = self.tiles.tile(level, index, id.width()).map_err(TileError::Read)?;
        if hashes.len() < usize::from(id.width()) {
            return Err(TileError::Short { tile: id, found: hashes.len() });
        }
        hashes.truncate(id.width().into());
        let hashes: Arc<[Hash]> = hashes.into();
        self.read.borrow_mut().insert((level, index), Arc::clone(&hashes));
        Ok(hashes)
    }
}

impl<T: Tiles> fmt::Debug for Tree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("size", &self.size).finish_non_exhaustive()
    }
}

/// The largest power of two smaller than `size`, which is at least 2.
fn split(size: u64) -> u64 {
    1 << (size - 1).checked_ilog2().unwrap_or(0)
}

/// The tiles that a tree has after it grew from `old` to `new` entries and did not have before, lowest level first:
/// full ones, and the partial ones at the right edge.
pub fn new_tiles(old: u64, new: u64) -> impl Iterator<Item = TileId> {
    (0..HEIGHT).flat_map(move |level| {
        let shift = u32::from(level) * u32::from(HEIGHT);
        let (before, after) = (old >> shift, new >> shift);
        let tiles = if before < after { before / WIDTH..after.div_ceil(WIDTH) } else { 0..0 };
        tiles.filter_map(move |index| TileId::at(level, index, new))
    })
}

/// An entry bundle: each entry preceded by its length. `None` if an entry is longer than [`MAX_ENTRY`].
pub fn bundle<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for entry in entries {
        out.extend_from_slice(&u16::try_from(entry.len()).ok()?.to_be_bytes());
        out.extend_from_slice(entry);
    }
    Some(out)
}

/// Reverses [`bundle`]: `None` if it is cut off, or has no entry or more than 256.
pub fn unbundle(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut entries = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let (entry, rest) = rest.split_at_checked(u16::from_be_bytes(*len).into())?;
        entries.push(entry);
        bytes = rest;
    }
    (bytes.is_empty() && (1..=256).contains(&entries.len())).then_some(entries)
}
