//! Errors of PKI objects.

/// An error of this crate. The text is for people; it never contains key material.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// The bytes are not the expected DER or PEM object.
    #[error("not a valid {what}: {reason}")]
    Malformed {
        /// What was expected: `certificate`, `certificate request`.
        what: &'static str,
        /// The parser's message.
        reason: String,
    },
    /// A certificate request whose own signature does not verify.
    #[error("the signature on the certificate request is not valid")]
    RequestSignature,
    /// A statement of possession (RFC 9883) that is missing or invalid.
    #[error("the statement of possession of the private key cannot be accepted: {0}")]
    Possession(String),
    /// A key or signature algorithm that the tables lack.
    #[error("the algorithm {0} is not supported")]
    UnsupportedAlgorithm(String),
    /// A public key that is weak, or not encoded as its kind requires.
    #[error("the {kind} public key cannot be used: {reason}")]
    PublicKey {
        /// Kind of key.
        kind: &'static str,
        /// What is wrong, in words for the caller.
        reason: String,
    },
    /// Text that is not a distinguished name.
    #[error("'{0}' is not a distinguished name (RFC 4514), such as CN=Release,O=Example")]
    NotAName(String),
    /// A subject field that cannot be encoded.
    #[error("the subject's {field} cannot be encoded: {reason}")]
    Subject {
        /// AWS's name of the field.
        field: String,
        /// What is wrong, in words for the caller.
        reason: String,
    },
    /// A general name that breaks the syntax of its kind.
    #[error("the {kind} cannot be used: {reason}")]
    Name {
        /// AWS's name of the kind.
        kind: String,
        /// What is wrong, in words for the caller.
        reason: String,
    },
    /// An extension that cannot be encoded, or whose value does not match its identifier.
    #[error("the {what} extension cannot be used: {reason}")]
    Extension {
        /// Its RFC's name.
        what: String,
        /// What is wrong, in words for the caller.
        reason: String,
    },
    /// A template that cannot certify the requested key or names.
    #[error("the template {template} cannot be used: {reason}")]
    Template {
        /// Its name.
        template: &'static str,
        /// What is wrong, in words for the caller.
        reason: String,
    },
    /// A time that X.509 cannot express.
    #[error("the time is outside the years 1970 to 9999")]
    Time,
}

impl PkiError {
    pub(crate) fn malformed(what: &'static str, error: &der::Error) -> Self {
        Self::Malformed { what, reason: error.to_string() }
    }
}
