//! An object that is written. It appears under its key when the file is closed, whole, or not at all.
//!
//! Clients write many pieces at a time and in any order. Pieces are collected in the parts of a multipart upload, whose borders are
//! fixed ([`part_range`]); a part is sent as soon as it is complete, and an object that fits into the first part is sent as a
//! whole. Where nothing is written, an existing object that was not emptied stays: S3 copies those of its parts that remain as they
//! are, and the rest of a part is read from it.
//!
//! What was sent cannot be written again, because S3 can neither change nor return a part.

mod part;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::{Error, Result, Status};
use outlast_sftp::volume::{File, OpenHow};
use tokio::task::JoinHandle;

use self::part::Part;
use super::{Shared, attributes, bare, no_attributes, told};
use crate::limits;
use crate::s3::objects::{Head, etag_of_parts, etag_of_whole, part_at, part_range};
use crate::s3::{Failure, Only};

pub(super) struct Upload {
    appends: bool,
    state: Mutex<State>,
}

/// The object that is there already.
struct Base {
    /// Bytes of it that remain.
    size: u64,
    etag: String,
}

struct State {
    shared: Shared,
    key: String,
    base: Option<Base>,
    /// There must be no object when this one appears, and one of the same content is another one.
    exclusive: bool,
    /// There was no object to which it could add: there must be none when it appears.
    is_first: bool,
    /// Bytes of the file.
    size: u64,
    /// Whether closing the file must change the object.
    dirty: bool,
    /// Incomplete parts, by index.
    open: BTreeMap<usize, Part>,
    /// Identifier of the multipart upload, once there is one.
    upload: Option<String>,
    sending: VecDeque<(usize, JoinHandle<std::result::Result<String, Failure>>)>,
    /// Entity tags of the parts that S3 has.
    sent: BTreeMap<usize, String>,
    /// Why nothing can be written any more.
    failed: Option<Error>,
}

impl Upload {
    pub(super) fn new(shared: Shared, key: String, how: &OpenHow, found: Option<Head>) -> Self {
        let is_first = found.is_none() && !how.truncate;
        // Of two who add the same line to nothing, both must be told apart.
        let exclusive = (how.create && how.exclusive) || (is_first && how.append);
        let base = found.filter(|_| !how.truncate);
        let base = base.map(|head| Base { size: head.size, etag: head.etag });
        let state = State {
            shared,
            key,
            exclusive,
            is_first,
            size: base.as_ref().map_or(0, |base| base.size),
            dirty: base.is_none(),
            base,
            open: BTreeMap::new(),
            upload: None,
            sending: VecDeque::new(),
            sent: BTreeMap::new(),
            failed: None,
        };
        Self { appends: how.append, state: Mutex::new(state) }
    }

    /// Runs a step. After one that fails, the upload is over.
    fn step<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let outcome = work(&mut state);
        if let Err(error) = &outcome {
            state.failed = Some(error.clone());
            state.abort();
        }
        outcome
    }
}

impl State {
    fn write(&mut self, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        let end = end.filter(|end| *end <= limits::S3_MAX_OBJECT).ok_or_else(too_large)?;
        if bytes.is_empty() {
            return Ok(());
        }
        while !bytes.is_empty() {
            let (index, range) = place(offset)?;
            let most = usize::try_from(range.end - offset).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(most);
            self.write_part(index, &range, offset, now)?;
            offset += most as u64;
            bytes = later;
        }
        self.size = self.size.max(end);
        self.dirty = true;
        Ok(())
    }

    fn write_part(
        &mut self,
        index: usize,
        range: &Range<u64>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        if self.is_sent(index) {
            return Err(Error::failure(
                "S3 cannot change what was uploaded already: send the whole file in order",
            ));
        }
        if !self.open.contains_key(&index) && self.open.len() >= limits::S3_OPEN_PARTS {
            self.send_first()?;
        }
        let mut part = self.open.remove(&index).unwrap_or_else(|| Part::new(range));
        self.write_to(&mut part, offset, bytes)?;
        if part.is_complete_to(range.end) {
            return self.send(index, part);
        }
        self.open.insert(index, part);
        Ok(())
    }

    /// Writes to a part. If there is no memory for it, it waits for parts of this upload that are on their way: they give
    /// theirs back.
    fn write_to(&mut self, part: &mut Part, offset: u64, bytes: &[u8]) -> Result<()> {
        while let Some(full) = part.write(offset, bytes, &self.shared.memory)? {
            if self.sending.is_empty() {
                return Err(full.into());
            }
            self.await_first()?;
        }
        Ok(())
    }

    fn is_sent(&self, index: usize) -> bool {
        self.sent.contains_key(&index) || self.sending.iter().any(|(sending, _)| *sending == index)
    }

    /// Sends the first of the incomplete parts, whose gaps the existing object must fill.
    fn send_first(&mut self) -> Result<()> {
        let Some((index, mut part)) = self.open.pop_first() else { return Ok(()) };
        let range = part_range(index).ok_or_else(too_large)?;
        self.fill(&mut part, range.end).map_err(|error| match error.status {
            Status::OpUnsupported => Error::failure(
                "S3 takes no file that is written in so many places at a time: send it in order",
            ),
            _ => error,
        })?;
        self.send(index, part)
    }

