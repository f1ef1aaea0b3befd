//! A hybrid group that rustls does not ship, composed from two groups that it does.
//!
//! It contains no cryptography: it splits and joins key shares as RFC 10024 lays them out.

use rustls::crypto::aws_lc_rs::kx_group;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// SecP384r1MLKEM1024 (0x11ed), RFC 10024: the curve's part comes first in the key shares and in the shared secret.
pub static SECP384R1_MLKEM1024: CurveFirst = CurveFirst {
    name: NamedGroup::Unknown(0x11ed),
    curve: || kx_group::SECP384R1,
    curve_share_len: 97,
    kem: || kx_group::MLKEM1024,
    client_kem_len: 1568,
    server_kem_len: 1568,
};

/// A hybrid with the elliptic-curve part before the ML-KEM part.
pub struct CurveFirst {
    name: NamedGroup,
    curve: fn() -> &'static dyn SupportedKxGroup,
    /// Length of an uncompressed point in bytes.
    curve_share_len: usize,
    kem: fn() -> &'static dyn SupportedKxGroup,
    /// Length of an ML-KEM encapsulation key in bytes.
    client_kem_len: usize,
    /// Length of an ML-KEM ciphertext in bytes.
    server_kem_len: usize,
}

impl std::fmt::Debug for CurveFirst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

impl CurveFirst {
    fn split<'a>(&self, share: &'a [u8], kem_len: usize) -> Result<(&'a [u8], &'a [u8]), Error> {
        if share.len() != self.curve_share_len + kem_len {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        let (point, kem) = share.split_at(self.curve_share_len);
        // SEC 1, 2.3.3: TLS 1.3 allows only the uncompressed form (0x04) (RFC 8446, 4.2.8.2).
        if point.first() != Some(&0x04) {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok((point, kem))
    }
}

impl SupportedKxGroup for CurveFirst {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let curve = (self.curve)().start()?;
        let kem = (self.kem)().start()?;
        let share = [curve.pub_key(), kem.pub_key()].concat();
        Ok(Box::new(Active {
            name: self.name,
            curve_share_len: self.curve_share_len,
            server_len: self.curve_share_len + self.server_kem_len,
            curve,
            kem,
            share,
        }))
    }

    fn start_and_complete(&self, client_share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (point, encapsulation_key) = self.split(client_share, self.client_kem_len)?;
        let curve = (self.curve)().start_and_complete(point)?;
        let kem = (self.kem)().start_and_complete(encapsulation_key)?;
        Ok(CompletedKeyExchange {
            group: self.name,
            pub_key: [curve.pub_key, kem.pub_key].concat(),
            secret: join(&curve.secret, &kem.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        self.name
    }

    fn fips(&self) -> bool {
        (self.curve)().fips() && (self.kem)().fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

struct Active {
    name: NamedGroup,
    curve_share_len: usize,
    server_len: usize,
    curve: Box<dyn ActiveKeyExchange>,
    kem: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Active {
    fn complete(self: Box<Self>, server_share: &[u8]) -> Result<SharedSecret, Error> {
        if server_share.len() != self.server_len {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        let (point, ciphertext) = server_share.split_at(self.curve_share_len);
        let curve = self.curve.complete(point)?;
        let kem = self.kem.complete(ciphertext)?;
        Ok(join(&curve, &kem))
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.curve.group(), self.curve.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        self.curve.complete(peer)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.name
    }
}

fn join(curve: &SharedSecret, kem: &SharedSecret) -> SharedSecret {
    SharedSecret::from([curve.secret_bytes(), kem.secret_bytes()].concat())
}
