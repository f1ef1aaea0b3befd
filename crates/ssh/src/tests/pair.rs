//! A server and a client connected by memory, with callers who do the usual things.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::BufMut as _;
use outlast_crypto::Secret;

use crate::*;

/// Keys by kind, generated once.
pub(super) fn key(kind: KeyKind) -> Arc<PrivateKey> {
    static KEYS: OnceLock<Mutex<BTreeMap<String, Arc<PrivateKey>>>> = OnceLock::new();
    let mut keys = KEYS.get_or_init(Mutex::default).lock().unwrap();
    let new = || Arc::new(PrivateKey::generate(kind).unwrap());
    keys.entry(format!("{kind:?}")).or_insert_with(new).clone()
}

pub(super) const KINDS: [KeyKind; 6] = [
    KeyKind::MlDsa44Ed25519,
    KeyKind::Ed25519,
    KeyKind::EcdsaP256,
    KeyKind::EcdsaP384,
    KeyKind::EcdsaP521,
    KeyKind::Rsa2048,
];

pub(super) fn host(kind: KeyKind) -> HostKey {
    HostKey { key: key(kind), certificate: None }
}

pub(super) fn server_config() -> ServerConfig {
    let mut config = ServerConfig::new(vec![host(KeyKind::Ed25519)]);
    config.methods = vec!["publickey", "password", "keyboard-interactive"];
    config
}

pub(super) const PASSWORD: &str = "correct horse";

/// What a client authenticates with.
#[derive(Clone)]
pub(super) enum With {
    Password,
    Interactive,
    Key(Arc<PrivateKey>, Option<Box<Certificate>>),
}

/// Both sides, and what they saw.
pub(super) struct Pair {
    pub(super) server: Server,
    pub(super) client: Client,
    pub(super) with: With,
    pub(super) now_ms: u64,
    /// What the client sends in its channel, and what came back.
    pub(super) message: Vec<u8>,
    pub(super) echoed: Vec<u8>,
    unsent: usize,
    /// The server's echo that did not fit.
    backlog: Vec<u8>,
    pub(super) channel: Option<ChannelId>,
    pub(super) exit_status: Option<u32>,
    pub(super) negotiations: Vec<Negotiation>,
    pub(super) attempts: Vec<String>,
    pub(super) host_keys: Vec<PublicKey>,
    pub(super) server_end: Option<Disconnected>,
    pub(super) client_end: Option<Disconnected>,
    pub(super) client_closed: bool,
    /// Most bytes that are moved at a time.
    pub(super) piece: usize,
    pub(super) announce: bool,
    /// Whether the server's input is filled by the caller.
    pub(super) fills: bool,
}

impl Pair {
    pub(super) fn new(server: ServerConfig, client: ClientConfig, with: With) -> Self {
        Self {
            server: Server::new(Arc::new(server), 0),
            client: Client::new(Arc::new(client), 0),
            with,
            now_ms: 0,
            message: b"hello".to_vec(),
            echoed: Vec::new(),
            unsent: 0,
            backlog: Vec::new(),
            channel: None,
            exit_status: None,
            negotiations: Vec::new(),
            attempts: Vec::new(),
            host_keys: Vec::new(),
            server_end: None,
            client_end: None,
            client_closed: false,
            piece: usize::MAX,
            announce: false,
            fills: false,
        }
    }

    pub(super) fn usual() -> Self {
        Self::new(server_config(), ClientConfig::default(), With::Password)
    }

    /// Runs until nothing moves.
    pub(super) fn run(&mut self) {
        while self.turn() {}
    }

    /// Moves bytes once in both directions. False if there were none and nothing happened.
    pub(super) fn turn(&mut self) -> bool {
        let mut moved = self.serve() | self.use_client();
        let to_client = self.server.outgoing();
        let len = to_client.len().min(self.piece);
        if len > 0 && self.client.wants_input() {
            self.client.receive(&to_client[..len], self.now_ms);
            self.server.sent(len);
            moved = true;
        }
        let to_server = self.client.outgoing();
        let len = to_server.len().min(self.piece);
        if len > 0 && self.server.wants_input() {
            if self.fills {
                self.server.input(len, self.now_ms).put_slice(&to_server[..len]);
            } else {
                self.server.receive(&to_server[..len], self.now_ms);
            }
            self.client.sent(len);
            moved = true;
        }
        moved
    }

