//! The files of a Transfer user: directories of buckets, with the rights of the user's role at each path.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use outlast_api::service::Sink;
use outlast_domain::transfer::{Access, Account, Located};
use outlast_sftp::attributes::{Attributes, REGULAR};
use outlast_sftp::error::{Error, Result, Status};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::{Entry, File, Follow, Listing, Name, OpenHow, Space, Volume};

use crate::server::Clock;

/// Where buckets are.
pub trait Buckets: Send + Sync {
    /// The bucket with this name, which follows no symbolic links: rights are those of a path, and a link would carry them
    /// elsewhere.
    ///
    /// # Errors
    /// It does not exist, or cannot be opened.
    fn open(&self, bucket: &str) -> Result<Arc<dyn Volume>>;

    /// Makes a bucket if it does not exist, for a home that an administrator put there.
    ///
    /// # Errors
    /// It cannot be made.
    fn make(&self, bucket: &str) -> Result<()>;
}

/// What buckets are for.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) buckets: Arc<dyn Buckets>,
    /// Decides which accounts may use which buckets.
    pub(crate) sink: Arc<dyn Sink>,
    /// Whether uploads to folders of the machine become visible when they are closed.
    pub(crate) atomic_uploads: bool,
}

/// A user's files as one volume.
#[derive(Clone)]
pub(crate) struct Home {
    account: Arc<Account>,
    storage: Storage,
    clock: Clock,
}

/// A path in a bucket.
struct Object {
    bucket: String,
    path: Vec<u8>,
    is_mapped: bool,
    more: Vec<Vec<u8>>,
}

impl Object {
    /// Takes the name of a file off, so that its directory remains.
    fn take_name_off(&mut self) {
        let end = self.path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.path.truncate(end);
    }
}

/// Something at a path of the user.
enum Spot {
    Object(Object),
    /// A directory with these names, which exists only because of what is below it.
    Virtual(Vec<Vec<u8>>),
}

impl Home {
    pub(crate) fn new(account: Arc<Account>, storage: Storage, clock: Clock) -> Self {
        Self { account, storage, clock }
    }

    /// Makes the directories that the user's home names, because directories of a bucket need not be made with AWS.
    pub(super) fn prepare(&self) {
        let directories = &self.account.directories;
        let mut waiting = vec![b"/".to_vec(), directories.start()];
        while let Some(path) = waiting.pop() {
            let (more, object) = match directories.locate(&path) {
                Located::Object { bucket, path, more, is_mapped, is_file } => {
                    let mut object = Object { bucket, path, is_mapped, more: more.clone() };
                    if is_file {
                        object.take_name_off();
                    }
                    (more, Some(object))
                }
                Located::Virtual(more) => (more, None),
                Located::Missing => continue,
            };
            waiting.extend(more.iter().map(|name| [&path[..], b"/", &name[..]].concat()));
            let Some(object) = object else { continue };
            if let Err(error) = self.make(&object) {
                // The first request that needs it fails, and says so to the user.
                tracing::warn!(user = %self.account.user_arn, %error, "a directory of a home cannot be made");
            }
        }
    }

    /// Makes the bucket and the directories of a file that its user may write. With AWS neither directories nor rights on them
    /// are needed.
    ///
    /// # Errors
    /// The user may not write the file, or something cannot be made.
    pub(crate) fn make_room(&self, path: &RemotePath) -> Result<()> {
        let mut object = self.object(path)?;
        self.may(Access::Put, &object, false)?;
        object.take_name_off();
        self.make(&object)
    }

