//! Requests of clients (draft-ietf-secsh-filexfer-02, section 6; OpenSSH's `PROTOCOL`, section 4).

use bytes::Bytes;

use crate::attributes::Attributes;
use crate::limits::{MAX_DATA, MAX_IDS};
use crate::volume::OpenHow;
use crate::wire::{Malformed, Reader, Writer};

/// Packet types of requests.
pub(crate) mod kind {
    pub(crate) const INIT: u8 = 1;
    pub(crate) const OPEN: u8 = 3;
    pub(crate) const CLOSE: u8 = 4;
    pub(crate) const READ: u8 = 5;
    pub(crate) const WRITE: u8 = 6;
    pub(crate) const LSTAT: u8 = 7;
    pub(crate) const FSTAT: u8 = 8;
    pub(crate) const SETSTAT: u8 = 9;
    pub(crate) const FSETSTAT: u8 = 10;
    pub(crate) const OPENDIR: u8 = 11;
    pub(crate) const READDIR: u8 = 12;
    pub(crate) const REMOVE: u8 = 13;
    pub(crate) const MKDIR: u8 = 14;
    pub(crate) const RMDIR: u8 = 15;
    pub(crate) const REALPATH: u8 = 16;
    pub(crate) const STAT: u8 = 17;
    pub(crate) const RENAME: u8 = 18;
    pub(crate) const READLINK: u8 = 19;
    pub(crate) const SYMLINK: u8 = 20;
    pub(crate) const EXTENDED: u8 = 200;
}

/// The extensions that a server announces, each with its version.
pub const EXTENSIONS: &[(&str, &str)] = &[
    ("posix-rename@openssh.com", "1"),
    ("statvfs@openssh.com", "2"),
    ("fstatvfs@openssh.com", "2"),
    ("hardlink@openssh.com", "1"),
    ("fsync@openssh.com", "1"),
    ("lsetstat@openssh.com", "1"),
    ("limits@openssh.com", "1"),
    ("expand-path@openssh.com", "1"),
    ("copy-data", "1"),
    ("home-directory", "1"),
    ("users-groups-by-id@openssh.com", "1"),
];

/// Flags of OPEN and their meaning, in the order of [`OpenHow`]'s members.
const READ: u32 = 1;
const WRITE: u32 = 2;
const APPEND: u32 = 4;
const CREATE: u32 = 8;
const TRUNCATE: u32 = 0x10;
const EXCLUSIVE: u32 = 0x20;

/// A request. Paths and handles are as the client wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the members are those of the draft and of PROTOCOL")]
pub enum Request {
    Open {
        path: Bytes,
        how: OpenHow,
        attributes: Attributes,
    },
    Close {
        handle: Bytes,
    },
    Read {
        handle: Bytes,
        offset: u64,
        length: u32,
    },
    Write {
        handle: Bytes,
        offset: u64,
        data: Bytes,
    },
    LStat {
        path: Bytes,
    },
    FStat {
        handle: Bytes,
    },
    SetStat {
        path: Bytes,
        attributes: Attributes,
    },
    FSetStat {
        handle: Bytes,
        attributes: Attributes,
    },
    OpenDir {
        path: Bytes,
    },
    ReadDir {
        handle: Bytes,
    },
    Remove {
        path: Bytes,
    },
    MkDir {
        path: Bytes,
        attributes: Attributes,
    },
    RmDir {
        path: Bytes,
    },
    RealPath {
        path: Bytes,
    },
    Stat {
        path: Bytes,
    },
    Rename {
        from: Bytes,
        to: Bytes,
    },
    ReadLink {
        path: Bytes,
    },
    Symlink {
        target: Bytes,
        link: Bytes,
    },
    PosixRename {
        from: Bytes,
        to: Bytes,
    },
    StatVfs {
        path: Bytes,
    },
    FStatVfs {
        handle: Bytes,
    },
    HardLink {
        from: Bytes,
        to: Bytes,
    },
    FSync {
        handle: Bytes,
    },
    LSetStat {
        path: Bytes,
        attributes: Attributes,
    },
    Limits,
    ExpandPath {
        path: Bytes,
    },
    CopyData {
        from: Bytes,
        offset: u64,
        length: u64,
        to: Bytes,
        to_offset: u64,
    },
    HomeDirectory {
        user: Bytes,
    },
    UsersGroups {
        users: Vec<u32>,
        groups: Vec<u32>,
    },
    /// A packet type or an extension that this server does not know.
    Unknown {
        kind: u8,
    },
}

/// The first packet of a client; what follows the version is ignored.
///
/// # Errors
/// It is another packet, or too short.
pub fn hello(packet: Bytes) -> Result<u32, Malformed> {
    let mut reader = Reader::new(packet);
    if reader.byte()? != kind::INIT {
        return Err(Malformed);
    }
    reader.u32()
}

