//! A file that is read from a server, with many requests under way.

use std::collections::HashMap;

use bytes::Bytes;

use super::{Client, Failed};
use crate::error::Status;
use crate::limits::{CLIENT_REQUESTS, CLIENT_WINDOW};
use crate::reply::Reply;
use crate::request::Request;

/// A part of a file.
#[derive(Debug, Clone, Copy)]
struct Part {
    offset: u64,
    length: u32,
}

/// The reading of a file from its beginning to its end.
///
/// A file that has another size at the end than its attributes said before is one that changed: it would be neither the
/// old one nor the new one.
pub struct Download {
    handle: Bytes,
    /// Size by the file's attributes, if the server tells it.
    size: Option<u64>,
    /// First byte that nobody has asked for.
    next: u64,
    /// Whether it was asked what is behind the file's size.
    asked_behind: bool,
    under_way: HashMap<u32, Part>,
    bytes_under_way: usize,
    /// What short replies left out.
    again: Vec<Part>,
    /// Where the file ends, by the server's word.
    end: Option<u64>,
    /// First byte behind all data so far.
    furthest: u64,
    received: u64,
}

impl Download {
    /// Reads what is open under this handle, and has this size by its attributes.
    #[must_use]
    pub fn new(handle: Bytes, size: Option<u64>) -> Self {
        Self {
            handle,
            size,
            next: 0,
            asked_behind: false,
            under_way: HashMap::new(),
            bytes_under_way: 0,
            again: Vec::new(),
            end: None,
            furthest: 0,
            received: 0,
        }
    }

    /// Makes as many requests as may be under way.
    pub fn ask(&mut self, client: &mut Client) {
        while self.under_way.len() < CLIENT_REQUESTS && self.bytes_under_way < CLIENT_WINDOW {
            let Some(part) = self.next_part(client.max_read()) else { break };
            let Part { offset, length } = part;
            let id = client.send(&Request::Read { handle: self.handle.clone(), offset, length });
            self.bytes_under_way += length as usize;
            self.under_way.insert(id, part);
        }
    }

    fn next_part(&mut self, most: u32) -> Option<Part> {
        if let Some(part) = self.again.pop() {
            return Some(part);
        }
        if self.end.is_some() {
            return None;
        }
        let offset = self.next;
        let length = match self.size {
            Some(size) if offset < size => {
                u32::try_from(size - offset).map_or(most, |rest| rest.min(most))
            }
            // The end is asked for like everything else, so that a file that grew is noticed.
            Some(_) if !std::mem::replace(&mut self.asked_behind, true) => {
                return Some(Part { offset, length: 1 });
            }
            Some(_) => return None,
            None => most,
        };
        self.next = offset.saturating_add(length.into());
        Some(Part { offset, length })
    }

    /// Takes the reply to one of its requests: data with its offset, in no order.
    ///
    /// # Errors
    /// The file cannot be read, or changed.
    pub fn take(&mut self, id: u32, reply: Reply) -> Result<Option<(u64, Bytes)>, Failed> {
        let Some(part) = self.under_way.remove(&id) else { return Ok(None) };
        self.bytes_under_way -= part.length as usize;
        match reply {
            Reply::Data(data) => {
                let length = u32::try_from(data.len()).unwrap_or(u32::MAX).min(part.length);
                let rest = Part {
                    offset: part.offset.saturating_add(length.into()),
                    length: part.length - length,
                };
                let limit = self.end.or(self.size).unwrap_or(u64::MAX);
                if rest.offset > limit {
                    return Err(Failed::Changed);
                }
                if rest.length > 0 && rest.offset < limit {
                    self.again.push(rest);
                }
                self.furthest = self.furthest.max(rest.offset);
                self.received = self.received.saturating_add(length.into());
                Ok(Some((part.offset, data)))
            }
            Reply::Status(error) if error.status == Status::Eof => {
                self.ended(part.offset)?;
                Ok(None)
            }
            Reply::Status(error) => Err(Failed::Server(error)),
            _ => Ok(None),
        }
    }

    fn ended(&mut self, offset: u64) -> Result<(), Failed> {
        let end = self.end.map_or(offset, |end| end.min(offset));
        if self.size.is_some_and(|size| end < size) || self.furthest > end {
            return Err(Failed::Changed);
        }
        self.end = Some(end);
        self.again.retain(|part| part.offset < end);
        for part in &mut self.again {
            let most = u32::try_from(end - part.offset).unwrap_or(u32::MAX);
            part.length = part.length.min(most);
        }
        Ok(())
    }

    /// Whether everything has been read: the number of bytes.
    ///
    /// # Errors
    /// The file changed.
    pub fn done(&self) -> Result<Option<u64>, Failed> {
        match self.end {
            Some(end) if self.under_way.is_empty() && self.again.is_empty() => {
                if self.received == end { Ok(Some(end)) } else { Err(Failed::Changed) }
            }
            _ => Ok(None),
        }
    }

    /// Whether a reply is missing.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.under_way.is_empty()
    }
}
