//! What a session does beyond its algorithms: pieces of any size, windows, host keys, tries to authenticate.

use outlast_crypto::Secret;

use super::pair::{PASSWORD, Pair, With, decide, host, key, server_config};
use crate::*;

#[test]
fn bytes_may_come_one_by_one() {
    for piece in [1, 2, 3, 7, 16, 35] {
        let mut pair = Pair::usual();
        pair.piece = piece;
        pair.message = (0..5000_u32).map(|at| at as u8).collect();
        pair.check(&format!("pieces of {piece}"));
    }
}

/// A caller that reads into the server's input gets the same, in pieces of any size, while keys change.
#[test]
fn the_input_may_be_filled_by_the_caller() {
    for piece in [37, 1000, 40_000, 1 << 20] {
        let mut config = server_config();
        config.limits.rekey_bytes = 16 * 1024;
        let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
        (pair.piece, pair.fills) = (piece, true);
        pair.message = (0..100_000_u32).map(|at| (at * 7 % 253) as u8).collect();
        pair.check(&format!("pieces of {piece}"));
    }
}

#[test]
fn a_flight_may_be_cut_anywhere() {
    // The client's first flights, recorded; the server gets them in two parts, for each cut of the first kilobytes.
    for cipher in ["aes256-ctr", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"] {
        for cut in (1..400).step_by(3) {
            let client = ClientConfig {
                algorithms: Algorithms { ciphers: vec![cipher], ..Algorithms::all() },
                ..ClientConfig::default()
            };
            let mut pair = Pair::new(server_config(), client, With::Password);
            pair.piece = cut;
            for _ in 0..2 {
                pair.turn();
            }
            pair.piece = usize::MAX;
            pair.check(&format!("{cipher} cut at {cut}"));
        }
    }
}

#[test]
fn windows_grow_by_what_is_consumed() {
    let mut config = server_config();
    config.limits.window = 64 * 1024;
    let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
    pair.message = vec![1; 1024 * 1024];
    pair.check("a small window");

    // Who does not consume gets no more than the window, which may begin small.
    for (first, widens, window) in
        [(u32::MAX, false, 64 * 1024), (16 * 1024, false, 16 * 1024), (16 * 1024, true, 64 * 1024)]
    {
        assert_eq!(unconsumed(first, widens, window), window, "{first} {widens}");
    }
}

/// Bytes of a client's message that arrive at a server that consumes nothing; the rest is in the client's queue.
fn unconsumed(first: u32, widens: bool, window: usize) -> usize {
    let mut config = server_config();
    config.limits.window = 64 * 1024;
    config.limits.first_window = first;
    let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
    pair.message = vec![1; 1024 * 1024];
    let mut got = 0;
    for _ in 0..1000 {
        pair.use_client();
        let bytes = pair.client.outgoing().to_vec();
        pair.client.sent(bytes.len());
        pair.server.receive(&bytes, 0);
        while let Some(event) = pair.server.poll() {
            match event {
                ServerEvent::Authenticate(attempt) => pair.server.answer(decide(&attempt)),
                ServerEvent::ChannelOpen(_) | ServerEvent::ChannelRequest { .. } => {
                    pair.server.reply(true);
                }
                ServerEvent::Data { channel, len } => {
                    got += len;
                    if widens {
                        pair.server.widen(channel);
                    }
                }
                ServerEvent::Disconnected(end) => panic!("{end:?}"),
                _ => {}
            }
        }
        let bytes = pair.server.outgoing().to_vec();
        pair.server.sent(bytes.len());
        pair.client.receive(&bytes, 0);
    }
    // What the window holds back is in the client's queue, up to its limit.
    assert_eq!(pair.client.queued(), 1024 * 1024 - window);
    got
}

#[test]
fn the_queue_has_a_limit() {
    let mut config = server_config();
    config.limits.queued = 100_000;
    let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
    pair.message.clear();
    while pair.channel.is_none() {
        assert!(pair.turn());
    }
    let channel = pair.channel.unwrap();
    let queued = pair.server.queued();
    assert_eq!(pair.server.write(channel, &[0; 200_000]), 100_000 - queued);
    assert!(pair.server.queued() >= 100_000);
    assert_eq!(pair.server.write(channel, &[0; 1]), 0);
}

