//! HTTP through the proxy: both versions on the client's side, kept connections to backends, and errors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::proxied;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use outlast_net::proxy::protocol::Version;
use outlast_net::proxy::{HealthCheck, Protocol, Settings};
use proxied::{World, behind, nobody, server_behind, settings, soon, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;

fn http(world: &World, backends: Vec<outlast_net::proxy::Backend>) -> Settings {
    settings(world, Protocol::Http, backends)
}

/// Responds with the request that it received: request line, fields in order, body. Counts its connections.
fn mirror(listener: TcpListener) -> Arc<AtomicUsize> {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let service = service_fn(|request: Request<Incoming>| async move {
                let (head, body) = request.into_parts();
                let mut text = format!("{} {} {:?}\n", head.method, head.uri, head.version);
                let mut fields: Vec<_> = head
                    .headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()))
                    .collect();
                fields.sort();
                text.extend(fields);
                let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
                text.push_str(&format!("{} bytes", body.len()));
                let mut response = Response::new(Full::new(Bytes::from(text)));
                response.headers_mut().insert("keep-alive", "timeout=5".parse().unwrap());
                response.headers_mut().insert("x-kept", "yes".parse().unwrap());
                Ok::<_, hyper::Error>(response)
            });
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(serving);
        }
    });
    connections
}

async fn connect(world: &World, to: SocketAddr, alpn: &str) -> TlsStream<TcpStream> {
    world.connect_with(to, world.config(&[alpn], None), &[]).await.unwrap()
}

