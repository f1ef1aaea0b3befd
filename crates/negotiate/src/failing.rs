//! Clients that fail with something that they offer.

use outlast_crypto::schemes::{Kind, Scheme};

use crate::offer::{Offer, Transport};

/// A client that must not get what it offers.
#[derive(Debug)]
pub struct Failing {
    /// Its name, and what was observed.
    pub seen: &'static str,
    /// Transport on which it fails.
    pub transport: Transport,
    /// Kind of certificates and signatures with which it fails.
    pub kind: Kind,
    /// Extensions that only its ClientHello contains: one of these.
    extensions: &'static [u16],
}

/// ALPS (draft-vvv-tls-alps), under its old code point and its new one: only Chromium sends it.
pub const APPLICATION_SETTINGS: &[u16] = &[17513, 17613];

/// All such clients. A row is removed when the client has been seen to work.
pub static FAILING: &[Failing] = &[Failing {
    seen: "Chromium 156 offers ML-DSA over QUIC and ends the connection when it gets a leaf with it",
    transport: Transport::Quic,
    kind: Kind::MlDsa,
    extensions: APPLICATION_SETTINGS,
}];

impl Failing {
    /// Whether the client with this offer fails with signatures of this scheme.
    pub fn fails(&self, offer: &Offer, scheme: &Scheme) -> bool {
        self.transport == offer.transport
            && self.kind == scheme.kind
            && self.extensions.iter().any(|kind| offer.extensions.contains(kind))
    }
}