/// A socket that never takes everything does not let the buffer grow.
#[test]
fn sent_bytes_are_given_up() {
    let mut client = ClientConfig::default();
    client.limits.window = 1 << 30;
    let mut pair = Pair::new(server_config(), client, With::Password);
    pair.message.clear();
    while pair.channel.is_none() {
        assert!(pair.turn());
    }
    // The channel's confirmation says nothing of the window: the client's request did.
    let channel = pair.channel.unwrap();
    for _ in 0..200 {
        assert_eq!(pair.server.write(channel, &[0; 64 * 1024]), 64 * 1024);
        let len = pair.server.outgoing().len() - 10;
        pair.server.sent(len);
    }
    assert!(pair.server.memory() < 1024 * 1024, "{}", pair.server.memory());
    // A busy connection keeps its buffers, one that rests does not.
    let len = pair.server.outgoing().len();
    pair.server.sent(len);
    let busy = pair.server.memory();
    pair.server.rest();
    let idle = pair.server.memory();
    assert!(busy >= 64 * 1024 && idle < 48 * 1024, "{busy} {idle}");
}

#[test]
fn host_keys_are_announced_and_proved() {
    for kind in [KeyKind::Ed25519, KeyKind::Rsa2048] {
        let mut config = server_config();
        config.host_keys = vec![host(kind), host(KeyKind::EcdsaP384)];
        config.next_host_keys = vec![key(KeyKind::MlDsa44Ed25519), key(KeyKind::Rsa3072)];
        let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
        pair.announce = true;
        pair.check("announced host keys");
        assert_eq!(pair.host_keys.len(), 4);
        assert_eq!(&pair.host_keys[2], key(KeyKind::MlDsa44Ed25519).public_key());
    }
}

#[test]
fn keepalives_are_answered() {
    let mut pair = Pair::usual();
    pair.run();
    assert_eq!((pair.server.keepalive(), pair.server.keepalive()), (1, 2));
    pair.run();
    assert_eq!(pair.server.keepalive(), 1);
}

#[test]
fn tries_to_authenticate_are_counted() {
    let mut pair = Pair::usual();
    let mut refused = 0;
    while pair.client_end.is_none() {
        pair.serve();
        let bytes = pair.server.outgoing().to_vec();
        pair.server.sent(bytes.len());
        pair.client.receive(&bytes, 0);
        while let Some(event) = pair.client.poll() {
            match event {
                ClientEvent::HostKey(_) => pair.client.answer(true),
                ClientEvent::Ready => pair.client.authenticate("alice", Credential::None),
                ClientEvent::Refused { methods, partial } => {
                    assert_eq!(methods, ["publickey", "password", "keyboard-interactive"]);
                    assert!(!partial);
                    refused += 1;
                    let wrong = Credential::Password(Secret::new(b"wrong".to_vec()));
                    pair.client.authenticate("alice", wrong);
                }
                ClientEvent::Disconnected(end) => pair.client_end = Some(end),
                _ => {}
            }
        }
        let bytes = pair.client.outgoing().to_vec();
        pair.client.sent(bytes.len());
        pair.server.receive(&bytes, 0);
    }
    // `none`, five wrong passwords, and the sixth ends the connection.
    assert_eq!(refused, 6);
    let end = pair.client_end.unwrap();
    assert!(end.by_peer);
    assert_eq!(end.reason, Reason::NoMoreAuthMethods);
    assert!(pair.attempts.iter().all(|attempt| !attempt.contains("wrong")));
}

