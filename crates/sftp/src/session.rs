//! A session with one client: its bytes become operations, and their outcomes become replies.
//!
//! The caller owns the connection and the threads:
//!
//! 1. It gives what it reads to [`Session::receive`], as long as [`Session::wants_input`]. It may go on reading the
//!    connection itself: what must stop is granting the client more window.
//! 2. It takes operations with [`Session::next_operation`] after each `receive`, `complete` and `next_output`, runs them
//!    on as many threads as it likes, and returns their outcomes with [`Session::complete`]. Writes to one file may run one after the
//!    other on one thread: [`Session::next_after`].
//! 3. It sends what [`Session::next_output`] returns.
//!
//! No client can stop this from making progress or make it hold more than its limits: an operation starts only if there
//! is room for its reply, requests wait until there is, and input waits until there is room for requests. A client that sends
//! requests without reading replies blocks itself, and goes on as soon as it reads. A caller that has less memory for a session than
//! these limits looks at [`Session::held_bytes`], and sets [`Session::limit_replies`].
//!
//! Requests take effect as if they ran in their order (the draft's section 6 demands it for each file): those of one handle in
//! order, except that reads may run together, and those that change names alone.

mod lanes;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use self::lanes::{Lane, Lanes};
use crate::error::Error;
use crate::handles::Handles;
use crate::limits::{
    LOOKAHEAD, MAX_DATA, MAX_HANDLES, MAX_INPUT, MAX_NAMES_BYTES, MAX_PACKET, MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES, MAX_REQUESTS, REPLY_OVERHEAD, REQUEST_OVERHEAD,
};
use crate::operation::{Open, Operation, Outcome, Record};
use crate::reply::{DATA_HEADER, PROTOCOL_VERSION, Reply, version};
use crate::request::{Request, hello};
use crate::wire::Malformed;

/// A violation of the protocol that ends the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// The first packet is not SSH_FXP_INIT, or has a version below 3.
    NoGreeting,
    /// A packet is empty or longer than [`MAX_PACKET`].
    Length,
    /// A packet has no identifier.
    NoIdentifier,
    /// The caller gave input that was not wanted.
    Overrun,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoGreeting => "the client did not begin with SFTP version 3 or later",
            Self::Length => "a packet is empty or longer than 256 KiB",
            Self::NoIdentifier => "a packet has no identifier",
            Self::Overrun => "there is more input than the session wanted",
        })
    }
}

impl std::error::Error for Violation {}

/// Bytes of a packet from which on memory for all of it is reserved.
const COMING: usize = 16 * 1024;

/// A request that has not started.
struct Waiting {
    id: u32,
    request: Request,
    lane: Lane,
    /// Bytes of its packet.
    size: usize,
}

/// A request that is running.
struct Running {
    lane: Lane,
    reserved: usize,
    size: usize,
    opens: bool,
}

/// A session.
pub struct Session {
    greeted: bool,
    input: BytesMut,
    /// Bytes of the packet that the input has memory for, although it has not all arrived; zero if there is none.
    coming: usize,
    waiting: VecDeque<Waiting>,
    /// Bytes of the requests that wait or run.
    held: usize,
    running: BTreeMap<u64, Running>,
    lanes: Lanes,
    /// Bytes that the replies of running operations may have.
    reserved: usize,
    handles: BTreeMap<Bytes, Arc<Open>>,
    /// Operations that are running and will open something.
    opening: usize,
    max_handles: usize,
    /// What the open ones count for besides.
    shared: Option<Arc<Handles>>,
    /// Kinds of requests whose extensions are not announced.
    withheld: Vec<&'static str>,
    next_handle: u64,
    next_serial: u64,
    output: VecDeque<Vec<u8>>,
    output_bytes: usize,
    /// Most bytes of replies that wait or are being made.
    most_replies: usize,
    violation: Option<Violation>,
}