    pub(super) fn serve(&mut self) -> bool {
        let mut any = false;
        if let Some(channel) = self.channel
            && !self.backlog.is_empty()
        {
            let written = self.server.write(channel, &self.backlog);
            self.server.consumed(channel, written);
            self.backlog.drain(..written);
        }
        while let Some(event) = self.server.poll() {
            any = true;
            match event {
                ServerEvent::Negotiated(negotiation) => self.negotiations.push(*negotiation),
                ServerEvent::Authenticate(attempt) => {
                    self.attempts.push(format!("{attempt:?}"));
                    let decision = decide(&attempt);
                    let accepted = matches!(decision, AuthDecision::Accept);
                    self.server.answer(decision);
                    if accepted && self.announce {
                        self.server.announce_host_keys();
                    }
                }
                ServerEvent::ChannelOpen(channel) => {
                    self.channel = Some(channel);
                    self.server.reply(true);
                }
                ServerEvent::ChannelRequest { request, .. } => {
                    self.server.reply(request != Request::Shell);
                }
                ServerEvent::Data { channel, len } => {
                    self.backlog.extend_from_slice(self.server.data(len));
                    let written = self.server.write(channel, &self.backlog);
                    self.server.consumed(channel, written);
                    self.backlog.drain(..written);
                }
                ServerEvent::Eof(channel) => {
                    assert!(self.backlog.is_empty(), "the echo fits into the queue");
                    self.server.exit_status(channel, 7);
                    self.server.close(channel);
                }
                ServerEvent::Closed(_) | ServerEvent::Alive | ServerEvent::Keyed => {}
                ServerEvent::Disconnected(end) => self.server_end = Some(end),
            }
        }
        any
    }

    pub(super) fn use_client(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.client.poll() {
            any = true;
            match event {
                ClientEvent::HostKey(_) => self.client.answer(true),
                ClientEvent::Ready => {
                    let credential = match self.with.clone() {
                        With::Password => {
                            Credential::Password(Secret::new(PASSWORD.as_bytes().to_vec()))
                        }
                        With::Interactive => Credential::KeyboardInteractive,
                        With::Key(key, certificate) => Credential::Key { key, certificate },
                    };
                    self.client.authenticate("alice", credential);
                }
                ClientEvent::Prompt(questions) => {
                    assert_eq!(questions, [("Password: ".to_owned(), false)]);
                    self.client.respond(&[Secret::new(PASSWORD.as_bytes().to_vec())]);
                }
                ClientEvent::Authenticated => {
                    self.client.open().unwrap();
                }
                ClientEvent::Opened(channel) => {
                    let echo = Request::Exec(b"echo".to_vec());
                    assert!(self.client.request(channel, &echo));
                }
                ClientEvent::Answered { channel, accepted } => {
                    assert!(accepted);
                    self.push(channel);
                }
                ClientEvent::Data { channel, bytes, stderr } => {
                    assert!(!stderr);
                    self.echoed.extend_from_slice(&bytes);
                    self.client.consumed(channel, bytes.len());
                    self.push(channel);
                }
                ClientEvent::ExitStatus { status, .. } => self.exit_status = Some(status),
                ClientEvent::Closed(_) => self.client_closed = true,
                ClientEvent::HostKeys(keys) => self.host_keys = keys,
                ClientEvent::Disconnected(end) => self.client_end = Some(end),
                ClientEvent::Negotiated(_)
                | ClientEvent::Banner(_)
                | ClientEvent::KeyAcceptable
                | ClientEvent::Refused { .. }
                | ClientEvent::OpenFailed { .. }
                | ClientEvent::ExitSignal { .. }
                | ClientEvent::Eof(_) => {}
            }
        }
        if let Some(channel) = self.channel
            && self.unsent > 0
        {
            any |= self.push(channel);
        }
        any
    }

    /// Writes what is left of the message. Channels have the same numbers at both sides here.
    fn push(&mut self, channel: ChannelId) -> bool {
        let rest = &self.message[self.unsent..];
        let written = self.client.write(channel, rest);
        self.unsent += written;
        if self.unsent == self.message.len() {
            self.client.eof(channel);
        }
        written > 0
    }

    /// Runs to the end, and checks that the message came back.
    pub(super) fn check(&mut self, what: &str) {
        self.run();
        assert_eq!((&self.server_end, &self.client_end), (&None, &None), "{what}");
        assert!(self.echoed == self.message, "{what}: {} bytes", self.echoed.len());
        assert!(self.client_closed && self.exit_status == Some(7), "{what}");
    }
}

/// Accepts the password and all keys.
pub(super) fn decide(attempt: &Attempt) -> AuthDecision {
    match &attempt.method {
        Method::Password(password) if password.expose() == PASSWORD.as_bytes() => {
            AuthDecision::Accept
        }
        Method::PublicKey(offer) if offer.signed == Signed::No => AuthDecision::AcceptKey,
        Method::PublicKey(_) => AuthDecision::Accept,
        Method::KeyboardInteractive(None) => AuthDecision::Prompt(Prompt {
            questions: vec![("Password: ".to_owned(), false)],
            ..Prompt::default()
        }),
        Method::KeyboardInteractive(Some(responses))
            if responses.iter().any(|response| response.expose() == PASSWORD.as_bytes()) =>
        {
            AuthDecision::Accept
        }
        _ => AuthDecision::Reject,
    }
}
