//! Memory for secrets: locked, so that it is never written to swap, left out of core dumps, and erased when freed.
//!
//! The system locks whole pages, and lets an ordinary user lock 8 MiB. So small secrets share pages: a mapping of
//! 64 KiB is cut into slots of one size. A mapping belongs to one allocator alone, because unlocking a page would unlock
//! its neighbours on it too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::MmapMut;
use zeroize::Zeroize;

/// Smallest slot, in bytes.
const SMALLEST: usize = 256;
/// Size of a mapping that is cut into slots.
const MAPPING: usize = 64 * 1024;
/// Largest slot in such a mapping; longer values get a mapping of their own.
const LARGEST: usize = MAPPING / 2;

/// Why there is no room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The configured limit is reached.
    #[error("there is no room for {needed} bytes: {max} are allowed for secrets")]
    Full {
        /// Bytes that were asked for.
        needed: usize,
        /// Bytes that are allowed.
        max: usize,
    },
    /// A value is longer than all memory for secrets.
    #[error("{needed} bytes are more than the {max} that are allowed for all secrets")]
    TooLong {
        /// Bytes that were asked for.
        needed: usize,
        /// Bytes that are allowed.
        max: usize,
    },
    /// The system refuses the mapping.
    #[error("no memory could be had: {0}")]
    Map(String),
    /// The system refuses to lock it.
    #[error("memory could not be locked: {0}")]
    Lock(String),
}

/// Whether memory must be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locking {
    /// A secret is not kept in memory that could be swapped out.
    #[default]
    Require,
    /// Memory is locked if the system allows it.
    Prefer,
}

/// Where secrets are kept. Clones share the memory.
#[derive(Clone)]
pub struct Vault(Arc<Mutex<Inner>>);

struct Inner {
    mappings: Vec<Option<Mapping>>,
    max: usize,
    used: usize,
    locking: Locking,
    unlocked: bool,
}

struct Mapping {
    bytes: MmapMut,
    slot: usize,
    free: Vec<usize>,
}

/// A secret in the vault; erased when dropped. There is no `Debug`.
pub struct Kept {
    vault: Vault,
    mapping: usize,
    at: usize,
    len: usize,
}

impl Vault {
    /// A vault for this many bytes of mappings, one of which is made at once: so that a system which does not lock
    /// memory says so at the start.
    pub fn new(max: usize, locking: Locking) -> Result<Self, MemoryError> {
        let inner = Inner { mappings: Vec::new(), max, used: 0, locking, unlocked: false };
        let vault = Self(Arc::new(Mutex::new(inner)));
        drop(vault.keep(&[0])?);
        Ok(vault)
    }

    /// Keeps a copy of these bytes.
    pub fn keep(&self, bytes: &[u8]) -> Result<Kept, MemoryError> {
        let mut inner = self.inner();
        let (mapping, at) = inner.room(bytes.len())?;
        let Some(Some(found)) = inner.mappings.get_mut(mapping) else {
            return Err(MemoryError::Map("the mapping is gone".into()));
        };
        let Some(slot) = found.bytes.get_mut(at..at + bytes.len()) else {
            return Err(MemoryError::Map("the slot is too short".into()));
        };
        slot.copy_from_slice(bytes);
        Ok(Kept { vault: self.clone(), mapping, at, len: bytes.len() })
    }

    /// Bytes of mappings in use.
    pub fn used(&self) -> usize {
        self.inner().used
    }

    /// Whether some of it is not locked, which only [`Locking::Prefer`] allows.
    pub fn is_unlocked(&self) -> bool {
        self.inner().unlocked
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Lets `read` see the bytes.
    pub fn read<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let inner = self.vault.inner();
        let mapping = inner.mappings.get(self.mapping).and_then(Option::as_ref);
        let bytes = mapping.and_then(|mapping| mapping.bytes.get(self.at..self.at + self.len));
        read(bytes.unwrap_or_default())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut inner = self.vault.inner();
        inner.free(self.mapping, self.at);
    }
}

