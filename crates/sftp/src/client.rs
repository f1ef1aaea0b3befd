//! The client's side of SFTP, without sockets and without threads.
//!
//! [`Client`] numbers requests, pairs their replies, and refuses what a server may not send. [`Download`] and [`Upload`] keep
//! many requests for one file under way. Nothing is resent: a request that fails is its caller's matter.
//!
//! ```text
//! loop {
//!     client.receive(&bytes_of_the_channel)?;
//!     while let Some((id, reply)) = client.next_reply() { ... }
//!     while let Some(bytes) = client.next_output() { write them to the channel }
//! }
//! ```

mod download;
mod upload;

use std::collections::{HashMap, VecDeque};

use bytes::{Bytes, BytesMut};

pub use download::Download;
pub use upload::Upload;

use crate::error::{Error, Status};
use crate::limits::{
    CLIENT_DATA, MAX_DATA, MAX_EXTENSIONS, MAX_HANDLE, MAX_PACKET, MIN_CLIENT_DATA,
};
use crate::reply::{PROTOCOL_VERSION, Reply, read_version};
use crate::request::{Request, write_hello};
use crate::wire::Reader;

/// What a server sent that no server may send. The session cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A packet is empty, or longer than [`MAX_PACKET`].
    Length,
    /// The first packet is not `SSH_FXP_VERSION`, or that of another version than 3.
    Version,
    /// A packet is no reply.
    Malformed,
    /// The limits that it announces are below [`MIN_CLIENT_DATA`].
    Limits,
    /// A reply to no request.
    Unasked,
    /// A reply that does not belong to its request.
    Mismatch,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Length => "a packet is empty or too long",
            Self::Version => "the server does not speak version 3 of SFTP",
            Self::Malformed => "a packet of the server cannot be read",
            Self::Limits => "the server's limits on reads and writes are too low",
            Self::Unasked => "the server answered a request that nobody made",
            Self::Mismatch => "the server's reply does not belong to its request",
        })
    }
}

impl std::error::Error for Violation {}

