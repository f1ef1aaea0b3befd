//! The client's side of a connection: for connectors, probes and tests.

mod auth;

use std::collections::VecDeque;
use std::sync::Arc;

use outlast_crypto::Secret;

use crate::certificate::Certificate;
use crate::channel::{self, ChannelId, Connection, Request};
use crate::config::ClientConfig;
use crate::error::{Disconnected, Error, Reason};
use crate::limits::MAX_ANNOUNCED_KEYS;
use crate::message;
use crate::negotiation::Negotiation;
use crate::private_key::PrivateKey;
use crate::public_key::PublicKey;
use crate::server::{HOST_KEYS, PROVE, proof_message};
use crate::signature::{self, Algorithm};
use crate::transport::{self, Side, Transport};
use crate::wire::{Reader, Writer};
use auth::Authentication;

/// Something that happened.
#[derive(Debug)]
pub enum ClientEvent {
    /// Algorithms were negotiated, or could not be; [`ClientEvent::Disconnected`] follows then.
    Negotiated(Box<Negotiation>),
    /// Question for [`Client::answer`]: the server has this key.
    HostKey(Box<HostKeyShown>),
    /// [`Client::authenticate`] may be called.
    Ready,
    /// Text of the server for its users, which may contain anything.
    Banner(String),
    /// The server would take the key that [`Credential::Offer`] offered.
    KeyAcceptable,
    /// Questions of `keyboard-interactive` for [`Client::respond`], each with whether the response may be shown.
    Prompt(Vec<(String, bool)>),
    /// The try failed, or is not enough.
    Refused {
        /// Methods that can continue.
        methods: Vec<String>,
        /// Whether the try succeeded, but another one must, too.
        partial: bool,
    },
    /// The user is authenticated: channels may be opened.
    Authenticated,
    /// The server confirmed a channel.
    Opened(ChannelId),
    /// The server did not open a channel.
    OpenFailed {
        /// The channel.
        channel: ChannelId,
        /// Reason code (RFC 4254, section 5.1).
        reason: u32,
        /// Description.
        message: String,
    },
    /// The server answered the oldest request of a channel.
    Answered {
        /// The channel.
        channel: ChannelId,
        /// Whether it does what was asked.
        accepted: bool,
    },
    /// Data of a channel. Tell [`Client::consumed`] when it was used.
    Data {
        /// The channel.
        channel: ChannelId,
        /// At most [`crate::Limits::packet`] bytes.
        bytes: Vec<u8>,
        /// Whether it is from the program's standard error.
        stderr: bool,
    },
    /// The program of a channel ended with this status.
    ExitStatus {
        /// The channel.
        channel: ChannelId,
        /// Its status.
        status: u32,
    },
    /// The program of a channel was ended by this signal.
    ExitSignal {
        /// The channel.
        channel: ChannelId,
        /// Name of the signal, without `SIG`.
        signal: String,
    },
    /// The server will send no more data in a channel.
    Eof(ChannelId),
    /// A channel is closed by both sides.
    Closed(ChannelId),
    /// The server announced all of its host keys, and proved that it has them.
    HostKeys(Vec<PublicKey>),
    /// The connection has ended; nothing follows.
    Disconnected(Disconnected),
}

/// The key that a server has, proved by its signature of the key exchange.
#[derive(Debug)]
pub struct HostKeyShown {
    /// Host key algorithm, which may be that of a certificate.
    pub algorithm: &'static str,
    /// The key; with a certificate, the certified one.
    pub key: PublicKey,
    /// The certificate. Whether its authority is trusted, and for this host now, is for the caller to check.
    pub certificate: Option<Certificate>,
}

/// What a client authenticates with.
pub enum Credential {
    /// `none`, which tells the methods.
    None,
    /// A password. It is sent encrypted, and the server sees it.
    Password(Secret),
    /// A key, and its certificate if there is one.
    Key {
        /// The key.
        key: Arc<PrivateKey>,
        /// Its user certificate.
        certificate: Option<Box<Certificate>>,
    },
    /// Asks whether this key would do, without signing.
    Offer(PublicKey),
    /// `keyboard-interactive`: [`ClientEvent::Prompt`] follows.
    KeyboardInteractive,
}

