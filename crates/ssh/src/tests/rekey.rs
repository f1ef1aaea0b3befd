//! Key exchanges while data flows.

use super::pair::{Pair, With, server_config};
use crate::cipher::{CIPHERS, MACS};
use crate::*;

/// Both sides exchange keys by their own counts, so that exchanges begin at the same time, too.
#[test]
fn keys_change_every_64_kib_in_both_directions() {
    let ciphers = CIPHERS.iter().flat_map(|cipher| {
        let macs = if cipher.authenticates() { &MACS[..1] } else { MACS };
        macs.iter().map(|mac| (cipher.name, mac.name))
    });
    for (cipher, mac) in ciphers {
        let algorithms = Algorithms { ciphers: vec![cipher], macs: vec![mac], ..Algorithms::all() };
        let mut config = server_config();
        config.limits.rekey_bytes = 64 * 1024;
        let mut client = ClientConfig { algorithms, ..ClientConfig::default() };
        client.limits.rekey_bytes = 64 * 1024;
        let mut pair = Pair::new(config, client, With::Password);
        pair.piece = 10_000;
        pair.message = (0..2_000_000_u32).map(|at| (at / 7) as u8).collect();
        pair.check(&format!("{cipher} {mac}"));
        assert!(pair.negotiations.len() > 20, "{} exchanges", pair.negotiations.len());
        assert!(pair.negotiations[1..].iter().all(|negotiation| negotiation.rekey));
    }
}

#[test]
fn keys_change_with_time() {
    let mut config = server_config();
    config.limits.rekey_ms = 1000;
    let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
    pair.check("before");
    assert_eq!(pair.server.next_timer(), Some(1000));
    pair.server.on_timer(999);
    pair.run();
    assert_eq!(pair.negotiations.len(), 1);
    pair.now_ms = 1000;
    pair.server.on_timer(1000);
    pair.run();
    assert_eq!(pair.negotiations.len(), 2);
    assert_eq!(pair.server.next_timer(), Some(2000));
}

#[test]
fn an_exchange_has_a_time_limit() {
    let mut config = server_config();
    config.limits.exchange_ms = 500;
    let mut server = Server::new(config.into(), 100);
    assert_eq!(server.next_timer(), Some(600));
    server.on_timer(600);
    assert!(
        matches!(server.poll(), Some(ServerEvent::Disconnected(end)) if end.reason == Reason::ConnectionLost)
    );
    assert_eq!((server.next_timer(), server.poll().is_none()), (None, true));
}

/// A client that is slow to take what was sent before has more time for its new keys than for its first ones.
#[test]
fn new_keys_have_their_own_time_limit() {
    let mut config = server_config();
    config.limits.rekey_ms = 1000;
    config.limits.exchange_ms = 500;
    config.limits.rekeying_ms = 5000;
    let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
    pair.check("before");
    pair.now_ms = 1000;
    pair.server.on_timer(1000);
    // The client does not answer.
    assert_eq!(pair.server.next_timer(), Some(6000));
    pair.server.on_timer(5999);
    assert!(pair.server.poll().is_none());
    pair.server.on_timer(6000);
    assert!(
        matches!(pair.server.poll(), Some(ServerEvent::Disconnected(end)) if end.reason == Reason::ConnectionLost)
    );
}

/// The sequence number wraps around; without strict key exchange it is never reset.
#[test]
fn sequence_numbers_wrap() {
    for cipher in ["aes128-ctr", "chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com"] {
        let algorithms = Algorithms { ciphers: vec![cipher], ..Algorithms::all() };
        let client = ClientConfig { algorithms, ..ClientConfig::default() };
        let mut pair = Pair::new(server_config(), client, With::Password);
        pair.message.clear();
        while pair.channel.is_none() {
            assert!(pair.turn());
        }
        // Nothing is under way now, or is by both sides' counts.
        while pair.turn() {}
        pair.server.transport.set_sequences(u32::MAX - 2);
        pair.client.transport.set_sequences(u32::MAX - 2);
        for round in 0..6 {
            assert_eq!(pair.server.keepalive(), 1, "{cipher} {round}");
            while pair.turn() {}
        }
        assert_eq!((pair.server_end, pair.client_end), (None, None), "{cipher}");
    }
}
