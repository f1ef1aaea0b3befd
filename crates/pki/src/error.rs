//! What can be wrong with a PKI object.

/// An error of this crate. The text is for people; it never contains key material.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// The bytes are not the DER or PEM object they should be.
    #[error("not a valid {what}: {reason}")]
    Malformed {
        /// What was expected: `certificate`, `certificate request`.
        what: &'static str,
        /// What the parser said.
        reason: String,
    },
    /// A certificate request whose own signature does not verify.
    #[error("the signature on the certificate request is not valid")]
    RequestSignature,
    /// A statement of possession (RFC 9883) that is missing, or that does not hold.
    #[error("the statement of possession of the private key cannot be accepted: {0}")]
    Possession(String),
    /// A key or signature algorithm without a row in the tables.
    #[error("the algorithm {0} is not supported")]
    UnsupportedAlgorithm(String),
    /// A public key that is weak, or not encoded as its kind wants it.
    #[error("the {kind} public key cannot be used: {reason}")]
    PublicKey {
        /// Kind of key.
        kind: &'static str,
        /// What is wrong with it, in words for whoever gave it.
        reason: String,
    },
    /// A subject field that cannot be encoded.
    #[error("the subject's {field} cannot be encoded: {reason}")]
    Subject {
        /// AWS's name of the field.
        field: String,
        /// What is wrong with it, in words for whoever gave it.
        reason: String,
    },
    /// A general name that breaks the syntax of its kind.
    #[error("the {kind} cannot be used: {reason}")]
    Name {
        /// AWS's name of the kind.
        kind: String,
        /// What is wrong with it, in words for whoever gave it.
        reason: String,
    },
    /// An extension that cannot be encoded, or whose value is not what its identifier says.
    #[error("the {what} extension cannot be used: {reason}")]
    Extension {
        /// Its RFC's name.
        what: String,
        /// What is wrong with it, in words for whoever gave it.
        reason: String,
    },
    /// A template that cannot certify the key or the names that were asked for.
    #[error("the template {template} cannot be used: {reason}")]
    Template {
        /// Its name.
        template: &'static str,
        /// What is wrong with it, in words for whoever gave it.
        reason: String,
    },
    /// A time outside what X.509 can say.
    #[error("the time is outside the years 1970 to 9999")]
    Time,
}

impl PkiError {
    pub(crate) fn malformed(what: &'static str, error: &der::Error) -> Self {
        Self::Malformed { what, reason: error.to_string() }
    }
}
