//! One request while it is carried out: what it is, for those who audit or refuse it, and how it is run.

mod open;
mod record;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

pub use open::Open;
use open::What;
pub use record::Record;

use crate::error::{Error, Result, Status};
use crate::handles::Held;
use crate::limits::{COPY_BUFFER, MAX_DATA, MAX_NAMES_BYTES, MAX_PACKET};
use crate::longname::long_name;
use crate::path::RemotePath;
use crate::reply::{DATA_HEADER, Name, Reply, data_header};
use crate::request::Request;
use crate::view::View;
use crate::volume::{File, Follow, OpenHow};
use crate::wire::Writer;

/// The kinds of operations, see [`Operation::kind`].
pub const KINDS: &[&str] = &[
    "open",
    "close",
    "read",
    "write",
    "lstat",
    "fstat",
    "setstat",
    "fsetstat",
    "opendir",
    "readdir",
    "remove",
    "mkdir",
    "rmdir",
    "realpath",
    "stat",
    "rename",
    "readlink",
    "symlink",
    "posix-rename",
    "statvfs",
    "fstatvfs",
    "hardlink",
    "fsync",
    "lsetstat",
    "limits",
    "expand-path",
    "copy-data",
    "home-directory",
    "users-groups-by-id",
];

/// A request that may run now.
pub struct Operation {
    pub(crate) id: u32,
    /// Number within the session, by which the session knows it.
    pub(crate) serial: u64,
    pub(crate) request: Request,
    /// What the request's handle stands for, and the second handle of COPY-DATA.
    pub(crate) open: Option<Arc<Open>>,
    pub(crate) other: Option<Arc<Open>>,
    /// Handle for what the request opens.
    pub(crate) new_handle: Bytes,
    pub(crate) max_handles: usize,
    /// The place of what the request opens.
    pub(crate) held: Option<Held>,
}

/// The end of an operation, for [`crate::session::Session::complete`].
pub struct Outcome {
    pub(crate) serial: u64,
    pub(crate) packet: Vec<u8>,
    pub(crate) opened: Option<(Bytes, Arc<Open>)>,
    /// What happened, for audit events.
    pub record: Record,
}

impl Outcome {
    /// What is known of what was opened, if there is no session any more that could take it.
    #[must_use]
    pub fn abandoned(&self) -> Option<Record> {
        self.opened.as_ref().map(|(_, open)| open.abandoned())
    }
}

/// What a request did so far.
#[derive(Default)]
struct Done {
    bytes_read: u64,
    bytes_written: u64,
    /// Whether it is the first request of its handle whose data could not be written.
    is_broken: bool,
    /// Whether an earlier read or write of its handle was denied, as it is.
    is_repeated: bool,
    /// The place of what it opens.
    held: Option<Held>,
    opened: Option<Arc<Open>>,
}

impl Done {
    /// It has opened something.
    fn opens(&mut self, path: RemotePath, what: What, since: i64) {
        self.opened = Some(Arc::new(Open::new(path, what, since, self.held.take())));
    }
}

