//! A client and a server in one thread.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status;
use outlast_sftp::limits::MAX_HANDLES;
use outlast_sftp::local::{Folder, FolderOptions};
use outlast_sftp::operation::Record;
use outlast_sftp::path::RemotePath;
use outlast_sftp::reply::{Name, Reply, read_version};
use outlast_sftp::request::{Request, write_hello};
use outlast_sftp::session::Session;
use outlast_sftp::view::View;
use outlast_sftp::volume::OpenHow;

/// A time for listings: 24 November 2026.
pub const NOW: i64 = 1_795_500_000;

/// A path in a view.
pub fn path(text: &str) -> RemotePath {
    RemotePath::parse(text.as_bytes(), &RemotePath::root()).unwrap()
}

/// A local folder as a volume.
pub fn folder(at: &Path, options: FolderOptions) -> Arc<Folder> {
    Arc::new(Folder::open(at, options).unwrap())
}

/// A view of a folder at `/`.
pub fn view(at: &Path) -> View {
    View::new(|| NOW).mount(path("/"), folder(at, FolderOptions::default()))
}

/// A session and its view, driven by one thread.
pub struct Server {
    pub session: Session,
    pub view: View,
    pub records: Vec<Record>,
    pub replies: BTreeMap<u32, Reply>,
    received: BytesMut,
    spare: Vec<u8>,
    next_id: u32,
}

impl Server {
    /// A session that has been greeted.
    pub fn new(view: View) -> Self {
        let mut server = Self {
            session: Session::new(MAX_HANDLES),
            view,
            records: Vec::new(),
            replies: BTreeMap::new(),
            received: BytesMut::new(),
            spare: Vec::new(),
            next_id: 0,
        };
        server.session.receive(&write_hello(3)).unwrap();
        let version = server.session.next_output().unwrap();
        assert_eq!(read_version(Bytes::from(version).slice(4..)).unwrap().0, 3);
        server
    }

    /// Serves a folder at `/`.
    pub fn of(at: &Path) -> Self {
        Self::new(view(at))
    }

