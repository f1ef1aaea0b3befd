//! An open file that counts against a quota, with its growth.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::attributes::Attributes;
use crate::error::Result;
use crate::path::RemotePath;
use crate::quota::{Quota, Usage};
use crate::view::usage::counted;
use crate::volume::{File, FileId, Follow, OpenHow, Space, Volume};

struct Metered {
    file: Box<dyn File>,
    volume: Arc<dyn Volume>,
    path: RemotePath,
    quota: Arc<Quota>,
    how: OpenHow,
    state: Mutex<State>,
}

/// What the file has been charged for, apart from bytes that are visible under its name.
#[derive(Default)]
struct State {
    /// The file that the quota knows as open, once it is visible.
    held: Option<FileId>,
    /// The content is not visible yet; all of it is charged in addition to what the name has.
    is_apart: bool,
    /// The name did not exist when the file was opened.
    charged_name: bool,
    /// Bytes under its name, if it is not apart.
    visible: u64,
}

/// Opens a file.
pub(super) fn open(
    volume: Arc<dyn Volume>,
    path: RemotePath,
    how: &OpenHow,
    quota: &Arc<Quota>,
) -> Result<Box<dyn File>> {
    if !how.changes() {
        let file = volume.open(&path, how)?;
        let Some(held) = quota.hold(&*file)? else { return Ok(file) };
        let state = Mutex::new(State { held: Some(held), ..State::default() });
        let (quota, how) = (Arc::clone(quota), *how);
        return Ok(Box::new(Metered { file, volume, path, quota, how, state }));
    }
    let _gate = quota.gate();
    let visible = || volume.attributes(&path, Follow::Yes).ok();
    let before = visible();
    let name = Usage { bytes: 0, files: u64::from(before.is_none()) };
    quota.take(name)?;
    let file = volume.open(&path, how).inspect_err(|_| quota.give(name))?;
    let is_apart = file.is_apart();
    let mut held = None;
    if is_apart {
        let copied = Usage { bytes: size(file.attributes().ok()), files: 0 };
        // Dropping the file forgets it.
        quota.take(copied).inspect_err(|_| quota.give(name))?;
    } else {
        held = quota.hold(&*file).inspect_err(|_| quota.give(name))?;
        // An existing file may have been emptied.
        let bytes = size(before).saturating_sub(size(visible()));
        quota.give(Usage { bytes, files: 0 });
    }
    let visible = size(file.attributes().ok());
    let state = Mutex::new(State { held, is_apart, charged_name: before.is_none(), visible });
    let (quota, how) = (Arc::clone(quota), *how);
    Ok(Box::new(Metered { file, volume, path, quota, how, state }))
}

fn size(of: Option<Attributes>) -> u64 {
    of.and_then(|attributes| attributes.size).unwrap_or(0)
}

impl Metered {
    /// Does something that makes the content visible: from then on, what the name had before is gone.
    fn publishing(&self, act: impl FnOnce() -> Result<()>) -> Result<()> {
        if !self.how.changes() {
            return act();
        }
        // What takes long must not hold up the other files of the home.
        self.file.settle()?;
        let _gate = self.quota.gate();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_apart {
            act()?;
            state.visible = size(self.file.attributes().ok());
            return Ok(());
        }
        let replaced = counted(&*self.volume, &self.path);
        let done = act();
        if done.is_err() && self.file.is_apart() {
            return done;
        }
        // Even if it failed afterwards, the content is visible.
        state.is_apart = false;
        state.visible = size(self.file.attributes().ok());
        // If another program has removed it at once, it counts like all that is not noticed.
        state.held = self.quota.hold(&*self.file).unwrap_or_default();
        // It counts as a file of its own: what it replaces still counts while it is open, and may have come or gone meanwhile.
        self.quota.add(Usage { bytes: 0, files: u64::from(!state.charged_name) });
        if let Some(replaced) = replaced.filter(|_| self.is_at_its_path(state.held)) {
            self.quota.gone(replaced);
        }
        done
    }

    /// Whether the path leads to this file. If its folder was renamed meanwhile, another one may be there.
    fn is_at_its_path(&self, held: Option<FileId>) -> bool {
        let Some(held) = held else { return true };
        self.volume.inode(&self.path).is_ok_and(|found| found.is_some_and(|inode| inode.id == held))
    }

    /// Does something after which the file may be `to` bytes long.
    fn growing(&self, from: u64, to: u64, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let more = to.saturating_sub(from);
        self.quota.take(Usage { bytes: more, files: 0 })?;
        act().inspect_err(|_| {
            // Part of it may have been written.
            let grown = size(self.file.attributes().ok()).saturating_sub(from);
            self.quota.give(Usage { bytes: more.saturating_sub(grown), files: 0 });
        })
    }
}

impl File for Metered {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, into)
    }

    fn read_now(&self, offset: u64, into: &mut [u8]) -> bool {
        self.file.read_now(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            // It makes no file longer, wherever it is.
            return self.file.write_at(offset, bytes);
        }
        // Another handle may have changed the size: only the file itself knows it.
        let _gate = self.quota.gate();
        let size = size(Some(self.file.attributes()?));
        let begin = if self.how.append { size } else { offset };
        let end = begin.saturating_add(bytes.len() as u64);
        self.growing(size, end, || self.file.write_at(offset, bytes))
    }

    fn attributes(&self) -> Result<Attributes> {
        self.file.attributes()
    }

    fn entity_tag(&self) -> Result<Option<String>> {
        self.file.entity_tag()
    }

    fn is_same(&self, entity_tag: &str) -> Result<bool> {
        self.file.is_same(entity_tag)
    }

    fn set_attributes(&self, to: &Attributes) -> Result<()> {
        let Some(new) = to.size else { return self.file.set_attributes(to) };
        let _gate = self.quota.gate();
        let before = size(Some(self.file.attributes()?));
        self.quota.take(Usage { bytes: new.saturating_sub(before), files: 0 })?;
        let set = self.file.set_attributes(to);
        // The size may have been set although another attribute was not.
        let after = self.file.attributes().ok().and_then(|found| found.size).unwrap_or(before);
        self.quota.give(Usage { bytes: before.max(new).saturating_sub(after), files: 0 });
        set
    }

    fn sync(&self) -> Result<()> {
        self.publishing(|| self.file.sync())
    }

    fn space(&self) -> Result<Space> {
        Ok(self.quota.space(self.file.space()?))
    }

    fn settle(&self) -> Result<()> {
        self.file.settle()
    }

    fn content(&self) -> Result<OwnedFd> {
        self.file.content()
    }

    fn is_apart(&self) -> bool {
        self.file.is_apart()
    }

    fn close(&self) -> Result<()> {
        self.publishing(|| self.file.close())
    }
}

impl Drop for Metered {
    /// Content that never became visible is forgotten, and so is a file without a name that nobody else has open.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.is_apart {
            let bytes = size(self.file.attributes().ok());
            self.quota.give(Usage { bytes, files: u64::from(state.charged_name) });
        } else if self.file.is_apart() {
            // What has changed since it was visible is forgotten.
            let now = size(self.file.attributes().ok());
            self.quota.give(Usage { bytes: now.saturating_sub(state.visible), files: 0 });
            self.quota.add(Usage { bytes: state.visible.saturating_sub(now), files: 0 });
        }
        if let Some(held) = state.held {
            let file = &self.file;
            self.quota.release(held, || Usage { bytes: size(file.attributes().ok()), files: 1 });
        }
    }
}
