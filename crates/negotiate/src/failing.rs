//! Clients that offer what they then fail on.

use outlast_crypto::schemes::{Kind, Scheme};

use crate::offer::{Offer, Transport};

/// A client that must not be given what it offers.
#[derive(Debug)]
pub struct Failing {
    /// Who it is, and what was seen.
    pub seen: &'static str,
    /// Where it fails.
    pub transport: Transport,
    /// On certificates and signatures of this kind.
    pub kind: Kind,
    /// What its ClientHello has that those of others do not: one of these extensions.
    extensions: &'static [u16],
}

/// ALPS (draft-vvv-tls-alps), under its old code point and its new one: only Chromium sends it.
pub const APPLICATION_SETTINGS: &[u16] = &[17513, 17613];

/// Every such client. A row goes when the client has been seen to work.
pub static FAILING: &[Failing] = &[Failing {
    seen: "Chromium 156 offers ML-DSA over QUIC and ends the connection when it gets a leaf with it",
    transport: Transport::Quic,
    kind: Kind::MlDsa,
    extensions: APPLICATION_SETTINGS,
}];

impl Failing {
    /// Whether the client that offers this fails on signatures of this scheme.
    pub fn fails(&self, offer: &Offer, scheme: &Scheme) -> bool {
        self.transport == offer.transport
            && self.kind == scheme.kind
            && self.extensions.iter().any(|kind| offer.extensions.contains(kind))
    }
}
