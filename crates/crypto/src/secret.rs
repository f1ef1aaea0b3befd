//! Bytes that must stay secret: erased on drop, without `Debug`, `Clone` or a serializer.

use zeroize::Zeroizing;

/// Secret bytes of any length.
///
/// Without `Debug`, `Display`, `Clone` and serialization a secret cannot reach a log or a response by accident: code
/// that needs the bytes calls [`Secret::expose`].
///
/// ```
/// use outlast_crypto::Secret;
///
/// let secret = Secret::new(vec![1, 2, 3]);
/// assert_eq!(secret.expose(), [1, 2, 3]);
/// ```
///
/// ```compile_fail
/// println!("{:?}", outlast_crypto::Secret::new(vec![1, 2, 3])); // there is no Debug
/// ```
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of `bytes`; the buffer is erased when the secret is dropped.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Returns the secret bytes.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}
