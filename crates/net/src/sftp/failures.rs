//! Tries of a connection to log in that failed, and their event in the audit trail.

use std::sync::Arc;

use outlast_api::service::sftp::{AuthFailure, Connection as Described};
use outlast_domain::transfer::Refusal;

use super::{SftpServer, journal};

/// A failed try.
pub(super) struct Failure {
    pub(super) user: String,
    pub(super) method: &'static str,
    pub(super) refusal: Refusal,
    pub(super) gravity: Gravity,
}

/// What a failed try says about who is trying, from little to much.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gravity {
    /// A method that the server does not have.
    NotServed,
    /// The offer of a key: clients ask for all that they have.
    Offered,
    /// A certificate that does not count, or something that cannot be used.
    Unusable,
    /// A password, or a key with its signature.
    Proof,
    /// A signature that is not valid.
    Signature,
}

/// What failed in a connection.
#[derive(Default)]
pub(super) struct Failures {
    /// The first of the gravest ones.
    kept: Option<Failure>,
    /// The methods, each once.
    methods: Vec<&'static str>,
    tries: u32,
}

impl Failures {
    pub(super) fn add(&mut self, failure: Failure) {
        self.tries += 1;
        if !self.methods.contains(&failure.method) {
            self.methods.push(failure.method);
        }
        if self.kept.as_ref().is_none_or(|kept| failure.gravity > kept.gravity) {
            self.kept = Some(failure);
        }
    }

    /// Whether they matter although the user got in afterwards. Clients offer keys and certificates until the server takes one: that is no
    /// failure.
    pub(super) fn matter_after_login(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.gravity >= Gravity::Proof)
    }

    /// Records them, if there are any.
    pub(super) async fn record(self, server: Arc<SftpServer>, described: Arc<Described>) {
        let Self { kept: Some(Failure { user, method, refusal, .. }), methods, tries } = self
        else {
            return;
        };
        let shown: String = user.chars().take(100).collect();
        tracing::info!(peer = %described.source_ip, user = ?shown, method, reason = %refusal, tries, "an SFTP login was refused");
        let failure =
            AuthFailure { user: &user, method, refusal: &refusal, methods: &methods, tries };
        let event = server.service.sftp_auth_failed(&described, &failure, (server.clock)());
        let outcome = match event {
            Ok(Some(transaction)) => journal::commit(&server.service, transaction).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = outcome {
            tracing::error!(error, "a refused SFTP login could not be recorded");
        }
    }
}