/// A client's first packet.
#[must_use]
pub fn write_hello(version: u32) -> Vec<u8> {
    let mut writer = Writer::packet(kind::INIT);
    writer.u32(version);
    writer.finish()
}

/// A packet with the identifier that the client gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    /// The identifier, which the reply repeats.
    pub id: u32,
    /// The request, if it is one.
    pub request: Result<Request, Malformed>,
}

impl Request {
    /// Reads a packet without its length field.
    ///
    /// # Errors
    /// It has no identifier, so that nothing can be replied.
    pub fn parse(packet: Bytes) -> Result<Numbered, Malformed> {
        let mut reader = Reader::new(packet);
        let kind = reader.byte()?;
        let id = reader.u32()?;
        Ok(Numbered { id, request: Self::body(kind, reader) })
    }

    fn body(kind: u8, mut reader: Reader) -> Result<Self, Malformed> {
        let r = &mut reader;
        let request = match kind {
            kind::OPEN => {
                let (path, flags) = (r.string()?, r.u32()?);
                let attributes = Attributes::read(r)?;
                let is = |flag| flags & flag != 0;
                let how = OpenHow {
                    read: is(READ),
                    write: is(WRITE),
                    append: is(APPEND),
                    create: is(CREATE),
                    truncate: is(TRUNCATE),
                    exclusive: is(EXCLUSIVE),
                    mode: attributes.mode,
                };
                Self::Open { path, how, attributes }
            }
            kind::CLOSE => Self::Close { handle: r.string()? },
            kind::READ => Self::Read { handle: r.string()?, offset: r.u64()?, length: r.u32()? },
            kind::WRITE => {
                let (handle, offset, data) = (r.string()?, r.u64()?, r.string()?);
                if data.len() > MAX_DATA {
                    return Err(Malformed);
                }
                Self::Write { handle, offset, data }
            }
            kind::LSTAT => Self::LStat { path: r.string()? },
            kind::FSTAT => Self::FStat { handle: r.string()? },
            kind::SETSTAT => Self::SetStat { path: r.string()?, attributes: Attributes::read(r)? },
            kind::FSETSTAT => {
                Self::FSetStat { handle: r.string()?, attributes: Attributes::read(r)? }
            }
            kind::OPENDIR => Self::OpenDir { path: r.string()? },
            kind::READDIR => Self::ReadDir { handle: r.string()? },
            kind::REMOVE => Self::Remove { path: r.string()? },
            kind::MKDIR => Self::MkDir { path: r.string()?, attributes: Attributes::read(r)? },
            kind::RMDIR => Self::RmDir { path: r.string()? },
            kind::REALPATH => Self::RealPath { path: r.string()? },
            kind::STAT => Self::Stat { path: r.string()? },
            kind::RENAME => Self::Rename { from: r.string()?, to: r.string()? },
            kind::READLINK => Self::ReadLink { path: r.string()? },
            // PROTOCOL, section 4.1: the target comes first, unlike in the draft. All clients have followed OpenSSH.
            kind::SYMLINK => Self::Symlink { target: r.string()?, link: r.string()? },
            kind::EXTENDED => return Self::extended(reader),
            kind => return Ok(Self::Unknown { kind }),
        };
        // OpenSSH's server ignores what follows a request, and the library of rclone 1.60 sends the rest of its buffer behind the
        // data of its last WRITE.
        Ok(request)
    }

    fn extended(mut reader: Reader) -> Result<Self, Malformed> {
        let name = reader.string()?;
        let r = &mut reader;
        let request = match &*name {
            b"posix-rename@openssh.com" => Self::PosixRename { from: r.string()?, to: r.string()? },
            b"statvfs@openssh.com" => Self::StatVfs { path: r.string()? },
            b"fstatvfs@openssh.com" => Self::FStatVfs { handle: r.string()? },
            b"hardlink@openssh.com" => Self::HardLink { from: r.string()?, to: r.string()? },
            b"fsync@openssh.com" => Self::FSync { handle: r.string()? },
            b"lsetstat@openssh.com" => {
                Self::LSetStat { path: r.string()?, attributes: Attributes::read(r)? }
            }
            b"limits@openssh.com" => Self::Limits,
            b"expand-path@openssh.com" => Self::ExpandPath { path: r.string()? },
            b"copy-data" => Self::CopyData {
                from: r.string()?,
                offset: r.u64()?,
                length: r.u64()?,
                to: r.string()?,
                to_offset: r.u64()?,
            },
            b"home-directory" => Self::HomeDirectory { user: r.string()? },
            b"users-groups-by-id@openssh.com" => {
                Self::UsersGroups { users: ids(r.string()?)?, groups: ids(r.string()?)? }
            }
            _ => return Ok(Self::Unknown { kind: kind::EXTENDED }),
        };
        Ok(request)
    }

