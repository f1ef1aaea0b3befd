//! Peers that hold on to resources: while they do, a good client must be answered. Attackers let go only afterwards;
//! nothing is measured in time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;
use crate::proxied;

mod bodies;
mod connections;
mod early;
mod http3;
mod listeners;
mod proxy;
mod slow;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use common::Fixture;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use outlast_net::metrics::{Metrics, scrape};
use outlast_net::proxy::Protocol;
use outlast_net::server::{Server, system_clock};
use proxied::{World, any_port, soon};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Last octet of the good client's address, and of the attackers' addresses.
const GOOD: u8 = 1;
const BAD: u8 = 2;

/// A server over TCP, and a request that it answers with 200.
struct Setting {
    world: World,
    address: SocketAddr,
    request: Request<Vec<u8>>,
    metrics: Arc<Metrics>,
}

async fn serve(change: impl FnOnce(Server) -> Server) -> Setting {
    let fixture = Fixture::new();
    fixture.now.set(system_clock() / 1000);
    serve_on(fixture, change).await
}

async fn serve_on(fixture: Fixture, change: impl FnOnce(Server) -> Server) -> Setting {
    let request = fixture.raw("kms", "TrentService.ListKeys", b"{}");
    let world = World::new();
    let metrics = Arc::new(Metrics::new());
    let door = world.door(Protocol::Http, None);
    let server = Server::new(Arc::new(fixture.service), door, system_clock);
    let server = change(server).counting(Some(metrics.clone()));
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(Arc::new(server).run(listener, std::future::pending()));
    Setting { world, address, request, metrics }
}

/// From another address of this machine.
async fn tcp_from(octet: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, octet], 0))).unwrap();
    let stream = soon(socket.connect(to)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

async fn tls_from(world: &World, octet: u8, to: SocketAddr, alpn: &str) -> TlsStream<TcpStream> {
    let stream = tcp_from(octet, to).await;
    let config = Arc::new(world.config(&[alpn], None));
    let name = ServerName::try_from("localhost").unwrap();
    soon(TlsConnector::from(config).connect(name, stream)).await.unwrap()
}

type Client = SendRequest<Full<Bytes>>;

impl Setting {
    async fn tls(&self, octet: u8, alpn: &str) -> TlsStream<TcpStream> {
        tls_from(&self.world, octet, self.address, alpn).await
    }

    /// A client of HTTP/1.1.
    async fn client(&self, octet: u8) -> Client {
        let stream = self.tls(octet, "http/1.1").await;
        let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Sends a signed request with a body.
    async fn asks(&self, client: &mut Client) -> StatusCode {
        let request = self.request.clone().map(|body| Full::new(Bytes::from(body)));
        soon(client.ready()).await.unwrap();
        soon(client.send_request(request)).await.unwrap().status()
    }

    /// A good client connects and is answered.
    async fn is_served(&self, octet: u8) {
        let mut client = self.client(octet).await;
        assert_eq!(self.asks(&mut client).await, 200, "from {octet}");
    }

    /// Number of events counted for this limit.
    fn limited(&self, limit: &str) -> u64 {
        let page = scrape::page(&self.metrics);
        let rows = page.lines().filter(|line| line.starts_with("outlast_limited_total{"));
        let rows = rows.filter(|line| line.contains(&format!("limit=\"{limit}\"")));
        rows.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }
}

async fn get(client: &mut Client, path: &str) -> Option<StatusCode> {
    let request = Request::get(path).header("host", "localhost").body(Full::default()).unwrap();
    soon(client.ready()).await.ok()?;
    let answer = soon(client.send_request(request)).await.ok()?;
    let status = answer.status();
    answer.into_body().collect().await.ok()?;
    Some(status)
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), content].concat()
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// Fields in HPACK without the dynamic table and without Huffman coding (RFC 7541, section 6.2.2).
fn fields(list: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in list {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            out.push(text.len() as u8);
            out.extend(text.as_bytes());
        }
    }
    out
}

/// The head of a request whose body is announced but does not arrive.
fn begun(stream: u32, announced: &str) -> Vec<u8> {
    let list = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/"),
        ("x-amz-target", "TrentService.ListKeys"),
        ("content-length", announced),
    ];
    frame(HEADERS, END_HEADERS, stream, &fields(&list))
}

/// Opens an HTTP/2 connection and exchanges the prefaces.
async fn h2(stream: &mut TlsStream<TcpStream>) {
    let hello = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[])].concat();
    stream.write_all(&hello).await.unwrap();
    pinged(stream).await.unwrap();
}

/// Waits until the server has read everything so far. Skips what it sends in the meantime.
async fn pinged(stream: &mut TlsStream<TcpStream>) -> std::io::Result<Vec<u8>> {
    stream.write_all(&frame(PING, 0, 0, &[7; 8])).await?;
    let mut kinds = Vec::new();
    loop {
        let mut head = [0; 9];
        soon(stream.read_exact(&mut head)).await?;
        let len = usize::try_from(u32::from_be_bytes([0, head[0], head[1], head[2]])).unwrap();
        let mut content = vec![0; len];
        soon(stream.read_exact(&mut content)).await?;
        if head[3] == PING && head[4] == ACK {
            return Ok(kinds);
        }
        kinds.push(head[3]);
    }
}
