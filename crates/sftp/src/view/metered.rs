//! A file whose growth counts against a quota.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::attributes::Attributes;
use crate::error::Result;
use crate::path::RemotePath;
use crate::quota::{Quota, Usage};
use crate::volume::{File, Follow, OpenHow, Space, Volume};

struct Metered {
    file: Box<dyn File>,
    volume: Arc<dyn Volume>,
    path: RemotePath,
    quota: Arc<Quota>,
    appends: bool,
    /// Size that is counted.
    size: Mutex<u64>,
    is_closed: AtomicBool,
}

/// Opens a file for writing.
pub(super) fn open(
    volume: Arc<dyn Volume>,
    path: RemotePath,
    how: &OpenHow,
    quota: &Arc<Quota>,
) -> Result<Box<dyn File>> {
    let before = volume.attributes(&path, Follow::Yes).ok();
    let more = Usage { bytes: 0, files: u64::from(before.is_none()) };
    quota.take(more)?;
    let file = volume.open(&path, how).inspect_err(|_| quota.give(more))?;
    let before = before.and_then(|attributes| attributes.size).unwrap_or(0);
    let size = if how.truncate { 0 } else { before };
    quota.give(Usage { bytes: before - size, files: 0 });
    Ok(Box::new(Metered {
        file,
        volume,
        path,
        quota: Arc::clone(quota),
        appends: how.append,
        size: Mutex::new(size),
        is_closed: AtomicBool::new(false),
    }))
}

impl Metered {
    fn grow(&self, size: &mut u64, to: u64) -> Result<()> {
        if to > *size {
            self.quota.take(Usage { bytes: to - *size, files: 0 })?;
            *size = to;
        }
        Ok(())
    }
}

impl File for Metered {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = if self.appends { *size } else { offset };
        self.grow(&mut size, begin.saturating_add(bytes.len() as u64))?;
        drop(size);
        self.file.write_at(offset, bytes)
    }

    fn attributes(&self) -> Result<Attributes> {
        self.file.attributes()
    }

    fn set_attributes(&self, to: &Attributes) -> Result<()> {
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = to.size {
            self.grow(&mut size, to)?;
        }
        self.file.set_attributes(to)?;
        if let Some(to) = to.size {
            self.quota.give(Usage { bytes: *size - to, files: 0 });
            *size = to;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    fn space(&self) -> Result<Space> {
        self.file.space()
    }

    fn close(&self) -> Result<()> {
        self.file.close()?;
        self.is_closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Metered {
    /// Without a close the volume may have kept the file or forgotten it: what is there now counts.
    fn drop(&mut self) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let counted = *self.size.lock().unwrap_or_else(PoisonError::into_inner);
        let there = self.volume.attributes(&self.path, Follow::Yes).ok();
        let gone = u64::from(there.is_none());
        let there = there.and_then(|attributes| attributes.size).unwrap_or(0);
        self.quota.give(Usage { bytes: counted.saturating_sub(there), files: gone });
        // The old file is back. It fitted before, and must not be refused now.
        let _ = self.quota.take(Usage { bytes: there.saturating_sub(counted), files: 0 });
    }
}
