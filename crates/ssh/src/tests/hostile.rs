//! Peers that break the rules, and attackers between two that do not.

use super::pair::{Pair, With, key, server_config};
use crate::cipher::{CIPHERS, MACS};
use crate::kexinit::{self, EXT_INFO_CLIENT, STRICT_CLIENT};
use crate::packet::Sender;
use crate::wire::Writer;
use crate::*;

/// A server that got these bytes, and its end if it has one.
fn after(bytes: &[u8]) -> (Server, Option<Disconnected>) {
    let mut server = Server::new(server_config().into(), 0);
    server.receive(bytes, 0);
    let end = end(&mut server);
    (server, end)
}

fn end(server: &mut Server) -> Option<Disconnected> {
    let mut last = None;
    while let Some(event) = server.poll() {
        assert!(last.is_none(), "{event:?} after the end");
        if let ServerEvent::Disconnected(end) = event {
            last = Some(end);
        }
    }
    last
}

const VERSION: &[u8] = b"SSH-2.0-hostile\r\n";

/// The version and packets with these payloads, without keys.
fn clear(payloads: &[&[u8]]) -> Vec<u8> {
    let mut sender = Sender::new();
    let mut bytes = VERSION.to_vec();
    for payload in payloads {
        sender.seal(&[payload], &mut bytes).unwrap();
    }
    bytes
}

fn kexinit(markers: &[&str]) -> Vec<u8> {
    kexinit::write(&Algorithms::all(), &["ssh-ed25519"], markers).unwrap()
}

#[test]
fn terrapin_injects_nothing() {
    let ignore = [message::IGNORE, 0, 0, 0, 0];
    let strict = kexinit(&[EXT_INFO_CLIENT, STRICT_CLIENT]);
    let lax = kexinit(&[EXT_INFO_CLIENT]);
    let refused = |payloads: &[&[u8]]| after(&clear(payloads)).1.is_some();
    assert!(refused(&[&ignore, &strict]));
    assert!(refused(&[&strict, &ignore]));
    assert!(refused(&[&strict, &[message::EXT_INFO, 0, 0, 0, 0]]));
    assert!(refused(&[&strict, &[message::UNIMPLEMENTED, 0, 0, 0, 0]]));
    assert!(refused(&[&strict, &[39]]));
    assert!(refused(&[&strict, &[message::KEX_ECDH_REPLY, 0, 0, 0, 0]]));
    // Without strict key exchange RFC 4253 allows it.
    assert!(!refused(&[&ignore, &lax]) && !refused(&[&lax, &ignore]));

    // The attack itself: a message to the client before NEWKEYS, for one that is cut away after it.
    let mut pair = Pair::usual();
    pair.use_client();
    let hello = pair.client.outgoing().to_vec();
    pair.client.sent(hello.len());
    pair.server.receive(&hello, 0);
    pair.serve();
    let flight = pair.server.outgoing().to_vec();
    pair.server.sent(flight.len());
    let mut injected = flight;
    Sender::new().seal(&[&ignore], &mut injected).unwrap();
    pair.client.receive(&injected, 0);
    pair.use_client();
    let end = pair.client_end.take().unwrap();
    assert!(end.message.contains("strict"), "{end:?}");
}

#[test]
fn padding_and_lengths_are_checked() {
    let packet = |length: u32, padding: u8, rest: usize| {
        let mut bytes = VERSION.to_vec();
        bytes.put_u32(length);
        bytes.put_byte(padding);
        bytes.resize(bytes.len() + rest, message::IGNORE);
        after(&bytes).1.map(|end| end.reason)
    };
    let wrong = Some(Reason::ProtocolError);
    for length in [0, 1, 11, 13, 16 * 1024 + 4, 35_000, 1 << 18, u32::MAX - 3, u32::MAX] {
        assert_eq!(packet(length, 4, 40), wrong, "{length}");
    }
    for padding in [0, 3, 11, 12, 255] {
        assert_eq!(packet(12, padding, 11), wrong, "{padding}");
    }
    // IGNORE with an unreadable string is ignored all the same.
    assert_eq!(packet(12, 4, 11), None);
}

