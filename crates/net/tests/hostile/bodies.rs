//! Bodies that are announced but do not arrive.

use tokio::io::AsyncWriteExt;

use super::*;

/// As many as used up the whole budget when announced lengths were counted: 64 KiB each.
const CONNECTIONS: usize = 64;
const STREAMS: u32 = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_do_not_come_stall_nobody() {
    let setting = serve(|server| server).await;
    let mut good = setting.client(GOOD).await;
    for round in 0..5 {
        let mut attackers = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = setting.tls(BAD, "h2").await;
            h2(&mut stream).await;
            attackers.push(stream);
        }
        let heads: Vec<u8> = (0..STREAMS).flat_map(|n| begun(2 * n + 1, "65536")).collect();
        for stream in &mut attackers {
            stream.write_all(&heads).await.unwrap();
        }
        for stream in &mut attackers {
            pinged(stream).await.unwrap();
        }
        // On an existing connection, on a new one, and from the attackers' address.
        assert_eq!(setting.asks(&mut good).await, 200);
        setting.is_served(GOOD).await;
        setting.is_served(BAD).await;
        let mut answered = 0;
        for stream in &mut attackers {
            answered += usize::from(pinged(stream).await.unwrap().contains(&HEADERS));
        }
        println!("round {round}: {answered} of {CONNECTIONS} attackers had an end before");
        // The good client was answered while all of them were held, not because they had been given up.
        if answered == 0 {
            return;
        }
    }
    panic!("the good client was never answered before the attackers were");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_body_is_given_up_but_not_the_connection() {
    let setting = serve(|server| server).await;
    let mut stream = setting.tls(BAD, "h2").await;
    h2(&mut stream).await;
    stream.write_all(&begun(1, "65536")).await.unwrap();
    loop {
        // 408, and nothing before it.
        if pinged(&mut stream).await.unwrap().contains(&HEADERS) {
            break;
        }
        setting.is_served(GOOD).await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert_eq!(setting.limited("body_rate"), 1);
    pinged(&mut stream).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_taken_back_end_their_connection() {
    let setting = serve(|server| server).await;
    let mut good = setting.client(GOOD).await;
    let mut stream = setting.tls(BAD, "h2").await;
    h2(&mut stream).await;
    let mut taken_back = 0;
    loop {
        let id = 2 * taken_back + 1;
        let mut going_on = stream.write_all(&begun(id, "65536")).await.is_ok();
        // It is being read when it is cancelled.
        going_on &= pinged(&mut stream).await.is_ok();
        let reset = frame(RST_STREAM, 0, id, &8_u32.to_be_bytes());
        going_on &= stream.write_all(&reset).await.is_ok();
        if taken_back % 50 == 0 {
            assert_eq!(setting.asks(&mut good).await, 200);
        }
        if !going_on {
            break;
        }
        taken_back += 1;
        assert!(taken_back < 100_000, "it goes on for ever");
    }
    println!("closed after {taken_back} requests that were taken back");
    assert_eq!(setting.limited("cancelled_requests"), 1);
    assert_eq!(setting.asks(&mut good).await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_without_end_are_not_read_without_end() {
    let setting = serve(|server| server).await;
    let mut good = setting.client(GOOD).await;
    let mut over_h2 = setting.tls(BAD, "h2").await;
    h2(&mut over_h2).await;
    over_h2.write_all(&frame(HEADERS, 0, 1, &fields(&[(":method", "POST")]))).await.unwrap();
    let more = frame(CONTINUATION, 0, 1, &fields(&[("x-more", &"x".repeat(100))]));
    let mut over_h1 = setting.tls(BAD, "http/1.1").await;
    over_h1.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    let line = format!("x-more: {}\r\n", "x".repeat(100));
    for (stream, piece) in [(&mut over_h2, more), (&mut over_h1, line.into_bytes())] {
        let mut sent = 0;
        while soon(async { stream.write_all(&piece).await.is_ok() && stream.flush().await.is_ok() })
            .await
        {
            sent += piece.len();
            assert!(sent < 256 << 20, "it goes on for ever");
            if sent % (piece.len() * 1000) == 0 {
                assert_eq!(setting.asks(&mut good).await, 200);
            }
        }
        println!("closed after {sent} bytes");
    }
    assert_eq!(setting.asks(&mut good).await, 200);
}