#[test]
fn several_methods_may_be_required() {
    let mut pair = Pair::usual();
    let mut steps = Vec::new();
    for _ in 0..20 {
        while let Some(event) = pair.server.poll() {
            if let ServerEvent::Authenticate(attempt) = event {
                let decision = match attempt.method {
                    Method::PublicKey(offer) if offer.signed == Signed::No => {
                        AuthDecision::AcceptKey
                    }
                    Method::PublicKey(_) => AuthDecision::Partial(vec!["password"]),
                    Method::Password(_) => AuthDecision::Accept,
                    _ => AuthDecision::Reject,
                };
                pair.server.answer(decision);
            }
        }
        let bytes = pair.server.outgoing().to_vec();
        pair.server.sent(bytes.len());
        pair.client.receive(&bytes, 0);
        while let Some(event) = pair.client.poll() {
            let credential = match event {
                ClientEvent::HostKey(_) => {
                    pair.client.answer(true);
                    continue;
                }
                ClientEvent::Ready => {
                    Credential::Offer(key(KeyKind::EcdsaP256).public_key().clone())
                }
                ClientEvent::KeyAcceptable => {
                    Credential::Key { key: key(KeyKind::EcdsaP256), certificate: None }
                }
                ClientEvent::Refused { methods, partial } => {
                    steps.push((methods.join(","), partial));
                    Credential::Password(Secret::new(PASSWORD.as_bytes().to_vec()))
                }
                ClientEvent::Authenticated => {
                    steps.push(("done".to_owned(), false));
                    continue;
                }
                _ => continue,
            };
            pair.client.authenticate("alice", credential);
        }
        let bytes = pair.client.outgoing().to_vec();
        pair.client.sent(bytes.len());
        pair.server.receive(&bytes, 0);
    }
    assert_eq!(steps, [("password".to_owned(), true), ("done".to_owned(), false)]);
}

#[test]
fn a_guess_is_used_or_ignored() {
    // This crate's client never guesses: its first packets are rewritten.
    for (right, host_keys) in
        [(true, vec!["ssh-ed25519"]), (false, vec!["rsa-sha2-512", "ssh-ed25519"])]
    {
        let mut config = server_config();
        config.algorithms.host_keys = vec!["ssh-ed25519"];
        config.algorithms.key_exchanges = vec!["curve25519-sha256"];
        let mut server = Server::new(config.into(), 0);
        let lists = Algorithms { key_exchanges: vec!["curve25519-sha256"], ..Algorithms::all() };
        let mut payload = kexinit::write(&lists, &host_keys, &[]).unwrap();
        let flag = payload.len() - 5;
        payload[flag] = 1;
        let mut sender = packet::Sender::new();
        let mut bytes = b"SSH-2.0-guess\r\n".to_vec();
        sender.seal(&[&payload], &mut bytes).unwrap();
        let started = exchange::Exchange::by_name("curve25519-sha256").unwrap().start().unwrap();
        let mut share = vec![message::KEX_ECDH_INIT];
        wire::Writer::put_string(&mut share, started.share());
        sender.seal(&[&share], &mut bytes).unwrap();
        server.receive(&bytes, 0);
        let Some(ServerEvent::Negotiated(negotiation)) = server.poll() else { panic!() };
        assert_eq!(negotiation.first_guess, Some(right));
        assert!(!negotiation.strict);
        let before = server.outgoing().len();
        assert!(server.poll().is_none());
        // A right guess is answered with the reply and new keys; a wrong one waits for another share.
        assert_eq!(server.outgoing().len() > before, right);
    }
}

/// Methods of the client, the server's preferred ones, and the result.
#[test]
fn preferred_methods_win_whatever_the_order_of_the_client() {
    const HYBRID: &str = "mlkem768x25519-sha256";
    const OTHER: &str = "mlkem1024nistp384-sha384";
    const CLASSICAL: &str = "curve25519-sha256";
    let all = [CLASSICAL, OTHER, HYBRID];
    for (client, preferred, chosen) in [
        (&[CLASSICAL, HYBRID][..], &[OTHER, HYBRID][..], HYBRID),
        (&[CLASSICAL, HYBRID, OTHER], &[OTHER, HYBRID], HYBRID),
        (&[CLASSICAL, HYBRID], &[], CLASSICAL),
        (&[CLASSICAL, HYBRID], &[OTHER], CLASSICAL),
        (&[CLASSICAL], &[HYBRID], CLASSICAL),
    ] {
        let mut config = server_config();
        config.algorithms.key_exchanges = all.to_vec();
        config.preferred = preferred.to_vec();
        let mut offered = ClientConfig::default();
        offered.algorithms.key_exchanges = client.to_vec();
        let mut pair = Pair::new(config, offered, With::Password);
        pair.check(&format!("{client:?} {preferred:?}"));
        let found = &pair.negotiations[0];
        assert_eq!(
            found.outcome.as_ref().unwrap().key_exchange,
            chosen,
            "{client:?} {preferred:?}"
        );
        assert!(!found.blind && found.strict);
        // Later exchanges have the same list.
        pair.server.rekey();
        pair.run();
        assert_eq!(pair.negotiations[1].outcome.as_ref().unwrap().key_exchange, chosen);
    }
}

