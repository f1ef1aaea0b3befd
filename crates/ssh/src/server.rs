//! The server's side of a connection.

mod auth;
mod global;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BufMut;
use outlast_crypto::Secret;

use crate::certificate::Certificate;
use crate::channel::{self, ChannelId, Connection, Request};
use crate::config::ServerConfig;
use crate::error::{Disconnected, Error, Reason};
use crate::limits::MAX_PACKET_LEN;
use crate::message;
use crate::negotiation::Negotiation;
use crate::public_key::PublicKey;
use crate::transport::{self, Side, Transport};
use auth::Authentication;
pub(crate) use global::{HOST_KEYS, PROVE, proof_message};

/// Something that happened. Questions wait for an answer: nothing else happens until it is given.
#[derive(Debug)]
pub enum ServerEvent {
    /// Algorithms were negotiated, or could not be; [`ServerEvent::Disconnected`] follows then.
    Negotiated(Box<Negotiation>),
    /// The client has the keys: it has sent a message under them.
    Keyed,
    /// Question for [`Server::answer`]: a client wants to authenticate.
    Authenticate(Box<Attempt>),
    /// Question for [`Server::reply`]: the client opens a session channel.
    ChannelOpen(ChannelId),
    /// Question for [`Server::reply`], even if the client does not want to know the answer.
    ChannelRequest {
        /// The session.
        channel: ChannelId,
        /// What the client asks for.
        request: Request,
    },
    /// Data of a channel: [`Server::data`] has it until the next [`Server::poll`] or [`Server::rest`]. Tell [`Server::consumed`] when it was used.
    Data {
        /// The session.
        channel: ChannelId,
        /// How many bytes, at most [`crate::Limits::packet`].
        len: usize,
    },
    /// The client will send no more data in a channel.
    Eof(ChannelId),
    /// A channel is closed by both sides; its number is not used again.
    Closed(ChannelId),
    /// The client answered [`Server::keepalive`].
    Alive,
    /// The connection has ended; nothing follows. What [`Server::outgoing`] still has should be sent.
    Disconnected(Disconnected),
}

/// A client's try to authenticate.
#[derive(Debug)]
pub struct Attempt {
    /// Name of the user, the same in all tries of a connection.
    pub user: String,
    /// Method, with what it needs.
    pub method: Method,
}

/// Authentication methods (RFC 4252; RFC 4256).
pub enum Method {
    /// `none`, by which a client asks for the methods.
    None,
    /// A password.
    Password(Secret),
    /// A public key.
    PublicKey(Box<KeyOffer>),
    /// `keyboard-interactive`: `None` when it begins; then the responses to [`AuthDecision::Prompt`].
    KeyboardInteractive(Option<Vec<Secret>>),
    /// Another method, by its name. It cannot succeed, whatever the answer.
    Other(String),
    /// What cannot be used: an algorithm that is not allowed, a key or certificate that cannot be read, a change of the password. It
    /// cannot succeed either.
    Unusable {
        /// Name of the method.
        method: &'static str,
        /// What is wrong with it, for the operator.
        why: String,
    },
}

impl std::fmt::Debug for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Password(_) => f.write_str("Password"),
            Self::PublicKey(offer) => f.debug_tuple("PublicKey").field(offer).finish(),
            Self::KeyboardInteractive(_) => f.write_str("KeyboardInteractive"),
            Self::Other(name) => f.debug_tuple("Other").field(name).finish(),
            Self::Unusable { method, why } => {
                f.debug_struct("Unusable").field("method", method).field("why", why).finish()
            }
        }
    }
}

/// A user's public key.
#[derive(Debug)]
pub struct KeyOffer {
    /// Signature algorithm, which may be that of a certificate.
    pub algorithm: &'static str,
    /// The key; with a certificate, the certified one.
    pub key: PublicKey,
    /// The certificate. Its authority signed it; everything else is for the caller to check.
    pub certificate: Option<Certificate>,
    /// Whether the client proved that it has the private key.
    pub signed: Signed,
}

