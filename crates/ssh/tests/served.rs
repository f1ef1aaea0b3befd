//! A server of this crate on a socket of the loopback, for peers: it echoes, sends, and counts.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_ssh::*;

/// Password of every user.
pub const PASSWORD: &str = "correct horse";

/// What the server saw of a connection.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    pub negotiations: Vec<Negotiation>,
    /// Tries that were accepted: user and method.
    pub accepted: Vec<String>,
    pub end: Option<Disconnected>,
}

/// A connection's record, when it has ended.
type Slot = Arc<Mutex<Option<Seen>>>;

/// A server on a port of its own, until the test ends.
pub struct Served {
    pub port: u16,
    /// By the order of their beginnings.
    seen: Arc<Mutex<VecDeque<Slot>>>,
}

impl Served {
    pub fn start(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<VecDeque<Slot>>> = Arc::default();
        let config = Arc::new(config);
        let all = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, all) = (config.clone(), all.clone());
                let slot = Arc::new(Mutex::new(None));
                all.lock().unwrap().push_back(slot.clone());
                std::thread::spawn(move || {
                    let mut connection = Connection {
                        server: Server::new(config, 0),
                        stream,
                        seen: Seen::default(),
                        sessions: Vec::new(),
                    };
                    // A peer that leaves is no failure of this side.
                    let _ = connection.run();
                    *slot.lock().unwrap() = Some(connection.seen);
                });
            }
        });
        Self { port, seen }
    }

    /// What was seen of the next connection, once it has ended. Connections without a negotiation are left out: some
    /// libraries connect before they look whether they can.
    pub fn next(&self) -> Seen {
        outlast_testing::eventually("a connection ends", || {
            let mut slots = self.seen.lock().unwrap();
            let seen = slots.front()?.lock().unwrap().take()?;
            slots.pop_front();
            (!seen.negotiations.is_empty()).then_some(seen)
        })
    }
}

struct Connection {
    server: Server,
    stream: TcpStream,
    seen: Seen,
    sessions: Vec<Session>,
}

struct Session {
    channel: ChannelId,
    job: Job,
    /// What did not fit into the queue.
    backlog: Vec<u8>,
}

enum Job {
    None,
    /// Sends back what comes.
    Echo {
        ended: bool,
    },
    /// Counts what comes.
    Count(u64),
    /// Sends so many bytes.
    Send(u64),
}