async fn h1(world: &World, to: SocketAddr) -> http1::SendRequest<Full<Bytes>> {
    let stream = connect(world, to, "http/1.1").await;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn text(response: Response<Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Repeats the request until the response is the one that health checks lead to.
async fn answered(world: &World, to: SocketAddr, expected: StatusCode) {
    loop {
        let request = Request::get("/").header("host", "a").body(Full::new(Bytes::new())).unwrap();
        if h1(world, to).await.send_request(request).await.unwrap().status() == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Everything that a client on a plain socket receives for these bytes.
async fn raw(world: &World, to: SocketAddr, request: &str) -> String {
    let mut stream = connect(world, to, "http/1.1").await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut got = Vec::new();
    let _ = soon(stream.read_to_end(&mut got)).await;
    String::from_utf8_lossy(&got).into_owned()
}

#[tokio::test]
async fn both_versions_arrive_over_kept_connections() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let connections = mirror(server);
    let mut settings = http(&world, vec![backend]);
    settings.tls_headers = true;
    let (_proxy, address) = start(settings);
    let expected = "POST /a?b HTTP/1.1
content-length: 5
forwarded: for=127.0.0.1;proto=https;host=\"shop.example\"
host: shop.example
via: VIA outlast
x-forwarded-for: 127.0.0.1
x-forwarded-host: shop.example
x-forwarded-proto: https
x-outlast-tls-cipher: TLS_AES_256_GCM_SHA384
x-outlast-tls-group: X25519MLKEM768
x-outlast-tls-post-quantum: true
x-outlast-tls-version: TLSv1.3
5 bytes";
    soon(async {
        let mut first = h1(&world, address).await;
        let stream = connect(&world, address, "h2").await;
        let (mut second, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        for round in 0..20 {
            let ask = || {
                let body = Full::new(Bytes::from("hello"));
                Request::post("https://shop.example/a?b")
                    .header("x-forwarded-for", "10.0.0.1")
                    .header("x-outlast-tls-group", "none")
                    .header("connection", "x-gone")
                    .header("x-gone", "1")
                    .body(body)
                    .unwrap()
            };
            let mut request = ask();
            *request.uri_mut() = "/a?b".parse().unwrap();
            request.headers_mut().insert("host", "shop.example".parse().unwrap());
            let response = first.send_request(request).await.unwrap();
            assert_eq!(response.headers()["x-kept"], "yes");
            assert!(!response.headers().contains_key("keep-alive"));
            assert_eq!(text(response).await, expected.replace("VIA", "1.1"), "{round}");
            let mut request = ask();
            request.headers_mut().remove("connection");
            request.headers_mut().remove("x-gone");
            let response = second.send_request(request).await.unwrap();
            assert_eq!(response.version(), http::Version::HTTP_2);
            assert_eq!(text(response).await, expected.replace("VIA", "2.0"), "{round}");
            first.ready().await.unwrap();
        }
    })
    .await;
    assert!(connections.load(Ordering::SeqCst) <= 2, "{connections:?}");
}

#[tokio::test]
async fn each_failure_has_its_status() {
    let world = World::new();
    let status = async |settings: Settings| {
        let (_proxy, address) = start(settings);
        let request = Request::get("/").header("host", "a").body(Full::new(Bytes::new())).unwrap();
        let response = h1(&world, address).await.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        assert!(text(response).await.starts_with(&format!("{status}: ")));
        status
    };
    soon(async {
        assert_eq!(status(http(&world, vec![behind(nobody())])).await, 502);
        // One backend accepts and is silent, one closes at once, one speaks another protocol.
        let (silent, backend) = server_behind().await;
        let mut settings = http(&world, vec![backend]);
        settings.answer = Duration::from_millis(300);
        assert_eq!(status(settings).await, 504);
        drop(silent);
        for answer in [&b""[..], b"220 mail.example ESMTP\r\n"] {
            let (server, backend) = server_behind().await;
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = server.accept().await {
                    let _ = stream.read(&mut [0; 1024]).await;
                    let _ = stream.write_all(answer).await;
                }
            });
            assert_eq!(status(http(&world, vec![backend])).await, 502);
        }
        // None is healthy.
        let mut settings = http(&world, vec![behind(nobody())]);
        settings.health = Some(HealthCheck {
            fall: 1,
            interval: Duration::from_millis(20),
            ..HealthCheck::default()
        });
        let (proxy, address) = start(settings);
        answered(&world, address, StatusCode::SERVICE_UNAVAILABLE).await;
        drop(proxy);
        // One of two backends is gone, and nobody notices.
        let (server, backend) = server_behind().await;
        mirror(server);
        let (_proxy, address) = start(http(&world, vec![behind(nobody()), backend]));
        let mut client = h1(&world, address).await;
        for _ in 0..4 {
            let request =
                Request::post("/").header("host", "a").body(Full::new("xy".into())).unwrap();
            let response = client.send_request(request).await.unwrap();
            assert!(text(response).await.ends_with("2 bytes"));
            client.ready().await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_health_check_asks_over_http() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let well = Arc::new(AtomicUsize::new(500));
    let answer = well.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = server.accept().await {
            let answer = answer.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let code = match request.uri().path() {
                    "/health" => u16::try_from(answer.load(Ordering::SeqCst)).unwrap(),
                    _ => 200,
                };
                let response = Response::builder().status(code).body(Full::new(Bytes::new()));
                async move { response }
            });
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(serving);
        }
    });
    let mut settings = http(&world, vec![backend]);
    settings.health = Some(HealthCheck {
        path: Some("/health".into()),
        interval: Duration::from_millis(30),
        rise: 1,
        fall: 1,
        ..HealthCheck::default()
    });
    let (_proxy, address) = start(settings);
    soon(async {
        for (said, expected) in [(500, 503), (204, 200), (404, 503), (302, 200)] {
            well.store(said, Ordering::SeqCst);
            answered(&world, address, StatusCode::from_u16(expected).unwrap()).await;
        }
    })
    .await;
}

/// A backend that closes kept connections just when they are reused.
#[tokio::test]
async fn a_kept_connection_that_is_gone_does_no_harm() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await.unwrap();
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                stream.write_all(answer).await.unwrap();
                // Reads the next request but does not answer it.
                let _ = stream.read(&mut head).await;
            });
        }
    });
    let (_proxy, address) = start(http(&world, vec![backend]));
    soon(async {
        let mut client = h1(&world, address).await;
        for _ in 0..6 {
            let request =
                Request::get("/").header("host", "a").body(Full::new(Bytes::new())).unwrap();
            let response = client.send_request(request).await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(text(response).await, "ok");
            client.ready().await.unwrap();
        }
        // A request that may have been carried out is not repeated.
        let request = Request::post("/").header("host", "a").body(Full::new("x".into())).unwrap();
        assert_eq!(client.send_request(request).await.unwrap().status(), 502);
    })
    .await;
}

