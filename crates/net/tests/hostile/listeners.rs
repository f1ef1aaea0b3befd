//! Listeners without TLS: one peer gets the share of the connections that `docs/limits.md` states, and no more.

use std::time::Instant;

use outlast_domain::seal::RootKey;
use outlast_domain::witness;
use outlast_domain::work::Work;
use outlast_net::limits;
use outlast_net::plain::PlainServer;
use outlast_net::witness::WitnessServer;
use outlast_store::Store;
use outlast_store::memory::MemoryStore;
use outlast_testing::skip;
use rustix::process::{Resource, getrlimit, setrlimit};

use super::*;

/// Requests something that does not exist, on a kept connection; returns whether a response arrived.
async fn answers(stream: &mut TcpStream) -> bool {
    let asked = stream.write_all(b"HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut answer = Vec::new();
    while asked.is_ok() && !answer.ends_with(b"\r\n\r\n") {
        match soon(stream.read_buf(&mut answer)).await {
            Ok(1..) => {}
            _ => return false,
        }
    }
    answer.starts_with(b"HTTP/1.1 404 ")
}

/// Opens as many connections of one peer as allowed, and one more.
async fn holds(address: SocketAddr, by_peer: usize) {
    let begun = Instant::now();
    let mut held = Vec::new();
    for index in 0..by_peer {
        held.push(tcp_from(BAD, address).await);
        assert!(answers(&mut held[index]).await, "{index}");
    }
    // Each is open, and the first one has gone unused for longest.
    for (index, stream) in held.iter_mut().enumerate() {
        assert!(answers(stream).await, "{index} of {by_peer}");
    }
    held.push(tcp_from(BAD, address).await);
    assert!(answers(&mut held[by_peer]).await);
    let mut open = 0;
    for stream in &mut held[1..] {
        open += usize::from(answers(stream).await);
    }
    let first = answers(&mut held[0]).await;
    if begun.elapsed() > limits::PLAIN_IDLE {
        return skip("this machine is so slow that connections were closed as idle meanwhile");
    }
    assert_eq!((first, open), (false, by_peer), "the first one, and how many of the others");
}

/// The same next to a good client at another address, whose connection is older than all of them.
async fn holds_beside_a_good_client(address: SocketAddr, by_peer: usize) {
    let mut good = tcp_from(GOOD, address).await;
    assert!(answers(&mut good).await);
    let begun = Instant::now();
    holds(address, by_peer).await;
    assert!(answers(&mut good).await || begun.elapsed() > limits::PLAIN_IDLE);
    assert!(answers(&mut tcp_from(GOOD, address).await).await);
}

async fn plain(change: impl FnOnce(PlainServer) -> PlainServer) -> SocketAddr {
    // This process has both ends of each connection open.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let _ = setrlimit(Resource::Nofile, files);
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = PlainServer::new(Arc::new(Fixture::new().service), system_clock);
    tokio::spawn(Arc::new(change(server)).run(listener, std::future::pending()));
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer_has_1024_connections_over_plain_http() {
    holds_beside_a_good_client(plain(|server| server).await, 1024).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_sets_plain_http_connections_per_peer() {
    holds_beside_a_good_client(plain(|server| server.with_connections_by_peer(3)).await, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer_has_32_connections_to_a_witness() {
    let store = MemoryStore::new();
    let root = RootKey::generate().unwrap();
    let mut work = Work::new(&store, &root, 0);
    root.establish(&mut work, Default::default()).unwrap();
    store.commit_and_wait(work.into_transaction(vec![])).unwrap();
    let mut work = Work::new(&store, &root, 0);
    witness::create(&mut work, "w.example/1").unwrap();
    store.commit_and_wait(work.into_transaction(vec![])).unwrap();
    let signer = witness::signer(&mut Work::new(&store, &root, 0)).unwrap();
    let server = WitnessServer::new(Arc::new(store), root, signer, "", system_clock);
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(Arc::new(server).run(listener, std::future::pending()));
    holds_beside_a_good_client(address, 32).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_together_has_64_connections_for_metrics() {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(scrape::serve(Arc::new(Metrics::new()), listener, std::future::pending()));
    holds(address, 64).await;
    assert!(answers(&mut tcp_from(GOOD, address).await).await);
}
