//! The client of SFTP: a server's bytes in pieces, while requests of each kind are under way, a file is read and a file is written.
//! Whatever the server sends, a file that is said to be complete has each of its bytes once.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::client::{Client, Download, Upload};
use outlast_sftp::limits::CLIENT_WINDOW;
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request;
use outlast_sftp::volume::OpenHow;

/// Bytes of the files.
const SIZE: u64 = 100_000;

fuzz_target!(|bytes: &[u8]| {
    let (first, rest) = bytes.split_at(bytes.len().min(1));
    let first = first.first().copied().unwrap_or(0);
    let known = first & 1 != 0;
    let mut client = Client::default();
    let mut files = None;
    for piece in rest.chunks(usize::from(first / 2) + 1) {
        if client.receive(piece).is_err() {
            assert!(client.receive(b"more").is_err(), "a violation is for ever");
            assert!(client.next_reply().is_none(), "what came with it is not used");
            break;
        }
        if client.is_ready() {
            files.get_or_insert_with(|| Files::new(&mut client, known)).turn(&mut client);
        }
        while client.next_output().is_some() {}
    }
});

/// What is under way.
struct Files {
    requests: Vec<u32>,
    /// `None` once it has failed, or is complete.
    download: Option<Download>,
    size: Option<u64>,
    /// Offsets and lengths of what was read.
    got: Vec<(u64, u64)>,
    upload: Option<Upload>,
}

impl Files {
    fn new(client: &mut Client, known: bool) -> Self {
        let path = Bytes::from_static(b"/a");
        let handle = Bytes::from_static(b"h");
        let requests = [
            Request::Open {
                path: path.clone(),
                how: OpenHow::reading(),
                attributes: Attributes::default(),
            },
            Request::ReadDir { handle: handle.clone() },
            Request::Stat { path: path.clone() },
            Request::RealPath { path: path.clone() },
            client.rename(path.clone(), path.clone()),
            Request::Remove { path },
        ];
        let requests = requests.iter().map(|request| client.send(request)).collect();
        let size = known.then_some(SIZE);
        let mut upload = Upload::new(handle.clone());
        upload.write(client, vec![7; SIZE as usize].into());
        let download = Some(Download::new(handle, size));
        Self { requests, download, size, got: Vec::new(), upload: Some(upload) }
    }

    fn turn(&mut self, client: &mut Client) {
        if let Some(download) = &mut self.download {
            download.ask(client);
        }
        while let Some((id, reply)) = client.next_reply() {
            if let Some(at) = self.requests.iter().position(|request| *request == id) {
                self.requests.swap_remove(at);
                continue;
            }
            self.read(id, reply.clone());
            if let Some(upload) = &mut self.upload
                && upload.take(id, reply).is_err()
            {
                self.upload = None;
            }
        }
        if let Some(upload) = &mut self.upload {
            upload.send(client);
            assert_eq!(upload.written(), SIZE);
        }
    }

    fn read(&mut self, id: u32, reply: Reply) {
        let Some(download) = &mut self.download else { return };
        match download.take(id, reply) {
            Ok(None) => {}
            Ok(Some((offset, data))) => {
                assert!(!data.is_empty() && data.len() <= CLIENT_WINDOW);
                let end = offset + data.len() as u64;
                assert!(self.size.is_none_or(|size| end <= size), "{end} of {SIZE}");
                self.got.push((offset, data.len() as u64));
            }
            Err(_) => {
                self.download = None;
                return;
            }
        }
        match download.done() {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                self.got.sort_unstable();
                let mut next = 0;
                for (offset, length) in &self.got {
                    assert_eq!(*offset, next, "a byte is missing, or was read twice");
                    next += length;
                }
                assert_eq!(next, bytes);
                assert!(self.size.is_none_or(|size| size == bytes));
                self.download = None;
            }
            Err(_) => self.download = None,
        }
    }
}
