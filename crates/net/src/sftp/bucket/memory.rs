//! Memory that all open files of S3 share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits;

/// Bytes are counted in units of this size.
const UNIT: usize = 64 * 1024;

#[derive(Clone)]
pub(super) struct Memory(Arc<Semaphore>);

/// A share of it, given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Share(Option<OwnedSemaphorePermit>);

impl Default for Memory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(limits::S3_MEMORY / UNIT)))
    }
}

impl Memory {
    /// Makes a share large enough for so many bytes; false if there is no room.
    pub(super) fn grow(&self, share: &mut Share, bytes: usize) -> bool {
        let held = share.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let Some(more) = bytes.div_ceil(UNIT).checked_sub(held).filter(|more| *more > 0) else {
            return true;
        };
        let Ok(more) = u32::try_from(more) else { return false };
        let Ok(permit) = self.0.clone().try_acquire_many_owned(more) else { return false };
        match &mut share.0 {
            Some(held) => held.merge(permit),
            None => share.0 = Some(permit),
        }
        true
    }

    /// The same for what can do without: half of the memory is for uploads alone.
    pub(super) fn grow_spare(&self, share: &mut Share, bytes: usize) -> bool {
        self.0.available_permits() * 2 > limits::S3_MEMORY / UNIT && self.grow(share, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_end_with_the_memory_and_come_back() {
        let memory = Memory::default();
        let (mut one, mut other) = (Share::default(), Share::default());
        assert!(memory.grow(&mut one, 1) && memory.grow(&mut one, limits::S3_MEMORY - UNIT));
        assert!(memory.grow(&mut other, UNIT) && memory.grow(&mut other, 1));
        assert!(!memory.grow(&mut other, UNIT + 1));
        drop(one);
        assert!(memory.grow(&mut other, limits::S3_MEMORY));
        assert!(!memory.grow(&mut other, usize::MAX));
    }
}
