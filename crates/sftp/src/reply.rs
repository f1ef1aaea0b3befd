//! Replies of servers (draft-ietf-secsh-filexfer-02, section 7).

use bytes::Bytes;

use crate::attributes::Attributes;
use crate::error::{Error, Status};
use crate::request::EXTENSIONS;
use crate::volume::Space;
use crate::wire::{Malformed, Reader, Writer};

const VERSION: u8 = 2;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const DATA: u8 = 103;
const NAME: u8 = 104;
const ATTRS: u8 = 105;
const EXTENDED: u8 = 201;

/// Bytes in front of the data of a DATA packet.
pub const DATA_HEADER: usize = 13;

/// The protocol's version.
pub const PROTOCOL_VERSION: u32 = 3;

/// A name in a NAME reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Name or path.
    pub name: Vec<u8>,
    /// The line that `ls -l` prints for it.
    pub long: Vec<u8>,
    /// Its attributes.
    pub attributes: Attributes,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Outcome of a request that has no other result.
    Status(Error),
    /// A handle.
    Handle(Bytes),
    /// Bytes of a file.
    Data(Bytes),
    /// Names of a folder, or a path.
    Names(Vec<Name>),
    /// Attributes of a file.
    Attributes(Attributes),
    /// Reply to an extended request, in that extension's format.
    Extended(Bytes),
}

/// A server's first packet, with the extensions that it knows and that are offered: clients use what they are told of, and
/// OpenSSH's ends if that is then refused. `is_offered` is asked with the extension's kind, as in
/// [`KINDS`](crate::operation::KINDS).
#[must_use]
pub fn version(is_offered: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut writer = Writer::packet(VERSION);
    writer.u32(PROTOCOL_VERSION);
    let kind = |name: &'static str| name.split_once('@').map_or(name, |(kind, _)| kind);
    for (name, version) in EXTENSIONS.iter().filter(|(name, _)| is_offered(kind(name))) {
        writer.string(name.as_bytes());
        writer.string(version.as_bytes());
    }
    writer.finish()
}

/// Version and extensions in a server's first packet, without its length field.
///
/// # Errors
/// It is none.
pub fn read_version(packet: Bytes) -> Result<(u32, Vec<(Bytes, Bytes)>), Malformed> {
    let mut reader = Reader::new(packet);
    if reader.byte()? != VERSION {
        return Err(Malformed);
    }
    let version = reader.u32()?;
    let mut extensions = Vec::new();
    while !reader.is_empty() {
        extensions.push((reader.string()?, reader.string()?));
    }
    Ok((version, extensions))
}

/// Fills in the header of a DATA packet, whose data of `length` bytes follows it in `packet`.
pub(crate) fn data_header(packet: &mut [u8], id: u32, length: usize) {
    // The length is at most MAX_DATA.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut writer = Writer::bare();
    writer.u32(length.saturating_add(9));
    writer.raw(&[DATA]);
    writer.u32(id);
    writer.u32(length);
    packet[..DATA_HEADER].copy_from_slice(&writer.into_bytes());
}

impl Reply {
    /// Success.
    #[must_use]
    pub fn ok() -> Self {
        Self::Status(Status::Ok.into())
    }

    /// One path, as REALPATH and READLINK reply. Their attributes are dummies by the draft.
    #[must_use]
    pub fn path(path: &[u8]) -> Self {
        let attributes = Attributes::default();
        Self::Names(vec![Name { name: path.to_vec(), long: path.to_vec(), attributes }])
    }

    /// Reply to `statvfs@openssh.com`.
    #[must_use]
    pub fn space(space: &Space) -> Self {
        // PROTOCOL, section 4.4: SSH_FXE_STATVFS_ST_RDONLY and SSH_FXE_STATVFS_ST_NOSUID.
        let flags = u64::from(space.read_only) | 2;
        let mut writer = Writer::bare();
        for value in [
            space.block_size,
            space.fragment_size,
            space.blocks,
            space.free_blocks,
            space.available_blocks,
            space.files,
            space.free_files,
            space.available_files,
            space.id,
            flags,
            space.max_name,
        ] {
            writer.u64(value);
        }
        Self::Extended(writer.into_bytes().into())
    }

    /// The packet of the reply.
    #[must_use]
    pub fn write(&self, id: u32) -> Vec<u8> {
        let begin = |kind: u8| {
            let mut writer = Writer::packet(kind);
            writer.u32(id);
            writer
        };
        let writer = match self {
            Self::Status(error) => {
                let mut writer = begin(STATUS);
                writer.u32(error.status.code());
                writer.string(error.text.as_bytes());
                writer.string(b"en");
                writer
            }
            Self::Handle(handle) => {
                let mut writer = begin(HANDLE);
                writer.string(handle);
                writer
            }
            Self::Data(data) => {
                let mut writer = begin(DATA);
                writer.string(data);
                writer
            }
            Self::Names(names) => {
                let mut writer = begin(NAME);
                writer.u32(u32::try_from(names.len()).unwrap_or(u32::MAX));
                for Name { name, long, attributes } in names {
                    writer.string(name);
                    writer.string(long);
                    attributes.write(&mut writer);
                }
                writer
            }
            Self::Attributes(attributes) => {
                let mut writer = begin(ATTRS);
                attributes.write(&mut writer);
                writer
            }
            Self::Extended(bytes) => {
                let mut writer = begin(EXTENDED);
                writer.raw(bytes);
                writer
            }
        };
        writer.finish()
    }

    /// Reads a packet without its length field: the identifier and the reply.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(packet: Bytes) -> Result<(u32, Self), Malformed> {
        let mut reader = Reader::new(packet);
        let (kind, id) = (reader.byte()?, reader.u32()?);
        let r = &mut reader;
        let reply = match kind {
            STATUS => {
                let status = Status::of_code(r.u32()?);
                // Some old servers end the packet here.
                let text = if r.is_empty() { Bytes::new() } else { r.string()? };
                let text = String::from_utf8_lossy(&text).into_owned();
                if !r.is_empty() {
                    r.string()?;
                }
                Self::Status(Error::new(status, text))
            }
            HANDLE => Self::Handle(r.string()?),
            DATA => Self::Data(r.string()?),
            NAME => {
                let mut names = Vec::new();
                for _ in 0..r.u32()? {
                    let (name, long) = (r.string()?.to_vec(), r.string()?.to_vec());
                    names.push(Name { name, long, attributes: Attributes::read(r)? });
                }
                Self::Names(names)
            }
            ATTRS => Self::Attributes(Attributes::read(r)?),
            EXTENDED => return Ok((id, Self::Extended(reader.rest()))),
            _ => return Err(Malformed),
        };
        if reader.is_empty() { Ok((id, reply)) } else { Err(Malformed) }
    }
}
