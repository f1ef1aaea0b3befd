//! An object that is read. Blocks of it are in memory, and the next ones are on their way while it is read from front to back.
//! Other reads ask for exactly their bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::{Error, Result};
use outlast_sftp::volume::File;
use tokio::sync::OnceCell;

use super::memory::Share;
use super::{Shared, attributes, no_attributes};
use crate::limits;
use crate::s3::Failure;
use crate::s3::objects::Head;

pub(super) struct Download {
    object: Arc<Object>,
    blocks: Mutex<Blocks>,
}

struct Object {
    shared: Shared,
    key: String,
    head: Head,
}

#[derive(Default)]
struct Blocks {
    kept: VecDeque<Arc<Block>>,
    /// Index of the block that was read last.
    last: Option<u64>,
}

struct Block {
    index: u64,
    bytes: OnceCell<Bytes>,
    /// Its memory.
    _share: Share,
}

impl Object {
    async fn load(&self, block: &Block) -> std::result::Result<Bytes, Failure> {
        let begin = block.index * limits::S3_BLOCK;
        let end = (begin + limits::S3_BLOCK).min(self.head.size);
        let read = || self.shared.bucket.read(&self.key, &self.head.etag, begin..end);
        block.bytes.get_or_try_init(read).await.cloned()
    }
}

impl Download {
    pub(super) fn new(shared: Shared, key: String, head: Head) -> Self {
        Self { object: Arc::new(Object { shared, key, head }), blocks: Mutex::default() }
    }

    /// The block with this index; none if it should be read without one.
    fn block(&self, index: u64) -> Option<Arc<Block>> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let last = blocks.last.replace(index);
        let goes_on = last.is_some_and(|last| index == last || index == last + 1);
        if !goes_on && index > 0 && !blocks.kept.iter().any(|block| block.index == index) {
            return None;
        }
        let found = self.keep(&mut blocks, index)?.0;
        if last.is_some_and(|last| index == last + 1) {
            let count = self.object.head.size.div_ceil(limits::S3_BLOCK);
            for ahead in (index + 1..count).take(limits::S3_AHEAD) {
                let Some((block, true)) = self.keep(&mut blocks, ahead) else { continue };
                let object = Arc::clone(&self.object);
                // If it fails, the read that needs the block tries again.
                self.object.shared.runtime.spawn(async move {
                    let _ = object.load(&block).await;
                });
            }
        }
        Some(found)
    }

    /// The block, and whether it is new; none if there is no memory for it.
    fn keep(&self, blocks: &mut Blocks, index: u64) -> Option<(Arc<Block>, bool)> {
        if let Some(at) = blocks.kept.iter().position(|block| block.index == index) {
            let block = blocks.kept.remove(at)?;
            blocks.kept.push_back(Arc::clone(&block));
            return Some((block, false));
        }
        if blocks.kept.len() >= limits::S3_BLOCKS {
            blocks.kept.pop_front();
        }
        let rest = self.object.head.size.saturating_sub(index * limits::S3_BLOCK);
        let room = usize::try_from(rest.min(limits::S3_BLOCK)).ok()?;
        let mut share = Share::default();
        if !self.object.shared.memory.grow_spare(&mut share, room) {
            return None;
        }
        let block = Arc::new(Block { index, bytes: OnceCell::new(), _share: share });
        blocks.kept.push_back(Arc::clone(&block));
        Some((block, true))
    }
}

impl File for Download {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let Object { shared, key, head } = &*self.object;
        let len = head.size.saturating_sub(offset).min(into.len() as u64);
        // It is not longer than the buffer.
        let into = &mut into[..usize::try_from(len).unwrap_or(0)];
        let mut filled = 0;
        while filled < into.len() {
            let at = offset + filled as u64;
            let bytes = match self.block(at / limits::S3_BLOCK) {
                Some(block) => {
                    let bytes = shared.wait(self.object.load(&block))?;
                    let within = usize::try_from(at % limits::S3_BLOCK).unwrap_or(0);
                    bytes.slice(within.min(bytes.len())..)
                }
                None => shared.wait(shared.bucket.read(key, &head.etag, at..offset + len))?,
            };
            let most = bytes.len().min(into.len() - filled);
            if most == 0 {
                return Err(Error::failure("the storage sent less than it has"));
            }
            into[filled..filled + most].copy_from_slice(&bytes[..most]);
            filled += most;
        }
        Ok(filled)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(Error::denied("the file is not open for writing"))
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(attributes(self.object.head.size, self.object.head.modified))
    }

    fn entity_tag(&self) -> Result<Option<String>> {
        Ok(Some(super::bare(&self.object.head.etag)))
    }

    fn set_attributes(&self, _: &Attributes) -> Result<()> {
        Err(no_attributes())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