impl Connection {
    fn run(&mut self) -> std::io::Result<()> {
        self.stream.set_nodelay(true)?;
        let mut buffer = vec![0; 32 * 1024];
        loop {
            self.events();
            self.work();
            // Both directions have to move: what cannot be written now must not keep this from reading.
            self.stream.set_nonblocking(true)?;
            let mut moved = false;
            match self.stream.write(self.server.outgoing()) {
                Ok(len) => {
                    self.server.sent(len);
                    moved = len > 0;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.seen.end.is_some() && self.server.outgoing().is_empty() {
                return Ok(());
            }
            let idle = !moved && self.server.outgoing().is_empty();
            if self.server.wants_input() {
                // Waits only if there is nothing else to do; a short timeout where there is.
                self.stream.set_nonblocking(!idle && moved)?;
                let patience = if idle { None } else { Some(Duration::from_millis(1)) };
                self.stream.set_read_timeout(patience)?;
                match self.stream.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(len) => self.server.receive(&buffer[..len], 0),
                    Err(error)
                        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.server.poll() {
            match event {
                ServerEvent::Negotiated(negotiation) => self.seen.negotiations.push(*negotiation),
                ServerEvent::Authenticate(attempt) => {
                    let decision = decide(&attempt);
                    let accepted = matches!(decision, AuthDecision::Accept);
                    self.server.answer(decision);
                    if accepted {
                        self.seen.accepted.push(format!("{} {:?}", attempt.user, attempt.method));
                        self.server.announce_host_keys();
                    }
                }
                ServerEvent::ChannelOpen(channel) => {
                    self.sessions.push(Session { channel, job: Job::None, backlog: Vec::new() });
                    self.server.reply(true);
                }
                ServerEvent::ChannelRequest { channel, request } => {
                    let job = match &request {
                        Request::Subsystem(name) if name == "echo" => {
                            Some(Job::Echo { ended: false })
                        }
                        Request::Exec(command) if command == b"echo" => {
                            Some(Job::Echo { ended: false })
                        }
                        Request::Exec(command) if command == b"count" => Some(Job::Count(0)),
                        Request::Exec(command) if command.starts_with(b"send ") => {
                            let count = std::str::from_utf8(&command[5..]).unwrap();
                            Some(Job::Send(count.parse().unwrap()))
                        }
                        _ => None,
                    };
                    self.server.reply(job.is_some() || matches!(request, Request::Env { .. }));
                    if let (Some(job), Some(session)) = (job, self.session(channel)) {
                        session.job = job;
                    }
                }
                ServerEvent::Data { channel, len } => {
                    let bytes = self.server.data(len).to_vec();
                    let Some(session) = self.session(channel) else { continue };
                    match &mut session.job {
                        Job::Echo { .. } => session.backlog.extend_from_slice(&bytes),
                        Job::Count(count) => {
                            *count += len as u64;
                            self.server.consumed(channel, len);
                        }
                        _ => self.server.consumed(channel, len),
                    }
                }
                ServerEvent::Eof(channel) => {
                    let Some(session) = self.session(channel) else { continue };
                    match &mut session.job {
                        Job::Echo { ended } => *ended = true,
                        Job::Count(count) => {
                            let text = count.to_string();
                            self.server.write(channel, text.as_bytes());
                            self.server.exit_status(channel, 0);
                            self.server.close(channel);
                        }
                        _ => {}
                    }
                }
                ServerEvent::Closed(channel) => {
                    self.sessions.retain(|session| session.channel != channel);
                }
                ServerEvent::Alive | ServerEvent::Keyed => {}
                ServerEvent::Disconnected(end) => self.seen.end = Some(end),
            }
        }
    }

    fn session(&mut self, channel: ChannelId) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.channel == channel)
    }

    /// Writes what the queues take.
    fn work(&mut self) {
        for session in &mut self.sessions {
            let (server, channel) = (&mut self.server, session.channel);
            let written = server.write(channel, &session.backlog);
            session.backlog.drain(..written);
            match &mut session.job {
                Job::Echo { ended } => {
                    server.consumed(channel, written);
                    if *ended && session.backlog.is_empty() {
                        server.exit_status(channel, 0);
                        server.close(channel);
                        session.job = Job::None;
                    }
                }
                Job::Send(left) => {
                    while *left > 0 {
                        let piece = usize::try_from(*left).unwrap().min(64 * 1024);
                        let written = server.write(channel, &vec![b'x'; piece]);
                        *left -= written as u64;
                        if written < piece {
                            break;
                        }
                    }
                    if *left == 0 {
                        server.exit_status(channel, 0);
                        server.close(channel);
                        session.job = Job::None;
                    }
                }
                _ => {}
            }
        }
    }
}

fn decide(attempt: &Attempt) -> AuthDecision {
    let right = |secret: &outlast_crypto::Secret| secret.expose() == PASSWORD.as_bytes();
    match &attempt.method {
        Method::Password(password) if right(password) => AuthDecision::Accept,
        Method::PublicKey(offer) => match offer.signed {
            Signed::No => AuthDecision::AcceptKey,
            Signed::Valid => AuthDecision::Accept,
            Signed::Invalid => AuthDecision::Reject,
        },
        Method::KeyboardInteractive(None) => AuthDecision::Prompt(Prompt {
            questions: vec![("Password: ".to_owned(), false)],
            ..Prompt::default()
        }),
        Method::KeyboardInteractive(Some(responses)) if responses.iter().all(right) => {
            AuthDecision::Accept
        }
        _ => AuthDecision::Reject,
    }
}

/// Keys of all kinds, generated once, and a server with all of them as host keys.
pub fn host_keys() -> Vec<HostKey> {
    static KEYS: std::sync::OnceLock<Vec<Arc<PrivateKey>>> = std::sync::OnceLock::new();
    let generate =
        || KINDS.iter().map(|kind| Arc::new(PrivateKey::generate(*kind).unwrap())).collect();
    let keys = KEYS.get_or_init(generate);
    keys.iter().map(|key| HostKey { key: key.clone(), certificate: None }).collect()
}

pub const KINDS: [KeyKind; 6] = [
    KeyKind::MlDsa44Ed25519,
    KeyKind::Ed25519,
    KeyKind::EcdsaP256,
    KeyKind::EcdsaP384,
    KeyKind::EcdsaP521,
    KeyKind::Rsa2048,
];

/// A configuration with all host keys, passwords and keys.
pub fn config() -> ServerConfig {
    let mut config = ServerConfig::new(host_keys());
    config.methods = vec!["publickey", "password", "keyboard-interactive"];
    config
}
