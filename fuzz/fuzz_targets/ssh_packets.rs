//! What strangers send to an SSH server before there are keys. The input is cut into pieces by its first byte.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use outlast_ssh::{KeyKind, PrivateKey, Server, ServerConfig, ServerEvent};

fuzz_target!(|bytes: &[u8]| {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let key = PrivateKey::generate(KeyKind::Ed25519).unwrap();
        Arc::new(ServerConfig::new(vec![key.into()]))
    });
    let Some((first, bytes)) = bytes.split_first() else { return };
    let mut server = Server::new(config.clone(), 0);
    let mut ended = false;
    for piece in bytes.chunks(usize::from(*first) + 1) {
        server.receive(piece, 0);
        while let Some(event) = server.poll() {
            assert!(!ended, "an event after the end");
            match event {
                ServerEvent::Negotiated(_) => {}
                ServerEvent::Disconnected(_) => ended = true,
                other => panic!("{other:?} before there are keys"),
            }
        }
        let sent = server.outgoing().len();
        server.sent(sent);
        assert!(server.memory() < 64 * 1024 + bytes.len());
    }
});
