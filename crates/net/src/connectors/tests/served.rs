//! An SFTP server on the loopback that serves a folder, and plays tricks if it is told to.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, Bytes};
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Error;
use outlast_sftp::limits::MAX_HANDLES;
use outlast_sftp::local::{Folder, FolderOptions};
use outlast_sftp::path::RemotePath;
use outlast_sftp::reply::Reply;
use outlast_sftp::session::Session;
use outlast_sftp::view::View;
use outlast_ssh::{
    Algorithms, Attempt, AuthDecision, ChannelId, HostKey, KeyKind, Method, PrivateKey, Prompt,
    PublicKey, Server, ServerConfig, ServerEvent, Signed,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::PASSWORD;

/// Bytes of SFTP after which a server plays its trick.
const ENOUGH: usize = 10_000;
/// Time between the questions of a server that says nothing else.
const CHATTER: Duration = Duration::from_millis(20);
/// Type of the packet with a file's attributes.
const ATTRS: u8 = 105;
/// Name of the request that makes a file durable.
const FSYNC: &[u8] = b"fsync@openssh.com";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Trick {
    #[default]
    None,
    /// Closes the connection after so many bytes in either direction.
    CloseAfter(usize),
    /// Answers what nobody asked, once a file is read or written.
    Unasked,
    /// Answers with a handle, whatever was asked.
    Wrong,
    /// Sends bytes that are no packet.
    Garbage,
    /// Answers nothing more, and asks all the time whether the client is still there.
    Chatty,
    /// Does not tell the sizes of files.
    NoSizes,
    /// Makes no file durable.
    NoFsync,
    NoSubsystem,
}

pub(super) struct Options {
    pub(super) kinds: Vec<KeyKind>,
    pub(super) methods: Vec<&'static str>,
    pub(super) needs_both: bool,
    /// The key that the user may log in with.
    pub(super) user: Option<PublicKey>,
    /// Key exchange methods; all if there are none.
    pub(super) exchanges: Vec<&'static str>,
    pub(super) trick: Trick,
    /// Bytes after which keys are exchanged again.
    pub(super) rekey_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kinds: vec![KeyKind::Ed25519],
            methods: vec!["password"],
            needs_both: false,
            user: None,
            exchanges: Vec::new(),
            trick: Trick::None,
            rekey_bytes: 1 << 30,
        }
    }
}

/// What tests ask for.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    tries: AtomicUsize,
    exchange: Mutex<&'static str>,
    rekeys: AtomicUsize,
}

pub(super) struct Served {
    pub(super) port: u16,
    pub(super) keys: Vec<Arc<PrivateKey>>,
    folder: tempfile::TempDir,
    seen: Arc<Seen>,
}

impl Served {
    pub(super) async fn start(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let keys: Vec<_> = options
            .kinds
            .iter()
            .map(|kind| Arc::new(PrivateKey::generate(*kind).unwrap()))
            .collect();
        let host = |key: &Arc<PrivateKey>| HostKey { key: key.clone(), certificate: None };
        let mut config = ServerConfig::new(keys.iter().map(host).collect());
        config.methods.clone_from(&options.methods);
        config.limits.rekey_bytes = options.rekey_bytes;
        if !options.exchanges.is_empty() {
            config.algorithms =
                Algorithms { key_exchanges: options.exchanges.clone(), ..config.algorithms };
        }
        let (config, options, seen) =
            (Arc::new(config), Arc::new(options), Arc::new(Seen::default()));
        let view = View::new(|| 1_795_500_000).mount(
            RemotePath::root(),
            Arc::new(Folder::open(folder.path(), FolderOptions::default()).unwrap()),
        );
        let view = Arc::new(view);
        let all = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                all.connections.fetch_add(1, Ordering::Relaxed);
                let connection = Connection {
                    ssh: Server::new(config.clone(), 0),
                    options: options.clone(),
                    seen: all.clone(),
                    view: view.clone(),
                    sftp: Session::new(MAX_HANDLES),
                    channel: None,
                    rest: Bytes::new(),
                    moved: 0,
                    has_key: false,
                    refuses_next: false,
                };
                tokio::spawn(connection.run(stream));
            }
        });
        Self { port, keys, folder, seen }
    }

    pub(super) fn key(&self) -> &PrivateKey {
        &self.keys[0]
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Tries to log in, `none` among them.
    pub(super) fn tries(&self) -> usize {
        self.seen.tries.load(Ordering::Relaxed)
    }

    pub(super) fn rekeys(&self) -> usize {
        self.seen.rekeys.load(Ordering::Relaxed)
    }

    pub(super) fn last_exchange(&self) -> &'static str {
        *self.seen.exchange.lock().unwrap()
    }
}

struct Connection {
    ssh: Server,
    options: Arc<Options>,
    seen: Arc<Seen>,
    view: Arc<View>,
    sftp: Session,
    channel: Option<ChannelId>,
    rest: Bytes,
    /// Bytes of SFTP so far.
    moved: usize,
    has_key: bool,
    /// Whether the next reply is a failure.
    refuses_next: bool,
}

