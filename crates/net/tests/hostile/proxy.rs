//! The proxy: who is at fault, and how much one peer can hold.

use std::time::Duration;

use crate::proxied::{server_behind, settings, start};
use http::Response;
use http_body_util::Collected;
use hyper::body::Incoming;
use hyper::service::service_fn;
use outlast_net::proxy::{Backend, Settings};

use super::*;

/// Reads each request to its end and answers.
async fn reader() -> Backend {
    let (listener, backend) = server_behind().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async move {
                request.into_body().collect().await.map(Collected::to_bytes)?;
                Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from("read"))))
            });
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(serving);
        }
    });
    backend
}

async fn http(world: &World) -> Settings {
    settings(world, Protocol::Http, vec![reader().await])
}

async fn client(world: &World, octet: u8, to: SocketAddr) -> Client {
    let stream = tls_from(world, octet, to, "http/1.1").await;
    let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_chunk_is_the_clients_fault() {
    let world = World::new();
    let (_proxy, address) = start(http(&world).await);
    for (chunks, expected) in [
        ("5\r\nhello\r\nzz\r\n", "HTTP/1.1 400"),
        ("5\r\nhello, \r\n", "HTTP/1.1 400"),
        ("fffffffffffffffff\r\n", "HTTP/1.1 400"),
        ("5\r\nhello\r\n0\r\n\r\n", "HTTP/1.1 200"),
    ] {
        let mut stream = tls_from(&world, GOOD, address, "http/1.1").await;
        let head =
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        // The backend has received the head.
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream.write_all(chunks.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = soon(stream.read_to_end(&mut answer)).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(expected), "{chunks:?}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_peers_requests_leave_room_for_others() {
    let world = World::new();
    let mut settings = http(&world).await;
    // Room for 256 requests, and for 128 of one peer.
    (settings.max_connections, settings.connections_by_peer) = (256, Some(128));
    let (_proxy, address) = start(settings);
    let mut attackers = Vec::new();
    for _ in 0..3 {
        let mut stream = tls_from(&world, BAD, address, "h2").await;
        h2(&mut stream).await;
        let heads: Vec<u8> = (0..100).flat_map(|n| begun(2 * n + 1, "65536")).collect();
        stream.write_all(&heads).await.unwrap();
        pinged(&mut stream).await.unwrap();
        attackers.push(stream);
    }
    let mut good = client(&world, GOOD, address).await;
    for _ in 0..3 {
        assert_eq!(get(&mut good, "/").await.unwrap(), 200);
    }
    for stream in &mut attackers {
        pinged(stream).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_named_by_a_proxy_are_separate_peers() {
    let world = World::new();
    let mut settings = http(&world).await;
    settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    (settings.max_connections, settings.connections_by_peer) = (300, Some(2));
    let (_proxy, address) = start(settings);
    let connect = async |from: &str| {
        let before = format!("PROXY TCP4 {from} 198.51.100.1 1234 443\r\n");
        let config = world.config(&["http/1.1"], None);
        let stream = world.connect_with(address, config, before.as_bytes()).await.unwrap();
        let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut client: Client = client;
        assert_eq!(get(&mut client, "/").await.unwrap(), 200, "{from}");
        client
    };
    let mut good = connect("192.0.2.1").await;
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(connect("192.0.2.2").await);
        assert_eq!(get(&mut good, "/").await.unwrap(), 200);
    }
    let mut open = 0;
    for client in &mut held {
        open += usize::from(get(client, "/").await.is_some());
    }
    println!("{open} of 10 are open");
    assert_eq!(open, 2);
}