    /// The packet of the request.
    #[must_use]
    pub fn write(&self, id: u32) -> Vec<u8> {
        let begin = |kind: u8, strings: &[&[u8]]| {
            let mut writer = Writer::packet(kind);
            writer.u32(id);
            strings.iter().for_each(|string| writer.string(string));
            writer
        };
        let extended = |name: &str, strings: &[&[u8]]| {
            let mut writer = begin(kind::EXTENDED, &[name.as_bytes()]);
            strings.iter().for_each(|string| writer.string(string));
            writer
        };
        let with = |mut writer: Writer, attributes: &Attributes| {
            attributes.write(&mut writer);
            writer
        };
        let writer = match self {
            Self::Open { path, how, attributes } => {
                let mut writer = begin(kind::OPEN, &[path]);
                writer.u32(flags(how));
                with(writer, attributes)
            }
            Self::Close { handle } => begin(kind::CLOSE, &[handle]),
            Self::Read { handle, offset, length } => {
                let mut writer = begin(kind::READ, &[handle]);
                writer.u64(*offset);
                writer.u32(*length);
                writer
            }
            Self::Write { handle, offset, data } => {
                let mut writer = begin(kind::WRITE, &[handle]);
                writer.u64(*offset);
                writer.string(data);
                writer
            }
            Self::LStat { path } => begin(kind::LSTAT, &[path]),
            Self::FStat { handle } => begin(kind::FSTAT, &[handle]),
            Self::SetStat { path, attributes } => with(begin(kind::SETSTAT, &[path]), attributes),
            Self::FSetStat { handle, attributes } => {
                with(begin(kind::FSETSTAT, &[handle]), attributes)
            }
            Self::OpenDir { path } => begin(kind::OPENDIR, &[path]),
            Self::ReadDir { handle } => begin(kind::READDIR, &[handle]),
            Self::Remove { path } => begin(kind::REMOVE, &[path]),
            Self::MkDir { path, attributes } => with(begin(kind::MKDIR, &[path]), attributes),
            Self::RmDir { path } => begin(kind::RMDIR, &[path]),
            Self::RealPath { path } => begin(kind::REALPATH, &[path]),
            Self::Stat { path } => begin(kind::STAT, &[path]),
            Self::Rename { from, to } => begin(kind::RENAME, &[from, to]),
            Self::ReadLink { path } => begin(kind::READLINK, &[path]),
            Self::Symlink { target, link } => begin(kind::SYMLINK, &[target, link]),
            Self::PosixRename { from, to } => extended("posix-rename@openssh.com", &[from, to]),
            Self::StatVfs { path } => extended("statvfs@openssh.com", &[path]),
            Self::FStatVfs { handle } => extended("fstatvfs@openssh.com", &[handle]),
            Self::HardLink { from, to } => extended("hardlink@openssh.com", &[from, to]),
            Self::FSync { handle } => extended("fsync@openssh.com", &[handle]),
            Self::LSetStat { path, attributes } => {
                with(extended("lsetstat@openssh.com", &[path]), attributes)
            }
            Self::Limits => extended("limits@openssh.com", &[]),
            Self::ExpandPath { path } => extended("expand-path@openssh.com", &[path]),
            Self::CopyData { from, offset, length, to, to_offset } => {
                let mut writer = extended("copy-data", &[from]);
                writer.u64(*offset);
                writer.u64(*length);
                writer.string(to);
                writer.u64(*to_offset);
                writer
            }
            Self::HomeDirectory { user } => extended("home-directory", &[user]),
            Self::UsersGroups { users, groups } => {
                let list = |ids: &[u32]| {
                    let mut writer = Writer::bare();
                    ids.iter().for_each(|id| writer.u32(*id));
                    writer.into_bytes()
                };
                extended("users-groups-by-id@openssh.com", &[&list(users), &list(groups)])
            }
            Self::Unknown { kind } => begin(*kind, &[]),
        };
        writer.finish()
    }
}

fn flags(how: &OpenHow) -> u32 {
    let OpenHow { read, write, append, create, truncate, exclusive, mode: _ } = *how;
    [
        (read, READ),
        (write, WRITE),
        (append, APPEND),
        (create, CREATE),
        (truncate, TRUNCATE),
        (exclusive, EXCLUSIVE),
    ]
    .into_iter()
    .filter_map(|(is_set, flag)| is_set.then_some(flag))
    .sum()
}

/// A list of identifiers in a string.
fn ids(list: Bytes) -> Result<Vec<u32>, Malformed> {
    if list.len() > MAX_IDS * 4 {
        return Err(Malformed);
    }
    let mut reader = Reader::new(list);
    let mut found = Vec::new();
    while !reader.is_empty() {
        found.push(reader.u32()?);
    }
    Ok(found)
}