#[tokio::test]
async fn bodies_stream_both_ways() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = server.accept().await {
            let service = service_fn(|request: Request<Incoming>| async move {
                Ok::<_, hyper::Error>(Response::new(request.into_body()))
            });
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(serving);
        }
    });
    let (_proxy, address) = start(http(&world, vec![backend]));
    soon(async {
        for alpn in ["http/1.1", "h2"] {
            let stream = TokioIo::new(connect(&world, address, alpn).await);
            let (to, from) = tokio::sync::mpsc::channel::<Bytes>(1);
            let frames = futures_util::stream::unfold(from, |mut from| async move {
                let piece = from.recv().await?;
                Some((Ok::<_, std::io::Error>(Frame::data(piece)), from))
            });
            let body = StreamBody::new(Box::pin(frames));
            let request = Request::post("https://a/").header("host", "a").body(body).unwrap();
            let response = if alpn == "h2" {
                let (mut sender, connection) =
                    http2::handshake(TokioExecutor::new(), stream).await.unwrap();
                tokio::spawn(connection);
                sender.send_request(request).await.unwrap()
            } else {
                let (mut sender, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                sender.send_request(request).await.unwrap()
            };
            let mut body = response.into_body();
            // Each piece comes back before the next leaves.
            for number in 0..10u8 {
                let piece = Bytes::from(vec![number; 100_000]);
                to.send(piece.clone()).await.unwrap();
                let mut back = Vec::new();
                while back.len() < piece.len() {
                    let frame = body.frame().await.unwrap().unwrap();
                    back.extend(frame.into_data().unwrap());
                }
                assert!(back == piece);
            }
            drop(to);
            assert!(body.collect().await.unwrap().to_bytes().is_empty());
        }
    })
    .await;
}

/// Without a length, with any method.
#[tokio::test]
async fn bodies_of_any_method_arrive() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    mirror(server);
    let (_proxy, address) = start(http(&world, vec![backend]));
    soon(async {
        let stream = TokioIo::new(connect(&world, address, "h2").await);
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        for method in ["GET", "POST", "DELETE"] {
            let pieces = ["hel", "lo"].map(|piece| Ok::<_, std::io::Error>(Frame::data(piece.into())));
            let body: StreamBody<_> = StreamBody::new(futures_util::stream::iter(pieces));
            let body = BodyExt::boxed(BodyExt::map_frame(body, |frame: Frame<Bytes>| frame));
            let request = Request::builder().method(method).uri("https://a/").body(body).unwrap();
            let said = text(sender.send_request(request).await.unwrap()).await;
            assert!(said.ends_with("5 bytes"), "{method}: {said}");
        }
        let h1 = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n";
        let said = raw(&world, address, h1).await;
        assert!(said.ends_with("2 bytes"), "{said}");
    })
    .await;
}

/// NTLM authenticates a connection, so nobody else may use it.
#[tokio::test]
async fn connections_that_are_authenticated_are_not_shared() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let connections = mirror(server);
    let (_proxy, address) = start(http(&world, vec![backend]));
    soon(async {
        let mut client = h1(&world, address).await;
        for (field, expected) in [("NTLM x", 1), ("Basic x", 2), ("Basic x", 2)] {
            let request = Request::get("/").header("host", "a").header("authorization", field);
            let request = request.body(Full::new(Bytes::new())).unwrap();
            let response = client.send_request(request).await.unwrap();
            text(response).await;
            client.ready().await.unwrap();
            // The connection is kept a moment after the response.
            while connections.load(Ordering::SeqCst) < expected {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert_eq!(connections.load(Ordering::SeqCst), expected, "{field}");
        }
    })
    .await;
}

