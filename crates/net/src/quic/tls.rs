//! The handshake over QUIC: the ClientHello is read first, the door's policy decides as it does over TCP, and rustls
//! gets a configuration that allows nothing else.
//!
//! s2n-quic's own rustls sessions are not used: they are bound to one configuration before the ClientHello arrives,
//! do not report how the handshake went, and drop rustls' tickets.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use outlast_ledger::Outcome;
use outlast_negotiate::offer::{MAX_CLIENT_HELLO, OfferError, check_second};
use outlast_negotiate::{Choice, Offer, Transport};
use rustls::quic::{KeyChange, ServerConnection, Version};
use s2n_codec::EncoderValue;
use s2n_quic_core::application::ServerName;
use s2n_quic_core::crypto::CryptoSuite;
use s2n_quic_core::crypto::tls::{
    self, ApplicationParameters, ChainError, CipherSuite, ConnectionInfo, Context, NamedGroup,
    TlsExportError, TlsSession,
};
use s2n_quic_core::transport;

use super::keys::{OneRttKeys, PacketKeys, Suite, TAG_LEN, named};
use super::load::{Going, Load};
use crate::door::{Current, Door, Handshaking};
use crate::slots::Slot;
use crate::watch::Watch;
use crate::{Negotiated, client_auth, door};

/// What a handshake leaves for the code that accepts the connection.
pub(super) struct Greeting {
    /// Also reports the end of a connection that nobody accepts.
    pub(super) watch: Watch,
    pub(super) peer: SocketAddr,
    pub(super) negotiated: Negotiated,
    pub(super) slot: Slot,
}

/// Creates the endpoint.
pub(super) struct Provider {
    door: Arc<Door>,
    load: Arc<Load>,
}

impl Provider {
    pub(super) fn new(door: Arc<Door>, load: Arc<Load>) -> Self {
        Self { door, load }
    }
}

impl s2n_quic::provider::tls::Provider for Provider {
    type Server = Endpoint;
    type Client = Endpoint;
    type Error = Infallible;

    fn start_server(self) -> Result<Endpoint, Infallible> {
        Ok(Endpoint { door: self.door, load: self.load })
    }

    fn start_client(self) -> Result<Endpoint, Infallible> {
        self.start_server()
    }
}

/// Creates a session for each connection.
pub(super) struct Endpoint {
    door: Arc<Door>,
    load: Arc<Load>,
}

impl tls::Endpoint for Endpoint {
    type Session = Session;

    fn new_server_session<Params: EncoderValue>(
        &mut self,
        parameters: &Params,
        info: ConnectionInfo,
    ) -> Session {
        let hello = Hello {
            handshaking: self.door.handshaking(Some(info.remote_address)),
            received: Vec::new(),
            parameters: parameters.encode_to_vec(),
            going: self.load.begin(info.remote_address),
        };
        Session {
            door: self.door.clone(),
            load: self.load.clone(),
            peer: info.remote_address,
            is_new: true,
            state: State::Hello(Box::new(hello)),
        }
    }

    fn new_client_session<Params: EncoderValue>(&mut self, _: &Params, _: ServerName) -> Session {
        // Nobody asks a listener for a client session.
        Session {
            door: self.door.clone(),
            load: self.load.clone(),
            peer: SocketAddr::from(([0, 0, 0, 0], 0)),
            is_new: true,
            state: State::Over,
        }
    }

    fn max_tag_length(&self) -> usize {
        TAG_LEN
    }
}

/// A handshake in progress.
pub(super) struct Session {
    door: Arc<Door>,
    load: Arc<Load>,
    peer: SocketAddr,
    /// Nothing has been done yet.
    is_new: bool,
    state: State,
}

enum State {
    /// The ClientHello is incomplete.
    Hello(Box<Hello>),
    /// The ClientHello is complete and was decided on.
    Decided(Box<Decided>),
    /// Failed; reported at the next poll.
    Failed(transport::Error),
    /// Finished, or never to be.
    Over,
}

struct Hello {
    /// Reports to the ledger.
    handshaking: Handshaking,
    received: Vec<u8>,
    /// Transport parameters for the client.
    parameters: Vec<u8>,
    going: Going,
}

