//! What strangers may cost: handshakes and connections at a time, and what they are told when they must go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Settings;
use crate::observed::Counts;

/// Handshakes and connections of a listener.
pub(super) struct Load {
    handshakes: AtomicUsize,
    max_handshakes: usize,
    places: Arc<Semaphore>,
}

impl Load {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            handshakes: AtomicUsize::new(0),
            max_handshakes: settings.max_handshakes,
            places: Arc::new(Semaphore::new(settings.max_connections)),
        }
    }

    /// A handshake begins, and ends when what this gives is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Going {
        self.handshakes.fetch_add(1, Ordering::Relaxed);
        Going(self.clone())
    }

    /// A place among the connections, if there is one.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    fn is_full(&self) -> bool {
        self.handshakes.load(Ordering::Relaxed) >= self.max_handshakes
    }
}

/// A handshake that goes on.
pub(super) struct Going(Arc<Load>);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.handshakes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Decides on clients that come without a token.
pub(super) struct Strangers {
    retry_above: usize,
    max_handshakes: usize,
    max_connections: usize,
}

impl Strangers {
    pub(super) fn new(settings: &Settings) -> Self {
        let Settings { retry_above, max_handshakes, max_connections, .. } = *settings;
        Self { retry_above, max_handshakes, max_connections }
    }
}

impl Limiter for Strangers {
    fn on_connection_attempt(&mut self, attempt: &ConnectionAttempt<'_>) -> Outcome {
        if attempt.connection_count >= self.max_connections + self.max_handshakes {
            Outcome::close()
        } else if attempt.inflight_handshakes >= self.retry_above {
            // RFC 9000, section 8.1.2: who answers is where it says, and nothing is remembered until then.
            Outcome::retry()
        } else {
            Outcome::allow()
        }
    }
}

/// Tokens of Retry. s2n-quic asks no [`Limiter`] about a client that has one, so the last limit is here.
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

/// s2n-quic's tokens, of which none is good while there are too many handshakes.
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
        // Not answered: the client sends its packet again, and there may be room then.
        if self.load.is_full() { None } else { self.tokens.validate_token(context, token) }
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

/// What a client is told when its connection is closed. s2n-quic would turn each alert into `handshake_failure`; which
/// alert it is helps clients, and tells them no more than over TCP.
pub(super) struct Closing;

impl Formatter for Closing {
    fn format_transport_error(
        &self,
        context: &connection_close_formatter::Context<'_>,
        error: transport::Error,
    ) -> ConnectionClose<'_> {
        if error.try_into_tls_error().is_some() {
            // Without its reason: only the code.
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
