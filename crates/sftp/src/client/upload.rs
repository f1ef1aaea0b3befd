//! A file that is written to a server, with many requests under way.

use std::collections::HashMap;

use bytes::Bytes;

use super::{Client, Failed};
use crate::error::Status;
use crate::limits::{CLIENT_REQUESTS, CLIENT_WINDOW};
use crate::reply::Reply;
use crate::request::Request;

/// The writing of a file from its beginning to its end.
pub struct Upload {
    handle: Bytes,
    /// Where the next bytes go.
    next: u64,
    under_way: HashMap<u32, usize>,
    bytes_under_way: usize,
}

impl Upload {
    /// Writes what is open under this handle, and empty.
    #[must_use]
    pub fn new(handle: Bytes) -> Self {
        Self { handle, next: 0, under_way: HashMap::new(), bytes_under_way: 0 }
    }

    /// Whether more may be written before a reply has come.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.under_way.len() < CLIENT_REQUESTS && self.bytes_under_way < CLIENT_WINDOW
    }

    /// Writes the next bytes: [`Client::max_write`] in a request.
    pub fn write(&mut self, client: &mut Client, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let data = bytes.split_to(bytes.len().min(client.max_write() as usize));
            let (length, offset) = (data.len(), self.next);
            let id = client.send(&Request::Write { handle: self.handle.clone(), offset, data });
            self.next = self.next.saturating_add(length as u64);
            self.bytes_under_way += length;
            self.under_way.insert(id, length);
        }
    }

    /// Takes the reply to one of its requests.
    ///
    /// # Errors
    /// The bytes were not written.
    pub fn take(&mut self, id: u32, reply: Reply) -> Result<(), Failed> {
        let Some(length) = self.under_way.remove(&id) else { return Ok(()) };
        self.bytes_under_way -= length;
        match reply {
            Reply::Status(error) if error.status != Status::Ok => Err(Failed::Server(error)),
            _ => Ok(()),
        }
    }

    /// Whether a reply is missing.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Bytes that were given to it.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.next
    }
}