#[test]
fn versions_are_checked() {
    for (bytes, reason) in [
        (&b"SSH-1.5-old\r\n"[..], Some(Reason::VersionNotSupported)),
        (b"GET / HTTP/1.1\r\n\r\n", Some(Reason::ProtocolError)),
        (b"GE", Some(Reason::ProtocolError)),
        (b"SSH-2.0-a\0b\r\n", Some(Reason::ProtocolError)),
        (b"SSH-2.0-no carriage return\n", None),
        (b"SSH-1.99-both\r\n", None),
        (b"SS", None),
    ] {
        assert_eq!(after(bytes).1.map(|end| end.reason), reason, "{bytes:?}");
    }
    let long = |len: usize| [b"SSH-2.0-".to_vec(), vec![b'x'; len], b"\r\n".to_vec()].concat();
    assert!(after(&long(245)).1.is_none() && after(&long(246)).1.is_some());
    assert!(after(&long(10_000)).1.is_some());
    // A client allows lines before it, up to 8 KiB.
    for (lines, ok) in [(0, true), (100, true), (120, false)] {
        let mut client = Client::new(ClientConfig::default().into(), 0);
        let mut greeting = Vec::new();
        for _ in 0..lines {
            greeting.extend_from_slice(&[b'.'; 70]);
            greeting.extend_from_slice(b"\r\n");
        }
        greeting.extend_from_slice(b"SSH-2.0-server\r\n");
        for byte in greeting {
            client.receive(&[byte], 0);
            let _ = client.poll();
        }
        // The client's own SSH_MSG_KEXINIT follows.
        assert_eq!(client.outgoing().len() > 500, ok, "{lines}");
    }
}

#[test]
fn a_short_kexinit_is_refused() {
    let whole = kexinit(&[STRICT_CLIENT]);
    for len in 1..whole.len() {
        assert!(after(&clear(&[&whole[..len]])).1.is_some(), "{len}");
    }
    assert!(after(&clear(&[&whole])).1.is_none());
    assert!(after(&clear(&[&whole, &whole])).1.is_some());
}

#[test]
fn shares_are_checked() {
    for exchange in exchange::EXCHANGES {
        let lists = Algorithms { key_exchanges: vec![exchange.name], ..Algorithms::all() };
        let init = kexinit::write(&lists, &["ssh-ed25519"], &[STRICT_CLIENT]).unwrap();
        let good = exchange.start().unwrap().share().to_vec();
        let attempt = |share: &[u8]| {
            let mut payload = vec![message::KEX_ECDH_INIT];
            payload.put_string(share);
            after(&clear(&[&init, &payload])).1.map(|end| end.reason)
        };
        assert_eq!(attempt(&good), None, "{}", exchange.name);
        let failed = Some(Reason::KeyExchangeFailed);
        assert_eq!(attempt(&[]), failed);
        assert_eq!(attempt(&good[1..]), failed);
        assert_eq!(attempt(&[&good[..], &[0]].concat()), failed);
        assert_eq!(attempt(&vec![0; good.len()]), failed, "{}", exchange.name);
        if exchange.name.starts_with("mlkem") {
            // A key of ML-KEM whose coefficients are too large (FIPS 203, section 7.2).
            assert_eq!(attempt(&vec![0xff; good.len()]), failed, "{}", exchange.name);
        }
        if !exchange.name.contains("25519") {
            // A point that is not on the curve.
            let mut off = good.clone();
            *off.last_mut().unwrap() ^= 1;
            assert_eq!(attempt(&off), failed, "{}", exchange.name);
        }
    }
}

