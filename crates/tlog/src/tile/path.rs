//! Names of tiles and bundles: `tile/0/x001/x234/067.p/5`, `tile/entries/000`.

use std::fmt;
use std::str::FromStr;

use super::{HEIGHT, WIDTH};

/// A tile: its level, its index there, and its number of hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileId {
    level: u8,
    index: u64,
    width: u16,
}

/// The highest level: 8 levels of 256 hold more than can be counted.
const MAX_LEVEL: u8 = 7;
/// A full tile.
const FULL: u16 = 256;

impl TileId {
    /// A tile of this width (1 to 256). `None` if it lies beyond the largest tree.
    pub fn new(level: u8, index: u64, width: u16) -> Option<Self> {
        let shift = u32::from(level) * u32::from(HEIGHT);
        let fits = level <= MAX_LEVEL
            && (1..=FULL).contains(&width)
            && index
                .checked_mul(WIDTH)
                .and_then(|first| first.checked_add(width.into()))
                .is_some_and(|end| end <= crate::MAX_SIZE >> shift);
        fits.then_some(Self { level, index, width })
    }

    /// The tile with its width in a tree of `size` entries; `None` if the tree does not have it.
    pub fn at(level: u8, index: u64, size: u64) -> Option<Self> {
        let hashes = size.checked_shr(u32::from(level) * u32::from(HEIGHT))?;
        let width = hashes.checked_sub(index.checked_mul(WIDTH)?)?.min(WIDTH);
        Self::new(level, index, u16::try_from(width).ok()?)
    }

    /// 0 for leaves.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Its index in its level.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Number of hashes.
    pub fn width(&self) -> u16 {
        self.width
    }

    /// Whether it has all 256 hashes, and so never changes.
    pub fn is_full(&self) -> bool {
        self.width == FULL
    }
}

impl fmt::Display for TileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Resource::Tile(*self).fmt(f)
    }
}

/// A resource that a log serves besides its checkpoint, by its path below the log's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// `tile/<L>/<N>[.p/<W>]`
    Tile(TileId),
    /// `tile/entries/<N>[.p/<W>]`: the bundle of the entries whose hashes are in the tile (level 0).
    Entries(TileId),
}

/// The path was not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not the path of a tile or of an entry bundle")]
pub struct BadPath;

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tile = match self {
            Self::Tile(tile) => {
                write!(f, "tile/{}/", tile.level)?;
                tile
            }
            Self::Entries(tile) => {
                f.write_str("tile/entries/")?;
                tile
            }
        };
        let mut groups = vec![tile.index % 1000];
        let mut rest = tile.index / 1000;
        while rest > 0 {
            groups.push(rest % 1000);
            rest /= 1000;
        }
        for group in groups.iter().skip(1).rev() {
            write!(f, "x{group:03}/")?;
        }
        write!(f, "{:03}", groups.first().copied().unwrap_or_default())?;
        if tile.is_full() { Ok(()) } else { write!(f, ".p/{}", tile.width) }
    }
}

impl FromStr for Resource {
    type Err = BadPath;

    fn from_str(path: &str) -> Result<Self, BadPath> {
        parse(path).ok_or(BadPath)
    }
}

fn parse(path: &str) -> Option<Resource> {
    let (level, rest) = path.strip_prefix("tile/")?.split_once('/')?;
    let (number, width) = match rest.split_once(".p/") {
        Some((number, width)) => (number, small(width).filter(|width| *width < FULL)?),
        None => (rest, FULL),
    };
    let mut groups = number.split('/').peekable();
    let mut index: u64 = 0;
    while let Some(group) = groups.next() {
        let digits = if groups.peek().is_some() { group.strip_prefix('x')? } else { group };
        if digits.len() != 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        index = index.checked_mul(1000)?.checked_add(digits.parse().ok()?)?;
    }
    let found = if level == "entries" {
        Resource::Entries(TileId::new(0, index, width)?)
    } else {
        Resource::Tile(TileId::new(u8::try_from(small(level)?).ok()?, index, width)?)
    };
    // Leading groups of zeroes would give it a second name.
    (found.to_string() == path).then_some(found)
}

/// A number of at most three digits without leading zeroes.
fn small(text: &str) -> Option<u16> {
    (text.len() <= 3).then(|| crate::text::decimal(text)).flatten()?.try_into().ok()
}
