//! Mechanisms as key exchanges of TLS 1.3: the client's share is a public key, the server's a ciphertext
//! (draft-ietf-tls-hybrid-design, section 3.2); in hybrids the curve's part comes first, in the shares and in the
//! secret.

use outlast_crypto::groups::Group;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

use super::kem::Kem;
use crate::error::LabError;

/// A mechanism as a group, alone or with a curve.
#[derive(Debug)]
pub struct KemGroup {
    /// The code point.
    pub code_point: u16,
    /// The curve of a hybrid.
    pub curve: Option<&'static Group>,
    /// The mechanism.
    pub kem: &'static Kem,
    /// Whether two bytes of length precede each part.
    pub length_prefixes: bool,
}

impl KemGroup {
    /// Bytes of the client's share.
    pub fn client_share_len(&self) -> usize {
        self.overhead()
            + self.curve.map_or(0, |curve| curve.client_share_len)
            + self.kem.public_key_len
    }

    /// Bytes of the server's share.
    pub fn server_share_len(&self) -> usize {
        self.overhead()
            + self.curve.map_or(0, |curve| curve.server_share_len)
            + self.kem.ciphertext_len
    }

    fn overhead(&self) -> usize {
        if self.length_prefixes { 2 + 2 } else { 0 }
    }

    fn join(&self, curve: &[u8], kem: &[u8]) -> Vec<u8> {
        if !self.length_prefixes {
            return [curve, kem].concat();
        }
        let length = |part: &[u8]| u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes();
        [length(curve).as_slice(), curve, &length(kem), kem].concat()
    }

    /// Splits a share into the curve's part and the mechanism's.
    fn split<'a>(
        &self,
        share: &'a [u8],
        curve: usize,
        kem: usize,
    ) -> Result<(&'a [u8], &'a [u8]), Error> {
        let invalid = || Error::from(PeerMisbehaved::InvalidKeyShare);
        let part = |share: &'a [u8], length: usize| -> Result<(&'a [u8], &'a [u8]), Error> {
            let share = if self.length_prefixes {
                let (prefix, rest) = share.split_at_checked(2).ok_or_else(invalid)?;
                let told = prefix.iter().fold(0, |sum, byte| sum * 256 + usize::from(*byte));
                if told != length {
                    return Err(invalid());
                }
                rest
            } else {
                share
            };
            share.split_at_checked(length).ok_or_else(invalid)
        };
        let (point, rest) = part(share, curve)?;
        let (kem, rest) = part(rest, kem)?;
        if rest.is_empty() { Ok((point, kem)) } else { Err(invalid()) }
    }
}

fn general(error: LabError) -> Error {
    Error::General(error.to_string())
}

impl SupportedKxGroup for KemGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let curve = self.curve.map(|curve| curve.key_exchange.start()).transpose()?;
        let (public_key, secret_key) = self.kem.mechanism.generate().map_err(general)?;
        let point = curve.as_ref().map_or(&[][..], |curve| curve.pub_key());
        let share = self.join(point, &public_key);
        // A row lives as long as the program; an exchange copies its references.
        let group = Self { ..*self };
        Ok(Box::new(Active { group, curve, secret_key, share }))
    }

    fn start_and_complete(&self, client_share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let point_len = self.curve.map_or(0, |curve| curve.client_share_len);
        let (point, public_key) = self.split(client_share, point_len, self.kem.public_key_len)?;
        let curve =
            self.curve.map(|curve| curve.key_exchange.start_and_complete(point)).transpose()?;
        let (ciphertext, secret) = self.kem.mechanism.encapsulate(public_key).map_err(general)?;
        let (point, first) = match &curve {
            Some(curve) => (curve.pub_key.as_slice(), curve.secret.secret_bytes()),
            None => (&[][..], &[][..]),
        };
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: self.join(point, &ciphertext),
            secret: SharedSecret::from([first, &secret].concat()),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::from(self.code_point)
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

struct Active {
    group: KemGroup,
    curve: Option<Box<dyn ActiveKeyExchange>>,
    secret_key: Vec<u8>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Active {
    fn complete(self: Box<Self>, server_share: &[u8]) -> Result<SharedSecret, Error> {
        let kem = self.group.kem;
        let point_len = self.group.curve.map_or(0, |curve| curve.server_share_len);
        let (point, ciphertext) = self.group.split(server_share, point_len, kem.ciphertext_len)?;
        let first = self.curve.map(|curve| curve.complete(point)).transpose()?;
        let secret = kem.mechanism.decapsulate(&self.secret_key, ciphertext).map_err(general)?;
        let first = first.as_ref().map_or(&[][..], SharedSecret::secret_bytes);
        Ok(SharedSecret::from([first, &secret].concat()))
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.group.name()
    }
}