#[test]
fn nothing_comes_before_its_time() {
    let init = kexinit(&[]);
    let mut service = vec![message::SERVICE_REQUEST];
    service.put_string(b"ssh-userauth");
    let mut open = vec![message::CHANNEL_OPEN];
    open.put_string(b"session");
    for payload in
        [&service[..], &[message::USERAUTH_REQUEST], &open, &[message::GLOBAL_REQUEST], &[192]]
    {
        assert!(after(&clear(&[payload])).1.is_some());
        assert!(after(&clear(&[&init, payload])).1.is_some());
    }
    for payload in [&[message::NEWKEYS][..], &[message::KEX_ECDH_INIT, 0, 0, 0, 0], &[0]] {
        assert!(after(&clear(&[payload])).1.is_some());
    }
    // With keys, but without authentication.
    for payload in [&open[..], &[message::GLOBAL_REQUEST], &[message::CHANNEL_DATA]] {
        let mut pair = keyed();
        pair.client.transport.send(&[payload]).unwrap();
        pair.run();
        assert!(pair.server_end.is_some(), "{payload:?}");
    }
    let mut pair = keyed();
    pair.client.transport.send(&[&service]).unwrap();
    pair.run();
    assert!(pair.server_end.unwrap().message.contains("twice"));
    // Another exchange before authentication.
    let mut pair = keyed();
    pair.client.transport.send(&[&init]).unwrap();
    pair.run();
    assert!(pair.server_end.is_some());
}

/// Keys are there and the service was accepted, but nobody authenticates.
pub(super) fn keyed() -> Pair {
    let mut pair = Pair::usual();
    for _ in 0..20 {
        pair.serve();
        let bytes = pair.server.outgoing().to_vec();
        pair.server.sent(bytes.len());
        pair.client.receive(&bytes, 0);
        while let Some(event) = pair.client.poll() {
            if let ClientEvent::HostKey(_) = event {
                pair.client.answer(true);
            }
        }
        let bytes = pair.client.outgoing().to_vec();
        pair.client.sent(bytes.len());
        pair.server.receive(&bytes, 0);
    }
    assert!(pair.server_end.is_none());
    pair
}

/// An open channel without data in it, and its number at the server.
fn connected() -> (Pair, u32) {
    let mut config = server_config();
    config.limits.window = 10_000;
    config.limits.packet = 4096;
    let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
    pair.message.clear();
    for _ in 0..100 {
        pair.turn();
        if pair.channel.is_some() {
            break;
        }
    }
    let id = pair.channel.unwrap().0;
    (pair, id)
}

