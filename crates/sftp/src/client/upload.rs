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
    /// What may not be sent yet.
    rest: Bytes,
    under_way: HashMap<u32, usize>,
    bytes_under_way: usize,
}

impl Upload {
    /// Writes what is open under this handle, and empty.
    #[must_use]
    pub fn new(handle: Bytes) -> Self {
        Self { handle, next: 0, rest: Bytes::new(), under_way: HashMap::new(), bytes_under_way: 0 }
    }

    /// Whether it takes more before a reply has come.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.rest.is_empty() && self.may_send()
    }

    fn may_send(&self) -> bool {
        self.under_way.len() < CLIENT_REQUESTS && self.bytes_under_way < CLIENT_WINDOW
    }

    /// Takes the next bytes, while [`Self::has_room`], and writes as many as may be under way.
    pub fn write(&mut self, client: &mut Client, bytes: Bytes) {
        if self.rest.is_empty() {
            self.rest = bytes;
        } else {
            self.rest = [&self.rest[..], &bytes].concat().into();
        }
        self.send(client);
    }

    /// Writes as much of what it has as may be under way: [`Client::max_write`] in a request.
    pub fn send(&mut self, client: &mut Client) {
        while !self.rest.is_empty() && self.may_send() {
            let data = self.rest.split_to(self.rest.len().min(client.max_write() as usize));
            let (length, offset) = (data.len(), self.next);
            let id = client.send(&Request::Write { handle: self.handle.clone(), offset, data });
            self.next = self.next.saturating_add(length as u64);
            self.bytes_under_way += length;
            self.under_way.insert(id, length);
        }
    }

    /// Takes the reply to one of its requests. [`Self::send`] goes on with the rest.
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

    /// Whether a reply is missing, or bytes wait to be sent.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.under_way.is_empty() || !self.rest.is_empty()
    }

    /// Bytes that were given to it.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.next.saturating_add(self.rest.len() as u64)
    }
}
