//! The small HTTP client, with servers that respond correctly and servers that do not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use outlast_net::fetch::{FetchError, get, post};
use outlast_net::limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers every request by its head; the result of `answer` is sent unchanged.
async fn serve(answer: fn(&str, u16) -> Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = Vec::new();
                let mut buffer = [0; 4096];
                while !head.windows(4).any(|window| window == b"\r\n\r\n") {
                    let read = stream.read(&mut buffer).await.unwrap_or(0);
                    if read == 0 {
                        return;
                    }
                    head.extend_from_slice(&buffer[..read]);
                }
                let bytes = answer(&String::from_utf8_lossy(&head), port);
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}

fn answer(head: &str, port: u16) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap();
    let with = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let to = |slot: String| {
        format!("HTTP/1.1 302 Found\r\nlocation: {slot}\r\ncontent-length: 0\r\n\r\n").into_bytes()
    };
    match path {
        "/hello?x=1" => {
            with("200 OK", &format!("host {}", head.contains(&format!("host: 127.0.0.1:{port}"))))
        }
        "/post" => {
            with("200 OK", &format!("{} {}", head.starts_with("POST"), head.contains("text/x")))
        }
        "/there" => to(format!("http://127.0.0.1:{port}/hello?x=1")),
        "/round" => to(format!("http://127.0.0.1:{port}/round")),
        // The same server by another name, which could be any machine's.
        "/elsewhere" => to(format!("http://localhost:{port}/hello?x=1")),
        "/secret" => to("file:///etc/passwd".into()),
        "/long" => {
            let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
            bytes.resize(bytes.len() + limits::MAX_FETCH + 1, b'x');
            bytes
        }
        "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec(),
        "/nonsense" => b"nonsense\r\n\r\n".to_vec(),
        _ => with("404 Not Found", ""),
    }
}

#[tokio::test]
async fn what_is_there_is_fetched_and_the_rest_told() {
    let port = serve(answer).await;
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    assert_eq!(get(&url("/hello?x=1")).await.unwrap(), b"host true");
    assert_eq!(get(&url("/there")).await.unwrap(), b"host true");
    assert_eq!(post(&url("/post"), "text/x", b"body".to_vec()).await.unwrap(), b"true true");
    let missing = get(&url("/missing")).await.unwrap_err();
    assert_eq!(missing, FetchError::Status { url: url("/missing"), status: 404 });
    // A redirected POST would send the body to another server.
    assert!(matches!(
        post(&url("/there"), "text/x", Vec::new()).await,
        Err(FetchError::Status { status: 302, .. })
    ));
    assert!(matches!(get(&url("/round")).await, Err(FetchError::Connection { .. })));
    let elsewhere = get(&url("/elsewhere")).await.unwrap_err().to_string();
    assert!(elsewhere.contains("another server than 127.0.0.1"), "{elsewhere}");
    assert!(matches!(get(&url("/secret")).await, Err(FetchError::Url(_))));
    assert_eq!(get(&url("/long")).await, Err(FetchError::TooLong(url("/long"))));
    for broken in ["/cut", "/nonsense"] {
        assert!(matches!(get(&url(broken)).await, Err(FetchError::Connection { .. })), "{broken}");
    }
    for bad in ["https://localhost/", "ldap://localhost/", "localhost", "http://", "http:// /", ""]
    {
        assert!(matches!(get(bad).await, Err(FetchError::Url(_))), "{bad}");
    }
    let closed = get("http://127.0.0.1:1/").await;
    assert!(matches!(closed, Err(FetchError::Connection { .. })), "{closed:?}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    assert_eq!(get(&url).await, Err(FetchError::Timeout(url.clone())));
}