#[test]
fn channels_have_limits() {
    let message = |number: u8, fields: &[u32]| {
        let mut out = vec![number];
        for field in fields {
            out.put_u32(*field);
        }
        out
    };
    let data = |id: u32, len: usize| {
        let mut out = message(message::CHANNEL_DATA, &[id]);
        out.put_string(&vec![0; len]);
        out
    };
    type Attack = (&'static str, Vec<Vec<u8>>);
    let (_, id) = connected();
    let attacks: Vec<Attack> = vec![
        ("larger than a packet", vec![data(id, 4097)]),
        ("larger than the window", vec![data(id, 4000); 3]),
        ("does not exist", vec![data(id + 1, 1)]),
        ("comes after its end", vec![message(message::CHANNEL_EOF, &[id]), data(id, 1)]),
        ("ended twice", vec![message(message::CHANNEL_EOF, &[id]); 2]),
        ("2^32 - 1", vec![message(message::CHANNEL_WINDOW_ADJUST, &[id, u32::MAX]); 2]),
        ("does not exist", vec![message(message::CHANNEL_CLOSE, &[id]); 2]),
        ("twice", vec![message(message::CHANNEL_OPEN_CONFIRMATION, &[id, 0, 9, 9999])]),
        ("no request", vec![message(message::CHANNEL_SUCCESS, &[id])]),
        ("no request", vec![vec![message::REQUEST_SUCCESS]]),
        ("shorter", vec![vec![message::CHANNEL_DATA, 0]]),
        ("message 0", vec![vec![0]]),
    ];
    for (what, payloads) in attacks {
        let (mut pair, _) = connected();
        // Nobody consumes.
        for payload in payloads {
            pair.client.transport.send(&[&payload]).unwrap();
        }
        let bytes = pair.client.outgoing().to_vec();
        pair.server.receive(&bytes, 0);
        let mut ended = None;
        while let Some(event) = pair.server.poll() {
            match event {
                ServerEvent::ChannelRequest { .. } => pair.server.reply(true),
                ServerEvent::Disconnected(end) => ended = Some(end),
                _ => {}
            }
        }
        let ended = ended.unwrap_or_else(|| panic!("{what} was accepted"));
        assert!(ended.message.contains(what), "{what}: {ended:?}");
        assert_eq!(ended.reason, Reason::ProtocolError);
    }
}

#[test]
fn a_flood_of_channels_is_refused() {
    let (mut pair, _) = connected();
    let mut open = vec![message::CHANNEL_OPEN];
    open.put_string(b"session");
    for value in [77, 1 << 20, 1 << 15] {
        open.put_u32(value);
    }
    for _ in 0..1000 {
        pair.client.transport.send(&[&open]).unwrap();
    }
    let bytes = pair.client.outgoing().to_vec();
    pair.server.receive(&bytes, 0);
    let mut opened = 1;
    while let Some(event) = pair.server.poll() {
        match event {
            ServerEvent::ChannelOpen(_) => {
                opened += 1;
                pair.server.reply(true);
            }
            ServerEvent::ChannelRequest { .. } => pair.server.reply(true),
            ServerEvent::Disconnected(end) => panic!("{end:?}"),
            _ => {}
        }
    }
    assert_eq!(opened, Limits::default().channels);
    // A busy connection may keep its buffers for a while.
    pair.server.rest();
    assert!(pair.server.memory() < 200_000, "{}", pair.server.memory());
}

/// Requests whose answers nobody takes do not fill the memory.
#[test]
fn a_flood_of_requests_waits() {
    let mut config = server_config();
    config.limits.queued = 50_000;
    let mut pair = Pair::new(config, ClientConfig::default(), With::Password);
    pair.run();
    let mut request = vec![message::GLOBAL_REQUEST];
    request.put_string(b"tcpip-forward");
    request.put_bool(true);
    for _ in 0..10_000 {
        pair.client.transport.send(&[&request]).unwrap();
    }
    let bytes = pair.client.outgoing().to_vec();
    pair.server.receive(&bytes, 0);
    assert!(pair.server.poll().is_none());
    assert!(!pair.server.wants_input());
    assert!(pair.server.outgoing().len() < 51_000);
    let mut answers = 0;
    while !pair.server.outgoing().is_empty() {
        answers += pair.server.outgoing().len();
        pair.server.sent(usize::MAX);
        assert!(pair.server.poll().is_none());
    }
    assert!(answers >= 10_000 * 28 && pair.server.wants_input());
}

#[test]
fn packets_authenticate() {
    for cipher in CIPHERS {
        let macs = if cipher.authenticates() { &MACS[..1] } else { MACS };
        for mac in macs {
            let algorithms = Algorithms {
                ciphers: vec![cipher.name],
                macs: vec![mac.name],
                ..Algorithms::all()
            };
            let ended = |change: &dyn Fn(&mut Vec<u8>)| {
                let client =
                    ClientConfig { algorithms: algorithms.clone(), ..ClientConfig::default() };
                let mut pair = Pair::new(server_config(), client, With::Password);
                pair.run();
                pair.client.transport.send(&[&[message::IGNORE, 0, 0, 0, 0]]).unwrap();
                let mut bytes = pair.client.outgoing().to_vec();
                change(&mut bytes);
                pair.server.receive(&bytes, 0);
                end(&mut pair.server).map(|end| end.reason)
            };
            assert_eq!(ended(&|_| {}), None);
            // Replayed.
            let replayed = ended(&|bytes| bytes.extend(bytes.clone()));
            assert!(replayed.is_some(), "{} {}", cipher.name, mac.name);
            // A bit of the length, of the contents, of the tag.
            let len = std::cell::Cell::new(0);
            ended(&|bytes| len.set(bytes.len()));
            for at in 4..len.get() {
                let reason = ended(&|bytes| bytes[at] ^= 0x80);
                assert_eq!(reason, Some(Reason::MacError), "{} {} {at}", cipher.name, mac.name);
            }
            for at in 0..4 {
                // Another length is wrong, or waits for bytes that never come.
                let reason = ended(&|bytes| {
                    bytes[at] ^= 0x80;
                    bytes.resize(600_000, 0);
                });
                assert!(reason.is_some(), "{} {} {at}", cipher.name, mac.name);
            }
        }
    }
}

/// Requests with a signature, for the session and host key of another connection.
#[test]
fn signatures_are_for_one_session() {
    let user = key(KeyKind::EcdsaP256);
    let request = |method: &str, host_key: Option<&[u8]>, session_id: &[u8]| {
        let mut payload = vec![message::USERAUTH_REQUEST];
        payload.put_string(b"alice");
        payload.put_string(b"ssh-connection");
        payload.put_string(method.as_bytes());
        payload.put_bool(true);
        payload.put_string(b"ecdsa-sha2-nistp256");
        payload.put_string(user.public_key().blob());
        if let Some(host_key) = host_key {
            payload.put_string(host_key);
        }
        let mut signed = Vec::new();
        signed.put_string(session_id);
        signed.put(&payload);
        payload.put_string(&user.sign("ecdsa-sha2-nistp256", &signed).unwrap());
        payload
    };
    /// Makes a payload from the session's identifier and the host key.
    type Make<'a> = &'a dyn Fn(&[u8], &[u8]) -> Vec<u8>;
    let attempt = |make: Make<'_>| {
        let mut pair = keyed();
        let payload = make(pair.client.transport.session_id(), pair.client.transport.host_key());
        pair.client.transport.send(&[&payload]).unwrap();
        pair.turn();
        pair.serve();
        pair.attempts.pop().unwrap_or_default()
    };
    let bound = "publickey-hostbound-v00@openssh.com";
    let valid = |text: String| {
        assert!(text.contains("PublicKey"), "{text}");
        text.contains("signed: Valid")
    };
    assert!(valid(attempt(&|id, _| request("publickey", None, id))));
    assert!(valid(attempt(&|id, host| request(bound, Some(host), id))));
    assert!(!valid(attempt(&|_, _| request("publickey", None, &[7; 32]))));
    let other = key(KeyKind::EcdsaP384);
    assert!(!valid(attempt(&|id, _| request(bound, Some(other.public_key().blob()), id))));
    // A changed bit of the signature.
    assert!(!valid(attempt(&|id, _| {
        let mut payload = request("publickey", None, id);
        let last = payload.len() - 1;
        payload[last] ^= 1;
        payload
    })));
}

