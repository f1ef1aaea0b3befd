//! What a call has to ask somebody outside before it can answer: an identity provider whose configuration is tested, or the
//! server of a connector.
//!
//! An operation opens no connection. It says what to ask ([`Outside::ask`]) and ends; the server asks, and prepares the call
//! again with the reply. So no thread and no turn of a principal waits for a peer outside.

use outlast_domain::identity::{Permit, action};
use outlast_domain::transfer::connector::{ConnectionFacts, Connector, Endpoint};
use outlast_domain::transfer::{Question, TransferError};

use crate::provider::ProviderReply;
use crate::wire::ApiError;

/// What to ask. There is no `Debug`: a password is among it.
pub enum Errand {
    /// An identity provider, about a user.
    Provider {
        /// The server whose provider it is.
        server_arn: String,
        /// What to ask.
        question: Question,
    },
    /// The server of a connector: log in and out.
    Connection(Box<Endpoint>),
}

impl Errand {
    /// The reply for a call whose caller has hung up before there was another.
    pub fn unheard(&self) -> Reply {
        const REASON: &str = "the caller hung up before there was an answer";
        match self {
            Self::Provider { .. } => Reply::Provider(Err(REASON.to_owned())),
            Self::Connection(_) => Reply::Connection(Err(ConnectionFailure {
                message: REASON.to_owned(),
                host_key: None,
            })),
        }
    }
}

/// The outcome. There is no `Debug`: a provider may answer with anything.
pub enum Reply {
    /// The provider's answer, or why there is none, for people.
    Provider(Result<ProviderReply, String>),
    /// What the test of a connection has learned, or why there is no connection.
    Connection(Result<ConnectionFacts, ConnectionFailure>),
    /// Nobody was asked: there are too many other errands.
    Busy,
}

/// Why there is no connection to the server of a connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionFailure {
    /// `StatusMessage`, for the caller.
    pub message: String,
    /// The server's host key as a line `type base64`, if it was seen and is not among those that are trusted.
    pub host_key: Option<String>,
}

/// What a call needs before it can answer.
pub(crate) enum Need {
    /// An errand.
    Errand(Errand),
    /// An errand to the server of a connector, once the connector's secret was read.
    Connection(Box<Connector>),
}

/// The reply that a call has, or what it needs.
#[derive(Default)]
pub struct Outside<'a> {
    reply: Option<&'a Reply>,
    need: Option<Need>,
}

impl<'a> Outside<'a> {
    pub(crate) fn with(reply: Option<&'a Reply>) -> Self {
        Self { reply, need: None }
    }

    /// The reply. A call that has none yet must end with the error: it is run again.
    pub(crate) fn ask(&mut self, errand: impl FnOnce() -> Errand) -> Result<&'a Reply, ApiError> {
        match self.reply {
            Some(Reply::Busy) => Err(throttled()),
            Some(reply) => Ok(reply),
            None => {
                self.need = Some(Need::Errand(errand()));
                Err(unavailable())
            }
        }
    }

    /// The result of a test of this connector, which the permit allows. The same for a call that has none yet.
    pub(crate) fn test(
        &mut self,
        connector: &Connector,
        permit: &Permit<action::transfer::TestConnection>,
    ) -> Result<&'a Result<ConnectionFacts, ConnectionFailure>, ApiError> {
        permit.opens(&connector.arn()).map_err(TransferError::from)?;
        match self.reply {
            Some(Reply::Connection(result)) => return Ok(result),
            Some(Reply::Busy) => return Err(throttled()),
            Some(Reply::Provider(_)) | None => {}
        }
        self.need = Some(Need::Connection(Box::new(connector.clone())));
        Err(unavailable())
    }

    pub(crate) fn needs_something(&self) -> bool {
        self.need.is_some()
    }

    pub(crate) fn need(&mut self) -> Option<Need> {
        self.need.take()
    }
}

/// The answer while too many others are asked. Every operation of AWS may answer so, and SDKs try again.
fn throttled() -> ApiError {
    ApiError::new(
        "ThrottlingException",
        "Rate exceeded: too many servers outside are being asked, for you or for all; try again",
    )
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