const TOO_MANY_OPEN: &str = "you, or all users of the server together, have as many open files and folders as are allowed: close some, and try again";

impl Default for Session {
    fn default() -> Self {
        Self::new(MAX_HANDLES)
    }
}

impl Session {
    /// A session that may have so many open handles.
    #[must_use]
    pub fn new(max_handles: usize) -> Self {
        Self {
            greeted: false,
            input: BytesMut::new(),
            coming: 0,
            waiting: VecDeque::new(),
            held: 0,
            running: BTreeMap::new(),
            lanes: Lanes::default(),
            reserved: 0,
            handles: BTreeMap::new(),
            opening: 0,
            max_handles,
            shared: None,
            withheld: Vec::new(),
            next_handle: 0,
            next_serial: 0,
            output: VecDeque::new(),
            output_bytes: 0,
            most_replies: MAX_REPLY_BYTES,
            violation: None,
        }
    }

    /// Announces no extensions of these kinds, because they will be refused.
    #[must_use]
    pub fn withhold(mut self, kinds: Vec<&'static str>) -> Self {
        self.withheld = kinds;
        self
    }

    /// Takes bytes of the client.
    ///
    /// # Errors
    /// The client violated the protocol: the connection must be closed.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        if let Some(violation) = self.violation {
            return Err(violation);
        }
        if self.input.len() + bytes.len() > MAX_INPUT {
            return self.fail(Violation::Overrun);
        }
        self.input.extend_from_slice(bytes);
        self.parse()
    }

    /// Whether the client should be allowed to send more.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.has_room() && self.violation.is_none()
    }

    /// Bytes that the session holds: input, requests that are not answered yet, and replies that wait or are being made.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.asked_bytes() + self.output_bytes + self.reserved
    }

    /// Those among them that came from the client, or are about to: input and requests.
    #[must_use]
    pub fn asked_bytes(&self) -> usize {
        let requests = self.waiting.len() + self.running.len();
        self.input.len().max(self.coming) + self.held + requests * REQUEST_OVERHEAD
    }

    /// Lets replies that wait or are being made have so many bytes from now on, at most [`MAX_REPLY_BYTES`]. If there are none, the next
    /// one is made whatever its size, so that the session goes on with any limit.
    pub fn limit_replies(&mut self, most: usize) {
        self.most_replies = most.min(MAX_REPLY_BYTES);
    }

    /// Whether nothing is to be done and nothing to be sent: every complete request has been answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        // Requests are read when there is room for their replies.
        let has_request = self.violation.is_none()
            && self
                .input
                .first_chunk::<4>()
                .is_some_and(|head| self.input.len() - 4 >= u32::from_be_bytes(*head) as usize);
        !has_request && self.waiting.is_empty() && self.running.is_empty() && self.output.is_empty()
    }

    /// The violation that ended the session. One can be found late, when a request in front of it has been answered.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.violation
    }

    fn has_room(&self) -> bool {
        // Requests that cannot be read are answered without running: their replies must not pile up either.
        self.waiting.len() + self.running.len() < MAX_REQUESTS
            && self.held < MAX_REQUEST_BYTES
            && self.output_bytes + self.reserved <= self.most_replies
    }

    fn fail<T>(&mut self, violation: Violation) -> Result<T, Violation> {
        self.violation = Some(violation);
        self.input.clear();
        self.coming = 0;
        Err(violation)
    }

    /// Parses complete packets, as long as there is room for their requests.
    fn parse(&mut self) -> Result<(), Violation> {
        while self.has_room() {
            let Some(head) = self.input.first_chunk::<4>() else { break };
            let length = u32::from_be_bytes(*head) as usize;
            if length == 0 || length > MAX_PACKET {
                return self.fail(Violation::Length);
            }
            if self.input.len() < 4 + length {
                // Growing by halves would copy a long packet once more. One that has only begun may never come.
                if self.input.len() >= COMING {
                    self.coming = 4 + length;
                    self.input.reserve(self.coming - self.input.len());
                }
                break;
            }
            self.coming = 0;
            let mut packet = self.input.split_to(4 + length).freeze();
            self.take_packet(packet.split_off(4))?;
        }
        Ok(())
    }

    fn take_packet(&mut self, packet: Bytes) -> Result<(), Violation> {
        if !self.greeted {
            // A later version is answered with ours, as the draft's section 4 demands.
            if !hello(packet).is_ok_and(|version| version >= PROTOCOL_VERSION) {
                return self.fail(Violation::NoGreeting);
            }
            self.greeted = true;
            self.send(version(|kind| !self.withheld.contains(&kind)));
            return Ok(());
        }
        let size = packet.len();
        let Ok(numbered) = Request::parse(packet) else {
            return self.fail(Violation::NoIdentifier);
        };
        let id = numbered.id;
        match numbered.request {
            Ok(request) => {
                self.held += size;
                let lane = Lane::of(&request);
                self.waiting.push_back(Waiting { id, request, lane, size });
            }
            Err(Malformed) => {
                let error =
                    Error::new(crate::error::Status::BadMessage, "the request cannot be read");
                self.send(Reply::Status(error).write(id));
            }
        }
        Ok(())
    }

    fn send(&mut self, packet: Vec<u8>) {
        self.output_bytes += packet.len() + REPLY_OVERHEAD;
        self.output.push_back(packet);
    }

    /// Replies that wait for [`Session::next_output`].
    #[must_use]
    pub fn waiting_replies(&self) -> usize {
        self.output.len()
    }

    /// The next operation to run, if one may start now. Requests that are refused without an operation are answered meanwhile:
    /// there may be more replies afterwards, whatever is returned.
    pub fn next_operation(&mut self) -> Option<Operation> {
        // What arrived while there was no room. A violation shows in `violation`, once what came before it is done.
        let _ = if self.violation.is_none() { self.parse() } else { Ok(()) };
        loop {
            let place = self.find(|waiting| !self.lanes.conflicts(&waiting.lane))?;
            if let Some(operation) = self.begin(place) {
                return Some(operation);
            }
        }
    }

    /// The next write to the same file as `first`, a write that has not run yet, if nothing in front of it stands in its way. Writes of
    /// one file wait for each other anyway: the caller runs them on one thread, in this order.
    pub fn next_after(&mut self, first: &Operation) -> Option<Operation> {
        let Request::Write { handle: same, .. } = &first.request else { return None };
        let place = self.find(|waiting| match &waiting.request {
            Request::Write { handle, .. } => handle == same,
            _ => false,
        })?;
        self.begin(place)
    }

    /// Finds a request that fits and need not wait for those in front of it: its place, and what its reply may have.
    fn find(&self, fits: impl Fn(&Waiting) -> bool) -> Option<(usize, usize)> {
        let mut passed = Lanes::default();
        for (index, waiting) in self.waiting.iter().take(LOOKAHEAD).enumerate() {
            let cost = reply_cost(&waiting.request);
            let queued = self.output_bytes + self.reserved;
            if queued > 0 && queued + cost > self.most_replies {
                return None;
            }
            if fits(waiting) && !passed.conflicts(&waiting.lane) {
                return Some((index, cost));
            }
            passed.enter(&waiting.lane);
        }
        None
    }

    /// Takes a request out of the queue. One that cannot start is answered.
    fn begin(&mut self, (index, cost): (usize, usize)) -> Option<Operation> {
        let waiting = self.waiting.remove(index)?;
        match self.start(waiting, cost) {
            Ok(operation) => Some(operation),
            Err((id, error)) => {
                self.send(Reply::Status(error).write(id));
                None
            }
        }
    }

    /// Resolves the handles of a request, or says why it cannot start.
    fn start(&mut self, waiting: Waiting, cost: usize) -> Result<Operation, (u32, Error)> {
        let Waiting { id, request, lane, size } = waiting;
        let handles = lanes::handles(&request);
        let opens = matches!(request, Request::Open { .. } | Request::OpenDir { .. });
        let (mut open, mut other) = (None, None);
        for (handle, slot) in handles.into_iter().flatten().zip([&mut open, &mut other]) {
            let Some(found) = self.handles.get(handle) else {
                self.held -= size;
                return Err((id, Error::failure("no such handle")));
            };
            *slot = Some(Arc::clone(found));
        }
        if opens && self.handles.len() + self.opening >= self.max_handles {
            let text = format!(
                "{} files and folders are open, more are not allowed: close one",
                self.max_handles
            );
            self.held -= size;
            return Err((id, Error::failure(text)));
        }
        let held = match self.shared.as_ref().filter(|_| opens).map(Handles::take) {
            None => None,
            Some(Some(held)) => Some(held),
            Some(None) => {
                self.held -= size;
                return Err((id, Error::failure(TOO_MANY_OPEN)));
            }
        };
        if let Request::Close { handle } = &request {
            self.handles.remove(handle);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.lanes.enter(&lane);
        self.reserved += cost;
        self.opening += usize::from(opens);
        self.running.insert(serial, Running { lane, reserved: cost, size, opens });
        let new_handle = if opens {
            let number = self.next_handle;
            self.next_handle += 1;
            Bytes::copy_from_slice(&number.to_be_bytes())
        } else {
            Bytes::new()
        };
        let max_handles = self.max_handles;
        Ok(Operation { id, serial, request, open, other, new_handle, max_handles, held })
    }

    /// Takes the outcome of an operation of this session; its reply is queued.
    pub fn complete(&mut self, outcome: Outcome) -> Record {
        let Outcome { serial, packet, opened, record } = outcome;
        if let Some(Running { lane, reserved, size, opens }) = self.running.remove(&serial) {
            self.lanes.leave(&lane);
            self.reserved -= reserved;
            self.held -= size;
            self.opening -= usize::from(opens);
            if let Some((handle, open)) = opened {
                self.handles.insert(handle, open);
            }
            self.send(packet);
        }
        record
    }

    /// Lets what is open count for these as well.
    #[must_use]
    pub fn sharing(self, handles: Arc<Handles>) -> Self {
        Self { shared: Some(handles), ..self }
    }

    /// The next bytes for the client.
    pub fn next_output(&mut self) -> Option<Vec<u8>> {
        let packet = self.output.pop_front()?;
        self.output_bytes -= packet.len() + REPLY_OVERHEAD;
        Some(packet)
    }

    /// Forgets what waits, because the client is gone: requests that have not started, and replies. Operations that still run end
    /// with their outcomes, and may open files until then.
    pub fn abandon(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.held -= waiting.iter().map(|waiting| waiting.size).sum::<usize>();
        self.input = BytesMut::new();
        self.coming = 0;
        self.output = VecDeque::new();
        self.output_bytes = 0;
    }

    /// Whether files or folders are open.
    #[must_use]
    pub fn has_open(&self) -> bool {
        !self.handles.is_empty()
    }

    /// Ends the session: open files are dropped without a close. Returns what is known of them, for audit events; what operations that
    /// still run open, read and write is not among it.
    pub fn end(&mut self) -> Vec<Record> {
        self.abandon();
        let handles = std::mem::take(&mut self.handles);
        handles.values().map(|open| open.abandoned()).collect()
    }
}

/// Bytes that a reply may have, at most.
fn reply_cost(request: &Request) -> usize {
    match request {
        Request::Read { length, .. } => {
            DATA_HEADER + usize::try_from(*length).unwrap_or(MAX_DATA).min(MAX_DATA)
        }
        // One name more than fits, and its line.
        Request::ReadDir { .. } => MAX_NAMES_BYTES + 2048,
        Request::UsersGroups { users, groups } => 64 * (users.len() + groups.len() + 1),
        _ => 512,
    }
}
