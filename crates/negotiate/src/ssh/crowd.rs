//! Common SSH clients, for explanations and differences of policies.
//!
//! `crowd.txt` has what these versions sent with their defaults: name, identification string, key exchange methods,
//! host key algorithms, ciphers, MACs, compressions, a line each. All of them offer the same in both directions.

use std::sync::LazyLock;

use super::offer::SshOffer;

/// A kind of client.
#[derive(Debug)]
pub struct SshClient {
    /// Name in explanations.
    pub name: &'static str,
    /// Its offer.
    pub offer: SshOffer,
}

/// All kinds, the best protected first.
pub static CROWD: LazyLock<Vec<SshClient>> = LazyLock::new(|| {
    let read = |row: &'static str| {
        let mut lines = row.lines();
        let mut next = || lines.next().unwrap_or_default();
        let (name, identification) = (next(), next());
        let [methods, host_keys, ciphers, macs, compressions] = std::array::from_fn(|_| next());
        let lists = [methods, host_keys, ciphers, ciphers, macs, macs, compressions, compressions];
        SshClient { name, offer: SshOffer::new(identification, lists) }
    };
    include_str!("crowd.txt").split("\n\n").map(read).collect()
});