/// Why a file was not transferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The server says so.
    Server(Error),
    /// The file changed while it was read.
    Changed,
    /// The server broke the protocol.
    Violation(Violation),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Changed => f.write_str("the file changed while it was read"),
            Self::Violation(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

impl From<Violation> for Failed {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

/// What may answer a request, besides a failure.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// `SSH_FX_OK`
    Done,
    Handle,
    /// So many bytes at most, or the end.
    Data(usize),
    /// Names, or the end.
    Names,
    /// One name.
    Path,
    Attributes,
    Extended,
}

impl Expected {
    fn of(request: &Request) -> Self {
        match request {
            Request::Open { .. } | Request::OpenDir { .. } => Self::Handle,
            Request::Read { length, .. } => {
                Self::Data(usize::try_from(*length).unwrap_or(usize::MAX))
            }
            Request::ReadDir { .. } => Self::Names,
            Request::RealPath { .. } | Request::ReadLink { .. } | Request::ExpandPath { .. } => {
                Self::Path
            }
            Request::LStat { .. } | Request::FStat { .. } | Request::Stat { .. } => {
                Self::Attributes
            }
            Request::Limits
            | Request::StatVfs { .. }
            | Request::FStatVfs { .. }
            | Request::UsersGroups { .. } => Self::Extended,
            Request::HomeDirectory { .. } => Self::Path,
            _ => Self::Done,
        }
    }

    fn allows(self, reply: &Reply) -> bool {
        match (self, reply) {
            (Self::Done, Reply::Status(error)) => error.status != Status::Eof,
            (Self::Data(_) | Self::Names, Reply::Status(error)) => error.status != Status::Ok,
            (_, Reply::Status(error)) => !matches!(error.status, Status::Ok | Status::Eof),
            (Self::Handle, Reply::Handle(handle)) => handle.len() <= MAX_HANDLE,
            // No data would be no progress: the end is a status.
            (Self::Data(most), Reply::Data(data)) => !data.is_empty() && data.len() <= most,
            (Self::Names, Reply::Names(names)) => !names.is_empty(),
            (Self::Path, Reply::Names(names)) => names.len() == 1,
            (Self::Attributes, Reply::Attributes(_)) | (Self::Extended, Reply::Extended(_)) => true,
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The server's version is missing.
    Greeting,
    /// The server's limits were asked for, by a request with this identifier.
    Limits(u32),
    Ready,
}

/// A session with a server.
pub struct Client {
    input: BytesMut,
    output: VecDeque<Bytes>,
    waiting: HashMap<u32, Expected>,
    replies: VecDeque<(u32, Reply)>,
    next_id: u32,
    stage: Stage,
    has_posix_rename: bool,
    has_fsync: bool,
    read: u32,
    write: u32,
    violation: Option<Violation>,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            input: BytesMut::new(),
            output: VecDeque::from([write_hello(PROTOCOL_VERSION).into()]),
            waiting: HashMap::new(),
            replies: VecDeque::new(),
            next_id: 0,
            stage: Stage::Greeting,
            has_posix_rename: false,
            has_fsync: false,
            read: CLIENT_DATA,
            write: CLIENT_DATA,
            violation: None,
        }
    }
}

impl Client {
    /// Takes bytes of the server.
    ///
    /// # Errors
    /// The server broke the protocol. All further bytes are refused.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        if let Some(violation) = self.violation {
            return Err(violation);
        }
        self.input.extend_from_slice(bytes);
        let parsed = self.parse();
        if let Err(violation) = parsed {
            self.violation = Some(violation);
            self.input = BytesMut::new();
            self.replies.clear();
        }
        parsed
    }

    /// Bytes for the server.
    pub fn next_output(&mut self) -> Option<Bytes> {
        self.output.pop_front()
    }

    /// Whether version and limits of the server are known, so that requests may be made.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Makes a request; [`Client::next_reply`] has the reply with the same identifier.
    pub fn send(&mut self, request: &Request) -> u32 {
        // An identifier is used again after 2^32 requests only; far fewer are under way.
        while self.waiting.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        self.waiting.insert(id, Expected::of(request));
        self.output.push_back(request.write(id).into());
        id
    }

    /// The next reply, which is of a kind that its request has: a failure is [`Reply::Status`].
    pub fn next_reply(&mut self) -> Option<(u32, Reply)> {
        self.replies.pop_front()
    }

    /// Most bytes of one READ.
    #[must_use]
    pub fn max_read(&self) -> u32 {
        self.read
    }

    /// Most bytes of one WRITE.
    #[must_use]
    pub fn max_write(&self) -> u32 {
        self.write
    }

    /// The request that gives a file another name: with `posix-rename@openssh.com` where the server has it, which replaces
    /// an existing file.
    #[must_use]
    pub fn rename(&self, from: Bytes, to: Bytes) -> Request {
        if self.has_posix_rename {
            Request::PosixRename { from, to }
        } else {
            Request::Rename { from, to }
        }
    }

    /// Whether the server has `fsync@openssh.com`.
    #[must_use]
    pub fn has_fsync(&self) -> bool {
        self.has_fsync
    }

    fn parse(&mut self) -> Result<(), Violation> {
        while let Some(head) = self.input.first_chunk::<4>() {
            let length = u32::from_be_bytes(*head) as usize;
            if length == 0 || length > MAX_PACKET {
                return Err(Violation::Length);
            }
            if self.input.len() < 4 + length {
                break;
            }
            let packet = self.input.split_to(4 + length).freeze().slice(4..);
            if self.stage == Stage::Greeting {
                self.greeted(packet)?;
            } else {
                self.answered(packet)?;
            }
        }
        Ok(())
    }

    fn greeted(&mut self, packet: Bytes) -> Result<(), Violation> {
        let (version, extensions) = read_version(packet).map_err(|_| Violation::Version)?;
        if version != PROTOCOL_VERSION || extensions.len() > MAX_EXTENSIONS {
            return Err(Violation::Version);
        }
        let has = |name: &str, version: &str| {
            let mut all = extensions.iter();
            all.any(|(key, value)| key == name.as_bytes() && value == version.as_bytes())
        };
        self.has_posix_rename = has("posix-rename@openssh.com", "1");
        self.has_fsync = has("fsync@openssh.com", "1");
        self.stage = Stage::Ready;
        if has("limits@openssh.com", "1") {
            self.stage = Stage::Limits(self.send(&Request::Limits));
        }
        Ok(())
    }

    fn answered(&mut self, packet: Bytes) -> Result<(), Violation> {
        let (id, reply) = Reply::parse(packet).map_err(|_| Violation::Malformed)?;
        let expected = self.waiting.remove(&id).ok_or(Violation::Unasked)?;
        if !expected.allows(&reply) {
            return Err(Violation::Mismatch);
        }
        if self.stage == Stage::Limits(id) {
            self.stage = Stage::Ready;
            // A server that announces the extension and refuses it has the limits of those without.
            if let Reply::Extended(limits) = reply {
                self.limited(limits)?;
            }
            return Ok(());
        }
        self.replies.push_back((id, reply));
        Ok(())
    }

    /// Takes the reply to `limits@openssh.com` (PROTOCOL, section 4.8): a limit of zero is none.
    fn limited(&mut self, limits: Bytes) -> Result<(), Violation> {
        let mut reader = Reader::new(limits);
        let mut next = || reader.u64().map_err(|_| Violation::Malformed);
        let (packet, read, write, _handles) = (next()?, next()?, next()?, next()?);
        let most = |limit: u64| {
            let packet = if packet == 0 { u64::MAX } else { packet.saturating_sub(1024) };
            let limit = if limit == 0 { u64::from(CLIENT_DATA) } else { limit };
            let most = limit.min(packet).min(MAX_DATA as u64);
            u32::try_from(most).unwrap_or(CLIENT_DATA)
        };
        let (read, write) = (most(read), most(write));
        if read.min(write) < MIN_CLIENT_DATA {
            return Err(Violation::Limits);
        }
        (self.read, self.write) = (read, write);
        Ok(())
    }
}