/// An invalid signature is rejected even if the caller accepts.
#[test]
fn an_invalid_signature_cannot_be_accepted() {
    let mut pair = keyed();
    let user = key(KeyKind::Ed25519);
    let mut payload = vec![message::USERAUTH_REQUEST];
    payload.put_string(b"alice");
    payload.put_string(b"ssh-connection");
    payload.put_string(b"publickey");
    payload.put_bool(true);
    payload.put_string(b"ssh-ed25519");
    payload.put_string(user.public_key().blob());
    payload.put_string(&user.sign("ssh-ed25519", b"something else").unwrap());
    pair.client.transport.send(&[&payload]).unwrap();
    let bytes = pair.client.outgoing().to_vec();
    pair.server.receive(&bytes, 0);
    let Some(ServerEvent::Authenticate(attempt)) = pair.server.poll() else { panic!() };
    assert!(matches!(&attempt.method, Method::PublicKey(offer) if offer.signed == Signed::Invalid));
    pair.server.answer(AuthDecision::Accept);
    assert!(pair.server.poll().is_none());
    assert_eq!(pair.server.keepalive(), 0, "the client is not authenticated");
}

/// Changed bytes anywhere in a client's stream end the connection, or do nothing; there is no panic.
#[test]
fn changed_streams_do_no_harm() {
    // What a client without keys sends.
    let exchange = exchange::Exchange::by_name("mlkem768x25519-sha256").unwrap();
    let mut share = vec![message::KEX_ECDH_INIT];
    share.put_string(exchange.start().unwrap().share());
    let stream = clear(&[&kexinit(&[STRICT_CLIENT]), &share, &[message::NEWKEYS]]);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..2000 {
        let mut changed = stream.clone();
        for _ in 0..3 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let at = random as usize % changed.len();
            match random >> 60 {
                0..=7 => changed[at] = (random >> 8) as u8,
                8..=11 => changed[at] ^= 1 << (random >> 8 & 7),
                12..=13 => changed.truncate(at.max(1)),
                _ => changed.insert(at, 0),
            }
        }
        let _ = after(&changed);
    }
}