    /// Sends a request; nothing runs yet.
    pub fn send(&mut self, request: &Request) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        self.session.receive(&request.write(id)).unwrap();
        id
    }

    /// Runs operations and reads replies until nothing moves.
    pub fn pump(&mut self) {
        loop {
            let mut moved = false;
            while let Some(operation) = self.session.next_operation() {
                // As a server does: what needs no waiting is done at once.
                let outcome = operation
                    .try_now(&self.view, &mut self.spare)
                    .unwrap_or_else(|operation| operation.run(&self.view));
                let record = self.session.complete(outcome);
                self.records.push(record);
                moved = true;
            }
            while let Some(bytes) = self.session.next_output() {
                self.received.extend_from_slice(&bytes);
                // Whatever was in it, the next reply has none of that.
                self.spare = bytes;
                moved = true;
            }
            if !moved {
                break;
            }
        }
        while let Some(head) = self.received.first_chunk::<4>() {
            let length = u32::from_be_bytes(*head) as usize;
            assert!(self.received.len() >= 4 + length, "half a packet was sent");
            let packet = self.received.split_to(4 + length).freeze().slice(4..);
            let (id, reply) = Reply::parse(packet).unwrap();
            assert!(self.replies.insert(id, reply).is_none(), "two replies to {id}");
        }
    }

    /// Sends a request and returns its reply.
    pub fn call(&mut self, request: &Request) -> Reply {
        let id = self.send(request);
        self.pump();
        self.replies.remove(&id).unwrap()
    }

    /// Sends a request whose reply is a status.
    #[track_caller]
    pub fn status(&mut self, request: &Request) -> Status {
        match self.call(request) {
            Reply::Status(error) => error.status,
            other => panic!("{request:?}: {other:?}"),
        }
    }

    /// Sends a request that must succeed without a result.
    #[track_caller]
    pub fn ok(&mut self, request: &Request) {
        match self.call(request) {
            Reply::Status(error) if error.status == Status::Ok => {}
            other => panic!("{request:?}: {other:?}"),
        }
    }

    /// Sends a request that must fail; returns the explanation.
    #[track_caller]
    pub fn refused(&mut self, request: &Request, status: Status) -> String {
        match self.call(request) {
            Reply::Status(error) if error.status == status => error.text.into_owned(),
            other => panic!("{request:?}: {other:?}"),
        }
    }

    /// Sends a request that must return a handle.
    #[track_caller]
    pub fn handle(&mut self, request: &Request) -> Bytes {
        match self.call(request) {
            Reply::Handle(handle) => handle,
            other => panic!("{request:?}: {other:?}"),
        }
    }

    /// Attributes of a file.
    #[track_caller]
    pub fn attributes(&mut self, request: &Request) -> Attributes {
        match self.call(request) {
            Reply::Attributes(attributes) => attributes,
            other => panic!("{request:?}: {other:?}"),
        }
    }

    /// The one name that a request returns.
    #[track_caller]
    pub fn name(&mut self, request: &Request) -> Vec<u8> {
        match self.call(request) {
            Reply::Names(names) if names.len() == 1 => names[0].name.clone(),
            other => panic!("{request:?}: {other:?}"),
        }
    }

    /// Lists a folder; without `.` and `..`.
    #[track_caller]
    pub fn list(&mut self, path: &[u8]) -> Vec<Name> {
        let handle = self.handle(&Request::OpenDir { path: bytes(path) });
        let mut found = Vec::new();
        loop {
            match self.call(&Request::ReadDir { handle: handle.clone() }) {
                Reply::Names(names) => found.extend(names),
                Reply::Status(error) if error.status == Status::Eof => break,
                other => panic!("{other:?}"),
            }
        }
        self.ok(&Request::Close { handle });
        found.retain(|name| name.name != b"." && name.name != b"..");
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// Names of a folder.
    #[track_caller]
    pub fn names(&mut self, path: &str) -> Vec<String> {
        let names = self.list(path.as_bytes());
        names.iter().map(|name| String::from_utf8_lossy(&name.name).into_owned()).collect()
    }

    /// Opens a file for reading.
    #[track_caller]
    pub fn open(&mut self, path: &str) -> Bytes {
        self.handle(&open(path, OpenHow::reading()))
    }

    /// Opens a file for writing, and creates it.
    #[track_caller]
    pub fn create(&mut self, path: &str) -> Bytes {
        self.handle(&open(path, UPLOAD))
    }

    /// Reads a whole file.
    #[track_caller]
    pub fn read(&mut self, path: &str) -> Vec<u8> {
        let handle = self.open(path);
        let (mut found, mut offset) = (Vec::new(), 0);
        loop {
            let length = 32 * 1024;
            match self.call(&Request::Read { handle: handle.clone(), offset, length }) {
                Reply::Data(data) => {
                    offset += data.len() as u64;
                    found.extend_from_slice(&data);
                }
                Reply::Status(error) if error.status == Status::Eof => break,
                other => panic!("{other:?}"),
            }
        }
        self.ok(&Request::Close { handle });
        found
    }

    /// Writes a whole file.
    #[track_caller]
    pub fn write(&mut self, path: &str, content: &[u8]) {
        let handle = self.create(path);
        self.ok(&write(&handle, 0, content));
        self.ok(&Request::Close { handle });
    }

    /// Kinds of the operations that ran.
    pub fn kinds(&self) -> VecDeque<&'static str> {
        self.records.iter().map(|record| record.kind).collect()
    }
}

/// How clients open a file that they upload.
pub const UPLOAD: OpenHow = OpenHow {
    read: false,
    write: true,
    append: false,
    create: true,
    truncate: true,
    exclusive: false,
    mode: None,
};

pub fn bytes(of: impl AsRef<[u8]>) -> Bytes {
    Bytes::copy_from_slice(of.as_ref())
}

pub fn open(path: &str, how: OpenHow) -> Request {
    Request::Open {
        path: bytes(path),
        how,
        attributes: Attributes { mode: how.mode, ..Attributes::default() },
    }
}

pub fn write(handle: &Bytes, offset: u64, content: &[u8]) -> Request {
    Request::Write { handle: handle.clone(), offset, data: bytes(content) }
}

pub fn read(handle: &Bytes, offset: u64, length: u32) -> Request {
    Request::Read { handle: handle.clone(), offset, length }
}