/// Whether an offered key comes with a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signed {
    /// Without: the client asks whether the key would do.
    No,
    /// With this session's signature. Keys on hardware were touched, unless the certificate says that they need not be.
    Valid,
    /// The signature does not verify; the try fails, whatever the answer.
    Invalid,
}

/// Answer to [`ServerEvent::Authenticate`].
#[derive(Debug)]
pub enum AuthDecision {
    /// The user is authenticated. A key that was only offered, or whose signature is not valid, is rejected all the same.
    Accept,
    /// The offered key would do: the client may sign with it.
    AcceptKey,
    /// The try failed.
    Reject,
    /// The try succeeded, and one of these methods must succeed, too.
    Partial(Vec<&'static str>),
    /// Questions of `keyboard-interactive`.
    Prompt(Prompt),
}

/// A round of `keyboard-interactive` (RFC 4256, section 3.2).
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// Title.
    pub name: String,
    /// Text above the questions.
    pub instruction: String,
    /// Questions, at most eight, and whether the response may be shown.
    pub questions: Vec<(String, bool)>,
}

/// The server's side of a connection, without its socket: see the crate's documentation for how to drive it.
pub struct Server {
    config: Arc<ServerConfig>,
    pub(crate) transport: Transport,
    authentication: Authentication,
    connection: Connection,
    events: VecDeque<ServerEvent>,
    failure: Option<Error>,
    ended: bool,
    proofs: u32,
    keepalives: u32,
}

impl Server {
    /// A connection that was accepted now.
    pub fn new(config: Arc<ServerConfig>, now_ms: u64) -> Self {
        Self {
            transport: Transport::new(Side::Server(config.clone()), now_ms),
            authentication: Authentication::new(&config),
            connection: Connection::default(),
            events: VecDeque::new(),
            failure: None,
            ended: false,
            proofs: 0,
            keepalives: 0,
            config,
        }
    }

    /// Takes bytes from the socket.
    pub fn receive(&mut self, bytes: &[u8], now_ms: u64) {
        self.transport.receive(bytes, now_ms);
    }

    /// Where at most so many bytes from the socket can be put, instead of [`Server::receive`], which copies them.
    pub fn input(&mut self, most: usize, now_ms: u64) -> impl BufMut {
        self.transport.input(most, now_ms)
    }

    /// Whether bytes should be read from the socket. Otherwise events are to be polled or bytes to be sent first.
    pub fn wants_input(&self) -> bool {
        self.transport.wants_input()
    }

    /// How many bytes should be read from the socket at a time, at most: few before authentication.
    pub fn room(&self) -> usize {
        self.transport.room()
    }

    /// Bytes for the socket.
    pub fn outgoing(&self) -> &[u8] {
        self.transport.outgoing()
    }

    /// Drops bytes from the front of [`Server::outgoing`], which the socket has taken.
    pub fn sent(&mut self, len: usize) {
        self.transport.sent(len);
    }

    /// When [`Server::on_timer`] wants to be called, in milliseconds since 1970.
    pub fn next_timer(&self) -> Option<u64> {
        self.transport.next_timer()
    }

    /// Says that time has passed.
    pub fn on_timer(&mut self, now_ms: u64) {
        let result = self.transport.on_timer(now_ms);
        self.note(result);
    }