impl Connection {
    async fn run(mut self, mut stream: TcpStream) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let goes_on = self.work();
            while !self.ssh.outgoing().is_empty() {
                let Ok(written) = stream.write(self.ssh.outgoing()).await else { return };
                self.ssh.sent(written);
            }
            if !goes_on {
                return;
            }
            if self.pump() {
                continue;
            }
            let is_silent = self.options.trick == Trick::Chatty && self.moved > ENOUGH;
            let wait = if is_silent { CHATTER } else { Duration::MAX };
            match timeout(wait, stream.read(&mut buffer)).await {
                Ok(Ok(length)) if length > 0 => self.ssh.receive(&buffer[..length], 0),
                Ok(_) => return,
                Err(_) => {
                    self.ssh.keepalive();
                }
            }
        }
    }

    /// Handles events; false at the end.
    fn work(&mut self) -> bool {
        while let Some(event) = self.ssh.poll() {
            match event {
                ServerEvent::Negotiated(negotiation) => {
                    let rekeys = usize::from(negotiation.rekey);
                    self.seen.rekeys.fetch_add(rekeys, Ordering::Relaxed);
                    if let Ok(chosen) = &negotiation.outcome {
                        *self.seen.exchange.lock().unwrap() = chosen.key_exchange;
                    }
                }
                ServerEvent::Authenticate(attempt) => {
                    self.seen.tries.fetch_add(1, Ordering::Relaxed);
                    let decision = self.decide(&attempt);
                    self.ssh.answer(decision);
                }
                ServerEvent::ChannelOpen(channel) => {
                    self.channel = Some(channel);
                    self.ssh.reply(true);
                }
                ServerEvent::ChannelRequest { .. } => {
                    self.ssh.reply(self.options.trick != Trick::NoSubsystem);
                }
                ServerEvent::Data { channel, len } => {
                    let bytes = self.ssh.data(len);
                    self.moved += len;
                    self.refuses_next |= self.options.trick == Trick::NoFsync
                        && bytes.windows(FSYNC.len()).any(|part| part == FSYNC);
                    if self.sftp.receive(bytes).is_err() {
                        return false;
                    }
                    self.ssh.consumed(channel, len);
                }
                ServerEvent::Disconnected(_) => return false,
                ServerEvent::Eof(_)
                | ServerEvent::Closed(_)
                | ServerEvent::Alive
                | ServerEvent::Keyed => {}
            }
            if matches!(self.options.trick, Trick::CloseAfter(most) if self.moved > most) {
                return false;
            }
        }
        true
    }

    /// Moves data of SFTP; whether there was any.
    fn pump(&mut self) -> bool {
        let Some(channel) = self.channel else { return false };
        if self.options.trick == Trick::Chatty && self.moved > ENOUGH {
            return false;
        }
        while let Some(operation) = self.sftp.next_operation() {
            self.sftp.complete(operation.run(&self.view));
        }
        let mut any = false;
        loop {
            if self.rest.is_empty() {
                let Some(next) = self.sftp.next_output() else { break };
                self.rest = self.tricked(next.into());
            }
            let taken = self.ssh.write(channel, &self.rest);
            if taken == 0 {
                break;
            }
            any = true;
            self.moved += taken;
            self.rest.advance(taken);
        }
        any
    }

    /// What is sent instead of a reply.
    fn tricked(&mut self, packet: Bytes) -> Bytes {
        let id = |packet: &Bytes| u32::from_be_bytes(*packet[5..].first_chunk().unwrap());
        if std::mem::take(&mut self.refuses_next) {
            return Reply::Status(Error::failure("the disk is broken")).write(id(&packet)).into();
        }
        if self.options.trick == Trick::NoSizes && packet[4] == ATTRS {
            return Reply::Attributes(Attributes::default()).write(id(&packet)).into();
        }
        // Greeting, limits, opening and attributes are as they should be.
        if self.moved < ENOUGH {
            return packet;
        }
        let reply = match self.options.trick {
            Trick::Unasked => Reply::ok().write(u32::MAX),
            Trick::Wrong => Reply::Handle(Bytes::from_static(b"h")).write(id(&packet)),
            Trick::Garbage => vec![0xff; 64],
            _ => return packet,
        };
        reply.into()
    }

    fn decide(&mut self, attempt: &Attempt) -> AuthDecision {
        let allows = |method: &str| self.options.methods.contains(&method);
        let decision = match &attempt.method {
            Method::Password(password) if allows("password") => {
                if password.expose() == PASSWORD.as_bytes() {
                    AuthDecision::Accept
                } else {
                    AuthDecision::Reject
                }
            }
            Method::PublicKey(offer) if allows("publickey") => {
                let is_it =
                    self.options.user.as_ref().is_some_and(|key| key.blob() == offer.key.blob());
                match offer.signed {
                    Signed::Valid if is_it && self.options.needs_both => {
                        self.has_key = true;
                        return AuthDecision::Partial(vec!["password"]);
                    }
                    Signed::Valid if is_it => AuthDecision::Accept,
                    Signed::No if is_it => AuthDecision::AcceptKey,
                    _ => AuthDecision::Reject,
                }
            }
            Method::KeyboardInteractive(None) if allows("keyboard-interactive") => {
                AuthDecision::Prompt(Prompt {
                    questions: vec![("Password: ".to_owned(), false)],
                    ..Prompt::default()
                })
            }
            Method::KeyboardInteractive(Some(answers)) if allows("keyboard-interactive") => {
                match &answers[..] {
                    [answer] if answer.expose() == PASSWORD.as_bytes() => AuthDecision::Accept,
                    _ => AuthDecision::Reject,
                }
            }
            _ => AuthDecision::Reject,
        };
        let lacks_key = self.options.needs_both && !self.has_key;
        if lacks_key && matches!(decision, AuthDecision::Accept) {
            return AuthDecision::Partial(vec!["publickey"]);
        }
        decision
    }
}