/// The client's side of a connection, without its socket: see the crate's documentation for how to drive it.
pub struct Client {
    pub(crate) transport: Transport,
    authentication: Authentication,
    connection: Connection,
    events: VecDeque<ClientEvent>,
    failure: Option<Error>,
    ended: bool,
    /// Whether the caller has to decide about the host key.
    host_key_shown: bool,
    /// Host keys whose proof was asked for.
    unproved: Option<Vec<PublicKey>>,
    /// Whether messages were sent that nobody should send. The feature alone changes nothing: a build of the whole
    /// workspace has it.
    #[cfg(feature = "fuzzing")]
    lenient: bool,
}

impl Client {
    /// A connection that was made now.
    pub fn new(config: Arc<ClientConfig>, now_ms: u64) -> Self {
        Self {
            transport: Transport::new(Side::Client(config), now_ms),
            authentication: Authentication::default(),
            connection: Connection::default(),
            events: VecDeque::new(),
            failure: None,
            ended: false,
            host_key_shown: false,
            unproved: None,
            #[cfg(feature = "fuzzing")]
            lenient: false,
        }
    }

    /// Takes bytes from the socket.
    pub fn receive(&mut self, bytes: &[u8], now_ms: u64) {
        self.transport.receive(bytes, now_ms);
    }

    /// Whether bytes should be read from the socket.
    pub fn wants_input(&self) -> bool {
        self.transport.wants_input()
    }

    /// Bytes for the socket.
    pub fn outgoing(&self) -> &[u8] {
        self.transport.outgoing()
    }

    /// Drops bytes from the front of [`Client::outgoing`], which the socket has taken.
    pub fn sent(&mut self, len: usize) {
        self.transport.sent(len);
    }

