//! The first bytes of a connection, as the door reads them.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_net::certificate::{KINDS, ensure};
use outlast_net::door::{Door, Settings};
use outlast_net::server::system_clock;
use outlast_store::memory::MemoryStore;
use tokio::io::AsyncWriteExt;

static DOOR: LazyLock<Door> = LazyLock::new(|| {
    let store = MemoryStore::new();
    let root = RootKey::generate().unwrap();
    let mut work = Work::new(&store, &root, system_clock());
    let chain = ensure(&mut work, &KINDS[0], &["localhost".to_owned()]).unwrap();
    Door::new(Settings::with_protocols(&["h2"]), vec![chain.certificate(&KINDS[0])], None).unwrap()
});

fuzz_target!(|bytes: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let _ = client.write_all(bytes).await;
        drop(client);
        let _ = DOOR.accept(server, None).await;
    });
});