impl Operation {
    /// Kind of the request, in lower case: `open`, `read`, `rename` and so on; the extensions by OpenSSH's names without
    /// the domain.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.request {
            Request::Open { .. } => "open",
            Request::Close { .. } => "close",
            Request::Read { .. } => "read",
            Request::Write { .. } => "write",
            Request::LStat { .. } => "lstat",
            Request::FStat { .. } => "fstat",
            Request::SetStat { .. } => "setstat",
            Request::FSetStat { .. } => "fsetstat",
            Request::OpenDir { .. } => "opendir",
            Request::ReadDir { .. } => "readdir",
            Request::Remove { .. } => "remove",
            Request::MkDir { .. } => "mkdir",
            Request::RmDir { .. } => "rmdir",
            Request::RealPath { .. } => "realpath",
            Request::Stat { .. } => "stat",
            Request::Rename { .. } => "rename",
            Request::ReadLink { .. } => "readlink",
            Request::Symlink { .. } => "symlink",
            Request::PosixRename { .. } => "posix-rename",
            Request::StatVfs { .. } => "statvfs",
            Request::FStatVfs { .. } => "fstatvfs",
            Request::HardLink { .. } => "hardlink",
            Request::FSync { .. } => "fsync",
            Request::LSetStat { .. } => "lsetstat",
            Request::Limits => "limits",
            Request::ExpandPath { .. } => "expand-path",
            Request::CopyData { .. } => "copy-data",
            Request::HomeDirectory { .. } => "home-directory",
            Request::UsersGroups { .. } => "users-groups-by-id",
            Request::Unknown { .. } => "unknown",
        }
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Path that it concerns, in the user's view: that of the request or of its handle.
    #[must_use]
    pub fn path(&self, view: &View) -> Option<RemotePath> {
        let text = match &self.request {
            Request::Open { path, .. }
            | Request::LStat { path }
            | Request::SetStat { path, .. }
            | Request::OpenDir { path }
            | Request::Remove { path }
            | Request::MkDir { path, .. }
            | Request::RmDir { path }
            | Request::RealPath { path }
            | Request::Stat { path }
            | Request::ReadLink { path }
            | Request::StatVfs { path }
            | Request::LSetStat { path, .. }
            | Request::ExpandPath { path } => path,
            Request::Rename { from, .. }
            | Request::PosixRename { from, .. }
            | Request::HardLink { from, .. } => from,
            Request::Symlink { link, .. } => link,
            _ => return self.open.as_ref().map(|open| open.path.clone()),
        };
        view.path(text).ok()
    }

    /// Its second path: the new one of renames and hard links, the target file of COPY-DATA.
    #[must_use]
    pub fn to(&self, view: &View) -> Option<RemotePath> {
        match &self.request {
            Request::Rename { to, .. }
            | Request::PosixRename { to, .. }
            | Request::HardLink { to, .. } => view.path(to).ok(),
            _ => self.other.as_ref().map(|open| open.path.clone()),
        }
    }

    /// Whether it may change files.
    #[must_use]
    pub fn changes(&self) -> bool {
        match &self.request {
            Request::Open { how, .. } => how.changes(),
            Request::Write { .. }
            | Request::SetStat { .. }
            | Request::FSetStat { .. }
            | Request::LSetStat { .. }
            | Request::Remove { .. }
            | Request::MkDir { .. }
            | Request::RmDir { .. }
            | Request::Rename { .. }
            | Request::PosixRename { .. }
            | Request::Symlink { .. }
            | Request::HardLink { .. }
            | Request::CopyData { .. } => true,
            Request::Close { .. } => self.open.as_ref().is_some_and(|open| open.writes()),
            _ => false,
        }
    }

    /// Whether it waits for storage; others may run on any thread.
    #[must_use]
    pub fn blocks(&self) -> bool {
        !matches!(
            self.request,
            Request::RealPath { .. }
                | Request::Limits
                | Request::ExpandPath { .. }
                | Request::HomeDirectory { .. }
                | Request::UsersGroups { .. }
                | Request::Unknown { .. }
        )
    }

    /// Carries it out if it is a read that needs no waiting; otherwise the operation comes back. A reply as long as `spare` is made
    /// there, and takes it away: a caller that gives replies back when they are sent saves the time to fill new memory.
    ///
    /// # Errors
    /// It may block, or fail: see [`Operation::run`].
    pub fn try_now(
        self,
        view: &View,
        spare: &mut Vec<u8>,
    ) -> std::result::Result<Outcome, Box<Self>> {
        let mut done = Done::default();
        let packet = match (&self.request, &self.open) {
            (Request::Read { offset, length, .. }, Some(open)) => {
                let now = |file: &dyn File, into: &mut [u8]| {
                    Ok(if file.read_now(*offset, into) { into.len() } else { 0 })
                };
                self.read(open, *length, &mut done, spare, now).ok()
            }
            _ => None,
        };
        match packet {
            Some(packet) => Ok(self.outcome(view, done, packet, None)),
            None => Err(Box::new(self)),
        }
    }

    /// Carries it out. It may block.
    #[must_use]
    pub fn run(self, view: &View) -> Outcome {
        self.run_until(view, &|| false)
    }

    /// Carries it out, unless `is_over` says that the session has ended meanwhile: then it fails, and a file that it would have closed
    /// is abandoned. A copy asks again between its pieces, because it may last for hours.
    #[must_use]
    pub fn run_until(mut self, view: &View, is_over: &dyn Fn() -> bool) -> Outcome {
        if is_over() {
            // The session has no handle of the file any more, so that its end does not tell of it.
            let left_open = match &self.request {
                Request::Close { .. } => self.open.as_ref().map(|open| open.abandoned()),
                _ => None,
            };
            let refused = self.refuse(view, ended());
            return match left_open {
                Some(record) => Outcome { record, ..refused },
                None => refused,
            };
        }
        let mut done = Done::default();
        if let (Request::Read { offset, length, .. }, Some(open)) = (&self.request, &self.open) {
            let read = |file: &dyn File, into: &mut [u8]| file.read_at(*offset, into);
            return match self.read(open, *length, &mut done, &mut Vec::new(), read) {
                Ok(packet) => self.outcome(view, done, packet, None),
                Err(error) => self.failed(view, done, error),
            };
        }
        done.held = self.held.take();
        match self.reply(view, &mut done, is_over) {
            Ok(reply) => {
                let packet = reply.write(self.id);
                self.outcome(view, done, packet, None)
            }
            Err(error) => self.failed(view, done, error),
        }
    }

    /// Ends it without carrying it out: the caller's rules do not allow it.
    #[must_use]
    pub fn refuse(self, view: &View, error: Error) -> Outcome {
        self.failed(view, Done::default(), error)
    }

    fn failed(self, view: &View, mut done: Done, error: Error) -> Outcome {
        if let (Request::Read { .. } | Request::Write { .. }, Some(open)) =
            (&self.request, &self.open)
            && error.status == Status::PermissionDenied
        {
            done.is_repeated = open.was_denied.swap(true, Ordering::Relaxed);
        }
        let packet = Reply::Status(error.clone()).write(self.id);
        self.outcome(view, done, packet, Some(error))
    }

    fn outcome(self, view: &View, done: Done, packet: Vec<u8>, error: Option<Error>) -> Outcome {
        let Done { bytes_read, bytes_written, is_broken, is_repeated, opened, held: _ } = done;
        let (status, text) =
            error.map_or((Status::Ok, "".into()), |error| (error.status, error.text));
        let record = match (&self.request, &self.open) {
            (Request::Close { .. }, Some(open)) => Record { status, text, ..open.ended("close") },
            (request, _) => {
                let how = match request {
                    Request::Open { how, .. } => Some(effective(how)),
                    _ => None,
                };
                let writes = how.is_some_and(|how| how.changes());
                let (kind, path, to) = (self.kind(), self.path(view), self.to(view));
                let (target, attributes) = record::details(request);
                let since = self.open.as_ref().map_or_else(|| view.now(), |open| open.since);
                Record {
                    kind,
                    path,
                    to,
                    target,
                    attributes,
                    how,
                    writes,
                    is_apart: false,
                    is_broken,
                    is_repeated,
                    bytes_read,
                    bytes_written,
                    since,
                    status,
                    text,
                }
            }
        };
        let opened = opened.map(|open| (self.new_handle, open));
        Outcome { serial: self.serial, packet, opened, record }
    }

    fn handle(&self) -> Result<&Open> {
        self.open.as_deref().ok_or_else(|| Error::failure("no such handle"))
    }

    /// Reads into the reply itself, so that data is not copied.
    fn read(
        &self,
        open: &Open,
        length: u32,
        done: &mut Done,
        spare: &mut Vec<u8>,
        read: impl FnOnce(&dyn File, &mut [u8]) -> Result<usize>,
    ) -> Result<Vec<u8>> {
        let (file, how) = open.file()?;
        if !how.read {
            return Err(Error::denied("the file is not open for reading"));
        }
        let length = usize::try_from(length).unwrap_or(MAX_DATA).min(MAX_DATA);
        // Only one of the same length: what waits for its client must not hold more memory than its bytes.
        let is_spare = spare.len() == DATA_HEADER + length;
        let mut packet =
            if is_spare { std::mem::take(spare) } else { vec![0; DATA_HEADER + length] };
        let read = read(file, &mut packet[DATA_HEADER..])?;
        if read == 0 && length > 0 {
            return Err(Error::end());
        }
        packet.truncate(DATA_HEADER + read);
        if read < length {
            // It may wait for a client that does not read.
            packet.shrink_to_fit();
        }
        data_header(&mut packet, self.id, read);
        done.bytes_read = read as u64;
        open.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(packet)
    }

    fn reply(&self, view: &View, done: &mut Done, is_over: &dyn Fn() -> bool) -> Result<Reply> {
        match &self.request {
            Request::Open { path, how, .. } => {
                let path =
                    if how.create { file_path(view, path)? } else { found_path(view, path)? };
                let how = effective(how);
                let file = view.open(&path, &how)?;
                done.opens(path, What::File(file, how), view.now());
                Ok(Reply::Handle(self.new_handle.clone()))
            }
            Request::OpenDir { path } => {
                let path = view.path(path)?;
                let listing = Mutex::new(view.list(&path)?);
                done.opens(path, What::Folder(listing), view.now());
                Ok(Reply::Handle(self.new_handle.clone()))
            }
            Request::Close { .. } => {
                let open = self.handle()?;
                match &open.what {
                    What::File(file, _) => {
                        open.refuse_broken(&**file)?;
                        file.close().map(|()| Reply::ok())
                    }
                    What::Folder(_) => Ok(Reply::ok()),
                }
            }
            Request::Read { .. } => Err(Error::failure("no such handle")),
            Request::Write { offset, data, .. } => {
                let open = self.handle()?;
                let (file, how) = open.file()?;
                if !(how.write || how.append) {
                    return Err(Error::denied("the file is not open for writing"));
                }
                let written = file.write_at(*offset, data);
                open.note_apart(file);
                written.inspect_err(|_| {
                    done.is_broken = !open.is_broken.swap(true, Ordering::Relaxed);
                })?;
                done.bytes_written = data.len() as u64;
                open.bytes_written.fetch_add(data.len() as u64, Ordering::Relaxed);
                Ok(Reply::ok())
            }
            Request::ReadDir { .. } => self.names(view),
            Request::Stat { path } => {
                view.attributes(&view.path(path)?, Follow::Yes).map(Reply::Attributes)
            }
            Request::LStat { path } => {
                view.attributes(&view.path(path)?, Follow::No).map(Reply::Attributes)
            }
            Request::FStat { .. } => match &self.handle()?.what {
                What::File(file, _) => file.attributes().map(Reply::Attributes),
                What::Folder(_) => {
                    view.attributes(&self.handle()?.path, Follow::Yes).map(Reply::Attributes)
                }
            },
            Request::RealPath { path } => Ok(Reply::path(view.path(path)?.as_bytes())),
            Request::ExpandPath { path } => expand(view, path),
            Request::HomeDirectory { user } => Ok(Reply::path(view.home_of(user)?.as_bytes())),
            Request::ReadLink { path } => Ok(Reply::path(&view.read_link(&view.path(path)?)?)),
            Request::StatVfs { path } => Ok(Reply::space(&view.space(&view.path(path)?)?)),
            Request::FStatVfs { .. } => {
                let open = self.handle()?;
                let space = match &open.what {
                    What::File(file, _) => file.space()?,
                    What::Folder(_) => view.space(&open.path)?,
                };
                Ok(Reply::space(&space))
            }
            Request::Limits => Ok(self.limits()),
            Request::UsersGroups { users, groups } => {
                let owners = view.owner_names();
                let list = |ids: &[u32], names: &std::collections::BTreeMap<u32, String>| {
                    let mut writer = Writer::bare();
                    // PROTOCOL, section 4.12: an unknown number has an empty name.
                    ids.iter().for_each(|id| {
                        writer.string(names.get(id).map_or("", String::as_str).as_bytes());
                    });
                    writer.into_bytes()
                };
                let mut writer = Writer::bare();
                writer.string(&list(users, &owners.users));
                writer.string(&list(groups, &owners.groups));
                Ok(Reply::Extended(writer.into_bytes().into()))
            }
            Request::Unknown { .. } => {
                Err(Error::unsupported("this server does not know the request"))
            }
            _ => self.change(view, done, is_over).map(|()| Reply::ok()),
        }
    }

    /// Requests that change files and reply with a status only.
    fn change(&self, view: &View, done: &mut Done, is_over: &dyn Fn() -> bool) -> Result<()> {
        match &self.request {
            Request::SetStat { path, attributes } => {
                view.set_attributes(&view.path(path)?, attributes, Follow::Yes)
            }
            Request::LSetStat { path, attributes } => {
                view.set_attributes(&view.path(path)?, attributes, Follow::No)
            }
            Request::FSetStat { attributes, .. } => {
                let open = self.handle()?;
                view.may_set(&open.path, attributes)?;
                match &open.what {
                    What::File(file, how) if attributes.size.is_none() || how.changes() => {
                        let set = file.set_attributes(attributes);
                        open.note_apart(&**file);
                        set
                    }
                    What::File(..) => Err(Error::denied("the file is not open for writing")),
                    What::Folder(_) => view.set_attributes(&open.path, attributes, Follow::Yes),
                }
            }
            Request::Remove { path } => view.remove(&view.path(path)?),
            Request::MkDir { path, attributes } => {
                view.make_folder(&view.path(path)?, attributes.mode)
            }
            Request::RmDir { path } => view.remove_folder(&view.path(path)?),
            Request::Rename { from, to } => rename(view, from, to, false),
            Request::PosixRename { from, to } => rename(view, from, to, true),
            Request::Symlink { target, link } => view.symlink(target, &file_path(view, link)?),
            Request::HardLink { from, to } => {
                view.hard_link(&view.path(from)?, &file_path(view, to)?)
            }
            Request::FSync { .. } => {
                let open = self.handle()?;
                let (file, _) = open.file()?;
                open.refuse_broken(file)?;
                let synced = file.sync();
                open.is_apart.store(file.is_apart(), Ordering::Relaxed);
                synced.inspect_err(|error| {
                    // A disk tells once that it has lost something, so that CLOSE would succeed.
                    let _ = open.unsynced.set(error.clone());
                })
            }
            Request::CopyData { offset, length, to_offset, .. } => {
                self.copy(*offset, *length, *to_offset, done, is_over)
            }
            // All others have been answered.
            _ => Err(Status::OpUnsupported.into()),
        }
    }

    /// Names of an open folder, as many as fit into one reply.
    fn names(&self, view: &View) -> Result<Reply> {
        let What::Folder(listing) = &self.handle()?.what else {
            return Err(Error::failure("the handle is that of a file"));
        };
        let mut listing = listing.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut names, mut size) = (Vec::new(), 0);
        while size < MAX_NAMES_BYTES {
            let entry = match listing.next() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                // What was read first must reach the client; the error comes again.
                Err(_) if !names.is_empty() => break,
                Err(error) => return Err(error),
            };
            let long = long_name(&entry, view.owner_names(), view.now());
            size += entry.name.len() + long.len() + 48;
            names.push(Name { name: entry.name, long, attributes: entry.attributes });
        }
        if names.is_empty() { Err(Error::end()) } else { Ok(Reply::Names(names)) }
    }

    fn limits(&self) -> Reply {
        let mut writer = Writer::bare();
        for limit in [MAX_PACKET, MAX_DATA, MAX_DATA, self.max_handles] {
            writer.u64(limit as u64);
        }
        Reply::Extended(writer.into_bytes().into())
    }

    /// Copies between two handles (draft-ietf-secsh-filexfer-extensions-00, section 7); a length of 0 is up to the end.
    fn copy(
        &self,
        offset: u64,
        length: u64,
        to_offset: u64,
        done: &mut Done,
        is_over: &dyn Fn() -> bool,
    ) -> Result<()> {
        let other = self.other.as_deref().ok_or_else(|| Error::failure("no such handle"))?;
        let open = self.handle()?;
        let ((from, how_from), (to, how_to)) = (open.file()?, other.file()?);
        if !how_from.read || !(how_to.write || how_to.append) {
            return Err(Error::denied("one file must be open for reading, the other for writing"));
        }
        // The draft's section 7: a file cannot be copied onto itself where the ranges overlap. Like OpenSSH, refuse it.
        if std::ptr::eq(open, other) {
            return Err(Error::failure("a file cannot be copied into itself"));
        }
        // The end is that at the beginning: a copy into the same file by another name would never reach its own.
        let there = from.attributes()?.size.unwrap_or(u64::MAX).saturating_sub(offset);
        let mut left = if length == 0 { there } else { length.min(there) };
        let mut buffer = vec![0; COPY_BUFFER];
        // What is not whole must not take the place of a whole file when the client closes it.
        let broken = || other.is_broken.store(true, Ordering::Relaxed);
        while left > 0 {
            if is_over() {
                broken();
                return Err(ended());
            }
            let most = usize::try_from(left).unwrap_or(COPY_BUFFER).min(COPY_BUFFER);
            let at = done.bytes_read;
            let past = || Error::failure("the range ends after the largest offset");
            let from_at = offset.checked_add(at).ok_or_else(past).inspect_err(|_| broken())?;
            let to_at = to_offset.checked_add(at).ok_or_else(past).inspect_err(|_| broken())?;
            let read = from.read_at(from_at, &mut buffer[..most]).inspect_err(|_| broken())?;
            if read == 0 {
                break;
            }
            let written = to.write_at(to_at, &buffer[..read]);
            other.note_apart(to);
            written.inspect_err(|_| broken())?;
            let read = read as u64;
            left -= read;
            done.bytes_read += read;
            done.bytes_written += read;
            open.bytes_read.fetch_add(read, Ordering::Relaxed);
            other.bytes_written.fetch_add(read, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// What a file is opened for: reading, if the client does not say it.
fn effective(how: &OpenHow) -> OpenHow {
    OpenHow { read: how.read || !(how.write || how.append), ..*how }
}

fn ended() -> Error {
    Error::failure("the session has ended")
}

/// A path where a file or link may be made. One that ends with a slash is that of a folder (POSIX.1-2017, section 4.13): of a client that
/// sends several files there, each would replace the one before.
fn file_path(view: &View, text: &[u8]) -> Result<RemotePath> {
    let path = view.path(text)?;
    if is_of_folder(text) && !path.is_root() {
        return Err(Error::failure("the name ends with a slash or /. and is that of a folder"));
    }
    Ok(path)
}

/// A path where a file should be.
fn found_path(view: &View, text: &[u8]) -> Result<RemotePath> {
    let path = view.path(text)?;
    if is_of_folder(text) && !view.attributes(&path, Follow::Yes)?.is_folder() {
        return Err(Error::not_found());
    }
    Ok(path)
}

fn is_of_folder(text: &[u8]) -> bool {
    text.ends_with(b"/") || text.ends_with(b"/.")
}

fn rename(view: &View, from: &[u8], to: &[u8], replace: bool) -> Result<()> {
    let old = view.path(from)?;
    let is_folder = is_of_folder(to) && view.attributes(&old, Follow::No)?.is_folder();
    let new = if is_folder { view.path(to)? } else { file_path(view, to)? };
    view.rename(&old, &new, replace)
}

/// `expand-path@openssh.com`: `~` and `~user` are homes, and `~/…` and `~user/…` below them.
fn expand(view: &View, path: &[u8]) -> Result<Reply> {
    let path = match path.strip_prefix(b"~") {
        None => view.path(path)?,
        Some(rest) => {
            let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let (user, below) = rest.split_at(end);
            let home = view.home_of(user)?;
            RemotePath::parse(&[home.as_bytes(), below].concat(), home)?
        }
    };
    Ok(Reply::path(path.as_bytes()))
}