    /// Works through the input until something happens. `None`: more input is needed, or an answer, or room in the
    /// output.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        self.transport.drop_opened();
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => self.end(&error),
            }
        }
    }

    /// The bytes of a [`ServerEvent::Data`], which must be the last event.
    pub fn data(&self, len: usize) -> &[u8] {
        self.transport.payload_end(len)
    }

    /// Shows the client a text, before its try to log in is answered (RFC 4252, section 5.4).
    pub fn banner(&mut self, text: &str) {
        let result = self.authentication.show(&mut self.transport, text);
        self.note(result);
    }

    /// Answers [`ServerEvent::Authenticate`].
    pub fn answer(&mut self, decision: AuthDecision) {
        let result = self.authentication.answer(&mut self.transport, decision);
        self.note(result);
    }

    /// Answers [`ServerEvent::ChannelOpen`] or [`ServerEvent::ChannelRequest`].
    pub fn reply(&mut self, accepted: bool) {
        let result = self.connection.reply(&mut self.transport, accepted);
        self.note(result);
    }

    /// Sends data in a channel. Returns how many bytes were taken: fewer than there are if [`crate::Limits::queued`] is
    /// reached, none if the channel is ending or gone.
    pub fn write(&mut self, channel: ChannelId, bytes: &[u8]) -> usize {
        let result = self.connection.write(&mut self.transport, channel, bytes);
        self.value(result)
    }

    /// Bytes that wait for windows, key exchanges and the socket, in all channels together.
    pub fn queued(&self) -> usize {
        self.connection.queued() + self.transport.outgoing().len()
    }

    /// Whether the socket has taken a part of what it was given. Who has much more to write waits for the rest, which may have to be
    /// copied otherwise.
    pub fn is_partly_sent(&self) -> bool {
        self.transport.is_partly_sent()
    }

    /// Bytes that the channel's window allows beyond its queue; `None` if the channel is ending or gone.
    pub fn writable(&mut self, channel: ChannelId) -> Option<usize> {
        self.connection.writable(channel)
    }

    /// Says that data of a channel was used, so that the client may send as much more.
    pub fn consumed(&mut self, channel: ChannelId, len: usize) {
        let result = self.connection.consumed(&mut self.transport, channel, len);
        self.note(result);
    }

    /// Grows the receive window of a channel from [`crate::Limits::first_window`] to [`crate::Limits::window`].
    pub fn widen(&mut self, channel: ChannelId) {
        let result = self.connection.widen(&mut self.transport, channel);
        self.note(result);
    }

    /// Sets the status that [`Server::close`] sends.
    pub fn exit_status(&mut self, channel: ChannelId, status: u32) {
        self.connection.exit_status(channel, status);
    }

    /// Ends the data of a channel behind what is queued.
    pub fn eof(&mut self, channel: ChannelId) {
        let result = self.connection.eof(&mut self.transport, channel);
        self.note(result);
    }

    /// Closes a channel behind what is queued. [`ServerEvent::Closed`] follows when the client has closed it, too.
    pub fn close(&mut self, channel: ChannelId) {
        let result = self.connection.close(&mut self.transport, channel);
        self.note(result);
    }

    /// Tells an authenticated client of all host keys (`hostkeys-00@openssh.com`), those of the future included.
    pub fn announce_host_keys(&mut self) {
        let result = self.send_host_keys();
        self.note(result);
    }

    /// Asks an authenticated client for a sign of life; [`ServerEvent::Alive`] follows. Returns how many questions it has
    /// not answered.
    pub fn keepalive(&mut self) -> u32 {
        let result = self.send_keepalive();
        self.note(result);
        self.keepalives
    }

    /// Ends the connection. [`ServerEvent::Disconnected`] follows.
    pub fn disconnect(&mut self, reason: Reason, message: &'static str) {
        self.failure.get_or_insert(Error::new(reason, message));
    }

    /// Exchanges new keys now, if the client is authenticated and no exchange is going on.
    pub fn rekey(&mut self) {
        let result = self.transport.exchange_now();
        self.note(result);
    }

    /// The client's identification string, without the end of its line; none before it has come.
    #[must_use]
    pub fn peer_version(&self) -> Option<String> {
        self.transport.peer_version()
    }

    /// Whether keys are being exchanged. A client may be silent meanwhile, because it must first take what was sent before;
    /// [`crate::Limits::exchange_ms`] and [`crate::Limits::rekeying_ms`] say for how long.
    #[must_use]
    pub fn is_exchanging(&self) -> bool {
        self.transport.is_exchanging()
    }

    /// Gives memory up that an idle connection does not need. Call it from time to time: buffers keep what a busy one needs.
    pub fn rest(&mut self) {
        self.transport.rest();
        self.connection.rest();
    }

    /// Bytes of the connection's own buffers and state; the library's keys, about 2 KiB, come on top.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.transport.memory() + self.connection.memory()
    }

    fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    fn value(&mut self, result: Result<usize, Error>) -> usize {
        result.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            0
        })
    }

    fn end(&mut self, error: &Error) {
        self.transport.close(error);
        self.ended = true;
        self.events.push_back(ServerEvent::Disconnected(Disconnected::by_us(error)));
    }

    /// Handles one packet. False if there is none, or it has to wait.
    fn step(&mut self) -> Result<bool, Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        self.transport.exchange_if_due()?;
        self.connection.flush(&mut self.transport)?;
        let asked = self.authentication.has_question() || self.connection.has_question();
        if asked || self.transport.is_congested() {
            return Ok(false);
        }
        let Some(payload) = self.transport.next_packet()? else { return Ok(false) };
        let input = self.transport.take_input();
        let event = self.handle(input.as_slice().get(payload).unwrap_or_default());
        self.transport.return_input(input);
        self.events.extend(event?);
        Ok(true)
    }

    fn handle(&mut self, payload: &[u8]) -> Result<Option<ServerEvent>, Error> {
        debug_assert!(payload.len() <= MAX_PACKET_LEN, "packets have a limit");
        match payload.first().copied().unwrap_or_default() {
            0 => Err(Error::protocol("there is no message 0")),
            message::SERVICE_REQUEST => {
                self.transport.check_service()?;
                self.authentication.on_service(&mut self.transport, payload)?;
                Ok(Some(ServerEvent::Keyed))
            }
            1..50 => {
                let event = self.transport.handle(payload)?;
                Ok(event.and_then(|event| self.on_transport(event)))
            }
            50..80 => {
                self.transport.check_service()?;
                let attempt = self.authentication.handle(&mut self.transport, payload)?;
                Ok(attempt.map(|attempt| ServerEvent::Authenticate(Box::new(attempt))))
            }
            number @ 80..128 => {
                self.transport.check_service()?;
                if !self.authentication.is_done() {
                    return Err(Error::protocol("a message comes before authentication"));
                }
                if number < message::CHANNEL_OPEN {
                    return self.on_global(payload);
                }
                let event = self.connection.handle(&mut self.transport, payload)?;
                Ok(event.and_then(on_channel))
            }
            _ => {
                self.transport.check_service()?;
                self.transport.unimplemented().map(|()| None)
            }
        }
    }

    fn on_transport(&mut self, event: transport::Event) -> Option<ServerEvent> {
        match event {
            transport::Event::Negotiated(negotiation) => Some(ServerEvent::Negotiated(negotiation)),
            transport::Event::Refused(negotiation, error) => {
                self.failure.get_or_insert(error);
                Some(ServerEvent::Negotiated(negotiation))
            }
            transport::Event::Disconnected(disconnected) => {
                self.ended = true;
                Some(ServerEvent::Disconnected(disconnected))
            }
            transport::Event::HostKey(..) | transport::Event::Ready => None,
        }
    }
}

fn on_channel(event: channel::Event) -> Option<ServerEvent> {
    match event {
        channel::Event::Open(channel) => Some(ServerEvent::ChannelOpen(channel)),
        channel::Event::Request(channel, request) => {
            Some(ServerEvent::ChannelRequest { channel, request })
        }
        channel::Event::Data { channel, len, .. } => Some(ServerEvent::Data { channel, len }),
        channel::Event::Eof(channel) => Some(ServerEvent::Eof(channel)),
        channel::Event::Closed(channel) => Some(ServerEvent::Closed(channel)),
        // A client's events: a server opens no channels and sends no requests.
        channel::Event::Opened(_)
        | channel::Event::OpenFailed { .. }
        | channel::Event::Answered { .. }
        | channel::Event::ExitStatus { .. }
        | channel::Event::ExitSignal { .. } => None,
    }
}
