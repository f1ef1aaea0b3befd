//! The revocation of a signer whose certificate is trusted by itself.

use const_oid::ObjectIdentifier;

use super::{SignedMessage, Status, Time, Verifier, VerifyError};
use crate::certificate::Certificate;
use crate::path::pinned_standing;

impl SignedMessage {
    /// What the evidence says of a certificate that is trusted by itself: see [`pinned_standing`]. Nothing if no evidence
    /// is about it. The CA above it must be among the verifier's certificates: one in the message proves nothing.
    pub(crate) fn status_of_pinned(
        &self,
        certificate: &Certificate,
        time: &Time,
        purpose: ObjectIdentifier,
        verifier: &Verifier<'_>,
    ) -> Result<Vec<Status>, VerifyError> {
        let authorities: Vec<_> =
            verifier.roots.iter().chain(verifier.certificates).cloned().collect();
        let standing = self.with_check(time, purpose, verifier, |check| {
            pinned_standing(certificate, &authorities, check)
        })?;
        let status = |standing| Status {
            certificate: certificate.clone(),
            evidence: self.evidence(&standing),
            standing,
        };
        Ok(standing.map(status).into_iter().collect())
    }
}