    fn make(&self, object: &Object) -> Result<()> {
        self.may_use(object)?;
        self.storage.buckets.make(&object.bucket)?;
        let bucket = self.bucket(object)?;
        let mut folder = RemotePath::root();
        for name in object.path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            folder = folder.join(name);
            match bucket.attributes(&folder, Follow::No) {
                Ok(_) => {}
                Err(error) if error.status == Status::NoSuchFile => {
                    // Another session may make it at the same time.
                    let _ = bucket.make_folder(&folder, None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn spot(&self, path: &RemotePath) -> Result<Spot> {
        match self.account.directories.locate(path.as_bytes()) {
            Located::Object { bucket, path, is_mapped, more, .. } => {
                Ok(Spot::Object(Object { bucket, path, is_mapped, more }))
            }
            Located::Virtual(names) => Ok(Spot::Virtual(names)),
            Located::Missing => Err(Error::not_found()),
        }
    }

    /// The object at a path; directories that exist only by mappings cannot be changed.
    fn object(&self, path: &RemotePath) -> Result<Object> {
        match self.spot(path)? {
            Spot::Object(object) => Ok(object),
            Spot::Virtual(_) => Err(Error::denied("this directory is made of mappings")),
        }
    }

    /// An object that is not the target of a mapping.
    fn below_mapping(&self, path: &RemotePath) -> Result<Object> {
        let object = self.object(path)?;
        if object.is_mapped || !object.more.is_empty() {
            return Err(Error::denied(
                "a mapping leads here: it can be neither removed nor renamed",
            ));
        }
        Ok(object)
    }

    /// The entry that a mapping adds to a directory.
    fn mapped(&self, directory: &RemotePath, name: Vec<u8>) -> Entry {
        let path = directory.join(&name);
        if !matches!(
            self.account.directories.locate(path.as_bytes()),
            Located::Object { is_file: true, .. }
        ) {
            return Entry { name, attributes: Attributes::virtual_folder(), links: 2 };
        }
        // One that is not there yet can be written.
        let absent =
            Attributes { size: Some(0), mode: Some(REGULAR | 0o644), ..Default::default() };
        let attributes = self.attributes(&path, Follow::No).unwrap_or(absent);
        Entry { name, attributes, links: 1 }
    }

    fn may_use(&self, object: &Object) -> Result<()> {
        if self.storage.sink.may_use(&self.account.scope.account, &object.bucket) {
            return Ok(());
        }
        Err(Error::denied("the server's account may not use this bucket"))
    }

    fn bucket(&self, object: &Object) -> Result<Arc<dyn Volume>> {
        self.may_use(object)?;
        self.storage.buckets.open(&object.bucket)
    }

    fn may(&self, access: Access, object: &Object, is_directory: bool) -> Result<()> {
        let slash: &[u8] = if is_directory && !object.path.is_empty() { b"/" } else { b"" };
        let path = [&object.path, slash].concat();
        let decided = self.account.rights.decide(access, &object.bucket, &path, (self.clock)());
        decided.map_err(|_| Error::denied("your role does not allow this"))
    }

    /// Whether the user may know that something exists: a user who may list, read or write it may.
    fn may_see(&self, object: &Object) -> Result<()> {
        let may = |access, is_directory| self.may(access, object, is_directory).is_ok();
        let sees = may(Access::List, true)
            || may(Access::List, false)
            || may(Access::Get, false)
            || may(Access::Put, false)
            || may(Access::Put, true);
        if sees { Ok(()) } else { Err(Error::denied("your role does not allow this")) }
    }
}

fn within(object: &Object) -> Result<RemotePath> {
    RemotePath::parse(&object.path, &RemotePath::root())
}

impl Volume for Home {
    fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>> {
        let object = self.object(path)?;
        if how.read || !how.changes() {
            self.may(Access::Get, &object, false)?;
        }
        if how.changes() {
            self.may(Access::Put, &object, false)?;
        }
        let file = self.bucket(&object)?.open(&within(&object)?, how)?;
        let may_set = how.changes() || self.may(Access::Put, &object, false).is_ok();
        Ok(Box::new(Held { file, may_set, ignores_set_stat: self.account.ignores_set_stat }))
    }

    fn attributes(&self, path: &RemotePath, follow: Follow) -> Result<Attributes> {
        match self.spot(path)? {
            Spot::Virtual(_) => Ok(Attributes::virtual_folder()),
            Spot::Object(object) => {
                self.may_see(&object)?;
                self.bucket(&object)?.attributes(&within(&object)?, follow)
            }
        }
    }

    fn set_attributes(&self, path: &RemotePath, to: &Attributes, follow: Follow) -> Result<()> {
        let object = self.object(path)?;
        self.may(Access::Put, &object, false)?;
        if self.account.ignores_set_stat {
            return Ok(());
        }
        self.bucket(&object)?.set_attributes(&within(&object)?, to, follow)
    }

    fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>> {
        let (names, rest) = match self.spot(path)? {
            Spot::Virtual(names) => (names, None),
            Spot::Object(object) => {
                self.may(Access::List, &object, true)?;
                let listing = self.bucket(&object)?.list(&within(&object)?)?;
                (object.more, Some(listing))
            }
        };
        let (home, directory) = (self.clone(), path.clone());
        Ok(Box::new(Names { home, directory, names, rest }))
    }

    fn remove(&self, path: &RemotePath) -> Result<()> {
        let object = self.below_mapping(path)?;
        self.may(Access::Delete, &object, false)?;
        self.bucket(&object)?.remove(&within(&object)?)
    }

    fn make_folder(&self, path: &RemotePath, mode: Option<u32>) -> Result<()> {
        let object = self.object(path)?;
        self.may(Access::Put, &object, true)?;
        self.bucket(&object)?.make_folder(&within(&object)?, mode)
    }

    fn remove_folder(&self, path: &RemotePath) -> Result<()> {
        let object = self.below_mapping(path)?;
        self.may(Access::Delete, &object, true)?;
        self.bucket(&object)?.remove_folder(&within(&object)?)
    }

    fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()> {
        let (source, target) = (self.below_mapping(from)?, self.below_mapping(to)?);
        let bucket = self.bucket(&source)?;
        let (from, to) = (within(&source)?, within(&target)?);
        let found = bucket.attributes(&from, Follow::No);
        let is_directory = found.as_ref().is_ok_and(Attributes::is_folder);
        if !is_directory {
            self.may(Access::Get, &source, false)?;
        }
        self.may(Access::Delete, &source, is_directory)?;
        self.may(Access::Put, &target, is_directory)?;
        if is_directory {
            // What is in it would get the rights of another path, by anybody. AWS refuses it, too.
            return Err(Error::unsupported(
                "directories cannot be renamed: make the new one and move the files",
            ));
        }
        if source.bucket != target.bucket {
            return Err(Error::unsupported("the new name is in another bucket: copy and remove"));
        }
        // A directory perhaps, if that cannot be read.
        found?;
        bucket.rename(&from, &to, replace)
    }

    fn read_link(&self, path: &RemotePath) -> Result<Vec<u8>> {
        let object = self.object(path)?;
        self.may(Access::Get, &object, false)?;
        self.bucket(&object)?.read_link(&within(&object)?)
    }

    fn symlink(&self, _: &[u8], _: &RemotePath) -> Result<()> {
        Err(Error::unsupported("buckets have no symbolic links"))
    }

    fn hard_link(&self, _: &RemotePath, _: &RemotePath) -> Result<()> {
        Err(Error::unsupported("buckets have no hard links"))
    }

    fn space(&self, path: &RemotePath) -> Result<Space> {
        let object = self.object(path)?;
        self.may_see(&object)?;
        self.bucket(&object)?.space(&within(&object)?)
    }

    fn without_links(self: Arc<Self>) -> Arc<dyn Volume> {
        // Buckets follow none.
        self
    }
}

/// An open file. A handle for reading alone is no right to change the file's attributes, although the kernel would allow it.
struct Held {
    file: Box<dyn File>,
    may_set: bool,
    ignores_set_stat: bool,
}

impl File for Held {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, into)
    }

    fn read_now(&self, offset: u64, into: &mut [u8]) -> bool {
        self.file.read_now(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn attributes(&self) -> Result<Attributes> {
        self.file.attributes()
    }

    fn set_attributes(&self, to: &Attributes) -> Result<()> {
        if !self.may_set {
            return Err(Error::denied("your role does not allow this"));
        }
        if self.ignores_set_stat { Ok(()) } else { self.file.set_attributes(to) }
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    fn space(&self) -> Result<Space> {
        self.file.space()
    }

    fn settle(&self) -> Result<()> {
        self.file.settle()
    }

    fn content(&self) -> Result<OwnedFd> {
        self.file.content()
    }

    fn replaces(&self, volume: &dyn Volume, path: &RemotePath) -> Result<Option<Name>> {
        self.file.replaces(volume, path)
    }

    fn is_apart(&self) -> bool {
        self.file.is_apart()
    }

    fn writes_apart(&self) -> bool {
        self.file.writes_apart()
    }

    fn close(&self) -> Result<()> {
        self.file.close()
    }
}

/// Names that mappings add, then what is in the bucket.
struct Names {
    home: Home,
    directory: RemotePath,
    names: Vec<Vec<u8>>,
    rest: Option<Box<dyn Listing>>,
}

impl Listing for Names {
    fn next(&mut self) -> Result<Option<Entry>> {
        let Some(listing) = &mut self.rest else {
            return Ok(self.next_mapped());
        };
        loop {
            match listing.next()? {
                // A mapping hides what has its name.
                Some(entry) if self.names.contains(&entry.name) => {}
                Some(entry) => return Ok(Some(entry)),
                None => break,
            }
        }
        self.rest = None;
        Ok(self.next_mapped())
    }
}

impl Names {
    /// Attributes of a file are asked for when its turn comes: a listing may end before.
    fn next_mapped(&mut self) -> Option<Entry> {
        let name = self.names.pop()?;
        Some(self.home.mapped(&self.directory, name))
    }
}
