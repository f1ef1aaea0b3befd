//! Every key exchange, host key, cipher, MAC and authentication, by the crate's own rows.

use super::pair::{KINDS, Pair, With, host, key, server_config};
use crate::cipher::{CIPHERS, MACS};
use crate::exchange::EXCHANGES;
use crate::signature::ALGORITHMS;
use crate::*;

fn only(
    exchange: &'static str,
    host_key: &'static str,
    cipher: &'static str,
    mac: &'static str,
) -> Algorithms {
    Algorithms {
        key_exchanges: vec![exchange],
        ciphers: vec![cipher],
        macs: vec![mac],
        host_keys: vec![host_key],
    }
}

/// Ciphers with MACs; those that authenticate, once.
fn ciphers() -> Vec<(&'static str, &'static str)> {
    CIPHERS
        .iter()
        .flat_map(|cipher| {
            let macs = if cipher.authenticates() { &MACS[..1] } else { MACS };
            macs.iter().map(|mac| (cipher.name, mac.name))
        })
        .collect()
}

#[test]
fn all_combinations_connect() {
    let host_keys: Vec<_> = ALGORITHMS.iter().filter(|row| !row.hardware).collect();
    let mut withs: Vec<With> = KINDS.map(|kind| With::Key(key(kind), None)).to_vec();
    withs.extend([With::Password, With::Interactive]);
    let mut count = 0;
    for exchange in EXCHANGES {
        for host_key in &host_keys {
            for (cipher, mac) in ciphers() {
                let with = withs[count % withs.len()].clone();
                count += 1;
                let mut config = server_config();
                config.host_keys = KINDS.map(host).into();
                let client = ClientConfig {
                    algorithms: only(exchange.name, host_key.name, cipher, mac),
                    ..ClientConfig::default()
                };
                let mut pair = Pair::new(config, client, with);
                // From one block to several packets.
                pair.message = vec![0x5a; count * 97 % 20_000];
                let what = format!("{} {} {cipher} {mac}", exchange.name, host_key.name);
                pair.check(&what);
                let chosen = pair.negotiations[0].outcome.clone().unwrap();
                assert_eq!((chosen.key_exchange, chosen.host_key), (exchange.name, host_key.name));
                let direction = Direction { cipher, mac: mac_of(cipher, mac) };
                assert_eq!((chosen.to_client, chosen.to_server), (direction, direction));
                assert!(pair.negotiations[0].strict && !pair.negotiations[0].rekey);
            }
        }
    }
    assert_eq!(count, 8 * 7 * 15);
}

fn mac_of(cipher: &str, mac: &'static str) -> Option<&'static str> {
    cipher.ends_with("-ctr").then_some(mac)
}

#[test]
fn every_method_authenticates_under_every_exchange() {
    for exchange in EXCHANGES {
        for kind in KINDS {
            let client = ClientConfig {
                algorithms: Algorithms { key_exchanges: vec![exchange.name], ..Algorithms::all() },
                ..ClientConfig::default()
            };
            let mut pair = Pair::new(server_config(), client, With::Key(key(kind), None));
            pair.check(&format!("{} {kind:?}", exchange.name));
            assert_eq!(pair.attempts.len(), 1);
            assert!(pair.attempts[0].contains("signed: Valid"), "{:?}", pair.attempts);
        }
    }
}

#[test]
fn a_lack_of_common_algorithms_is_told() {
    let lists = |kex: &'static str, host: &'static str, cipher: &'static str, mac: &'static str| {
        only(kex, host, cipher, mac)
    };
    let usual = ("curve25519-sha256", "ssh-ed25519", "aes256-ctr", "hmac-sha2-256");
    for (none, algorithms) in [
        (Disagreement::KeyExchange, lists("ecdh-sha2-nistp521", usual.1, usual.2, usual.3)),
        (Disagreement::HostKey, lists(usual.0, "rsa-sha2-512", usual.2, usual.3)),
        (Disagreement::Cipher, lists(usual.0, usual.1, "aes128-ctr", usual.3)),
        (Disagreement::Mac, lists(usual.0, usual.1, usual.2, "hmac-sha2-512")),
    ] {
        let mut config = server_config();
        config.algorithms = only(usual.0, usual.1, usual.2, usual.3);
        let client = ClientConfig { algorithms, ..ClientConfig::default() };
        let mut pair = Pair::new(config, client, With::Password);
        pair.run();
        assert_eq!(pair.negotiations[0].outcome, Err(none));
        assert!(!pair.negotiations[0].offered.key_exchanges.is_empty());
        let end = pair.server_end.unwrap();
        assert_eq!((end.by_peer, end.reason), (false, Reason::KeyExchangeFailed), "{none:?}");
        // Both sides see it at once.
        assert_eq!(pair.client_end.unwrap().reason, Reason::KeyExchangeFailed);
    }
}