    /// Takes from the existing object what is not written, up to `end`.
    fn fill(&mut self, part: &mut Part, end: u64) -> Result<()> {
        for gap in part.gaps(end) {
            let base = self.base.as_ref().filter(|base| gap.end <= base.size).ok_or_else(hole)?;
            let etag = base.etag.clone();
            let mut at = gap.start;
            while at < gap.end {
                let next = (at + limits::S3_BLOCK).min(gap.end);
                let bytes =
                    self.shared.wait(self.shared.bucket.read(&self.key, &etag, at..next))?;
                self.write_to(part, at, &bytes)?;
                at = next;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<String> {
        if let Some(upload) = &self.upload {
            return Ok(upload.clone());
        }
        let upload = self.shared.wait(self.shared.bucket.begin(&self.key))?;
        self.upload = Some(upload.clone());
        Ok(upload)
    }

    fn send(&mut self, index: usize, part: Part) -> Result<()> {
        let upload = self.begin()?;
        let (bucket, key) = (self.shared.bucket.clone(), self.key.clone());
        let (bytes, share) = part.into_bytes();
        self.launch(index, async move {
            let outcome = bucket.write_part(&key, &upload, index + 1, bytes).await;
            // It is held for as long as the bytes are.
            drop(share);
            outcome
        })
    }

    /// Lets S3 copy a part of the existing object.
    fn copy(&mut self, index: usize, range: Range<u64>) -> Result<()> {
        let base = self.base.as_ref().filter(|base| range.end <= base.size).ok_or_else(hole)?;
        let etag = base.etag.clone();
        let upload = self.begin()?;
        let (bucket, key) = (self.shared.bucket.clone(), self.key.clone());
        self.launch(index, async move {
            bucket.copy_part(&key, &upload, index + 1, (&key, &etag, range)).await
        })
    }

    /// Makes a part in the background, as soon as there are not too many.
    fn launch(
        &mut self,
        index: usize,
        making: impl Future<Output = std::result::Result<String, Failure>> + Send + 'static,
    ) -> Result<()> {
        while self.sending.len() >= limits::S3_SENDING_PARTS {
            self.await_first()?;
        }
        self.sending.push_back((index, self.shared.runtime.spawn(making)));
        Ok(())
    }

    fn await_first(&mut self) -> Result<()> {
        let Some((index, sending)) = self.sending.pop_front() else { return Ok(()) };
        let etag = match self.shared.runtime.block_on(sending) {
            Ok(Ok(etag)) => etag,
            Ok(Err(failure)) => return Err(told(&failure)),
            Err(_) => return Err(Error::failure("the server is stopping")),
        };
        self.sent.insert(index, etag);
        Ok(())
    }

    /// Makes what was written the object.
    fn publish(&mut self) -> Result<()> {
        if !self.dirty {
            return Ok(());
        }
        let etag = if self.is_whole() {
            self.fill_whole()?;
            let (bytes, share) = self.open.remove(&0).unwrap_or_default().into_bytes();
            let (only, bucket) = (self.only(), &self.shared.bucket);
            let written = bucket.write(&self.key, bytes.clone(), &only);
            let outcome = self.shared.runtime.block_on(written);
            let etag = self.published(outcome, || Some(etag_of_whole(&bytes)))?;
            drop(share);
            etag
        } else {
            self.complete()?
        };
        self.base = Some(Base { size: self.size, etag });
        self.dirty = false;
        (self.exclusive, self.is_first) = (false, false);
        self.upload = None;
        self.sent.clear();
        Ok(())
    }

    /// Entity tag of the published object. If S3 has not said what it did, the object itself says whether it is this one; not all entity
    /// tags do (those of objects under keys of KMS are random). Of two who make a file that must be new, the other one's may have the
    /// same content, so that it says nothing there.
    fn published(
        &self,
        outcome: std::result::Result<String, Failure>,
        expected: impl FnOnce() -> Option<String>,
    ) -> Result<String> {
        let failure = match outcome {
            Ok(etag) => return Ok(etag),
            Err(failure) => failure,
        };
        // A refusal is one of the first attempt, if there is a condition: otherwise the earlier failure is told.
        let is_open = failure.status().is_none_or(|status| status >= 500);
        let expected = if is_open && !self.exclusive { expected() } else { None };
        let is_it = |head: &Head| {
            head.size == self.size
                && expected.as_deref() == Some(&bare(&head.etag))
                && self.base.as_ref().is_none_or(|base| base.etag != head.etag)
        };
        let found =
            expected.is_some().then(|| self.shared.wait(self.shared.bucket.head(&self.key)));
        let found = found.and_then(Result::ok).flatten().filter(is_it);
        found.map(|head| head.etag).ok_or_else(|| told(&failure))
    }

    /// Whether it is sent in one request.
    fn is_whole(&self) -> bool {
        self.upload.is_none() && self.size <= part_range(0).map_or(0, |range| range.end)
    }

    /// Sends what is left of the parts, or completes the only one; the object appears by one request more.
    fn settle(&mut self) -> Result<()> {
        match self.dirty {
            false => Ok(()),
            true if self.is_whole() => self.fill_whole(),
            true => self.send_rest(),
        }
    }

    /// Takes the rest of an object that is sent in one request from the existing one.
    fn fill_whole(&mut self) -> Result<()> {
        let mut part = self.open.remove(&0).unwrap_or_default();
        self.fill(&mut part, self.size)?;
        self.open.insert(0, part);
        Ok(())
    }

    fn send_rest(&mut self) -> Result<()> {
        let count = part_at(self.size.saturating_sub(1)).ok_or_else(too_large)? + 1;
        for index in 0..count {
            if self.is_sent(index) {
                continue;
            }
            let range = part_range(index).ok_or_else(too_large)?;
            let end = range.end.min(self.size);
            match self.open.remove(&index) {
                Some(mut part) => {
                    self.fill(&mut part, end)?;
                    self.send(index, part)?;
                }
                None => self.copy(index, range.start..end)?,
            }
        }
        while !self.sending.is_empty() {
            self.await_first()?;
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<String> {
        self.send_rest()?;
        let upload = self.begin()?;
        let parts = self.sent.iter().map(|(index, etag)| (index + 1, etag.clone()));
        let only = self.only();
        let complete = self.shared.bucket.complete(&self.key, &upload, parts, &only);
        let outcome = self.shared.runtime.block_on(complete);
        self.published(outcome, || etag_of_parts(self.sent.values().map(|etag| bare(etag))))
    }

    /// What must be under the key when the object appears: of two clients that add to an object, one must not lose what the
    /// other has added.
    fn only(&self) -> Only {
        match &self.base {
            _ if self.exclusive || self.is_first => Only::Absent,
            Some(base) => Only::Same(base.etag.clone()),
            None => Only::Always,
        }
    }

    /// Makes the file shorter, which clients do after an upload that was interrupted.
    fn truncate(&mut self, size: u64) -> Result<()> {
        if size == self.size {
            return Ok(());
        }
        let sent = self.sent.keys().copied().chain(self.sending.iter().map(|(index, _)| *index));
        let sent_end = sent.max().and_then(part_range).map_or(0, |range| range.end);
        if size > self.size {
            return Err(Error::unsupported("S3 keeps no room for what is not written"));
        }
        if size < sent_end {
            return Err(Error::unsupported("S3 cannot make shorter what was uploaded already"));
        }
        self.open.retain(|_, part| part.truncate(size));
        if let Some(base) = &mut self.base {
            base.size = base.size.min(size);
        }
        self.size = size;
        self.dirty = true;
        Ok(())
    }

    /// Forgets the parts, without waiting for it: it may be a thread that runs futures.
    fn abort(&mut self) {
        self.open.clear();
        let sending = std::mem::take(&mut self.sending);
        let Some(upload) = self.upload.take() else { return };
        let (bucket, key) = (self.shared.bucket.clone(), self.key.clone());
        self.shared.runtime.spawn(async move {
            // A part that arrives after the end of its upload would stay.
            for (_, sending) in sending {
                let _ = sending.await;
            }
            if let Err(failure) = bucket.abort(&key, &upload).await {
                tracing::warn!(%failure, "an interrupted upload stays in S3 until its lifecycle rules remove it");
            }
        });
    }
}

impl File for Upload {
    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
        Err(Error::unsupported("S3 cannot read a file while it is written: open it again"))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.step(|state| {
            let offset = if self.appends { state.size } else { offset };
            state.write(offset, bytes)
        })
    }

    fn attributes(&self) -> Result<Attributes> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(attributes(state.size, None))
    }

    /// Known while nothing is written that is not published. It is that of this upload, whatever has taken its place since.
    fn entity_tag(&self) -> Result<Option<String>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let published = state.base.as_ref().filter(|_| !state.dirty);
        Ok(published.map(|base| bare(&base.etag)))
    }

    fn set_attributes(&self, to: &Attributes) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(size) = to.size {
            // A refusal does not spoil what was written.
            state.truncate(size)?;
        }
        let others = Attributes { size: None, ..*to };
        if others == Attributes::default() { Ok(()) } else { Err(no_attributes()) }
    }

    fn settle(&self) -> Result<()> {
        self.step(State::settle)
    }

    fn sync(&self) -> Result<()> {
        self.step(State::publish)
    }

    fn is_apart(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).dirty
    }

    fn writes_apart(&self) -> bool {
        true
    }

    fn close(&self) -> Result<()> {
        self.step(State::publish)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).abort();
    }
}

fn place(offset: u64) -> Result<(usize, Range<u64>)> {
    let index = part_at(offset).ok_or_else(too_large)?;
    Ok((index, part_range(index).ok_or_else(too_large)?))
}

fn too_large() -> Error {
    Error::failure("the file is too large for S3: at most 1.7 TiB")
}

fn hole() -> Error {
    Error::unsupported("the file has a hole, which S3 cannot keep: send the whole file")
}
