//! A client that has keys, and sends an SSH server whatever it likes: a program of messages and of the caller's answers.
//!
//! The first byte says whether the client authenticates by itself. Each step is a byte, which says what happens, a length,
//! and so many bytes.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use outlast_ssh::{
    AuthDecision, ChannelId, Client, ClientConfig, ClientEvent, Credential, KeyKind, PrivateKey,
    Server, ServerConfig, ServerEvent,
};

/// Moves everything that both sides have to send.
fn exchange(server: &mut Server, client: &mut Client, authenticates: bool) {
    for _ in 0..64 {
        let bytes = client.outgoing().to_vec();
        client.sent(bytes.len());
        server.receive(&bytes, 0);
        let more = server.outgoing().to_vec();
        server.sent(more.len());
        client.receive(&more, 0);
        let mut happened = false;
        while let Some(event) = client.poll() {
            happened = true;
            match event {
                ClientEvent::HostKey(_) => client.answer(true),
                ClientEvent::Ready if authenticates => {
                    client.authenticate("alice", Credential::None)
                }
                _ => {}
            }
        }
        if bytes.is_empty() && more.is_empty() && !happened {
            return;
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let key = PrivateKey::generate(KeyKind::Ed25519).unwrap();
        let mut config = ServerConfig::new(vec![key.into()]);
        config.methods = vec!["publickey", "password", "keyboard-interactive"];
        config.limits.window = 4096;
        config.limits.queued = 16 * 1024;
        config.limits.rekey_bytes = 64 * 1024;
        Arc::new(config)
    });
    let mut server = Server::new(config.clone(), 0);
    let mut client = Client::new(Arc::new(ClientConfig::default()), 0);
    let mut channels: Vec<ChannelId> = Vec::new();
    let (mut questions, mut ended) = (0_u32, false);
    let Some((first, mut rest)) = bytes.split_first() else { return };
    loop {
        exchange(&mut server, &mut client, first & 1 == 1);
        while let Some(event) = server.poll() {
            assert!(!ended, "an event after the end");
            match event {
                ServerEvent::Authenticate(_) => {
                    questions += 1;
                    server.answer(if questions == 1 {
                        AuthDecision::Accept
                    } else {
                        AuthDecision::Reject
                    });
                }
                ServerEvent::ChannelOpen(channel) => {
                    channels.push(channel);
                    server.reply(true);
                }
                ServerEvent::ChannelRequest { .. } => server.reply(true),
                ServerEvent::Data { channel, len } => {
                    assert_eq!(server.data(len).len(), len);
                    server.consumed(channel, len);
                }
                ServerEvent::Closed(channel) => channels.retain(|open| *open != channel),
                ServerEvent::Disconnected(_) => ended = true,
                ServerEvent::Negotiated(_)
                | ServerEvent::Eof(_)
                | ServerEvent::Alive
                | ServerEvent::Keyed => {}
            }
        }
        assert!(channels.len() <= 10 && server.queued() <= 64 * 1024);
        let [step, len, after @ ..] = rest else { return };
        let (piece, after) = after.split_at(usize::from(*len).min(after.len()));
        rest = after;
        let channel = channels.get(usize::from(step >> 4) % channels.len().max(1)).copied();
        match (step & 15, channel) {
            (0, Some(channel)) => {
                server.write(channel, piece);
            }
            (1, Some(channel)) => server.eof(channel),
            (2, Some(channel)) => server.close(channel),
            (3, Some(channel)) => server.exit_status(channel, 1),
            (4, _) => server.announce_host_keys(),
            (5, _) => {
                server.keepalive();
            }
            (6, _) => server.rekey(),
            _ => client.send_raw(piece),
        }
    }
});
