//! HTTP/3: clients that cannot handle an early response, and peers that hold resources over QUIC.

use std::time::Duration;

use crate::quic_support::{World, connect, endpoint};
use bytes::Buf;
use h3::client::SendRequest;
use outlast_negotiate::Rules;
use outlast_net::certificate::KINDS;
use outlast_net::limits;
use outlast_net::policy::Policy;
use outlast_net::quic::{HTTP3, Settings};

use super::*;

struct Quic {
    world: World,
    address: SocketAddr,
}

async fn over_quic(settings: Settings) -> Quic {
    let world = World::new(Rules::default(), &KINDS[0], HTTP3);
    let listener = world.listen(settings);
    let address = listener.address();
    let server = Server::new(Arc::new(Fixture::new().service), world.door.clone(), system_clock);
    tokio::spawn(Arc::new(server).run_http3(listener, std::future::pending()));
    Quic { world, address }
}

type H3 = SendRequest<h3_quinn::OpenStreams, Bytes>;

impl Quic {
    fn endpoint(&self, octet: u8) -> quinn::Endpoint {
        let endpoint = endpoint(self.world.config(&Policy::default(), HTTP3));
        let socket = std::net::UdpSocket::bind(SocketAddr::from(([127, 0, 0, octet], 0))).unwrap();
        endpoint.rebind(socket).unwrap();
        endpoint
    }

    async fn client(&self, octet: u8) -> (H3, quinn::Endpoint) {
        let endpoint = self.endpoint(octet);
        let connection = soon(connect(&endpoint, self.address)).await.unwrap();
        let connection = h3_quinn::Connection::new(connection);
        let (mut driver, send) = h3::client::new(connection).await.unwrap();
        tokio::spawn(
            async move { std::future::poll_fn(|context| driver.poll_close(context)).await },
        );
        (send, endpoint)
    }
}

/// As a client of the crate `h3` does it: any error is a failure.
async fn gets(client: &mut H3, path: &str) -> Result<StatusCode, h3::error::StreamError> {
    let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
    let mut stream = client.send_request(request).await?;
    stream.finish().await?;
    let status = stream.recv_response().await?.status();
    while let Some(mut bytes) = stream.recv_data().await? {
        bytes.advance(bytes.remaining());
    }
    Ok(status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_get_of_an_h3_client_fails() {
    const COUNT: usize = 400;
    let quic = over_quic(Settings::default()).await;
    let (mut client, _endpoint) = quic.client(GOOD).await;
    let mut failed = 0;
    for index in 0..COUNT {
        let path = ["/healthz", "/readyz", "/nothing", "/acme/none/directory"][index % 4];
        if let Err(error) = soon(gets(&mut client, path)).await {
            println!("{path}: {error}");
            failed += 1;
        }
    }
    println!("{failed} of {COUNT} failed");
    assert_eq!(failed, 0);
}

/// HEADERS of a GET, in QPACK without the dynamic table (RFC 9204, section 4.5): 17 and the like are rows of the
/// static table.
fn get_healthz() -> Vec<u8> {
    // :method GET, :scheme https, :authority localhost, :path /healthz
    let mut section = vec![0, 0, 0xc0 | 17, 0xc0 | 23, 0x50, 9];
    section.extend(b"localhost");
    section.extend([0x51, 8]);
    section.extend(b"/healthz");
    [&[1, u8::try_from(section.len()).unwrap()][..], &section].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn end_of_bodyless_request_is_read_before_the_response() {
    let quic = over_quic(Settings::default()).await;
    let endpoint = quic.endpoint(GOOD);
    let connection = soon(connect(&endpoint, quic.address)).await.unwrap();
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    for _ in 0..20 {
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_all(&get_healthz()).await.unwrap();
        // The server has received the head and nothing after it.
        let stopped = tokio::time::timeout(Duration::from_millis(50), send.stopped()).await;
        assert!(stopped.is_err(), "it was stopped: {stopped:?}");
        send.finish().unwrap();
        let answer = soon(receive.read_to_end(1 << 16)).await.unwrap();
        assert!(answer.ends_with(b"ok\n"));
        // Nobody was told to stop (RFC 9114, section 4.1): everything sent has arrived.
        assert_eq!(soon(send.stopped()).await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_over_quic_make_room() {
    let settings = Settings { max_connections: 8, connections_by_peer: 4, ..Settings::default() };
    let quic = over_quic(settings).await;
    let (mut before, _endpoint) = quic.client(GOOD).await;
    assert!(soon(gets(&mut before, "/nothing")).await.unwrap().is_client_error());
    let mut held = Vec::new();
    for index in 0..30 {
        // Of one peer first, then of several.
        held.push(quic.client(if index < 10 { BAD } else { BAD + index % 4 }).await);
        if index < 10 {
            // The actions of one peer do not affect the others.
            let answer = soon(gets(&mut before, "/nothing")).await;
            assert!(answer.unwrap().is_client_error(), "{index}");
        }
    }
    let (mut good, _other) = quic.client(GOOD).await;
    assert!(soon(gets(&mut good, "/nothing")).await.unwrap().is_client_error());
    let mut open = 0;
    for (client, _) in &mut held {
        open += usize::from(soon(gets(client, "/healthz")).await.is_ok());
    }
    println!("{open} of {} are open", held.len());
    assert!(open < 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_streams_end_an_unused_connection() {
    let quic = over_quic(Settings::default()).await;
    let endpoint = quic.endpoint(BAD);
    // The first has no request, so that it lasts as long as an idle one; the others have streams with one byte each.
    let idle = soon(connect(&endpoint, quic.address)).await.unwrap();
    let silent = soon(connect(&endpoint, quic.address)).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..limits::MAX_STREAMS {
        let (mut send, receive) = soon(silent.open_bi()).await.unwrap();
        send.write_all(&[1]).await.unwrap();
        open.push((send, receive));
    }
    let connection = soon(connect(&endpoint, quic.address)).await.unwrap();
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    send.write_all(&[1]).await.unwrap();
    let used = h3_quinn::Connection::new(connection);
    let (mut driver, mut used) = h3::client::new(used).await.unwrap();
    tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
    let using = async {
        loop {
            let status = soon(gets(&mut used, "/acme/none/directory")).await.unwrap();
            assert_eq!(status, 404);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        closed = soon(silent.closed()) => match closed {
            quinn::ConnectionError::ApplicationClosed(close) => {
                assert_eq!(close.error_code, 0x107_u32.into(), "H3_EXCESSIVE_LOAD");
            }
            other => panic!("{other}"),
        },
        _ = idle.closed() => panic!("the idle connection was closed first"),
        () = using => {}
    }
    // A client with such a stream and other requests keeps its connection.
    let status = soon(gets(&mut used, "/acme/none/directory")).await.unwrap();
    assert_eq!(status, 404);
}
