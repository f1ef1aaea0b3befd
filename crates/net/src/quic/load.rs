//! Limits on strangers: concurrent handshakes and connections, and the error codes that close them.

use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use s2n_quic::provider::address_token;
use s2n_quic::provider::connection_close_formatter::{
    self, ConnectionClose, Formatter, Production,
};
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome};
use s2n_quic::provider::event::events::{DatagramReceived, DatagramSent};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber};
use s2n_quic_core::connection::{InitialId, LocalId};
use s2n_quic_core::token::{Context, Format};
use s2n_quic_core::{application, transport};

use super::Settings;
use crate::activity::Activity;
use crate::metrics::{Action, Limit, Tally};
use crate::observed::Counts;
use crate::peer::Peer;
use crate::slots::{Number, Of, Slot, Slots};

/// Handshakes and connections of a listener.
pub(super) struct Load {
    handshakes: AtomicUsize,
    by_peer: Mutex<HashMap<Peer, usize>>,
    max_handshakes: Number,
    slots: Arc<Slots>,
    tally: Tally,
}

impl Load {
    pub(super) fn new(settings: &Settings, tally: Tally) -> Self {
        let number = connections(settings);
        Self {
            handshakes: AtomicUsize::new(0),
            by_peer: Mutex::default(),
            max_handshakes: Number::of_handshakes(settings.max_handshakes, number),
            slots: Slots::new(Of::Connections, number, tally.clone()),
            tally,
        }
    }

    /// Registers a handshake until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>, peer: SocketAddr) -> Going {
        let peer = Peer::of(peer.ip());
        self.handshakes.fetch_add(1, Ordering::Relaxed);
        *self.by_peer().entry(peer).or_default() += 1;
        Going { load: self.clone(), peer }
    }

    /// Whether a connection slot is free.
    pub(super) fn has_room(&self, peer: SocketAddr) -> Result<(), Limit> {
        self.slots.has_room(Peer::of(peer.ip()))
    }

    /// Takes a connection slot, if one is free.
    pub(super) fn slot(&self, peer: SocketAddr) -> Result<Slot, Limit> {
        self.slots.enter(Some(Peer::of(peer.ip())), &Arc::new(Activity::new()))
    }

    /// Handshakes of a peer.
    fn of(&self, address: IpAddr) -> usize {
        self.by_peer().get(&Peer::of(address)).copied().unwrap_or_default()
    }

    /// Whether a peer has to try again later.
    fn is_full(&self, address: IpAddr) -> bool {
        let limit = if self.of(address) >= self.max_handshakes.by_peer {
            Limit::HandshakesByPeer
        } else if self.handshakes.load(Ordering::Relaxed) >= self.max_handshakes.all {
            Limit::Handshakes
        } else {
            return false;
        };
        self.tally.count(limit, Action::Refused);
        true
    }

    fn by_peer(&self) -> MutexGuard<'_, HashMap<Peer, usize>> {
        self.by_peer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connections(settings: &Settings) -> Number {
    Number::of(settings.max_connections, Some(settings.connections_by_peer))
}

/// A handshake in progress.
pub(super) struct Going {
    load: Arc<Load>,
    peer: Peer,
}

