//! Idempotency tokens of the operations that create resources.

use serde::{Deserialize, Serialize};

use crate::acm::AcmError;
use crate::arn::Scope;
use crate::work::Work;
use crate::{Fault, limits};

/// A token that was used.
#[derive(Serialize, Deserialize)]
pub(super) struct Token {
    /// Digest of the whole request.
    request: String,
    /// Id of the resource that the request created.
    id: String,
    used_ms: i64,
}

impl Token {
    /// Whether it is too old to count.
    pub fn is_old(&self, now_ms: i64) -> bool {
        self.used_ms + limits::ACME_TOKEN_MS < now_ms
    }
}

/// A token of a request, with the digest of the whole request.
#[derive(Debug, Clone)]
pub struct Idempotency {
    /// `IdempotencyToken`, if there is one.
    pub token: Option<String>,
    /// Digest of the request.
    pub request: String,
}

impl Idempotency {
    fn record_key(&self, scope: &Scope, operation: &str) -> Option<String> {
        let digest = outlast_crypto::digests::sha256(self.token.as_ref()?.as_bytes());
        Some(format!(
            "acme/token/{}/{}/{operation}/{}",
            scope.account,
            scope.region,
            hex::encode(digest)
        ))
    }

    /// The id that the same request created with the same token, if that was recently.
    pub(super) fn earlier(
        &self,
        work: &mut Work<'_>,
        scope: &Scope,
        operation: &str,
    ) -> Result<Option<String>, AcmError> {
        let Some(record_key) = self.record_key(scope, operation) else { return Ok(None) };
        let Some(token) = work.get::<Token>(&record_key)? else { return Ok(None) };
        if token.is_old(work.now_ms()) {
            return Ok(None);
        }
        if token.request != self.request {
            return Err(AcmError::Conflict(
                "The idempotency token was used with other parameters; use another token.".into(),
            ));
        }
        Ok(Some(token.id))
    }

    pub(super) fn remember(
        &self,
        work: &mut Work<'_>,
        scope: &Scope,
        operation: &str,
        id: &str,
    ) -> Result<(), Fault> {
        let Some(record_key) = self.record_key(scope, operation) else { return Ok(()) };
        let used_ms = work.now_ms();
        work.put(&record_key, &Token { request: self.request.clone(), id: id.to_owned(), used_ms })
    }
}
