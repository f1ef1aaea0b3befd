//! ECDH on P-521, which rustls lacks: AWS-LC's key agreement behind rustls' interface.

use aws_lc_rs::agreement::{
    ECDH_P521, EphemeralPrivateKey, PublicKey, UnparsedPublicKey, agree_ephemeral,
};
use aws_lc_rs::rand::SystemRandom;
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};

/// secp521r1 (0x0019), RFC 8446 (section 4.2.8.2) and RFC 8422.
pub static SECP521R1: P521 = P521;

/// Key exchange on P-521.
#[derive(Debug)]
pub struct P521;

/// Length of an uncompressed point in bytes.
const POINT_LEN: usize = 1 + 2 * 66;

impl SupportedKxGroup for P521 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let key = EphemeralPrivateKey::generate(&ECDH_P521, &SystemRandom::new())
            .map_err(|_| GetRandomFailed)?;
        let share = key.compute_public_key().map_err(|_| GetRandomFailed)?;
        Ok(Box::new(Active { key, share }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }

    fn fips(&self) -> bool {
        // SP 800-56A (revision 3), appendix D names P-521; only AWS-LC knows whether its module is validated.
        aws_lc_rs::try_fips_mode().is_ok()
    }
}

struct Active {
    key: EphemeralPrivateKey,
    share: PublicKey,
}

impl ActiveKeyExchange for Active {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        // AWS-LC also takes compressed points, which TLS 1.3 forbids (RFC 8446, section 4.2.8.2). AWS-LC checks that
        // the point is on the curve.
        if peer.len() != POINT_LEN || peer.first() != Some(&0x04) {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        let peer = UnparsedPublicKey::new(&ECDH_P521, peer);
        agree_ephemeral(self.key, peer, PeerMisbehaved::InvalidKeyShare.into(), |secret| {
            Ok(SharedSecret::from(secret))
        })
    }

    fn pub_key(&self) -> &[u8] {
        self.share.as_ref()
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}
