//! Bytes that must not leak: erased when dropped, and without `Debug`, `Clone` or any serializer.

use zeroize::Zeroizing;

/// Secret bytes of any length.
///
/// There is no `Debug`, no `Display`, no `Clone` and no serialization, so a secret cannot reach a log or
/// a response by accident: whoever wants the bytes says [`Secret::expose`].
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

    /// The bytes themselves.
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