#[tokio::test]
async fn protocols_are_switched() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..read]).to_lowercase();
                assert!(
                    head.contains("upgrade: websocket") && head.contains("connection: upgrade")
                );
                let answer = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\nfirst";
                stream.write_all(answer).await.unwrap();
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await.unwrap();
            });
        }
    });
    let (proxy, address) = start(http(&world, vec![backend]));
    soon(async {
        let mut stream = connect(&world, address, "http/1.1").await;
        let ask = b"GET /chat HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\n\r\n";
        stream.write_all(ask).await.unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"first") {
            assert!(stream.read_buf(&mut got).await.unwrap() > 0);
        }
        let head = String::from_utf8_lossy(&got).to_lowercase();
        assert!(head.starts_with("http/1.1 101 ") && head.contains("sec-websocket-accept: x"));
        stream.write_all(b"ping").await.unwrap();
        let mut back = [0; 4];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"ping");
        // It counts as open when the proxy stops.
        let stopping = tokio::spawn(proxy.stop(10 * outlast_testing::PATIENCE));
        tokio::time::sleep(Duration::from_millis(100)).await;
        stream.write_all(b"pong").await.unwrap();
        stream.read_exact(&mut back).await.unwrap();
        drop(stream);
        stopping.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_is_refused() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let connections = mirror(server);
    let (_proxy, address) = start(http(&world, vec![backend]));
    let rows = [
        "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n folded: b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nx: a\nb\0c\r\n\r\n",
        "CONNECT b:443 HTTP/1.1\r\nhost: b:443\r\n\r\n",
    ];
    soon(async {
        for row in rows {
            let request = row.replacen("\r\n", "\r\nconnection: close\r\n", 1);
            let said = raw(&world, address, &request).await;
            assert!(said.starts_with("HTTP/1.1 4"), "{row:?}: {said}");
        }
    })
    .await;
    assert_eq!(connections.load(Ordering::SeqCst), 0);
    // RFC 9112, section 6.3: of two lengths one counts, and the other is not forwarded.
    let two = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n";
    let said = raw(&world, address, two).await;
    assert!(said.contains("transfer-encoding: chunked\n") && said.ends_with("2 bytes"), "{said}");
    assert!(!said.contains("content-length: 5"), "{said}");
}

#[tokio::test]
async fn a_client_may_wait_for_100() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    mirror(server);
    let (_proxy, address) = start(http(&world, vec![backend]));
    soon(async {
        let mut stream = connect(&world, address, "http/1.1").await;
        let head = b"PUT / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\nconnection: close\r\n\r\n";
        stream.write_all(head).await.unwrap();
        let mut got = vec![0; 25];
        stream.read_exact(&mut got).await.unwrap();
        assert_eq!(got, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"hello").await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert!(rest.starts_with("HTTP/1.1 200 OK") && rest.ends_with("5 bytes"), "{rest}");
    })
    .await;
}

/// Connections that begin with a client's address are not shared with another client.
#[tokio::test]
async fn announced_connections_are_their_clients_own() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let mut settings = http(&world, vec![backend]);
    settings.connecting.announce = Some(Version::V1);
    let (_proxy, address) = start(settings);
    let seen = tokio::spawn(async move {
        let mut seen = Vec::new();
        for _ in 0..3 {
            let (mut stream, _) = server.accept().await.unwrap();
            let mut head = [0; 4096];
            let mut read = 0;
            while !head[..read].windows(4).any(|end| end == b"\r\n\r\n") {
                read += stream.read(&mut head[read..]).await.unwrap();
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            seen.push(String::from_utf8_lossy(&head[..read]).lines().next().unwrap().to_owned());
        }
        seen
    });
    soon(async {
        let mut client = h1(&world, address).await;
        for _ in 0..3 {
            let request =
                Request::get("/").header("host", "a").body(Full::new(Bytes::new())).unwrap();
            assert_eq!(client.send_request(request).await.unwrap().status(), 204);
            client.ready().await.unwrap();
        }
        for line in seen.await.unwrap() {
            assert!(line.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "), "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn requests_end_before_the_proxy_does() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate";
        stream.write_all(answer).await.unwrap();
    });
    let (proxy, address) = start(http(&world, vec![backend]));
    soon(async {
        let mut client = h1(&world, address).await;
        let request = Request::get("/").header("host", "a").body(Full::new(Bytes::new())).unwrap();
        let asking =
            tokio::spawn(async move { text(client.send_request(request).await.unwrap()).await });
        tokio::time::sleep(Duration::from_millis(150)).await;
        // It ends with the last request, long before its time limit.
        proxy.stop(10 * outlast_testing::PATIENCE).await;
        assert_eq!(asking.await.unwrap(), "late");
    })
    .await;
}