impl Inner {
    /// A free slot: its mapping, and its place there.
    fn room(&mut self, len: usize) -> Result<(usize, usize), MemoryError> {
        let slot = len.next_power_of_two().max(SMALLEST);
        let (slot, size) = if slot > LARGEST {
            let pages = len.next_multiple_of(4096);
            (pages, pages)
        } else {
            (slot, MAPPING)
        };
        for (index, mapping) in self.mappings.iter_mut().enumerate() {
            if let Some(mapping) = mapping
                && mapping.slot == slot
                && let Some(at) = mapping.free.pop()
            {
                return Ok((index, at));
            }
        }
        if size > self.max {
            return Err(MemoryError::TooLong { needed: len, max: self.max });
        }
        if self.used + size > self.max {
            return Err(MemoryError::Full { needed: len, max: self.max });
        }
        let bytes = self.map(size)?;
        let mut free: Vec<usize> = (0..size / slot).map(|index| index * slot).rev().collect();
        let at = free.pop().unwrap_or_default();
        self.used += size;
        let mapping = Some(Mapping { bytes, slot, free });
        let index = match self.mappings.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                self.mappings.push(None);
                self.mappings.len() - 1
            }
        };
        self.mappings[index] = mapping;
        Ok((index, at))
    }

    fn map(&mut self, size: usize) -> Result<MmapMut, MemoryError> {
        let bytes = MmapMut::map_anon(size).map_err(|error| MemoryError::Map(error.to_string()))?;
        #[cfg(target_os = "linux")]
        for advice in [memmap2::Advice::DontDump, memmap2::Advice::DontFork] {
            // Older kernels may not know the advice: then the limit on core dumps is what remains.
            let _ = bytes.advise(advice);
        }
        match bytes.lock() {
            Ok(()) => {}
            Err(error) if self.locking == Locking::Require => {
                return Err(MemoryError::Lock(error.to_string()));
            }
            Err(_) => self.unlocked = true,
        }
        Ok(bytes)
    }

    fn free(&mut self, index: usize, at: usize) {
        let Some(place) = self.mappings.get_mut(index) else { return };
        let Some(mapping) = place else { return };
        if let Some(slot) = mapping.bytes.get_mut(at..at + mapping.slot) {
            slot.zeroize();
        }
        mapping.free.push(at);
        if mapping.free.len() * mapping.slot == mapping.bytes.len() {
            self.used -= mapping.bytes.len();
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(max: usize) -> Vault {
        Vault::new(max, Locking::Prefer).unwrap()
    }

    #[test]
    fn values_of_all_lengths_come_back_and_their_room_is_used_again() {
        let vault = vault(8 << 20);
        let lengths = [0, 1, 255, 256, 257, 4096, 32_768, 32_769, 400_000];
        let kept: Vec<_> = lengths
            .iter()
            .map(|len| (*len, vault.keep(&vec![u8::try_from(len % 251).unwrap(); *len]).unwrap()))
            .collect();
        for (len, kept) in &kept {
            let expected = vec![u8::try_from(len % 251).unwrap(); *len];
            assert!(kept.read(|bytes| bytes == expected), "{len}");
        }
        assert!(vault.used() > 400_000);
        drop(kept);
        assert_eq!(vault.used(), 0);
        let many: Vec<_> = (0..1000).map(|_| vault.keep(&[7; 300]).unwrap()).collect();
        assert_eq!(vault.used(), 8 * MAPPING);
        assert!(many.iter().all(|kept| kept.read(|bytes| bytes == [7; 300])));
    }

    #[test]
    fn freed_memory_is_erased() {
        let vault = vault(1 << 20);
        let (first, second) = (vault.keep(&[1; 200]).unwrap(), vault.keep(&[2; 200]).unwrap());
        let (mapping, at) = (first.mapping, first.at);
        drop(first);
        let inner = vault.inner();
        let bytes = &inner.mappings[mapping].as_ref().unwrap().bytes;
        assert!(bytes[at..at + SMALLEST].iter().all(|byte| *byte == 0));
        drop(inner);
        assert!(second.read(|bytes| bytes == [2; 200]));
    }

    #[test]
    fn the_limit_holds() {
        let vault = vault(MAPPING);
        let kept = vault.keep(&[1; 100]).unwrap();
        let error = vault.keep(&[1; 5000]).err();
        assert_eq!(error, Some(MemoryError::Full { needed: 5000, max: MAPPING }));
        drop(kept);
        assert!(vault.keep(&[1; 5000]).is_ok());
        let error = vault.keep(&[1; MAPPING + 1]).err();
        assert_eq!(error, Some(MemoryError::TooLong { needed: MAPPING + 1, max: MAPPING }));
    }
}
