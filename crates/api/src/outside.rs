//! What a call has to ask somebody outside before it can answer: an identity provider whose configuration is tested, or the
//! server of a connector.
//!
//! An operation opens no connection. It says what to ask ([`Outside::ask`]) and ends; the server asks, and prepares the call
//! again with the reply. So no thread and no turn of a principal waits for a peer outside.

use outlast_domain::transfer::Question;
use outlast_domain::transfer::connector::{ConnectionFacts, Endpoint};

use crate::provider::ProviderReply;
use crate::wire::ApiError;

/// What to ask. There is no `Debug`: a password is among it.
pub enum Errand {
    /// An identity provider, about a user.
    Provider(Question),
    /// The server of a connector: log in and out.
    Connection(Box<Endpoint>),
}

/// The outcome. There is no `Debug`: a provider may answer with anything.
pub enum Reply {
    /// The provider's answer, or why there is none, for people.
    Provider(Result<ProviderReply, String>),
    /// What the test of a connection has learned, or why there is no connection.
    Connection(Result<ConnectionFacts, ConnectionFailure>),
}

/// Why there is no connection to the server of a connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionFailure {
    /// `StatusMessage`, for the caller.
    pub message: String,
    /// The server's host key as a line `type base64`, if it was seen and is not among those that are trusted.
    pub host_key: Option<String>,
}

/// The reply that a call has, or the errand that it needs.
#[derive(Default)]
pub struct Outside<'a> {
    reply: Option<&'a Reply>,
    errand: Option<Errand>,
}

impl<'a> Outside<'a> {
    pub(crate) fn with(reply: Option<&'a Reply>) -> Self {
        Self { reply, errand: None }
    }

    /// The reply. A call that has none yet must end with the error: it is run again.
    pub(crate) fn ask(&mut self, errand: impl FnOnce() -> Errand) -> Result<&'a Reply, ApiError> {
        self.reply.ok_or_else(|| {
            self.errand = Some(errand());
            unavailable()
        })
    }

    pub(crate) fn has_errand(&self) -> bool {
        self.errand.is_some()
    }

    pub(crate) fn errand(&mut self) -> Option<Errand> {
        self.errand.take()
    }
}

/// The answer where nobody can ask.
fn unavailable() -> ApiError {
    let mut error = ApiError::new(
        "ServiceUnavailableException",
        "The request needs a connection to a server outside, which could not be made; try again",
    );
    error.status = 500;
    error
}
