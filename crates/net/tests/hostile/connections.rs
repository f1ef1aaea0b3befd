//! Connections that are held, and handshakes that never finish.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::*;

/// Number of clients that still have a connection.
async fn open(clients: &mut [Client]) -> usize {
    let mut open = 0;
    for client in clients {
        open += usize::from(get(client, "/healthz").await.is_some());
    }
    open
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_of_many_peers_make_room() {
    let setting = serve(|server| server.with_connections(16, 4)).await;
    let mut held = Vec::new();
    for attacker in 0..4 {
        for _ in 0..4 {
            held.push(setting.client(BAD + attacker).await);
        }
    }
    // All slots are taken, and health checks do not count as use.
    assert_eq!(open(&mut held).await, 16);
    for _ in 0..3 {
        setting.is_served(GOOD).await;
        assert!(open(&mut held).await >= 13);
    }
    // A good client's connection is not the next to be closed; those of attackers that reconnect are.
    let mut good = setting.client(GOOD).await;
    for attacker in 0..20 {
        assert_eq!(setting.asks(&mut good).await, 200);
        held.push(setting.client(BAD + attacker % 4).await);
    }
    assert_eq!(setting.asks(&mut good).await, 200);
    let evicted = setting.limited("connections") + setting.limited("connections_by_peer");
    println!("{evicted} connections of attackers made room");
    assert!(evicted >= 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_does_not_take_the_places_of_others() {
    let setting = serve(|server| server.with_connections(16, 4)).await;
    let mut before = setting.client(GOOD).await;
    assert_eq!(setting.asks(&mut before).await, 200);
    let mut held = Vec::new();
    for _ in 0..40 {
        let mut client = setting.client(BAD).await;
        assert_eq!(get(&mut client, "/healthz").await.unwrap(), 200);
        held.push(client);
    }
    // Idle for longer than all of theirs.
    assert_eq!(setting.asks(&mut before).await, 200);
    setting.is_served(GOOD).await;
    // Even a good client at their address gets in.
    setting.is_served(BAD).await;
    // One that has to make room may answer a last request, on a busy machine.
    let mut found = open(&mut held).await;
    for _ in 0..100 {
        if found <= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        found = open(&mut held).await;
    }
    println!("{found} of 40 are open");
    assert_eq!((found, setting.limited("connections_by_peer")), (3, 37));
    assert_eq!(setting.limited("connections"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_and_heads_that_do_not_end_make_room() {
    let setting = serve(|server| server.with_connections(8, 4)).await;
    let mut before = setting.client(GOOD).await;
    let mut held = Vec::new();
    for begun in [&[][..], &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]] {
        for _ in 0..50 {
            let mut stream = tcp_from(BAD, setting.address).await;
            // It may already be closed.
            let _ = stream.write_all(begun).await;
            held.push(stream);
        }
        setting.is_served(GOOD).await;
        setting.is_served(BAD).await;
    }
    let handshakes = setting.limited("handshakes_by_peer");
    println!("{handshakes} of 100 handshakes made room");
    // Twice as many handshakes at a time as connections; on a slow machine some end earlier.
    assert!(handshakes >= 50);
    let mut heads = Vec::new();
    for head in ["GET / HT", "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"] {
        for _ in 0..20 {
            let mut stream = setting.tls(BAD, "http/1.1").await;
            let _ = stream.write_all(head.as_bytes()).await;
            heads.push(stream);
        }
        setting.is_served(GOOD).await;
        setting.is_served(BAD).await;
    }
    assert_eq!(setting.asks(&mut before).await, 200);
    drop((held, heads));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_without_reading_keeps_nobody_waiting() {
    let setting = serve(|server| server).await;
    let mut good = setting.client(GOOD).await;
    let stream = setting.tls(BAD, "http/1.1").await;
    let (mut answers, mut asks) = tokio::io::split(stream);
    let many = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(5000);
    let asking = tokio::spawn(async move { asks.write_all(many.as_bytes()).await });
    for _ in 0..20 {
        assert_eq!(setting.asks(&mut good).await, 200);
    }
    // All of them are answered once somebody reads.
    let mut count = 0;
    let mut text = Vec::new();
    while count < 5000 {
        let mut piece = vec![0; 1 << 16];
        let read = soon(answers.read(&mut piece)).await.unwrap();
        assert!(read > 0, "{count} answers");
        text.extend_from_slice(&piece[..read]);
        count = text.windows(15).filter(|window| window == b"HTTP/1.1 200 OK").count();
    }
    asking.await.unwrap().unwrap();
}
