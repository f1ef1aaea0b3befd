//! HTTP/3 as served, with h3-quinn as the client: the same responses and limits as over TCP.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;
use crate::quic_support;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use common::Fixture;
use h3::client::SendRequest;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use outlast_api::service::Service;
use outlast_negotiate::Rules;
use outlast_net::certificate::KINDS;
use outlast_net::limits;
use outlast_net::policy::Policy;
use outlast_net::quic::{HTTP3, Settings};
use outlast_net::server::{Server, system_clock};
use outlast_testing::PATIENCE;
use quic_support::{World, client_config, connect, endpoint};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;

type Client = SendRequest<h3_quinn::OpenStreams, Bytes>;

struct Setting {
    world: World,
    address: SocketAddr,
    tcp: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

/// Serves over TCP and QUIC.
async fn serve(service: Service) -> Setting {
    let world = World::new(Rules::default(), &KINDS[0], HTTP3);
    let listener = world.listen(Settings::default());
    let address = listener.address();
    let listener_over_tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tcp = listener_over_tcp.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let server = Server::new(Arc::new(service), world.door.clone(), system_clock)
        .announcing_http3(address.port());
    let server = Arc::new(server);
    tokio::spawn(server.clone().run(listener_over_tcp, std::future::pending()));
    let task = tokio::spawn(server.run_http3(listener, async move {
        let _ = stopped.await;
    }));
    Setting { world, address, tcp, stop: Some(stop), task }
}

async fn client(setting: &Setting) -> (Client, quinn::Endpoint) {
    let endpoint = endpoint(setting.world.config(&Policy::default(), HTTP3));
    let connection = connect(&endpoint, setting.address).await.unwrap();
    let connection = h3_quinn::Connection::new(connection);
    let (mut driver, send) = h3::client::new(connection).await.unwrap();
    tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
    (send, endpoint)
}

type Answer = (StatusCode, http::HeaderMap, Vec<u8>);

/// Sends the body in pieces of this size.
async fn ask(
    client: &mut Client,
    request: Request<Vec<u8>>,
    piece: usize,
) -> Result<Answer, h3::error::StreamError> {
    let (head, body) = request.into_parts();
    let stream = client.send_request(Request::from_parts(head, ())).await?;
    let (mut send, mut receive) = stream.split();
    let sending = async {
        for bytes in body.chunks(piece) {
            send.send_data(Bytes::copy_from_slice(bytes)).await?;
        }
        send.finish().await
    };
    let receiving = async {
        let (head, ()) = receive.recv_response().await?.into_parts();
        let mut body = Vec::new();
        while let Some(mut bytes) = receive.recv_data().await? {
            body.extend_from_slice(&bytes.copy_to_bytes(bytes.remaining()));
        }
        Ok((head.status, head.headers, body))
    };
    // A server that answers early may stop the request.
    let (_, answer) = tokio::join!(sending, receiving);
    answer
}

/// With the host where HTTP/3 puts it.
fn over_http3(mut request: Request<Vec<u8>>) -> Request<Vec<u8>> {
    let host = request.headers_mut().remove("host").unwrap();
    let path = request.uri().path();
    *request.uri_mut() = format!("https://{}{path}", host.to_str().unwrap()).parse().unwrap();
    request
}

fn get(path: &str) -> Request<Vec<u8>> {
    Request::get(format!("https://localhost{path}")).body(Vec::new()).unwrap()
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.now.set(system_clock() / 1000);
    fixture
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_answers_of_any_size_are_carried() {
    let fixture = fixture();
    for _ in 0..1000 {
        fixture.kms("CreateKey", json!({})).unwrap();
    }
    let list = json!({ "Limit": 1000 }).to_string();
    let list = over_http3(fixture.raw("kms", "TrentService.ListKeys", list.as_bytes()));
    let import = json!({
        "Certificate": "eA==",
        "PrivateKey": "eA==",
        "CertificateChain": common::b64(&vec![b'x'; 300_000]),
    });
    let import = import.to_string().into_bytes();
    assert!(import.len() > 300_000);
    let import = fixture.raw("acm", "CertificateManager.ImportCertificate", &import);
    let store = fixture.store.clone();
    let setting = serve(fixture.service).await;
    let (mut client, _endpoint) = client(&setting).await;
    let (status, headers, body) = ask(&mut client, list, 1).await.unwrap();
    assert_eq!(status, 200);
    assert!(headers.contains_key("x-amzn-requestid"));
    assert!(headers["date"].to_str().unwrap().ends_with(" GMT"));
    assert_eq!(headers["content-length"], body.len().to_string().as_str());
    assert!(body.len() > 100_000, "{} bytes", body.len());
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["Keys"].as_array().unwrap().len(), 1000);
    // The signature covers the whole body: any loss would be an error.
    for piece in [7000, 400_000] {
        let request = over_http3(import.clone());
        let (status, _, body) = ask(&mut client, request, piece).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status.as_u16(), &body["__type"]), (400, &json!("ValidationException")));
    }
    let events = outlast_store::Store::events(store.as_ref(), 0, 100_000).unwrap();
    let last: Value = serde_json::from_slice(&events.last().unwrap().body).unwrap();
    let details = &last["tlsDetails"];
    assert_eq!(details["tlsVersion"], "TLSv1.3", "{last}");
    assert_eq!(details["keyExchange"], "X25519MLKEM768", "{last}");
    assert_eq!(details["cipherSuite"], "TLS_AES_256_GCM_SHA384");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_share_a_connection() {
    let setting = serve(fixture().service).await;
    let (client, _endpoint) = client(&setting).await;
    let mut tasks = Vec::new();
    // More than may be open at a time: the others wait for their turn.
    for _ in 0..200 {
        let mut client = client.clone();
        tasks.push(tokio::spawn(async move { ask(&mut client, get("/readyz"), 1).await.unwrap() }));
    }
    for task in tasks {
        let (status, headers, body) = task.await.unwrap();
        assert_eq!((status.as_u16(), body.as_slice()), (200, &b"ok\n"[..]));
        assert!(!headers.contains_key("alt-svc"), "they are here already");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_much_is_refused_and_the_connection_lives() {
    let fixture = fixture();
    let long = over_http3(fixture.raw("kms", "TrentService.ListKeys", &vec![b' '; 300_000]));
    let unknown = {
        let mut request = long.clone();
        let value = request.headers()["authorization"].to_str().unwrap();
        let value = value.replace(common::ACCESS_KEY, "AKIANOBODYKNOWSTHIS0");
        request.headers_mut().insert("authorization", value.parse().unwrap());
        *request.body_mut() = vec![b' '; 200_000];
        request
    };
    let setting = serve(fixture.service).await;
    let (mut client, _endpoint) = client(&setting).await;
    // KMS takes 256 KiB.
    let (status, ..) = ask(&mut client, long.clone(), 10_000).await.unwrap();
    assert_eq!(status, 413);
    let mut announced = long;
    announced.headers_mut().insert("content-length", "300000".parse().unwrap());
    let (status, ..) = ask(&mut client, announced, 10_000).await.unwrap();
    assert_eq!(status, 413);
    let (status, _, body) = ask(&mut client, unknown, 10_000).await.unwrap();
    assert!(status == 400 || status == 403, "{status} {}", String::from_utf8_lossy(&body));
    // A body of another length than announced is neither waited for nor accepted.
    for announced in ["4", "9"] {
        let mut request = get("/");
        *request.method_mut() = Method::POST;
        request.headers_mut().insert("content-length", announced.parse().unwrap());
        request.headers_mut().insert("x-amz-target", "TrentService.ListKeys".parse().unwrap());
        *request.body_mut() = b"{    }".to_vec();
        match ask(&mut client, request, 10).await {
            Ok((status, ..)) => assert!(status.is_client_error(), "{status}"),
            Err(error) => println!("{error}"),
        }
    }
    let (status, ..) = ask(&mut client, get("/healthz"), 1).await.unwrap();
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_have_a_length_at_most() {
    let setting = serve(fixture().service).await;
    let endpoint = endpoint(setting.world.config(&Policy::default(), HTTP3));
    // A separate client that has not read the server's settings.
    let connection = connect(&endpoint, setting.address).await.unwrap();
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    // A HEADERS frame with an announced length of 16 MiB is not waited for.
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&[1, 0x81, 0, 0, 0]).await.unwrap();
    let filling = async {
        loop {
            if let Err(error) = send.write_all(&[b'x'; 4096]).await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(PATIENCE, filling).await.unwrap();
    assert!(
        matches!(error, quinn::WriteError::Stopped(code) if code == 0x107_u32.into()),
        "{error}"
    );
    match receive.read_to_end(1 << 20).await {
        // H3_REQUEST_CANCELLED (RFC 9114, section 8.1), and no end that looks like a response.
        Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
            assert_eq!(code, 0x10c_u32.into());
        }
        other => panic!("{other:?}"),
    }
    // The connection stays open.
    let (mut client, _endpoint) = client(&setting).await;
    let mut request = get("/healthz");
    request.headers_mut().insert("x-long", "x".repeat(limits::MAX_HEAD - 1000).parse().unwrap());
    let (status, ..) = ask(&mut client, request, 1).await.unwrap();
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_over_tcp_say_where_http3_is() {
    let setting = serve(fixture().service).await;
    let config = client_config(&Policy::default(), setting.world.roots.clone(), HTTP3);
    let stream = TcpStream::connect(setting.tcp).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let (mut client, connection) =
        http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for path in ["/healthz", "/acme/none/directory", "/nothing"] {
        let request = Request::get(path).header("host", "localhost").body(Full::default()).unwrap();
        client.ready().await.unwrap();
        let answer = client.send_request(request).await.unwrap();
        let expected = format!("h3=\":{}\"; ma=3600", setting.address.port());
        assert_eq!(answer.headers()["alt-svc"], expected.as_str(), "{path}");
        answer.into_body().collect().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_lets_open_requests_finish() {
    let fixture = fixture();
    let request = over_http3(fixture.raw("kms", "TrentService.ListKeys", b"{}"));
    let mut setting = serve(fixture.service).await;
    let (mut busy, _first) = client(&setting).await;
    let (_idle, _second) = client(&setting).await;
    let stream = busy.send_request(Request::from_parts(request.into_parts().0, ())).await.unwrap();
    let (mut send, mut receive) = stream.split();
    tokio::time::sleep(Duration::from_millis(100)).await;
    setting.stop.take().unwrap().send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    // A new connection is not served, but the open request is.
    assert!(!setting.task.is_finished());
    send.send_data(Bytes::from_static(b"{}")).await.unwrap();
    send.finish().await.unwrap();
    let answer = receive.recv_response().await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut body = Vec::new();
    while let Some(mut bytes) = receive.recv_data().await.unwrap() {
        body.extend_from_slice(&bytes.copy_to_bytes(bytes.remaining()));
    }
    assert!(serde_json::from_slice::<Value>(&body).is_ok());
    let ended = tokio::time::timeout(PATIENCE, &mut setting.task).await;
    ended.expect("the server stops once nothing is open").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_another_address_a_client_must_connect_anew() {
    let setting = serve(fixture().service).await;
    let (mut client, endpoint) = client(&setting).await;
    let moved = |address| endpoint.rebind(UdpSocket::bind(address).unwrap()).unwrap();
    let (status, ..) = ask(&mut client, get("/healthz"), 1).await.unwrap();
    assert_eq!(status, 200);
    // Another port is still the same host.
    moved("127.0.0.1:0");
    let (status, ..) = ask(&mut client, get("/healthz"), 1).await.unwrap();
    assert_eq!(status, 200);
    moved("127.0.0.2:0");
    let answer = tokio::time::timeout(PATIENCE, ask(&mut client, get("/healthz"), 1));
    assert!(answer.await.expect("the connection is closed").is_err());
}

/// A separate client that sends exactly the bytes it is given.
async fn raw(setting: &Setting) -> (quinn::Connection, quinn::Endpoint, quinn::SendStream) {
    let endpoint = endpoint(setting.world.config(&Policy::default(), HTTP3));
    let connection = connect(&endpoint, setting.address).await.unwrap();
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    (connection, endpoint, control)
}

/// HEADERS with these fields, in QPACK without the dynamic table and without Huffman coding (RFC 9204, section 4.5).
fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    fn text(out: &mut Vec<u8>, first: u8, bits: u8, text: &str) {
        let max = (1_u8 << bits) - 1;
        if text.len() < usize::from(max) {
            out.push(first | text.len() as u8);
        } else {
            assert!(text.len() < usize::from(max) + 128);
            out.extend([first | max, (text.len() - usize::from(max)) as u8]);
        }
        out.extend(text.as_bytes());
    }
    let mut section = vec![0, 0];
    for (name, value) in fields {
        text(&mut section, 0x20, 3, name);
        text(&mut section, 0, 7, value);
    }
    let len = section.len() as u16;
    let mut out = vec![1];
    out.extend((0x4000 | len).to_be_bytes());
    out.extend(section);
    out
}

const POST: [(&str, &str); 5] = [
    (":method", "POST"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/"),
    ("x-amz-target", "TrentService.ListKeys"),
];

/// How a request's stream ends: with bytes, or with an error code.
async fn outcome(connection: &quinn::Connection, bytes: &[u8]) -> Result<Vec<u8>, Option<u64>> {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    if send.write_all(bytes).await.is_ok() {
        let _ = send.finish();
    }
    let reading = receive.read_to_end(1 << 20);
    match tokio::time::timeout(PATIENCE, reading).await.expect("it ends") {
        Ok(bytes) => Ok(bytes),
        Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
            Err(Some(code.into_inner()))
        }
        Err(quinn::ReadToEndError::Read(quinn::ReadError::ConnectionLost(
            quinn::ConnectionError::ApplicationClosed(close),
        ))) => Err(Some(close.error_code.into_inner())),
        Err(_) => Err(None),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_is_whole_or_none() {
    let setting = serve(fixture().service).await;
    let ten = [&POST[..], &[("content-length", "10")]].concat();
    let data: &[u8] = &[0, 5, b'{', b' ', b' ', b' ', b' '];
    let rest: &[u8] = &[0, 5, b' ', b' ', b' ', b' ', b'}'];
    let (connection, _endpoint, _control) = raw(&setting).await;
    // An empty DATA frame is not the end: all ten bytes have arrived.
    let parts = [&headers(&ten), data, &[0, 0], rest].concat();
    let answer = outcome(&connection, &parts).await.unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("MissingAuthenticationToken"), "{text}");
    // Truncated inside a frame: H3_FRAME_ERROR. After trailers: H3_FRAME_UNEXPECTED.
    let trailers = headers(&[("x-last", "1")]);
    for (parts, code) in [
        ([&headers(&POST), data, &rest[..4]].concat(), 0x106),
        ([&headers(&POST), data, &trailers, rest].concat(), 0x105),
    ] {
        let (connection, _endpoint, _control) = raw(&setting).await;
        let _ = outcome(&connection, &parts).await;
        let closed = tokio::time::timeout(PATIENCE, connection.closed()).await;
        match closed.expect("the connection is closed") {
            quinn::ConnectionError::ApplicationClosed(close) => {
                assert_eq!(close.error_code.into_inner(), code);
            }
            other => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_carry_nothing_are_counted() {
    let setting = serve(fixture().service).await;
    let (connection, _endpoint, _control) = raw(&setting).await;
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    send.write_all(&headers(&POST)).await.unwrap();
    let filling = async {
        loop {
            if let Err(error) = send.write_all(&[0; 4096]).await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(PATIENCE, filling).await.unwrap();
    assert!(
        matches!(error, quinn::WriteError::Stopped(code) if code == 0x107_u32.into()),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_are_told_so() {
    let setting = serve(fixture().service).await;
    let (connection, _endpoint, _control) = raw(&setting).await;
    for fields in [
        &[("content-length", "2"), ("content-length", "2")][..],
        &[("content-length", "+2")],
        &[("content-length", "2, 2")],
        &[("connection", "close")],
        &[("transfer-encoding", "chunked")],
        &[("upgrade", "h2c")],
        &[("te", "gzip")],
    ] {
        let parts = [&headers(&[&POST, fields].concat())[..], &[0, 2, b'{', b'}']].concat();
        assert_eq!(outcome(&connection, &parts).await, Err(Some(0x10e)), "{fields:?}");
    }
    let fields = [&POST[..], &[("te", "trailers"), ("content-length", "2")]].concat();
    let parts = [&headers(&fields)[..], &[0, 2, b'{', b'}']].concat();
    assert!(outcome(&connection, &parts).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_head_has_no_body() {
    let setting = serve(fixture().service).await;
    let (mut client, _endpoint) = client(&setting).await;
    let mut request = get("/nothing");
    *request.method_mut() = Method::HEAD;
    let (_, _, body) = ask(&mut client, request, 1).await.unwrap();
    assert!(body.is_empty(), "{}", String::from_utf8_lossy(&body));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_without_requests_are_counted() {
    let setting = serve(fixture().service).await;
    let (connection, _endpoint, _control) = raw(&setting).await;
    let opening = async {
        loop {
            match connection.open_bi().await {
                Ok((mut send, _)) => drop(send.finish()),
                Err(error) => return error,
            }
        }
    };
    match tokio::time::timeout(PATIENCE, opening).await.expect("it is closed") {
        quinn::ConnectionError::ApplicationClosed(close) => {
            assert_eq!(close.error_code, 0x107_u32.into());
        }
        // s2n-quic sends this instead if its last handle is dropped before the reason was sent.
        quinn::ConnectionError::ConnectionClosed(close) => {
            assert_eq!(close.error_code, quinn::TransportErrorCode::NO_ERROR);
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_a_client_stops_do_not_count_as_open() {
    let setting = serve(fixture().service).await;
    let (connection, _endpoint, _control) = raw(&setting).await;
    let opening = async {
        // As many as may end without a request, 32 at a time.
        for _ in 0..limits::STREAMS_WITHOUT_REQUEST {
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            receive.stop(0_u32.into()).unwrap();
            send.finish().unwrap();
        }
        outcome(&connection, &[&headers(&POST)[..], &[0, 2, b'{', b'}']].concat()).await
    };
    let answer = tokio::time::timeout(PATIENCE, opening).await.expect("streams become free");
    let text = String::from_utf8_lossy(&answer.unwrap()).into_owned();
    assert!(text.contains("MissingAuthenticationToken"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_says_which_requests_it_answers() {
    let mut setting = serve(fixture().service).await;
    let (connection, endpoint, _control) = raw(&setting).await;
    // Stream 0 is open, and stays so.
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&headers(&POST)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    setting.stop.take().unwrap().send(()).unwrap();
    // The control stream: its type, SETTINGS, then GOAWAY with the first stream that is not answered.
    let goaway = async {
        loop {
            let mut stream = connection.accept_uni().await.unwrap();
            let mut kind = [0];
            stream.read_exact(&mut kind).await.unwrap();
            if kind != [0] {
                continue;
            }
            loop {
                let mut head = [0; 2];
                stream.read_exact(&mut head).await.unwrap();
                let mut content = vec![0; head[1].into()];
                stream.read_exact(&mut content).await.unwrap();
                if head[0] == 7 {
                    return content;
                }
            }
        }
    };
    let goaway = tokio::time::timeout(PATIENCE, goaway).await.unwrap();
    assert_eq!(goaway, [4]);
    // Later requests are rejected, so that the client may retry elsewhere.
    let parts = [&headers(&POST)[..], &[0, 2, b'{', b'}']].concat();
    assert_eq!(outcome(&connection, &parts).await, Err(Some(0x10b)));
    // New connections are told at once.
    if let Ok(connection) = connect(&endpoint, setting.address).await {
        let closed = tokio::time::timeout(PATIENCE, connection.closed()).await;
        match closed.expect("the connection is closed") {
            quinn::ConnectionError::ApplicationClosed(close) => {
                assert_eq!(close.error_code, 0x100_u32.into());
            }
            other => panic!("{other}"),
        }
    }
    send.write_all(&[0, 2, b'{', b'}']).await.unwrap();
    send.finish().unwrap();
    assert!(!receive.read_to_end(1 << 20).await.unwrap().is_empty());
}
