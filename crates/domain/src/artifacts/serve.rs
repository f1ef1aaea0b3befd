//! The log's resources for readers (C2SP tlog-tiles): head, tiles and bundles of entries.

use outlast_tlog::tile::{TileId, Tiles, bundle};

use super::{TILES, read};
use crate::Fault;
use crate::audit::serve::covers;
use crate::audit::tiles::{RecordTiles, WIDTH};
use crate::work::Work;

/// The head that most witnesses have cosigned; `None` if the log has not begun.
pub fn head(work: &mut Work<'_>) -> Result<Option<String>, Fault> {
    let Some(log) = read(work)? else { return Ok(None) };
    Ok(Some(log.best_head(work, 0)?.to_string()))
}

/// A tile of hashes, 32 bytes each; `None` if it lies beyond the head.
pub fn tile(work: &mut Work<'_>, id: TileId) -> Result<Option<Vec<u8>>, Fault> {
    if !read(work)?.is_some_and(|log| covers(log.head.size, id)) {
        return Ok(None);
    }
    let hashes = RecordTiles::new(work, TILES).tile(id.level(), id.index(), id.width())?;
    Ok(Some(hashes.concat()))
}

/// A bundle of entries; `None` as for [`tile`].
pub fn entries(work: &mut Work<'_>, id: TileId) -> Result<Option<Vec<u8>>, Fault> {
    let log = read(work)?.filter(|log| covers(log.head.size, id));
    let Some(log) = log else { return Ok(None) };
    let entries = log.entries(work, id.index() * WIDTH, id.width().into())?;
    bundle(entries.iter().map(Vec::as_slice))
        .map(Some)
        .ok_or_else(|| Fault::Encoding("an entry is too long for a bundle".into()))
}