struct Decided {
    /// Reports to the ledger.
    handshaking: Option<Handshaking>,
    connection: ServerConnection,
    choice: Choice,
    /// Certificates on which the decision is based: they may have been replaced when the handshake ends.
    current: Arc<Current>,
    /// The ClientHellos, from a HelloRetryRequest until the second one has arrived.
    retry: Option<(Vec<u8>, Vec<u8>)>,
    has_retried: bool,
    /// Level of the keys for the next bytes in each direction.
    receives: Level,
    sends: Level,
    has_named_server: bool,
    #[expect(dead_code, reason = "counts the handshake until it is dropped")]
    going: Going,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Initial,
    Handshake,
    Application,
}

impl Level {
    fn next(self) -> Self {
        match self {
            Self::Initial => Self::Handshake,
            Self::Handshake | Self::Application => Self::Application,
        }
    }
}

const TOO_MANY: &str = "there are too many connections";

fn alert(code: u8) -> transport::Error {
    // RFC 9001, section 4.8
    tls::Error::new(code).into()
}

/// RFC 8446, section 6.2.
const UNEXPECTED_MESSAGE: u8 = 10;
const HANDSHAKE_FAILURE: u8 = 40;
const INTERNAL_ERROR: u8 = 80;
const MISSING_EXTENSION: u8 = 109;

/// Answer to a malformed ClientHello.
fn malformed(error: OfferError) -> transport::Error {
    alert(error.alert().unwrap_or(HANDSHAKE_FAILURE))
}

/// Collects the bytes of a ClientHello. Returns true when it is complete.
fn collect<C: Context<Session>>(
    hello: &mut Vec<u8>,
    context: &mut C,
) -> Result<bool, transport::Error> {
    loop {
        if let Some([kind, a, b, c]) = hello.first_chunk::<4>() {
            let len = 4 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if *kind != 1 {
                return Err(alert(UNEXPECTED_MESSAGE));
            }
            if len > MAX_CLIENT_HELLO {
                return Err(transport::Error::CRYPTO_BUFFER_EXCEEDED);
            }
            if hello.len() == len {
                return Ok(true);
            }
            if hello.len() > len {
                // Nothing may follow before the server has answered.
                return Err(alert(UNEXPECTED_MESSAGE));
            }
        }
        match context.receive_initial(None) {
            Some(bytes) => hello.extend_from_slice(&bytes),
            None => return Ok(false),
        }
    }
}

impl Session {
    fn decide(&self, hello: Hello) -> Result<Decided, transport::Error> {
        let Hello { mut handshaking, received, parameters, going } = hello;
        let offer = Offer::parse(&received, Transport::Quic).map_err(|error| {
            handshaking.end(Outcome::Failed(error.to_string()));
            malformed(error)
        })?;
        let decision = self.door.quic(&offer);
        handshaking.offered(offer);
        let (choice, config, current) = decision.map_err(|refusal| {
            handshaking.end(Outcome::Refused(refusal));
            alert(refusal.alert())
        })?;
        // Before any asymmetric cryptography.
        if self.load.has_room(self.peer).is_err() {
            handshaking.end(Outcome::Failed(TOO_MANY.into()));
            return Err(transport::Error::CONNECTION_REFUSED);
        }
        let connection =
            ServerConnection::new(config, Version::V1, parameters).map_err(|error| {
                handshaking.end(Outcome::Failed(error.to_string()));
                alert(INTERNAL_ERROR)
            })?;
        let mut decided = Decided {
            handshaking: Some(handshaking),
            connection,
            choice,
            current,
            retry: None,
            has_retried: false,
            receives: Level::Initial,
            sends: Level::Initial,
            has_named_server: false,
            going,
        };
        decided.read(&received)?;
        decided.retry = choice.hello_retry.then(|| (received, Vec::new()));
        Ok(decided)
    }
}

