//! How much strangers may have signed: a rate for each peer, below one for all.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use lru::LruCache;
use outlast_domain::limits::{self, Rate};

use super::bucket::Bucket;
use super::shared::lock;

/// The rates, and what is left of them.
pub(super) struct Rates {
    of_peer: Rate,
    all: Mutex<Bucket>,
    peers: Mutex<LruCache<IpAddr, Bucket>>,
}

impl Rates {
    /// A rate for all, and one for each peer.
    pub(super) fn new(all: Rate, of_peer: Rate) -> Self {
        let peers = NonZeroUsize::new(limits::PEERS_REMEMBERED).unwrap_or(NonZeroUsize::MIN);
        Self { of_peer, all: Mutex::new(Bucket::new(all)), peers: Mutex::new(LruCache::new(peers)) }
    }

    /// Whether another signature may be made for this peer now.
    pub(super) fn admit(&self, peer: IpAddr, now_ms: i64) -> bool {
        let own = lock(&self.peers)
            .get_or_insert_mut(prefix(peer), || Bucket::new(self.of_peer))
            .take(now_ms);
        // A peer that asks too much takes nothing away from the others.
        own && lock(&self.all).take(now_ms)
    }

    /// What [`Self::admit`] would answer now, without taking a token.
    pub(super) fn would_admit(&self, peer: IpAddr, now_ms: i64) -> bool {
        let has_one = |bucket: &Bucket| bucket.has_one(now_ms);
        lock(&self.peers).peek(&prefix(peer)).is_none_or(has_one) && has_one(&lock(&self.all))
    }
}

/// Identifies a peer: an IPv4 address, or the /64 network of an IPv6 address.
pub(super) fn prefix(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => {
            let high = u128::from(v6) & !u128::from(u64::MAX);
            IpAddr::V6(high.into())
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_host_and_not_each_of_its_addresses() {
        let parse = |text: &str| text.parse::<IpAddr>().unwrap_or_else(|_| panic!("{text}"));
        for (one, other, same) in [
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            assert_eq!(prefix(parse(one)) == prefix(parse(other)), same, "{one} {other}");
        }
    }
}
