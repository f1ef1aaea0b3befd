//! A channel of a connection: an SFTP session between the client's bytes and the threads that touch files.

use std::cell::Cell;
use std::sync::Arc;

use outlast_sftp::handles::Handles;
use outlast_sftp::limits::MAX_REPLY_BYTES;
use outlast_sftp::operation::{Operation, Outcome, Record};
use outlast_sftp::session::Session;
use outlast_sftp::view::View;
use outlast_ssh::{ChannelId, Server};

use super::budget::{Budget, WIDE};
use crate::limits;

/// A channel that the client has opened.
pub(super) struct Channel {
    id: ChannelId,
    sftp: Option<Session>,
    /// Output that the transport has not taken yet.
    rest: Rest,
    /// Bytes of the client that no window was granted for yet.
    unconsumed: usize,
    /// Bytes that the client has sent.
    received: usize,
    /// Whether the client has the whole window.
    is_wide: bool,
    /// What the connection's budget has counted.
    counted: usize,
    running: usize,
    /// Whether the last operation needed no waiting.
    is_quick: bool,
    /// Whether the client sends no more.
    ended: bool,
    closing: bool,
    /// Whether the client has closed it, too.
    closed: bool,
}

/// A reply of which the transport has taken a part.
#[derive(Default)]
struct Rest {
    packet: Vec<u8>,
    taken: usize,
}

impl Rest {
    fn bytes(&self) -> &[u8] {
        self.packet.get(self.taken..).unwrap_or_default()
    }