impl Decided {
    fn end(&mut self, outcome: Outcome) {
        if let Some(handshaking) = &mut self.handshaking {
            handshaking.end(outcome);
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), transport::Error> {
        self.connection.read_hs(bytes).map_err(|error| {
            let code = self.connection.alert().map_or(INTERNAL_ERROR, u8::from);
            self.end(Outcome::Failed(error.to_string()));
            alert(code)
        })
    }

    /// Reads, and writes pending messages. Returns true when the handshake is complete.
    fn advance<C: Context<Session>>(&mut self, context: &mut C) -> Result<bool, transport::Error> {
        loop {
            self.write(context)?;
            if self.sends == Level::Application && !self.connection.is_handshaking() {
                return Ok(true);
            }
            if let Some((first, mut second)) = self.retry.take() {
                if !collect(&mut second, context)? {
                    self.retry = Some((first, second));
                    return Ok(false);
                }
                check_second(&first, &second, self.choice.group.code_point).map_err(|error| {
                    self.end(Outcome::Failed(error.to_string()));
                    malformed(error)
                })?;
                self.has_retried = true;
                self.read(&second)?;
                continue;
            }
            let received = match self.receives {
                Level::Initial => context.receive_initial(None),
                Level::Handshake => context.receive_handshake(None),
                Level::Application => context.receive_application(None),
            };
            match received {
                Some(bytes) => self.read(&bytes)?,
                None => return Ok(false),
            }
        }
    }

    fn write<C: Context<Session>>(&mut self, context: &mut C) -> Result<(), transport::Error> {
        loop {
            let may_send = match self.sends {
                Level::Initial => context.can_send_initial(),
                Level::Handshake => context.can_send_handshake(),
                Level::Application => context.can_send_application(),
            };
            if !may_send {
                return Ok(());
            }
            let mut bytes = Vec::new();
            let change = self.connection.write_hs(&mut bytes);
            if bytes.is_empty() && change.is_none() {
                return Ok(());
            }
            if !bytes.is_empty() {
                match self.sends {
                    Level::Initial => context.send_initial(bytes.into()),
                    Level::Handshake => context.send_handshake(bytes.into()),
                    Level::Application => context.send_application(bytes.into()),
                }
            }
            let Some(change) = change else { continue };
            let suite = self
                .connection
                .negotiated_cipher_suite()
                .ok_or_else(|| alert(INTERNAL_ERROR))?
                .suite();
            match change {
                KeyChange::Handshake { keys } => {
                    let (keys, header) = PacketKeys::new(keys, suite);
                    context.on_handshake_keys(keys, header)?;
                    self.receives = self.receives.next();
                }
                KeyChange::OneRtt { keys, next } => {
                    let (keys, header) = OneRttKeys::new(keys, next, suite);
                    self.names(context)?;
                    // RFC 9001, section 8.2: a client without them is refused.
                    let transport_parameters = self
                        .connection
                        .quic_transport_parameters()
                        .ok_or_else(|| alert(MISSING_EXTENSION))?;
                    let parameters = ApplicationParameters { transport_parameters };
                    context.on_one_rtt_keys(keys, header, parameters)?;
                }
            }
            self.sends = self.sends.next();
        }
    }

    /// Passes s2n-quic the facts that it asks for.
    fn names<C: Context<Session>>(&mut self, context: &mut C) -> Result<(), transport::Error> {
        if std::mem::replace(&mut self.has_named_server, true) {
            return Ok(());
        }
        if let Some(name) = self.connection.server_name() {
            context.on_server_name(name.into())?;
        }
        if let Some(name) = self.connection.alpn_protocol() {
            context.on_application_protocol(name.to_vec().into())?;
        }
        let group = self.choice.group;
        context.on_key_exchange_group(NamedGroup {
            group_name: group.name,
            contains_kem: group.strength.is_post_quantum(),
        })
    }

    fn negotiated(&self) -> Negotiated {
        let mut negotiated = Negotiated::of(&self.connection);
        negotiated.client_certificate =
            self.connection.peer_certificates().and_then(client_auth::described);
        negotiated
    }
}

impl tls::Session for Session {
    fn poll<C: Context<Self>>(&mut self, context: &mut C) -> Poll<Result<(), transport::Error>> {
        if let State::Failed(error) = self.state {
            return Poll::Ready(Err(error));
        }
        let outcome = self.advance(context);
        match outcome {
            // s2n-quic drops an error at the first packet silently, so the client would wait until it gives up. Once
            // there is a connection, it is closed properly.
            Poll::Ready(Err(error)) if std::mem::take(&mut self.is_new) => {
                self.state = State::Failed(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            outcome => {
                self.is_new = false;
                outcome
            }
        }
    }
}

impl Session {
    fn advance<C: Context<Self>>(&mut self, context: &mut C) -> Poll<Result<(), transport::Error>> {
        if let State::Hello(hello) = &mut self.state {
            let collected = collect(&mut hello.received, context);
            if !hello.received.is_empty() {
                hello.handshaking.heard();
            }
            match collected {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(error) => {
                    hello.handshaking.end(Outcome::Failed(error.to_string()));
                    return Poll::Ready(Err(error));
                }
            }
            if let State::Hello(hello) = std::mem::replace(&mut self.state, State::Over) {
                self.state = State::Decided(Box::new(self.decide(*hello)?));
            }
        }
        let State::Decided(decided) = &mut self.state else { return Poll::Ready(Ok(())) };
        match decided.advance(context) {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(self.finish(context)),
            Err(error) => {
                decided.end(Outcome::Failed(error.to_string()));
                Poll::Ready(Err(error))
            }
        }
    }

    fn finish<C: Context<Self>>(&mut self, context: &mut C) -> Result<(), transport::Error> {
        let State::Decided(decided) = &mut self.state else { return Ok(()) };
        let negotiated = decided.negotiated();
        if let Some(mut handshaking) = decided.handshaking.take() {
            // Not earlier: until now the client's address may have been forged.
            let slot = self.load.slot(self.peer).map_err(|_| {
                handshaking.end(Outcome::Failed(TOO_MANY.into()));
                transport::Error::CONNECTION_REFUSED
            })?;
            let (choice, current) = (&decided.choice, &decided.current);
            let done =
                door::done(&mut handshaking, &negotiated, choice, current, decided.has_retried);
            done.map_err(|_| alert(INTERNAL_ERROR))?;
            let peer = self.peer;
            let watch = handshaking.watch(Arc::default());
            context.on_tls_context(Box::new(Greeting { watch, peer, negotiated, slot }));
        }
        context.on_handshake_complete()?;
        context.on_tls_exporter_ready(self)
    }
}

impl TlsSession for Session {
    // Nobody asks s2n-quic for these; the greeting contains what is needed of the handshake.
    fn tls_exporter(&self, _: &[u8], _: &[u8], _: &mut [u8]) -> Result<(), TlsExportError> {
        Err(TlsExportError::failure())
    }

    fn cipher_suite(&self) -> CipherSuite {
        match &self.state {
            State::Decided(decided) => decided
                .connection
                .negotiated_cipher_suite()
                .map_or(CipherSuite::Unknown, |suite| named(suite.suite())),
            _ => CipherSuite::Unknown,
        }
    }

    fn peer_cert_chain_der(&self) -> Result<Vec<Vec<u8>>, ChainError> {
        Err(ChainError::failure())
    }

    fn client_cert_chain_der(&self) -> Result<Option<Vec<u8>>, ChainError> {
        Err(ChainError::failure())
    }

    fn selected_cert_der(&self) -> Result<Option<Vec<Vec<u8>>>, ChainError> {
        Err(ChainError::failure())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl CryptoSuite for Session {
    type HandshakeKey = <Suite as CryptoSuite>::HandshakeKey;
    type HandshakeHeaderKey = <Suite as CryptoSuite>::HandshakeHeaderKey;
    type InitialKey = <Suite as CryptoSuite>::InitialKey;
    type InitialHeaderKey = <Suite as CryptoSuite>::InitialHeaderKey;
    type OneRttKey = <Suite as CryptoSuite>::OneRttKey;
    type OneRttHeaderKey = <Suite as CryptoSuite>::OneRttHeaderKey;
    type ZeroRttKey = <Suite as CryptoSuite>::ZeroRttKey;
    type ZeroRttHeaderKey = <Suite as CryptoSuite>::ZeroRttHeaderKey;
    type RetryKey = <Suite as CryptoSuite>::RetryKey;
}

#[cfg(test)]
mod tests;
