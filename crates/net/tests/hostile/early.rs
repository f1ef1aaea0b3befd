//! Responses that are decided before the request has been read: a client that is still sending must receive them.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::*;

/// Requests that are answered without being read, each with the start of the response.
fn cases() -> Vec<(String, &'static str)> {
    let post = |path: &str, more: &str| {
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{more}connection: close\r\n")
    };
    vec![
        (post("/", "x-amz-target: TrentService.NoSuchOperation\r\n"), "HTTP/1.1 4"),
        (post("/", "x-amz-target: NoSuchService.ListKeys\r\n"), "HTTP/1.1 4"),
        (post("/nothing", ""), "HTTP/1.1 4"),
        (post("/service/x/operation/y", "smithy-protocol: rpc-v2-cbor\r\n"), "HTTP/1.1 4"),
        (post("/healthz", "").replace("POST", "GET"), "HTTP/1.1 200"),
        (post("/acme/none/new-order", ""), "HTTP/1.1 4"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_answers_reach_who_is_still_sending() {
    let setting = serve(|server| server).await;
    for len in [30_000, 60_000] {
        for (head, expected) in cases() {
            let mut stream = setting.tls(GOOD, "http/1.1").await;
            let head = format!("{head}content-length: {len}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            // From here on the response is decided.
            for piece in vec![b'x'; len].chunks(10_000) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let sent = async {
                    stream.write_all(piece).await?;
                    stream.flush().await
                };
                sent.await.unwrap_or_else(|error| panic!("{head}: {error}"));
            }
            let mut answer = Vec::new();
            let _ = soon(stream.read_to_end(&mut answer)).await;
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with(expected), "{head}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_turns_out_too_long_is_answered() {
    let setting = serve(|server| server).await;
    let mut stream = setting.tls(GOOD, "http/1.1").await;
    // For KMS, from a caller who exists: 256 KiB are the limit.
    let mut head =
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n".to_owned();
    for (name, value) in setting.request.headers() {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let chunk = format!("2710\r\n{}\r\n", " ".repeat(10_000));
    for _ in 0..60 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_answers_over_http2_leave_the_body_whole() {
    let setting = serve(|server| server).await;
    let stream = setting.tls(GOOD, "h2").await;
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..20 {
        let request = Request::post("https://localhost/nothing")
            .body(Full::new(Bytes::from(vec![b'x'; 60_000])))
            .unwrap();
        soon(client.ready()).await.unwrap();
        let answer = soon(client.send_request(request)).await.unwrap();
        assert!(answer.status().is_client_error());
        assert!(!answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    }
}
