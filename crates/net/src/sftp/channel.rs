//! A channel of a connection: an SFTP session between the client's bytes and the threads that touch files.

use std::sync::Arc;

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
}

/// The end of an operation of a channel.
pub(super) struct Done {
    pub(super) channel: ChannelId,
    pub(super) outcome: Outcome,
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

    /// Takes the end of an operation.
    pub(super) fn complete(&mut self, outcome: Outcome) {
        self.running -= 1;
        if let Some(sftp) = &mut self.sftp {
            sftp.complete(outcome);
        }
    }

    /// Starts operations, sends their replies, and grants the client as much window as there is room for. `run` returns the outcome of
    /// an operation that it could carry out without waiting; up to `most` others may start.
    pub(super) fn pump(
        &mut self,
        ssh: &mut Server,
        most: usize,
        mut run: impl FnMut(Operation) -> Option<Outcome>,
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
            match run(operation) {
                Some(outcome) => {
                    sftp.complete(outcome);
                }
                None => self.running += 1,
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

/// What operations run with.
pub(super) type View = Arc<outlast_sftp::view::View>;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

    use outlast_sftp::request::{Request, write_hello};
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
            channel.pump(&mut server, most, |operation| {
                started.push(operation);
                None
            });
            started.len() - before
        };
        assert_eq!(pump(&mut channel, 0), 0, "other channels have all turns");
        assert_eq!(pump(&mut channel, 3), 3);
        assert_eq!(pump(&mut channel, 0), 0);
        assert_eq!(pump(&mut channel, 1), 1);
        assert_eq!(pump(&mut channel, 1000), limits::MAX_SFTP_OPERATIONS - 4);
        assert_eq!(pump(&mut channel, 1000), 0);
        let view = View::new(outlast_sftp::view::View::new(|| 0));
        for _ in 0..2 {
            channel.complete(started.pop().unwrap().run(&view));
        }
        let mut more = 0;
        channel.pump(&mut server, 1000, |_| {
            more += 1;
            None
        });
        assert_eq!(more, 2, "as many as have ended");
        let all = limits::MAX_SFTP_CHANNELS * limits::MAX_SFTP_OPERATIONS;
        assert!(limits::MAX_SFTP_OPERATIONS_OF_CONNECTION < all, "channels share turns");
    }
}