impl Drop for Going {
    fn drop(&mut self) {
        self.load.handshakes.fetch_sub(1, Ordering::Relaxed);
        if let Entry::Occupied(mut count) = self.load.by_peer().entry(self.peer) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Decides about clients without a token.
pub(super) struct Strangers {
    retry_above: usize,
    /// The same for one peer's handshakes. The source address is not verified yet: a sender with a forged address
    /// must not use up the limit of its real owner.
    retry_above_by_peer: usize,
    max_handshakes: usize,
    max_connections: usize,
    load: Arc<Load>,
}

impl Strangers {
    pub(super) fn new(settings: &Settings, load: Arc<Load>) -> Self {
        let Settings { retry_above, max_handshakes, max_connections, .. } = *settings;
        let part = max_connections / connections(settings).by_peer;
        let retry_above_by_peer = retry_above / part.max(1);
        Self { retry_above, retry_above_by_peer, max_handshakes, max_connections, load }
    }
}

impl Limiter for Strangers {
    fn on_connection_attempt(&mut self, attempt: &ConnectionAttempt<'_>) -> Outcome {
        let address = SocketAddr::from(&attempt.remote_address).ip();
        if attempt.connection_count >= self.max_connections + self.max_handshakes {
            Outcome::close()
        } else if attempt.inflight_handshakes >= self.retry_above
            || self.load.of(address) >= self.retry_above_by_peer
        {
            // RFC 9000, section 8.1.2: a client that answers has proved its address, and the server keeps no state
            // until then.
            Outcome::retry()
        } else {
            Outcome::allow()
        }
    }
}

/// Retry tokens. s2n-quic does not ask a [`Limiter`] about clients with a token, so the last limit is here.
pub(super) struct Tokens(Arc<Load>);

impl Tokens {
    pub(super) fn new(load: Arc<Load>) -> Self {
        Self(load)
    }
}

type Upstream = <address_token::Default as address_token::Provider>::Format;

impl address_token::Provider for Tokens {
    type Format = Limited;
    type Error = <address_token::Default as address_token::Provider>::Error;

    fn start(self) -> Result<Limited, Self::Error> {
        let tokens = address_token::Default::default().start()?;
        Ok(Limited { tokens, load: self.0 })
    }
}

/// s2n-quic's tokens, none of which is valid while there are too many handshakes.
pub(super) struct Limited {
    tokens: Upstream,
    load: Arc<Load>,
}

impl Format for Limited {
    const TOKEN_LEN: usize = Upstream::TOKEN_LEN;

    fn generate_new_token(
        &mut self,
        context: &mut Context<'_>,
        source: &LocalId,
        output: &mut [u8],
    ) -> Option<()> {
        self.tokens.generate_new_token(context, source, output)
    }

    fn generate_retry_token(
        &mut self,
        context: &mut Context<'_>,
        original: &InitialId,
        output: &mut [u8],
    ) -> Option<()> {
        self.tokens.generate_retry_token(context, original, output)
    }

    fn validate_token(&mut self, context: &mut Context<'_>, token: &[u8]) -> Option<InitialId> {
        // No answer: the client sends its packet again, and there may be room then.
        let address = SocketAddr::from(&context.remote_address).ip();
        if self.load.is_full(address) {
            return None;
        }
        self.tokens.validate_token(context, token)
    }
}

/// Counts the bytes of each connection.
pub(super) struct Counting;

impl Subscriber for Counting {
    type ConnectionContext = Arc<Counts>;

    fn create_connection_context(
        &mut self,
        _: &ConnectionMeta,
        _: &ConnectionInfo<'_>,
    ) -> Arc<Counts> {
        Arc::default()
    }

    fn on_datagram_received(
        &mut self,
        counts: &mut Arc<Counts>,
        _: &ConnectionMeta,
        event: &DatagramReceived,
    ) {
        counts.received.fetch_add(event.len.into(), Ordering::Relaxed);
    }

    fn on_datagram_sent(
        &mut self,
        counts: &mut Arc<Counts>,
        _: &ConnectionMeta,
        event: &DatagramSent,
    ) {
        counts.sent.fetch_add(event.len.into(), Ordering::Relaxed);
    }
}

/// Error code that closes a connection. s2n-quic would turn every alert into `handshake_failure`; the real alert
/// helps clients, and tells them no more than over TCP.
pub(super) struct Closing;

impl Formatter for Closing {
    fn format_transport_error(
        &self,
        context: &connection_close_formatter::Context<'_>,
        error: transport::Error,
    ) -> ConnectionClose<'_> {
        if error.try_into_tls_error().is_some() {
            // Only the code, without the reason.
            return transport::Error::new(error.code.as_varint()).into();
        }
        Production.format_transport_error(context, error)
    }

    fn format_application_error(
        &self,
        context: &connection_close_formatter::Context<'_>,
        error: application::Error,
    ) -> ConnectionClose<'_> {
        Production.format_application_error(context, error)
    }

    fn format_early_transport_error(
        &self,
        context: &connection_close_formatter::Context<'_>,
        error: transport::Error,
    ) -> ConnectionClose<'_> {
        self.format_transport_error(context, error)
    }

    fn format_early_application_error(
        &self,
        context: &connection_close_formatter::Context<'_>,
        error: application::Error,
    ) -> ConnectionClose<'_> {
        Production.format_early_application_error(context, error)
    }
}