/// Each exchange takes the server a signature: a client gets many only if it waits, or moves data in between.
#[test]
fn a_client_has_few_exchanges_for_nothing() {
    let exchanges = |wait_ms: u64| {
        let mut pair = Pair::usual();
        pair.check("usual");
        let mut count = 0;
        while count < 100 && pair.server_end.is_none() {
            pair.now_ms += wait_ms;
            pair.client.rekey();
            pair.run();
            count += 1;
        }
        (count, pair.server_end.map(|end| end.reason))
    };
    let ended = Some(Reason::ProtocolError);
    assert_eq!(exchanges(0), (17, ended));
    assert_eq!(exchanges(500), (33, ended));
    assert_eq!(exchanges(1000), (100, None));
    let mut config = ClientConfig::default();
    config.limits.rekey_bytes = 40_000;
    let mut pair = Pair::new(server_config(), config, With::Password);
    pair.message = vec![7; 4 << 20];
    pair.check("with data");
    assert!(pair.negotiations.len() > 50, "{}", pair.negotiations.len());
}

#[test]
fn a_client_that_waits_for_the_servers_list_gets_it_after_a_while() {
    let mut config = server_config();
    config.preferred = vec!["mlkem768x25519-sha256"];
    let wait_ms = config.limits.offer_ms;
    let mut server = Server::new(config.into(), 0);
    server.receive(b"SSH-2.0-Waiting\r\n", 0);
    assert!(server.poll().is_none());
    let before = server.outgoing().len();
    assert_eq!(server.next_timer(), Some(wait_ms));
    server.on_timer(wait_ms);
    assert!(server.poll().is_none());
    assert!(server.outgoing().len() > before + 500, "there is no list");
}

/// Somebody who holds a client's list up does not choose what it gets: one that would lose a preferred method by that is refused.
#[test]
fn a_list_that_was_held_up_loses_no_preferred_method() {
    const HYBRID: &str = "mlkem768x25519-sha256";
    const CLASSICAL: &str = "curve25519-sha256";
    for (offered, outcome) in [
        (&[HYBRID, CLASSICAL][..], Some(HYBRID)),
        (&[CLASSICAL], Some(CLASSICAL)),
        (&[CLASSICAL, HYBRID], None),
    ] {
        let mut config = server_config();
        config.algorithms.key_exchanges = vec![CLASSICAL, HYBRID];
        config.preferred = vec![HYBRID];
        let wait_ms = config.limits.offer_ms;
        let mut server = Server::new(config.into(), 0);
        let mut algorithms = ClientConfig::default();
        algorithms.algorithms.key_exchanges = offered.to_vec();
        let mut client = Client::new(algorithms.into(), 0);
        let sent = client.outgoing().to_vec();
        let version = sent.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        server.receive(&sent[..version], 0);
        assert!(server.poll().is_none());
        server.on_timer(wait_ms);
        assert!(server.poll().is_none());
        client.receive(server.outgoing(), wait_ms);
        while client.poll().is_some() {}
        let late = client.outgoing()[version..].to_vec();
        server.receive(&late, wait_ms);
        let Some(ServerEvent::Negotiated(found)) = server.poll() else { panic!("{offered:?}") };
        assert!(found.blind, "{offered:?}");
        let after = server.poll();
        match outcome {
            Some(method) => {
                assert_eq!(found.outcome.unwrap().key_exchange, method);
                assert!(after.is_none(), "{after:?}");
            }
            None => {
                assert_eq!(found.outcome.unwrap_err(), Disagreement::Order);
                let Some(ServerEvent::Disconnected(end)) = after else { panic!("{after:?}") };
                assert_eq!((end.reason, end.by_peer), (Reason::KeyExchangeFailed, false));
            }
        }
    }
}