    fn len(&self) -> usize {
        self.bytes().len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The transport has taken so many bytes more. The memory of a large reply that is sent is for the next one.
    fn advance(&mut self, len: usize) {
        self.taken += len;
        if self.is_empty() && self.packet.len() >= LARGE {
            SPARE.set(std::mem::take(&mut self.packet));
        }
    }
}

/// Replies from this length on are made in memory of earlier ones, if they have the same length.
const LARGE: usize = 16 * 1024;

thread_local! {
    /// Where a thread makes a large reply that needs no waiting.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Carries an operation out if it needs no waiting.
pub(super) fn carried_out_now(
    operation: Operation,
    view: &View,
) -> Result<Outcome, Box<Operation>> {
    let mut spare = SPARE.take();
    let outcome = operation.try_now(view, &mut spare);
    SPARE.set(spare);
    outcome
}

/// Closes what channels have left open; what is known of it. The disk may take long to give up a large file that is forgotten.
pub(super) async fn closed(mut channels: Vec<Channel>) -> Vec<Record> {
    let end = move || channels.iter_mut().flat_map(Channel::end).collect();
    tokio::task::spawn_blocking(end).await.unwrap_or_default()
}

/// The end of operations of a channel that ran together.
pub(super) struct Done {
    pub(super) channel: ChannelId,
    pub(super) outcomes: Vec<Outcome>,
}

impl Channel {
    pub(super) fn new(id: ChannelId) -> Self {
        Self {
            id,
            sftp: None,
            rest: Rest::default(),
            unconsumed: 0,
            received: 0,
            is_wide: false,
            counted: 0,
            running: 0,
            is_quick: false,
            ended: false,
            closing: false,
            closed: false,
        }
    }

    pub(super) fn id(&self) -> ChannelId {
        self.id
    }

    /// Starts SFTP, once. What it opens counts for these.
    pub(super) fn start(&mut self, handles: Arc<Handles>) -> bool {
        let is_new = self.sftp.is_none() && !self.closing;
        if is_new {
            self.sftp = Some(Session::default().sharing(handles));
        }
        is_new
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.unconsumed += bytes.len();
        self.received = self.received.saturating_add(bytes.len());
        if let Some(sftp) = &mut self.sftp {
            // `pump` sees the violation.
            let _ = sftp.receive(bytes);
        }
    }

    pub(super) fn ended(&mut self) {
        self.ended = true;
    }

    /// The client has closed it. Operations that are running go on; nothing else starts.
    pub(super) fn close(&mut self) {
        (self.closing, self.closed) = (true, true);
        self.rest = Rest::default();
        if let Some(sftp) = &mut self.sftp {
            sftp.abandon();
        }
    }

    /// Whether it is closed and nothing of it runs any more: only then is it known which files are open, and what was read and written.
    pub(super) fn is_over(&self) -> bool {
        self.closed && self.running == 0
    }

    /// Takes the end of operations that ran together.
    pub(super) fn complete(&mut self, outcomes: Vec<Outcome>) {
        self.running -= 1;
        if let Some(sftp) = &mut self.sftp {
            for outcome in outcomes {
                sftp.complete(outcome);
            }
        }
    }

    /// What it holds in memory, or has promised to take.
    fn holds(&self) -> usize {
        self.sftp.as_ref().map_or(0, |sftp| held(sftp, &self.rest, self.is_wide))
    }

    /// Starts operations, sends their replies, and grants the client as much window as there is room for. `now` carries out an operation
    /// if that needs no waiting. `start` starts others, those of one call together, up to `most` times.
    ///
    /// If the budget is used up, nothing but the channel's own share is left: one large reply at a time, which must be sent before
    /// another one is made, and window for one packet. With that it goes on whenever its client reads.
    ///
    /// Returns whether the transport has taken a reply, or a part of one: the client is using the channel.
    pub(super) fn pump(
        &mut self,
        ssh: &mut Server,
        budget: &mut Budget,
        most: usize,
        now: impl Fn(Operation) -> Result<Outcome, Box<Operation>>,
        mut start: impl FnMut(Vec<Operation>),
    ) -> bool {
        let holds = self.holds();
        budget.count(&mut self.counted, holds);
        let mut has_sent = false;
        if self.closing {
            return has_sent;
        }
        let Some(sftp) = &mut self.sftp else {
            // Data without a subsystem is read and forgotten.
            ssh.consumed(self.id, std::mem::take(&mut self.unconsumed));
            return has_sent;
        };
        let most = limits::MAX_SFTP_OPERATIONS.min(self.running + most);
        loop {
            let queued = ssh.queued();
            let is_sent = hand_over(sftp, &mut self.rest, self.id, ssh, budget);
            has_sent |= ssh.queued() > queued;
            // What needs no waiting is not read ahead: until it is sent, it would leave the processor's cache.
            if self.running >= most || (self.is_quick && !is_sent) {
                break;
            }
            if !limit(sftp, budget) && !self.rest.is_empty() {
                break;
            }
            let Some(operation) = sftp.next_operation() else { break };
            let outcome = now(operation);
            self.is_quick = outcome.is_ok();
            match outcome {
                Ok(outcome) => {
                    sftp.complete(outcome);
                }
                Err(first) => {
                    let mut together = vec![*first];
                    while together.len() < limits::SFTP_WRITES_TOGETHER {
                        let next = together.first().and_then(|first| sftp.next_after(first));
                        let Some(next) = next else { break };
                        together.push(next);
                    }
                    self.running += 1;
                    start(together);
                }
            }
            budget.count(&mut self.counted, held(sftp, &self.rest, self.is_wide));
        }
        budget.count(&mut self.counted, held(sftp, &self.rest, self.is_wide));
        let has_room =
            limit(sftp, budget) || held(sftp, &self.rest, false) < limits::SFTP_SHARE_OF_CHANNEL;
        if has_room && sftp.wants_input() && self.unconsumed > 0 {
            ssh.consumed(self.id, std::mem::take(&mut self.unconsumed));
        }
        let sends_much = self.received >= limits::SFTP_FIRST_WINDOW as usize;
        if !self.is_wide && sends_much && budget.has_room_for_window() {
            self.is_wide = true;
            budget.count(&mut self.counted, held(sftp, &self.rest, true));
            ssh.widen(self.id);
        }
        let is_wrong = sftp.violation().is_some();
        if is_wrong || (self.ended && sftp.is_idle() && self.rest.is_empty()) {
            ssh.exit_status(self.id, u32::from(is_wrong));
            ssh.eof(self.id);
            ssh.close(self.id);
            self.closing = true;
        }
        has_sent
    }

    /// Ends the session; returns what is known of the files that were open.
    pub(super) fn end(&mut self) -> Vec<Record> {
        self.sftp.as_mut().map(Session::end).unwrap_or_default()
    }

    /// Whether files are open.
    pub(super) fn has_open(&self) -> bool {
        self.sftp.as_ref().is_some_and(Session::has_open)
    }

    /// Gives back what the budget has counted, when nothing of the channel is left.
    pub(super) fn leave(&mut self, budget: &mut Budget) {
        budget.count(&mut self.counted, 0);
    }
}

/// Gives replies to the transport, as long as it and the client's window have room. False if some remain.
fn hand_over(
    sftp: &mut Session,
    rest: &mut Rest,
    id: ChannelId,
    ssh: &mut Server,
    budget: &Budget,
) -> bool {
    loop {
        if rest.is_empty() {
            let most = match budget.has_room() {
                true => limits::SFTP_OUTPUT,
                false => limits::SFTP_REPLIES_OF_CHANNEL,
            };
            if ssh.queued() >= most || ssh.is_partly_sent() {
                return false;
            }
            let Some(next) = sftp.next_output() else { return true };
            *rest = Rest { packet: next, taken: 0 };
        }
        // What the client's window has no room for stays here: the transport would copy it.
        let room = ssh.writable(id).unwrap_or(0).min(rest.len());
        let taken = ssh.write(id, rest.bytes().get(..room).unwrap_or_default());
        if taken == 0 {
            return false;
        }
        rest.advance(taken);
    }
}

/// Bytes of a session, of output that the transport has not taken, and of a window beyond the first one as far as nothing has come
/// through it. A window cannot be taken back, so that it counts until the channel is over.
fn held(sftp: &Session, rest: &Rest, is_wide: bool) -> usize {
    let promised = if is_wide { WIDE.saturating_sub(sftp.asked_bytes()) } else { 0 };
    sftp.held_bytes() + rest.len() + promised
}

/// Limits the replies of a session to what the budget allows. False if that is only the channel's share.
fn limit(sftp: &mut Session, budget: &Budget) -> bool {
    let has_room = budget.has_room();
    sftp.limit_replies(if has_room { MAX_REPLY_BYTES } else { limits::SFTP_REPLIES_OF_CHANNEL });
    has_room
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use outlast_sftp::limits::{MAX_DATA, MAX_PACKET};
    use outlast_sftp::local::{Folder, FolderOptions};
    use outlast_sftp::path::RemotePath;
    use outlast_sftp::request::{Request, write_hello};
    use outlast_sftp::volume::OpenHow;
    use outlast_ssh::{
        AuthDecision, Client, ClientConfig, ClientEvent, Credential, HostKey, KeyKind, PrivateKey,
        ServerConfig, ServerEvent,
    };

    use super::*;

    fn handles() -> Arc<Handles> {
        Arc::new(Handles::new(100))
    }

    /// A server with a client that has opened a channel.
    fn opened() -> (Server, ChannelId) {
        let (server, _, ids) = connected(1);
        (server, ids[0])
    }

    /// A server with a client that has opened so many channels, and would take all that is sent in them.
    fn connected(channels: usize) -> (Server, Client, Vec<ChannelId>) {
        let key = Arc::new(PrivateKey::generate(KeyKind::Ed25519).unwrap());
        let config = ServerConfig::new(vec![HostKey { key, certificate: None }]);
        let mut server = Server::new(Arc::new(config), 0);
        let mut config = ClientConfig::default();
        config.limits.window = 64 << 20;
        let mut client = Client::new(Arc::new(config), 0);
        let mut ids = Vec::new();
        for _ in 0..100 {
            while let Some(event) = client.poll() {
                match event {
                    ClientEvent::HostKey(_) => client.answer(true),
                    ClientEvent::Ready => client.authenticate("alice", Credential::None),
                    ClientEvent::Authenticated => {
                        for _ in 0..channels {
                            client.open().unwrap();
                        }
                    }
                    ClientEvent::Disconnected(end) => panic!("{end:?}"),
                    _ => {}
                }
            }
            let sent = client.outgoing().to_vec();
            client.sent(sent.len());
            server.receive(&sent, 0);
            while let Some(event) = server.poll() {
                match event {
                    ServerEvent::Authenticate(_) => server.answer(AuthDecision::Accept),
                    ServerEvent::ChannelOpen(id) => {
                        server.reply(true);
                        ids.push(id);
                    }
                    ServerEvent::Disconnected(end) => panic!("{end:?}"),
                    _ => {}
                }
            }
            let sent = server.outgoing().to_vec();
            server.sent(sent.len());
            client.receive(&sent, 0);
            if ids.len() == channels {
                return (server, client, ids);
            }
        }
        panic!("no channel was opened")
    }

    /// A view of a folder with a file that one READ returns.
    fn one_file(folder: &Path) -> View {
        std::fs::write(folder.join("file"), vec![7; MAX_DATA]).unwrap();
        let volume = Arc::new(Folder::open(folder, FolderOptions::default()).unwrap());
        View::new(|| 0).mount(RemotePath::root(), volume)
    }

    fn opens() -> Request {
        let (path, attributes) = (Bytes::from_static(b"/file"), Default::default());
        Request::Open { path, how: OpenHow::reading(), attributes }
    }

    /// Reads the whole file, by the first handle of a session.
    fn reads() -> Request {
        let handle = Bytes::copy_from_slice(&0_u64.to_be_bytes());
        Request::Read { handle, offset: 0, length: u32::try_from(MAX_DATA).unwrap() }
    }

    /// A server with a client, whose channel has been asked to open the file.
    fn asked_to_open() -> (Server, Client, Channel) {
        let (server, client, ids) = connected(1);
        let mut channel = Channel::new(ids[0]);
        assert!(channel.start(handles()));
        channel.receive(&write_hello(3));
        channel.receive(&opens().write(0));
        (server, client, channel)
    }

    /// Lets the client read what was sent, and counts it.
    fn passes(server: &mut Server, client: &mut Client, got: &mut BTreeMap<ChannelId, usize>) {
        let sent = server.outgoing().to_vec();
        server.sent(sent.len());
        client.receive(&sent, 0);
        while let Some(event) = client.poll() {
            if let ClientEvent::Data { channel, bytes, .. } = event {
                client.consumed(channel, bytes.len());
                *got.entry(channel).or_default() += bytes.len();
            }
        }
        let sent = client.outgoing().to_vec();
        client.sent(sent.len());
        server.receive(&sent, 0);
        while server.poll().is_some() {}
    }

    /// Channels whose client reads nothing hold no more than the connection may, and the client gets everything when it reads.
    #[test]
    fn the_channels_of_a_connection_share_a_budget() {
        const READS: usize = 20;
        let folder = tempfile::tempdir().unwrap();
        let view = one_file(folder.path());
        let (mut server, mut client, ids) = connected(limits::MAX_SFTP_CHANNELS);
        let user = Arc::new(AtomicUsize::new(0));
        let mut budget = Budget::new(user.clone());
        let mut channels: Vec<_> = ids.iter().map(|id| Channel::new(*id)).collect();
        for channel in &mut channels {
            assert!(channel.start(handles()));
            channel.receive(&write_hello(3));
            channel.receive(&opens().write(0));
        }
        let pump = |channels: &mut [Channel], server: &mut Server, budget: &mut Budget| {
            for channel in channels {
                let later = |operation| Err(Box::new(operation));
                let mut started: Vec<Operation> = Vec::new();
                channel.pump(server, budget, 1000, later, |some| started.extend(some));
                for one in started {
                    channel.complete(vec![one.run(&view)]);
                }
            }
        };
        pump(&mut channels, &mut server, &mut budget);
        for channel in &mut channels {
            for _ in 0..READS {
                channel.receive(&reads().write(1));
            }
        }
        for _ in 0..READS {
            pump(&mut channels, &mut server, &mut budget);
        }
        let held: usize = channels.iter().map(Channel::holds).sum();
        let shares = limits::MAX_SFTP_CHANNELS * (limits::SFTP_SHARE_OF_CHANNEL + MAX_PACKET);
        assert!(held > limits::SFTP_MEMORY_OF_CONNECTION / 2, "{held}");
        assert!(held <= limits::SFTP_MEMORY_OF_CONNECTION + shares, "{held}");
        assert_eq!(user.load(Ordering::Relaxed), held);
        let mut got = BTreeMap::new();
        while !server.outgoing().is_empty() {
            passes(&mut server, &mut client, &mut got);
            pump(&mut channels, &mut server, &mut budget);
        }
        assert_eq!(got.len(), channels.len());
        assert!(got.values().all(|bytes| *bytes > READS * MAX_DATA), "{got:?}");
        assert_eq!(user.load(Ordering::Relaxed), 0);
    }

    /// A channel whose user may hold no more goes on with its own share: one large reply at a time, and window for one packet.
    #[test]
    fn a_channel_goes_on_with_its_own_share() {
        let folder = tempfile::tempdir().unwrap();
        let view = one_file(folder.path());
        for (elsewhere, most) in
            [(0, limits::MAX_SFTP_OPERATIONS), (limits::SFTP_MEMORY_OF_USER + 1, 1)]
        {
            let (mut server, mut client, mut channel) = asked_to_open();
            let mut budget = Budget::new(Arc::new(AtomicUsize::new(elsewhere)));
            let later = |operation| Err(Box::new(operation));
            let mut started: Vec<Operation> = Vec::new();
            channel.pump(&mut server, &mut budget, 100, later, |some| started.extend(some));
            channel.complete(started.drain(..).map(|one| one.run(&view)).collect());
            for _ in 0..20 {
                channel.receive(&reads().write(1));
            }
            let mut got = BTreeMap::new();
            let mut rounds = 0;
            loop {
                channel.pump(&mut server, &mut budget, 100, later, |some| started.extend(some));
                assert!(started.len() <= most, "{} reads at a time", started.len());
                rounds += usize::from(started.len() == most);
                if started.is_empty() && server.outgoing().is_empty() {
                    break;
                }
                for one in started.drain(..) {
                    channel.complete(vec![one.run(&view)]);
                }
                passes(&mut server, &mut client, &mut got);
            }
            assert!(rounds >= 20 / most, "{rounds}");
            assert_eq!(got.len(), 1);
            assert!(got.values().all(|bytes| *bytes > 20 * MAX_DATA), "{got:?}");
            // Window for the whole of a long packet.
            let handle = Bytes::copy_from_slice(&0_u64.to_be_bytes());
            let write = Request::Write { handle, offset: 0, data: vec![1; MAX_DATA].into() };
            for piece in write.write(2).chunks(limits::SFTP_READ) {
                channel.receive(piece);
                let held = channel.holds();
                channel.pump(&mut server, &mut budget, 0, later, |_| {});
                assert_eq!(channel.unconsumed, 0, "{held}");
            }
            assert_eq!(channel.is_wide, elsewhere == 0);
            // Another one has to wait until the first is done, if there is no memory for both.
            for piece in write.write(3).chunks(limits::SFTP_READ) {
                channel.receive(piece);
            }
            channel.pump(&mut server, &mut budget, 0, later, |_| {});
            assert_eq!(channel.unconsumed > 0, elsewhere > 0);
        }
    }

    /// What needs no waiting is not read ahead of what is sent, and all requests that came before the client's end are answered.
    #[test]
    fn a_channel_ends_when_all_requests_are_answered() {
        const READS: usize = 20;
        let folder = tempfile::tempdir().unwrap();
        let view = one_file(folder.path());
        for elsewhere in [0, limits::SFTP_MEMORY_OF_USER + 1] {
            let (mut server, mut client, mut channel) = asked_to_open();
            let mut budget = Budget::new(Arc::new(AtomicUsize::new(elsewhere)));
            for _ in 0..READS {
                channel.receive(&reads().write(1));
            }
            channel.ended();
            let mut got = BTreeMap::new();
            let mut used = Vec::new();
            for _ in 0..100 {
                let now = |operation: Operation| Ok(operation.run(&view));
                used.push(channel.pump(&mut server, &mut budget, 1000, now, |_| {}));
                let most = limits::SFTP_OUTPUT + 2 * MAX_PACKET;
                let waits = server.queued() + channel.sftp.as_ref().unwrap().held_bytes();
                assert!(waits < most, "{waits}");
                passes(&mut server, &mut client, &mut got);
            }
            assert!(channel.closing);
            assert_eq!(got.len(), 1);
            assert!(got.values().all(|bytes| *bytes > READS * MAX_DATA), "{got:?}");
            // A client that only takes what it has asked for is not idle, until it has all.
            assert!(used[1] && used.iter().filter(|used| **used).count() > 5, "{used:?}");
            assert_eq!(used.last(), Some(&false));
        }
    }

    /// A channel starts as many operations as the connection has turns for, and no more than its own.
    #[test]
    fn operations_wait_for_turns_of_the_connection() {
        let (mut server, id) = opened();
        let mut channel = Channel::new(id);
        assert!(channel.start(handles()) && !channel.start(handles()));
        channel.receive(&write_hello(3));
        for number in 0..50 {
            let request = Request::Stat { path: Bytes::from(format!("/{number}")) };
            channel.receive(&request.write(number));
        }
        let mut started = Vec::new();
        let mut budget = Budget::new(Arc::default());
        let mut pump = |channel: &mut Channel, most: usize| {
            let before = started.len();
            let later = |operation| Err(Box::new(operation));
            let start = |operations| started.push(operations);
            channel.pump(&mut server, &mut budget, most, later, start);
            started.len() - before
        };
        assert_eq!(pump(&mut channel, 0), 0, "other channels have all turns");
        assert_eq!(pump(&mut channel, 3), 3);
        assert_eq!(pump(&mut channel, 0), 0);
        assert_eq!(pump(&mut channel, 1), 1);
        assert_eq!(pump(&mut channel, 1000), limits::MAX_SFTP_OPERATIONS - 4);
        assert_eq!(pump(&mut channel, 1000), 0);
        let view = Arc::new(View::new(|| 0));
        for _ in 0..2 {
            let operations = started.pop().unwrap();
            channel.complete(operations.into_iter().map(|one| one.run(&view)).collect());
        }
        let mut more = 0;
        let later = |operation| Err(Box::new(operation));
        channel.pump(&mut server, &mut budget, 1000, later, |_| more += 1);
        assert_eq!(more, 2, "as many as have ended");
        let all = limits::MAX_SFTP_CHANNELS * limits::MAX_SFTP_OPERATIONS;
        assert!(limits::MAX_SFTP_OPERATIONS_OF_CONNECTION < all, "channels share turns");
    }

    /// A channel that is closed while something runs is over when that has ended: only then its files and their bytes are known.
    #[test]
    fn a_closed_channel_waits_for_what_is_running() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Arc::new(Folder::open(folder.path(), FolderOptions::default()).unwrap());
        let view = View::new(|| 0).mount(RemotePath::root(), volume);
        let how = OpenHow { write: true, create: true, ..OpenHow::default() };
        let (path, attributes) = (Bytes::from_static(b"/file"), Default::default());
        let open = Request::Open { path, how, attributes };
        // The first handle of a session.
        let handle = Bytes::copy_from_slice(&0_u64.to_be_bytes());
        let data = Bytes::from_static(b"12345");
        let write = Request::Write { handle, offset: 0, data };
        let late = Request::Remove { path: Bytes::from_static(b"/file") };
        for (before, running, bytes) in [(Some(&open), &write, 5), (None, &open, 0)] {
            let (mut server, id) = opened();
            let mut budget = Budget::new(Arc::default());
            let mut channel = Channel::new(id);
            assert!(channel.start(handles()));
            channel.receive(&write_hello(3));
            let mut starts = |channel: &mut Channel, request: &Request| {
                channel.receive(&request.write(1));
                let mut started: Vec<Operation> = Vec::new();
                let later = |operation| Err(Box::new(operation));
                let start = |operations| started.extend(operations);
                channel.pump(&mut server, &mut budget, 100, later, start);
                started
            };
            let run = |operations: Vec<Operation>| -> Vec<Outcome> {
                operations.into_iter().map(|one| one.run(&view)).collect()
            };
            if let Some(before) = before {
                let operations = starts(&mut channel, before);
                channel.complete(run(operations));
            }
            let operations = starts(&mut channel, running);
            assert_eq!(operations.len(), 1);
            channel.close();
            assert!(!channel.is_over());
            assert!(starts(&mut channel, &late).is_empty(), "nothing starts after the close");
            channel.complete(run(operations));
            assert!(channel.is_over());
            let records = channel.end();
            let told: Vec<_> = records.iter().map(|one| (one.kind, one.bytes_written)).collect();
            assert_eq!(told, [("abandon", bytes)]);
        }
    }
}
