//! Compact ranges: the hashes of the largest perfect subtrees that cover the entries from `begin` to `end`.
//!
//! A range from 0 suffices to append to a tree and to compute its root, without the tree: at most 63 hashes. Adjacent
//! ranges can be joined, so that an export of some entries can be appended to what came before.

use crate::{Hash, MAX_SIZE, hash};

/// Why a range was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The end is before the begin, or beyond the largest size.
    #[error("the range's bounds are out of order or too large")]
    Bounds,
    /// The number of hashes does not match the bounds.
    #[error("the range has {found} hashes, but its bounds require {expected}")]
    Hashes {
        /// Number for the bounds.
        expected: usize,
        /// Number given.
        found: usize,
    },
    /// The second range does not begin where the first one ends.
    #[error("the second range begins at {found}, but the first one ends at {expected}")]
    NotAdjacent {
        /// End of the first.
        expected: u64,
        /// Begin of the second.
        found: u64,
    },
}

/// A perfect subtree: the entries from `index << level` to `(index + 1) << level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// 0 for a leaf.
    pub level: u8,
    /// Its index among those of its level.
    pub index: u64,
}

impl Piece {
    /// Its first entry.
    pub fn begin(self) -> u64 {
        self.index << self.level
    }
}

/// The largest perfect subtrees that cover `[begin, end)`, from left to right: at most two of each level.
pub fn pieces(begin: u64, end: u64) -> impl Iterator<Item = Piece> {
    let mut at = begin;
    std::iter::from_fn(move || {
        let rest = end.checked_sub(at).and_then(u64::checked_ilog2)?;
        let level = rest.min(at.trailing_zeros());
        let piece = Piece { level: u8::try_from(level).unwrap_or(u8::MAX), index: at >> level };
        at += 1 << level;
        Some(piece)
    })
}

/// The hashes of [`pieces`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompactRange {
    begin: u64,
    end: u64,
    hashes: Vec<Hash>,
}

impl CompactRange {
    /// The range without entries before the entry `begin`; [`CompactRange::default`] is the empty tree.
    pub fn empty(begin: u64) -> Self {
        Self { begin, end: begin, hashes: Vec::new() }
    }

    /// Reverses [`CompactRange::begin`], [`CompactRange::end`] and [`CompactRange::hashes`].
    pub fn from_parts(begin: u64, end: u64, hashes: Vec<Hash>) -> Result<Self, RangeError> {
        if begin > end || end > MAX_SIZE {
            return Err(RangeError::Bounds);
        }
        let expected = pieces(begin, end).count();
        if hashes.len() != expected {
            return Err(RangeError::Hashes { expected, found: hashes.len() });
        }
        Ok(Self { begin, end, hashes })
    }

    /// The first entry.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The end, after the last entry: for a range from 0, the tree's size.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The hashes of the subtrees, from left to right.
    pub fn hashes(&self) -> &[Hash] {
        &self.hashes
    }

    /// Appends an entry by its leaf hash: on average one node hash, 62 at most.
    pub fn append(&mut self, leaf: &Hash) -> Result<(), RangeError> {
        if self.end >= MAX_SIZE {
            return Err(RangeError::Bounds);
        }
        self.push(Piece { level: 0, index: self.end }, *leaf);
        Ok(())
    }

    /// Appends the adjacent range.
    pub fn extend(&mut self, next: &Self) -> Result<(), RangeError> {
        if next.begin != self.end {
            return Err(RangeError::NotAdjacent { expected: self.end, found: next.begin });
        }
        for (piece, hash) in pieces(next.begin, next.end).zip(&next.hashes) {
            self.push(piece, *hash);
        }
        Ok(())
    }

    /// The tree's root; `None` if the range does not begin at 0.
    pub fn root(&self) -> Option<Hash> {
        if self.begin != 0 {
            return None;
        }
        let mut hashes = self.hashes.iter().rev();
        let Some(last) = hashes.next() else { return Some(hash::EMPTY_ROOT) };
        Some(hashes.fold(*last, |right, left| hash::node(left, &right)))
    }

    /// Appends a subtree at the end and joins it with its siblings.
    fn push(&mut self, mut piece: Piece, mut hash: Hash) {
        self.end = piece.begin() + (1 << piece.level);
        // A left sibling within the range is always the last subtree: no larger subtree within the range could
        // contain it.
        while piece.index % 2 == 1
            && (Piece { index: piece.index - 1, ..piece }).begin() >= self.begin
            && let Some(left) = self.hashes.pop()
        {
            hash = hash::node(&left, &hash);
            piece = Piece { level: piece.level + 1, index: piece.index / 2 };
        }
        self.hashes.push(hash);
    }
}
