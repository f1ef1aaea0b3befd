//! An open file that counts against a quota, with its growth.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::attributes::Attributes;
use crate::error::Result;
use crate::path::RemotePath;
use crate::quota::{Quota, Usage};
use crate::view::usage;
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
    /// Bytes that are charged, if it is not apart but what is written is: never fewer than are visible, and all that takes their place.
    charged: u64,
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
    // What is apart changes nothing in the home, and a copy takes long.
    let is_apart = volume.changes_apart();
    let writes_apart = volume.writes_apart();
    let _gate = (!is_apart && !writes_apart).then(|| quota.gate());
    let visible = || volume.attributes(&path, Follow::Yes).ok();
    let before = visible();
    let copied = if is_apart && !how.truncate { size(before) } else { 0 };
    let name = Usage { bytes: 0, files: u64::from(before.is_none()) };
    let taken = Usage { bytes: copied, ..name };
    quota.take(taken)?;
    let file = volume.open(&path, how).inspect_err(|_| quota.give(taken))?;
    let is_apart = file.is_apart();
    let mut held = None;
    if is_apart {
        // Another program may have changed what was copied.
        let has = size(file.attributes().ok());
        let more = Usage { bytes: has.saturating_sub(copied), files: 0 };
        // Dropping the file forgets it.
        quota.take(more).inspect_err(|_| quota.give(taken))?;
        quota.give(Usage { bytes: copied.saturating_sub(has), files: 0 });
    } else {
        held = quota.hold(&*file).inspect_err(|_| quota.give(name))?;
        // An existing file may have been emptied, unless nothing changes yet. Nothing was copied.
        let emptied = if writes_apart { 0 } else { size(before).saturating_sub(size(visible())) };
        quota.give(Usage { bytes: copied + emptied, files: 0 });
    }
    // Somebody else may have made the file since, which has charged its name.
    let is_there = writes_apart && !is_apart;
    if is_there {
        quota.give(name);
    }
    let charged_name = before.is_none() && !is_there;
    let visible = size(file.attributes().ok());
    let state = Mutex::new(State { held, is_apart, charged_name, visible, charged: visible });
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_apart && !self.file.is_apart() {
            // Nothing appears, and a disk may take long.
            drop(state);
            return act();
        }
        let _gate = self.quota.gate();
        let look = || {
            let found = self.file.replaces(&*self.volume, &self.path);
            // No file takes the place of a folder.
            found.map(|name| name.as_ref().map(usage::count).filter(|name| !name.is_folder))
        };
        let before = look()?;
        if state.is_apart && !state.charged_name && before.is_none() {
            // What it would have replaced has gone meanwhile.
            self.quota.take(Usage { bytes: 0, files: 1 })?;
            state.charged_name = true;
        }
        let done = act();
        if done.is_err() && self.file.is_apart() {
            // It may have appeared all the same.
            self.quota.correct(Some(usage::of(before)), usage::used(&look()));
            return done;
        }
        if !state.is_apart {
            // The new content has taken the place of the old one.
            state.visible = size(self.file.attributes().ok());
            let bytes = state.charged.saturating_sub(state.visible);
            self.quota.give(Usage { bytes, files: 0 });
            state.charged = state.visible;
            return done;
        }
        // Even if it failed afterwards, the content is visible.
        state.is_apart = false;
        state.visible = size(self.file.attributes().ok());
        state.charged = state.visible;
        // If another program has removed it at once, it counts like all that is not noticed.
        state.held = self.quota.hold(&*self.file).unwrap_or_default();
        // It counts as a file of its own: what it replaces still counts while it is open.
        self.quota.add(Usage { bytes: 0, files: u64::from(!state.charged_name) });
        if let Some(replaced) = before {
            self.quota.gone(replaced);
        }
        done
    }

    /// Changes the file while its size is known. What nobody else sees keeps nobody else waiting. `act` gets what is charged where the old
    /// content stays until the new one appears.
    fn changing(&self, act: impl FnOnce(Option<&mut u64>) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_apart {
            return act(None);
        }
        if self.file.writes_apart() {
            return act(Some(&mut state.charged));
        }
        drop(state);
        let _gate = self.quota.gate();
        act(None)
    }

    /// Does something after which the file, for which `from` bytes are charged, may be `to` bytes long. What is charged then.
    fn growing(&self, from: u64, to: u64, act: impl FnOnce() -> Result<()>) -> (u64, Result<()>) {
        let more = to.saturating_sub(from);
        if let Err(error) = self.quota.take(Usage { bytes: more, files: 0 }) {
            return (from, Err(error));
        }
        let done = act();
        let mut grown = more;
        if done.is_err() {
            // Part of it may have been written.
            grown = size(self.file.attributes().ok()).saturating_sub(from).min(more);
            self.quota.give(Usage { bytes: more - grown, files: 0 });
        }
        (from + grown, done)
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
        self.changing(|charged| {
            // Another handle may have changed the size: only the file itself knows it.
            let size = size(Some(self.file.attributes()?));
            let begin = if self.how.append { size } else { offset };
            let end = begin.saturating_add(bytes.len() as u64);
            let from = charged.as_deref().copied().unwrap_or(size);
            let (now, done) = self.growing(from, end, || self.file.write_at(offset, bytes));
            if let Some(charged) = charged {
                *charged = now;
            }
            done
        })
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
        self.changing(|charged| {
            if let Some(charged) = charged {
                // What becomes shorter stays as long as it was until it appears.
                let (now, done) = self.growing(*charged, new, || self.file.set_attributes(to));
                *charged = now;
                return done;
            }
            let before = size(Some(self.file.attributes()?));
            self.quota.take(Usage { bytes: new.saturating_sub(before), files: 0 })?;
            let set = self.file.set_attributes(to);
            // The size may have been set although another attribute was not.
            let after = self.file.attributes().ok().and_then(|found| found.size).unwrap_or(before);
            self.quota.give(Usage { bytes: before.max(new).saturating_sub(after), files: 0 });
            set
        })
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

    fn writes_apart(&self) -> bool {
        self.file.writes_apart()
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
        } else if self.file.writes_apart() {
            // What has changed since it was visible is forgotten.
            let bytes = state.charged.saturating_sub(state.visible);
            self.quota.give(Usage { bytes, files: 0 });
        }
        if let Some(held) = state.held {
            let file = &self.file;
            self.quota.release(held, || Usage { bytes: size(file.attributes().ok()), files: 1 });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::error::Error;
    use crate::local::{Folder, FolderOptions};
    use crate::view::View;
    use crate::volume::{Inode, Listing, Renaming};

    /// What takes long.
    struct Work {
        begun: Mutex<Sender<()>>,
        may_end: Mutex<Receiver<()>>,
    }

    impl Work {
        fn new() -> (Arc<Self>, Receiver<()>, Sender<()>) {
            let ((begun, begins), (ends, may_end)) = (channel(), channel());
            let work = Self { begun: Mutex::new(begun), may_end: Mutex::new(may_end) };
            (Arc::new(work), begins, ends)
        }

        fn wait(&self) {
            self.begun.lock().unwrap().send(()).unwrap();
            self.may_end.lock().unwrap().recv().unwrap();
        }
    }

    /// A folder that works for long: when a file is opened for changes, as for a copy, or like S3 when one is written or renamed.
    struct Slow {
        folder: Arc<Folder>,
        work: Arc<Work>,
        is_remote: bool,
        /// Whether a rename leaves both names, and fails.
        leaves_both: bool,
    }

    /// A file of which S3 has some parts.
    struct Late {
        file: Box<dyn File>,
        work: Arc<Work>,
        is_dirty: AtomicBool,
    }

    impl File for Late {
        fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
            self.file.read_at(offset, into)
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
            self.work.wait();
            self.is_dirty.store(true, Ordering::Relaxed);
            self.file.write_at(offset, bytes)
        }

        fn attributes(&self) -> Result<Attributes> {
            self.file.attributes()
        }

        fn set_attributes(&self, to: &Attributes) -> Result<()> {
            self.is_dirty.store(true, Ordering::Relaxed);
            self.file.set_attributes(to)
        }

        fn sync(&self) -> Result<()> {
            self.is_dirty.store(false, Ordering::Relaxed);
            Ok(())
        }

        fn is_apart(&self) -> bool {
            self.is_dirty.load(Ordering::Relaxed)
        }

        fn writes_apart(&self) -> bool {
            true
        }

        fn close(&self) -> Result<()> {
            self.sync()
        }
    }

    impl Volume for Slow {
        fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>> {
            if self.is_remote {
                let (file, work) = (self.folder.open(path, how)?, self.work.clone());
                return Ok(Box::new(Late { file, work, is_dirty: AtomicBool::new(false) }));
            }
            if how.changes() && !how.create {
                self.work.wait();
            }
            self.folder.open(path, how)
        }

        fn writes_apart(&self) -> bool {
            self.is_remote
        }

        fn renaming(
            &self,
            from: RemotePath,
            to: RemotePath,
            replace: bool,
        ) -> Result<Renaming<'_>> {
            self.work.wait();
            Ok(Box::new(move || self.rename(&from, &to, replace)))
        }

        fn attributes(&self, path: &RemotePath, follow: Follow) -> Result<Attributes> {
            self.folder.attributes(path, follow)
        }

        fn changes_apart(&self) -> bool {
            self.folder.changes_apart()
        }

        fn inode(&self, path: &RemotePath) -> Result<Option<Inode>> {
            self.folder.inode(path)
        }

        fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>> {
            self.folder.list(path)
        }

        fn set_attributes(&self, _: &RemotePath, _: &Attributes, _: Follow) -> Result<()> {
            Err(Error::not_found())
        }

        fn remove(&self, path: &RemotePath) -> Result<()> {
            self.folder.remove(path)
        }

        fn make_folder(&self, _: &RemotePath, _: Option<u32>) -> Result<()> {
            Err(Error::not_found())
        }

        fn remove_folder(&self, _: &RemotePath) -> Result<()> {
            Err(Error::not_found())
        }

        fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()> {
            if !self.leaves_both {
                return self.folder.rename(from, to, replace);
            }
            let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
            let mut content = vec![0; 1000];
            let len = self.folder.open(from, &OpenHow::reading())?.read_at(0, &mut content)?;
            self.folder.open(to, &how)?.write_at(0, &content[..len])?;
            Err(Error::failure("a copy has the new name"))
        }

        fn read_link(&self, _: &RemotePath) -> Result<Vec<u8>> {
            Err(Error::not_found())
        }

        fn symlink(&self, _: &[u8], _: &RemotePath) -> Result<()> {
            Err(Error::not_found())
        }

        fn hard_link(&self, _: &RemotePath, _: &RemotePath) -> Result<()> {
            Err(Error::not_found())
        }

        fn space(&self, _: &RemotePath) -> Result<Space> {
            Err(Error::not_found())
        }

        fn without_links(self: Arc<Self>) -> Arc<dyn Volume> {
            self
        }
    }

    fn path(text: &str) -> RemotePath {
        RemotePath::parse(text.as_bytes(), &RemotePath::root()).unwrap()
    }

    /// Opening a file to go on with it copies it: there must be room for the copy before, and others go on meanwhile.
    #[test]
    fn a_copy_is_counted_before_it_is_made_and_keeps_nobody_waiting() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("old"), [7; 600]).unwrap();
        let options = FolderOptions { atomic_uploads: true };
        let folder = Arc::new(Folder::open(home.path(), options).unwrap());
        let (work, begins, ends) = Work::new();
        let slow = Arc::new(Slow { folder, work, is_remote: false, leaves_both: false });
        let used = Usage { bytes: 600, files: 1 };
        let quota = Arc::new(Quota::new(Some(1000), None, used));
        let view = View::new(|| 0).mount_with(RemotePath::root(), slow, Some(quota.clone()));
        let goes_on = OpenHow { write: true, ..OpenHow::default() };
        let refused = view.open(&path("/old"), &goes_on).err().unwrap();
        assert!(refused.text.contains("quota exceeded"), "{}", refused.text);
        assert!(begins.try_recv().is_err(), "it began to copy");
        assert_eq!(quota.used(), used);
        quota.limit(Some(2000), None);
        std::thread::scope(|scope| {
            let opens = scope.spawn(|| view.open(&path("/old"), &goes_on).unwrap());
            begins.recv().unwrap();
            assert_eq!(quota.used(), Usage { bytes: 1200, files: 1 });
            let new = OpenHow { create: true, ..goes_on };
            let other = view.open(&path("/new"), &new).unwrap();
            other.write_at(0, &[1; 300]).unwrap();
            other.close().unwrap();
            drop(other);
            ends.send(()).unwrap();
            let copy = opens.join().unwrap();
            assert!(copy.write_at(600, &[8; 600]).is_err());
            copy.write_at(600, &[8; 500]).unwrap();
            copy.close().unwrap();
        });
        assert_eq!(quota.used(), Usage { bytes: 1400, files: 2 });
        // One that is not closed is forgotten.
        ends.send(()).unwrap();
        quota.limit(Some(3000), None);
        drop(view.open(&path("/old"), &goes_on).unwrap());
        assert_eq!(quota.used(), Usage { bytes: 1400, files: 2 });
    }
    /// Parts of a file of S3 and copies for its renames take long. Others go on meanwhile, and all of it is counted.
    #[test]
    fn what_s3_does_for_long_keeps_nobody_waiting() {
        for leaves_both in [false, true] {
            let home = tempfile::tempdir().unwrap();
            std::fs::write(home.path().join("old"), [7; 600]).unwrap();
            std::fs::write(home.path().join("gone"), [7; 100]).unwrap();
            let folder = Arc::new(Folder::open(home.path(), FolderOptions::default()).unwrap());
            let (work, begins, ends) = Work::new();
            let slow = Arc::new(Slow { folder, work, is_remote: true, leaves_both });
            let quota = Arc::new(Quota::new(None, None, Usage { bytes: 700, files: 2 }));
            let view = View::new(|| 0).mount_with(RemotePath::root(), slow, Some(quota.clone()));
            let other = |name: &str| view.make_folder(&path(name), None);
            let goes_on = OpenHow { write: true, ..OpenHow::default() };
            let file = view.open(&path("/old"), &goes_on).unwrap();
            std::thread::scope(|scope| {
                let writes = scope.spawn(|| file.write_at(600, &[8; 50]));
                begins.recv().unwrap();
                assert!(other("/first").is_err(), "not in this volume, but at once");
                ends.send(()).unwrap();
                writes.join().unwrap().unwrap();
            });
            file.close().unwrap();
            drop(file);
            assert_eq!(quota.used(), Usage { bytes: 750, files: 2 });
            // What is cut off is there until the rest appears.
            for is_closed in [false, true] {
                let file = view.open(&path("/old"), &goes_on).unwrap();
                let shorter = Attributes { size: Some(500), ..Attributes::default() };
                file.set_attributes(&shorter).unwrap();
                assert_eq!(quota.used(), Usage { bytes: 750, files: 2 });
                if is_closed {
                    file.close().unwrap();
                } else {
                    // S3 would have kept the old content.
                    std::fs::write(home.path().join("old"), [7; 650]).unwrap();
                }
                drop(file);
                let bytes = if is_closed { 600 } else { 750 };
                assert_eq!(quota.used(), Usage { bytes, files: 2 });
            }
            std::thread::scope(|scope| {
                let renames = scope.spawn(|| view.rename(&path("/old"), &path("/gone"), true));
                begins.recv().unwrap();
                assert!(other("/second").is_err());
                ends.send(()).unwrap();
                assert_eq!(renames.join().unwrap().is_err(), leaves_both);
            });
            let now = if leaves_both {
                Usage { bytes: 1000, files: 2 }
            } else {
                Usage { bytes: 500, files: 1 }
            };
            assert_eq!((quota.used(), view.measure().unwrap()), (now, now));
            // One copy may remain beyond the limit, and no second one; what leaves none goes on.
            quota.limit(Some(100), None);
            std::thread::scope(|scope| {
                let renames = scope.spawn(|| view.rename(&path("/gone"), &path("/new"), false));
                if !leaves_both {
                    begins.recv().unwrap();
                    ends.send(()).unwrap();
                }
                assert_eq!(renames.join().unwrap().is_err(), leaves_both);
            });
            assert!(begins.try_recv().is_err(), "it was prepared");
            assert_eq!(quota.used(), now);
            let last = if leaves_both { "/gone" } else { "/new" };
            let left = ["/old", last].map(|name| view.remove(&path(name)).is_ok());
            assert_eq!(left, [leaves_both, true]);
            assert_eq!(quota.used(), Usage::default());
        }
    }
}