    /// When [`Client::on_timer`] wants to be called, in milliseconds since 1970.
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
    pub fn poll(&mut self) -> Option<ClientEvent> {
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

    /// Answers [`ClientEvent::HostKey`]. Without acceptance the connection ends.
    pub fn answer(&mut self, accepted: bool) {
        if !std::mem::take(&mut self.host_key_shown) {
            return;
        }
        let refused = Error::new(Reason::HostKeyNotVerifiable, "the host key is not accepted");
        let result = if accepted { self.transport.accept_host_key() } else { Err(refused) };
        self.note(result);
    }

    /// Tries to authenticate, after [`ClientEvent::Ready`] or [`ClientEvent::Refused`].
    pub fn authenticate(&mut self, user: &str, credential: Credential) {
        let result = self.authentication.start(&mut self.transport, user, credential);
        self.note(result);
    }

    /// Answers [`ClientEvent::Prompt`].
    pub fn respond(&mut self, responses: &[Secret]) {
        let result = self.authentication.respond(&mut self.transport, responses);
        self.note(result);
    }

    /// Opens a session channel. `None` if there are too many, or if the user is not authenticated.
    pub fn open(&mut self) -> Option<ChannelId> {
        if !self.authentication.is_done() {
            return None;
        }
        let result = self.connection.open(&mut self.transport);
        result.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            None
        })
    }

    /// Sends a request in a channel; [`ClientEvent::Answered`] follows. False if the channel is not open.
    pub fn request(&mut self, channel: ChannelId, request: &Request) -> bool {
        let result = self.connection.request(&mut self.transport, channel, request);
        result.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            false
        })
    }

    /// Sends data in a channel. Returns how many bytes were taken: fewer than there are if [`crate::Limits::queued`] is
    /// reached, none if the channel is ending or gone.
    pub fn write(&mut self, channel: ChannelId, bytes: &[u8]) -> usize {
        let result = self.connection.write(&mut self.transport, channel, bytes);
        result.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            0
        })
    }

    /// Bytes that wait for windows, key exchanges and the socket, in all channels together.
    pub fn queued(&self) -> usize {
        self.connection.queued() + self.transport.outgoing().len()
    }

    /// Bytes that the channel's window allows beyond its queue; `None` if the channel is ending or gone.
    pub fn writable(&mut self, channel: ChannelId) -> Option<usize> {
        self.connection.writable(channel)
    }

    /// Says that data of a channel was used, so that the server may send as much more.
    pub fn consumed(&mut self, channel: ChannelId, len: usize) {
        let result = self.connection.consumed(&mut self.transport, channel, len);
        self.note(result);
    }

    /// Ends the data of a channel behind what is queued.
    pub fn eof(&mut self, channel: ChannelId) {
        let result = self.connection.eof(&mut self.transport, channel);
        self.note(result);
    }

    /// Closes a channel behind what is queued.
    pub fn close(&mut self, channel: ChannelId) {
        let result = self.connection.close(&mut self.transport, channel);
        self.note(result);
    }

    /// Exchanges new keys now, if the user is authenticated and no exchange is going on.
    pub fn rekey(&mut self) {
        let result = self.transport.exchange_now();
        self.note(result);
    }

    /// Ends the connection. [`ClientEvent::Disconnected`] follows.
    pub fn disconnect(&mut self, reason: Reason, message: &'static str) {
        self.failure.get_or_insert(Error::new(reason, message));
    }

    /// Sends a message that may be anything, and ignores answers from now on that nobody asked for.
    #[cfg(feature = "fuzzing")]
    pub fn send_raw(&mut self, payload: &[u8]) {
        self.lenient = true;
        let result = self.transport.send(&[payload]);
        self.note(result);
    }

    fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    fn end(&mut self, error: &Error) {
        self.transport.close(error);
        self.ended = true;
        self.events.push_back(ClientEvent::Disconnected(Disconnected::by_us(error)));
    }

    fn step(&mut self) -> Result<bool, Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        self.transport.exchange_if_due()?;
        self.connection.flush(&mut self.transport)?;
        if self.host_key_shown || self.transport.is_congested() {
            return Ok(false);
        }
        let Some(payload) = self.transport.next_packet()? else { return Ok(false) };
        let input = self.transport.take_input();
        let payload = input.as_slice().get(payload).unwrap_or_default();
        let event = self.handle(payload);
        #[cfg(feature = "fuzzing")]
        let event =
            if self.lenient && payload.first() >= Some(&50) { event.or(Ok(None)) } else { event };
        self.transport.return_input(input);
        self.events.extend(event?);
        Ok(true)
    }

    fn handle(&mut self, payload: &[u8]) -> Result<Option<ClientEvent>, Error> {
        match payload.first().copied().unwrap_or_default() {
            0 => Err(Error::protocol("there is no message 0")),
            message::SERVICE_ACCEPT => {
                self.transport.check_service()?;
                self.authentication.on_service()?;
                Ok(Some(ClientEvent::Ready))
            }
            1..50 => match self.transport.handle(payload)? {
                Some(event) => self.on_transport(event),
                None => Ok(None),
            },
            50..80 => {
                self.transport.check_service()?;
                self.authentication.handle(&mut self.transport, payload)
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
                Ok(event.and_then(|event| on_channel(event, payload)))
            }
            _ => {
                self.transport.check_service()?;
                self.transport.unimplemented().map(|()| None)
            }
        }
    }

    fn on_transport(&mut self, event: transport::Event) -> Result<Option<ClientEvent>, Error> {
        Ok(match event {
            transport::Event::Negotiated(negotiation) => Some(ClientEvent::Negotiated(negotiation)),
            transport::Event::Refused(negotiation, error) => {
                self.failure.get_or_insert(error);
                Some(ClientEvent::Negotiated(negotiation))
            }
            transport::Event::HostKey(key, certificate, algorithm) => {
                self.host_key_shown = true;
                let certificate = certificate.map(|certificate| *certificate);
                Some(ClientEvent::HostKey(Box::new(HostKeyShown { algorithm, key, certificate })))
            }
            transport::Event::Ready => {
                self.authentication.request_service(&mut self.transport)?;
                None
            }
            transport::Event::Disconnected(disconnected) => {
                self.ended = true;
                Some(ClientEvent::Disconnected(disconnected))
            }
        })
    }

    /// Handles a message from 80 to 89 (OpenSSH's PROTOCOL, 2.5, for host keys).
    fn on_global(&mut self, payload: &[u8]) -> Result<Option<ClientEvent>, Error> {
        let mut reader = Reader::new(payload);
        match reader.byte()? {
            message::GLOBAL_REQUEST => {
                let name = reader.string()?;
                if reader.bool()? {
                    self.transport.send(&[&[message::REQUEST_FAILURE]])?;
                } else if name == HOST_KEYS && self.unproved.is_none() {
                    self.ask_for_proof(reader)?;
                }
                Ok(None)
            }
            message::REQUEST_SUCCESS => {
                let keys =
                    self.unproved.take().ok_or(Error::protocol("an answer to no request"))?;
                for key in &keys {
                    let signature = reader.string()?;
                    let signed = proof_message(self.transport.session_id(), key.blob());
                    let row = Reader::new(signature).text().ok().and_then(Algorithm::by_name);
                    let valid = row.is_some_and(|(row, certificate)| {
                        !certificate && signature::verify(key, row, &signed, signature).is_some()
                    });
                    if !valid {
                        return Err(Error::protocol(
                            "the server does not have the host keys that it announced",
                        ));
                    }
                }
                Ok(Some(ClientEvent::HostKeys(keys)))
            }
            message::REQUEST_FAILURE => {
                self.unproved.take().ok_or(Error::protocol("an answer to no request"))?;
                Ok(None)
            }
            _ => self.transport.unimplemented().map(|()| None),
        }
    }

    fn ask_for_proof(&mut self, mut reader: Reader<'_>) -> Result<(), Error> {
        let mut keys = Vec::new();
        while !reader.is_empty() && keys.len() < MAX_ANNOUNCED_KEYS {
            // Certificates, and keys of types that this crate does not know.
            if let Ok(key) = PublicKey::parse(reader.string()?) {
                keys.push(key);
            }
        }
        if keys.is_empty() {
            return Ok(());
        }
        let mut out = vec![message::GLOBAL_REQUEST];
        out.put_string(PROVE);
        out.put_bool(true);
        for key in &keys {
            out.put_string(key.blob());
        }
        self.unproved = Some(keys);
        self.transport.send(&[&out])
    }
}

fn on_channel(event: channel::Event, payload: &[u8]) -> Option<ClientEvent> {
    match event {
        // Questions are a server's.
        channel::Event::Open(_) | channel::Event::Request(..) => None,
        channel::Event::Data { channel, len, extended } => {
            let bytes = payload[payload.len() - len..].to_vec();
            Some(ClientEvent::Data { channel, bytes, stderr: extended })
        }
        channel::Event::Eof(channel) => Some(ClientEvent::Eof(channel)),
        channel::Event::Closed(channel) => Some(ClientEvent::Closed(channel)),
        channel::Event::Opened(channel) => Some(ClientEvent::Opened(channel)),
        channel::Event::OpenFailed { channel, reason, message } => {
            Some(ClientEvent::OpenFailed { channel, reason, message })
        }
        channel::Event::Answered { channel, accepted } => {
            Some(ClientEvent::Answered { channel, accepted })
        }
        channel::Event::ExitStatus { channel, status } => {
            Some(ClientEvent::ExitStatus { channel, status })
        }
        channel::Event::ExitSignal { channel, signal } => {
            Some(ClientEvent::ExitSignal { channel, signal })
        }
    }
}
