//! A channel of a connection: an SFTP session between the client's bytes and the threads that touch files.

use bytes::{Buf, Bytes};
use outlast_sftp::operation::{Operation, Outcome, Record};
use outlast_sftp::session::Session;
use outlast_ssh::{ChannelId, Server};

use crate::limits;

/// A channel that the client has opened.
pub(super) struct Channel {
    id: ChannelId,
    sftp: Option<Session>,
    /// Output that the transport has not taken yet.
    rest: Bytes,
    /// Bytes of the client that no window was granted for yet.
    unconsumed: usize,
    running: usize,
    /// Whether the client sends no more.
    ended: bool,
    closing: bool,
    /// Whether the client has closed it, too.
    closed: bool,
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
            rest: Bytes::new(),
            unconsumed: 0,
            running: 0,
            ended: false,
            closing: false,
            closed: false,
        }
    }

    pub(super) fn id(&self) -> ChannelId {
        self.id
    }

    /// Starts SFTP, once.
    pub(super) fn start(&mut self) -> bool {
        let is_new = self.sftp.is_none() && !self.closing;
        if is_new {
            self.sftp = Some(Session::default());
        }
        is_new
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.unconsumed += bytes.len();
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
        self.rest = Bytes::new();
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

    /// Starts operations, sends their replies, and grants the client as much window as there is room for. `now` carries out an operation
    /// if that needs no waiting. `start` starts others, those of one call together, up to `most` times.
    pub(super) fn pump(
        &mut self,
        ssh: &mut Server,
        most: usize,
        now: impl Fn(Operation) -> Result<Outcome, Box<Operation>>,
        mut start: impl FnMut(Vec<Operation>),
    ) {
        if self.closing {
            return;
        }
        let Some(sftp) = &mut self.sftp else {
            // Data without a subsystem is read and forgotten.
            ssh.consumed(self.id, std::mem::take(&mut self.unconsumed));
            return;
        };
        let most = limits::MAX_SFTP_OPERATIONS.min(self.running + most);
        while self.running < most {
            let Some(operation) = sftp.next_operation() else { break };
            match now(operation) {
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
        }
        loop {
            if self.rest.is_empty() {
                if ssh.queued() >= limits::SFTP_OUTPUT {
                    break;
                }
                let Some(next) = sftp.next_output() else { break };
                self.rest = next;
            }
            // What the client's window has no room for stays here: the transport would copy it.
            let room = ssh.writable(self.id).unwrap_or(0).min(self.rest.len());
            let taken = ssh.write(self.id, self.rest.get(..room).unwrap_or_default());
            if taken == 0 {
                break;
            }
            self.rest.advance(taken);
        }
        if sftp.wants_input() && self.unconsumed > 0 {
            ssh.consumed(self.id, std::mem::take(&mut self.unconsumed));
        }
        let is_wrong = sftp.violation().is_some();
        if is_wrong || (self.ended && sftp.is_idle() && self.rest.is_empty()) {
            ssh.exit_status(self.id, u32::from(is_wrong));
            ssh.eof(self.id);
            ssh.close(self.id);
            self.closing = true;
        }
    }

    /// Ends the session; returns what is known of the files that were open.
    pub(super) fn end(&mut self) -> Vec<Record> {
        self.sftp.as_mut().map(Session::end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

    use std::sync::Arc;

    use outlast_sftp::local::{Folder, FolderOptions};
    use outlast_sftp::path::RemotePath;
    use outlast_sftp::request::{Request, write_hello};
    use outlast_sftp::volume::OpenHow;
    use outlast_ssh::{
        AuthDecision, Client, ClientConfig, ClientEvent, Credential, HostKey, KeyKind, PrivateKey,
        ServerConfig, ServerEvent,
    };

    use super::*;

    /// A server with a client that has opened a channel.
    fn opened() -> (Server, ChannelId) {
        let key = Arc::new(PrivateKey::generate(KeyKind::Ed25519).unwrap());
        let config = ServerConfig::new(vec![HostKey { key, certificate: None }]);
        let mut server = Server::new(Arc::new(config), 0);
        let mut client = Client::new(Arc::new(ClientConfig::default()), 0);
        for _ in 0..100 {
            while let Some(event) = client.poll() {
                match event {
                    ClientEvent::HostKey(_) => client.answer(true),
                    ClientEvent::Ready => client.authenticate("alice", Credential::None),
                    ClientEvent::Authenticated => drop(client.open()),
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
                        return (server, id);
                    }
                    ServerEvent::Disconnected(end) => panic!("{end:?}"),
                    _ => {}
                }
            }
            let sent = server.outgoing().to_vec();
            server.sent(sent.len());
            client.receive(&sent, 0);
        }
        panic!("no channel was opened")
    }

    /// A channel starts as many operations as the connection has turns for, and no more than its own.
    #[test]
    fn operations_wait_for_turns_of_the_connection() {
        let (mut server, id) = opened();
        let mut channel = Channel::new(id);
        assert!(channel.start() && !channel.start());
        channel.receive(&write_hello(3));
        for number in 0..50 {
            let request = Request::Stat { path: Bytes::from(format!("/{number}")) };
            channel.receive(&request.write(number));
        }
        let mut started = Vec::new();
        let mut pump = |channel: &mut Channel, most: usize| {
            let before = started.len();
            let later = |operation| Err(Box::new(operation));
            channel.pump(&mut server, most, later, |operations| started.push(operations));
            started.len() - before
        };
        assert_eq!(pump(&mut channel, 0), 0, "other channels have all turns");
        assert_eq!(pump(&mut channel, 3), 3);
        assert_eq!(pump(&mut channel, 0), 0);
        assert_eq!(pump(&mut channel, 1), 1);
        assert_eq!(pump(&mut channel, 1000), limits::MAX_SFTP_OPERATIONS - 4);
        assert_eq!(pump(&mut channel, 1000), 0);
        let view = Arc::new(outlast_sftp::view::View::new(|| 0));
        for _ in 0..2 {
            let operations = started.pop().unwrap();
            channel.complete(operations.into_iter().map(|one| one.run(&view)).collect());
        }
        let mut more = 0;
        channel.pump(&mut server, 1000, |operation| Err(Box::new(operation)), |_| more += 1);
        assert_eq!(more, 2, "as many as have ended");
        let all = limits::MAX_SFTP_CHANNELS * limits::MAX_SFTP_OPERATIONS;
        assert!(limits::MAX_SFTP_OPERATIONS_OF_CONNECTION < all, "channels share turns");
    }

    /// A channel that is closed while something runs is over when that has ended: only then its files and their bytes are known.
    #[test]
    fn a_closed_channel_waits_for_what_is_running() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Arc::new(Folder::open(folder.path(), FolderOptions::default()).unwrap());
        let view = outlast_sftp::view::View::new(|| 0).mount(RemotePath::root(), volume);
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
            let mut channel = Channel::new(id);
            assert!(channel.start());
            channel.receive(&write_hello(3));
            let mut starts = |channel: &mut Channel, request: &Request| {
                channel.receive(&request.write(1));
                let mut started: Vec<Operation> = Vec::new();
                let later = |operation| Err(Box::new(operation));
                channel.pump(&mut server, 100, later, |operations| started.extend(operations));
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
