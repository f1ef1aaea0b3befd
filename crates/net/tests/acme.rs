//! ACME on the real server: a client orders certificates, hosts on loopback answer the challenges, and a small DNS
//! server resolves their names.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::acme_support;
use crate::common;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use acme_support::world::World;
use acme_support::{Signer, b64, binding, request};
use bytes::Bytes;
use common::{Fixture, text};
use der::Encode;
use der::asn1::OctetString;
use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, CNAME, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use outlast_api::service::Service;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{self, Message as Signed};
use outlast_domain::acme::{Outcome, Target};
use outlast_net::acme::{Settings, Validator};
use outlast_net::certificate::{KINDS, ensure};
use outlast_net::door::{self, Door};
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, Server, system_clock};
use outlast_pki::certificate::{Certificate, Content};
use outlast_pki::extensions::{custom, subject_alternative_names};
use outlast_pki::general_name::GeneralName;
use outlast_pki::{name, pem};
use outlast_testing::PATIENCE;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Responses of a host on loopback, by path.
type Pages = Arc<Mutex<HashMap<String, String>>>;
/// DNS records by the name and the type that are asked for. A record of another name is one that the server adds.
type Zone = Arc<Mutex<HashMap<(String, RecordType), Vec<(String, RData)>>>>;

/// Sets the records of a name and a type to one.
fn set(zone: &Zone, name: &str, data: RData) {
    let records = vec![(name.to_owned(), data.clone())];
    zone.lock().unwrap().insert((name.to_owned(), data.record_type()), records);
}

/// Answers from a zone; every host is at 127.0.0.1 unless the zone says otherwise.
async fn dns(zone: Zone) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 1500];
        while let Ok((len, peer)) = socket.recv_from(&mut buffer).await {
            let Ok(question) = Message::from_vec(&buffer[..len]) else { continue };
            let asked = question.queries[0].clone();
            let name = asked.name().to_ascii().trim_end_matches('.').to_ascii_lowercase();
            let found = zone.lock().unwrap().get(&(name.clone(), asked.query_type())).cloned();
            let found = found.unwrap_or_else(|| {
                let host = asked.query_type() == RecordType::A;
                let own = host.then(|| (name.clone(), RData::A(A(Ipv4Addr::LOCALHOST))));
                own.into_iter().collect()
            });
            let mut answer = Message::response(question.id, OpCode::Query);
            answer.add_query(asked.clone());
            answer.metadata.response_code = ResponseCode::NoError;
            for (owner, data) in found {
                // Clients may compare the case of their own name.
                let own = owner == name;
                let owner = Name::from_ascii(format!("{owner}.")).unwrap();
                let owner = if own { asked.name().clone() } else { owner };
                answer.add_answer(Record::from_rdata(owner, 1, data));
            }
            let _ = socket.send_to(&answer.to_vec().unwrap(), peer).await;
        }
    });
    address
}

/// A web server with some pages: content that begins with `=` is a redirect, and `never` is never answered.
async fn web(pages: Pages) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let pages = pages.clone();
            tokio::spawn(async move {
                let mut buffer = vec![0; 4096];
                let read = stream.read(&mut buffer).await.unwrap_or(0);
                let head = String::from_utf8_lossy(&buffer[..read]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let found = pages.lock().unwrap().get(&path).cloned();
                let answer = match found.as_deref() {
                    Some("never") => {
                        std::future::pending::<()>().await;
                        return;
                    }
                    Some(page) if page.starts_with('=') => format!(
                        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
                        &page[1..]
                    ),
                    Some(page) => {
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}", page.len())
                    }
                    None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
                };
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    port
}

/// A TLS server whose configuration can change.
async fn tls(config: Arc<Mutex<Option<Arc<ServerConfig>>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Some(config) = config.lock().unwrap().clone() else { continue };
            tokio::spawn(async move {
                if let Ok(mut stream) = TlsAcceptor::from(config).accept(stream).await {
                    let _ = stream.read(&mut [0; 1]).await;
                }
            });
        }
    });
    port
}

/// A certificate as RFC 8737 requires it, or with a fault.
fn alpn_certificate(host: &str, digest: &[u8], critical: bool, alpn: &str) -> Arc<ServerConfig> {
    let spec = KeySpec::by_name("ECC_NIST_P256").unwrap();
    let stored = spec.generate().unwrap();
    let key = spec.load(&stored).unwrap();
    let own = key.public_key().unwrap();
    let identifier = OctetString::new(digest).unwrap().to_der().unwrap();
    let oid = const_oid::ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.31");
    let now = system_clock() / 1000;
    let subject = name::common_name("challenge").unwrap();
    let unsigned = Content {
        serial: [1; 16],
        issuer: subject.clone(),
        subject,
        public_key: own.to_vec(),
        not_before: now - 60,
        not_after: now + 3600,
        extensions: vec![
            subject_alternative_names(&[GeneralName::DnsName(host.into())], false).unwrap(),
            custom(oid, critical, &identifier).unwrap(),
        ],
    }
    .prepare(&signatures::ECDSA_SHA_256, own)
    .unwrap();
    let signature =
        key.sign(&signatures::ECDSA_SHA_256, Signed::Raw(&unsigned.to_be_signed)).unwrap();
    let der = unsigned.assemble(&signature).unwrap();
    let pkcs8 = spec.to_pkcs8(&stored).unwrap().expose().to_vec();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let private = PrivateKeyDer::try_from(pkcs8).unwrap();
    let private = provider.key_provider.load_private_key(private).unwrap();
    // Without rustls' own check of the certificate, because it does not know the extension.
    let shown = CertifiedKey::new(vec![CertificateDer::from(der)], private);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    Arc::new(config)
}

/// The server, its hosts, and a client.
struct Setting {
    client: SendRequest<Full<Bytes>>,
    origin: String,
    signer: Signer,
    kid: Option<String>,
    base: String,
    zone: Zone,
    pages: Pages,
    alpn: Arc<Mutex<Option<Arc<ServerConfig>>>>,
    service: Arc<Service>,
    address: SocketAddr,
    config: ClientConfig,
}

/// The body of a request that announces the longest length and never arrives.
struct Never;

impl hyper::body::Body for Never {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(outlast_api::acme::MAX_BODY as u64)
    }
}

async fn setting(algorithm: &str) -> Setting {
    let fixture = Fixture::new();
    fixture.now.set(system_clock() / 1000);
    let world = World::on(fixture, "CHALLENGE", json!({}));
    let (kid, mac) = world.credentials();
    let id = world.endpoint_id().to_owned();
    let service = Arc::new(world.fixture.service);
    let (zone, pages, alpn) = (Zone::default(), Pages::default(), Arc::default());
    let settings = Settings {
        dns: Some(dns(zone.clone()).await),
        http_port: web(pages.clone()).await,
        tls_port: tls(Arc::clone(&alpn)).await,
        networks: vec!["127.0.0.0/8".parse().unwrap()],
    };
    let validator = Arc::new(Validator::new(settings).unwrap());
    tokio::spawn(validator.run(service.clone(), system_clock));

    let mut work = service.work(system_clock());
    let chain = ensure(&mut work, &KINDS[0], &["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    for der in pem::read_certificates(chain.root_pem.as_bytes()).unwrap() {
        roots.add(CertificateDer::from(der)).unwrap();
    }
    let door = Door::new(
        door::Settings::with_protocols(PROTOCOLS),
        vec![chain.certificate(&KINDS[0])],
        None,
    )
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Arc::new(Server::new(service.clone(), Arc::new(door), system_clock));
    tokio::spawn(server.run(listener, std::future::pending()));

    let config = ClientConfig::builder_with_provider(Policy::default().provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let stream = TlsConnector::from(Arc::new(config.clone()))
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await
        .unwrap();
    let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let origin = format!("https://localhost:{}", address.port());
    let base = format!("{origin}/acme/{id}");
    let signer = Signer::new(algorithm);
    let mut setting = Setting {
        client,
        origin,
        signer,
        kid: None,
        base,
        zone,
        pages,
        alpn,
        service,
        address,
        config,
    };
    let url = format!("{}/new-account", setting.base);
    let bound = binding(&kid, &mac, &setting.signer, &url);
    let payload = json!({ "externalAccountBinding": bound }).to_string();
    let (status, headers, _) = setting.post(&url, &payload).await;
    assert_eq!(status, 201);
    setting.kid = Some(headers["location"].to_str().unwrap().to_owned());
    setting
}

impl Setting {
    async fn send(
        &mut self,
        method: Method,
        url: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> (u16, http::HeaderMap, Vec<u8>) {
        let path = url.strip_prefix(&self.origin).unwrap();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.origin.trim_start_matches("https://"))
            .header("content-type", content_type)
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        self.client.ready().await.unwrap();
        let response = self.client.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        (head.status.as_u16(), head.headers, body.collect().await.unwrap().to_bytes().to_vec())
    }

    async fn post(&mut self, url: &str, payload: &str) -> (u16, http::HeaderMap, Vec<u8>) {
        let nonce_url = format!("{}/new-nonce", self.base);
        let (status, headers, body) = self.send(Method::HEAD, &nonce_url, "", Vec::new()).await;
        assert_eq!((status, body.len()), (200, 0));
        let nonce = headers["replay-nonce"].to_str().unwrap();
        let header = json!({ "nonce": nonce, "url": url });
        let jws = self.signer.jws(self.kid.as_deref(), header, payload).to_string();
        self.send(Method::POST, url, "application/jose+json", jws.into_bytes()).await
    }

    async fn read(&mut self, url: &str) -> Value {
        let (status, _, body) = self.post(url, "").await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    async fn order(&mut self, name: &str) -> (String, Value) {
        let payload = json!({ "identifiers": [{ "type": "dns", "value": name }] }).to_string();
        let url = format!("{}/new-order", self.base);
        let (status, headers, body) = self.post(&url, &payload).await;
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
        (headers["location"].to_str().unwrap().to_owned(), serde_json::from_slice(&body).unwrap())
    }

    /// The challenge of an order with one name: its URL, token and key authorization.
    async fn challenge(&mut self, order: &Value, kind: &str) -> (String, String, String) {
        let found = self.read(text(&order["authorizations"][0])).await;
        let all = found["challenges"].as_array().unwrap();
        let one = all.iter().find(|one| one["type"] == kind).unwrap();
        let token = text(&one["token"]).to_owned();
        let content = format!("{token}.{}", self.signer.thumbprint());
        (text(&one["url"]).to_owned(), token, content)
    }

    /// The order's result after the client has said that it is ready.
    async fn settled(&mut self, challenge: &str, order: &str) -> Value {
        let (status, _, _) = self.post(challenge, "{}").await;
        assert_eq!(status, 200);
        let begun = Instant::now();
        loop {
            let found = self.read(order).await;
            if found["status"] != "pending" {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "the order stays pending");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn certificate(&mut self, order: &Value, name: &str) -> Certificate {
        let csr = request(&Signer::new("ES256"), &[name], None);
        let payload = json!({ "csr": b64(csr) }).to_string();
        let (status, _, body) = self.post(text(&order["finalize"]), &payload).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let order: Value = serde_json::from_slice(&body).unwrap();
        let (_, headers, chain) = self.post(text(&order["certificate"]), "").await;
        assert_eq!(headers["content-type"], "application/pem-certificate-chain");
        Certificate::parse(&pem::read_certificates(&chain).unwrap()[0]).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_proved_over_http_tls_and_dns() {
    let mut setting = setting("ML-DSA-65").await;
    let (url, order) = setting.order("web.example").await;
    let (challenge, token, content) = setting.challenge(&order, "http-01").await;
    let path = format!("/.well-known/acme-challenge/{token}");
    // Through a redirect, and with a line end.
    setting.pages.lock().unwrap().insert(path, "=/elsewhere".into());
    setting.pages.lock().unwrap().insert("/elsewhere".into(), format!("{content}\r\n"));
    let order = setting.settled(&challenge, &url).await;
    assert_eq!(order["status"], "ready", "{order}");
    let certificate = setting.certificate(&order, "web.example").await;
    assert!(certificate.subject_alternative_names().join(" ").contains("web.example"));

    let (url, order) = setting.order("tls.example").await;
    let (challenge, _, content) = setting.challenge(&order, "tls-alpn-01").await;
    let digest = outlast_crypto::digests::sha256(content.as_bytes());
    *setting.alpn.lock().unwrap() =
        Some(alpn_certificate("tls.example", &digest, true, "acme-tls/1"));
    let order = setting.settled(&challenge, &url).await;
    assert_eq!(order["status"], "ready", "{order}");
    setting.certificate(&order, "tls.example").await;

    let (url, order) = setting.order("*.dns.example").await;
    let (challenge, _, content) = setting.challenge(&order, "dns-01").await;
    let value = b64(outlast_crypto::digests::sha256(content.as_bytes()));
    set(&setting.zone, "_acme-challenge.dns.example", RData::TXT(TXT::new(vec![value])));
    let order = setting.settled(&challenge, &url).await;
    assert_eq!(order["status"], "ready", "{order}");
    setting.certificate(&order, "*.dns.example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_fails_the_order_and_holds_nothing_up() {
    let mut setting = setting("ES256").await;
    let (silent, order) = setting.order("silent.example").await;
    let (challenge, token, _) = setting.challenge(&order, "http-01").await;
    setting
        .pages
        .lock()
        .unwrap()
        .insert(format!("/.well-known/acme-challenge/{token}"), "never".into());
    let (status, _, _) = setting.post(&challenge, "{}").await;
    assert_eq!(status, 200);
    // While one validation waits, another is carried out.
    let (url, order) = setting.order("wrong.example").await;
    let (challenge, token, _) = setting.challenge(&order, "http-01").await;
    setting
        .pages
        .lock()
        .unwrap()
        .insert(format!("/.well-known/acme-challenge/{token}"), "other".into());
    let order = setting.settled(&challenge, &url).await;
    assert_eq!(order["status"], "invalid");
    assert_eq!(order["error"]["type"], "urn:ietf:params:acme:error:incorrectResponse");
    assert_eq!(setting.read(&silent).await["status"], "pending");
    let body = vec![b' '; 70_000];
    let url = format!("{}/new-order", setting.base);
    let (status, _, _) = setting.send(Method::POST, &url, "application/jose+json", body).await;
    assert_eq!(status, 413);
    drop(setting.service);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_come_take_no_memory() {
    let mut setting = setting("ES256").await;
    let url = format!("{}/new-order", setting.base);
    let mut config = setting.config.clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let mut open = tokio::task::JoinSet::new();
    // Each announces 64 KiB, together the whole budget, and none arrives.
    for _ in 0..64 {
        let stream = TcpStream::connect(setting.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TokioIo::new(connector.connect(name, stream).await.unwrap());
        let executor = hyper_util::rt::TokioExecutor::new();
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
        open.spawn(async move {
            let _ = connection.await;
        });
        for _ in 0..32 {
            let request = Request::post(&url).body(Never).unwrap();
            client.ready().await.unwrap();
            let sending = client.send_request(request);
            open.spawn(async move {
                let _ = sending.await;
            });
        }
    }
    let nonce = format!("{}/new-nonce", setting.base);
    let asked = setting.send(Method::POST, &nonce, "application/jose+json", b"{}".to_vec());
    let (status, _, _) = tokio::time::timeout(PATIENCE, asked).await.unwrap();
    assert_eq!(status, 400);
    open.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_tell_what_they_saw() {
    let (zone, pages, alpn) = (Zone::default(), Pages::default(), Arc::default());
    let settings = Settings {
        dns: Some(dns(zone.clone()).await),
        http_port: web(pages.clone()).await,
        tls_port: tls(Arc::clone(&alpn)).await,
        networks: vec!["127.0.0.0/8".parse().unwrap()],
    };
    let own_port = settings.http_port;
    let unnamed = Settings { networks: Vec::new(), ..settings.clone() };
    let inside = Settings { networks: vec!["10.0.0.0/8".parse().unwrap()], ..settings.clone() };
    let validator = Validator::new(settings).unwrap();
    let seen = |outcome: Outcome| match outcome {
        Outcome::Found => "found".to_owned(),
        Outcome::Missing { kind, again, .. } => {
            format!("{}{}", kind.name, if again { ", again" } else { "" })
        }
    };
    let http =
        |host: &str| Target::Http { host: host.into(), token: "t".into(), content: "x".into() };
    let path = "/.well-known/acme-challenge/t".to_owned();
    for (page, expected) in [
        (None, "unauthorized, again"),
        (Some("x \n"), "found"),
        (Some("y"), "incorrectResponse"),
        (Some("=/.well-known/acme-challenge/t"), "connection"),
        (Some("=http://127.0.0.1/x"), "connection"),
        (Some("=http://host.example:22/x"), "connection"),
        (Some("=ftp://host.example/x"), "connection"),
        (Some("=x"), "connection"),
    ] {
        match page {
            Some(page) => pages.lock().unwrap().insert(path.clone(), page.to_owned()),
            None => pages.lock().unwrap().remove(&path),
        };
        assert_eq!(seen(validator.look(&http("host.example")).await), expected, "{page:?}");
    }
    pages.lock().unwrap().insert(path.clone(), format!("=http://other.example:{own_port}/y"));
    pages.lock().unwrap().insert("/y".into(), "x".into());
    assert_eq!(seen(validator.look(&http("host.example")).await), "found");
    pages.lock().unwrap().insert(path.clone(), "=/z?next=http://other.example/".into());
    pages.lock().unwrap().insert("/z?next=http://other.example/".into(), "x".into());
    assert_eq!(seen(validator.look(&http("host.example")).await), "found", "a relative redirect");
    // A response that is too long, a link-local address, and a network that the operator has not named.
    pages.lock().unwrap().insert(path.clone(), "x".repeat(70_000));
    assert_eq!(seen(validator.look(&http("host.example")).await), "connection, again");
    set(&zone, "meta.example", RData::A(A(Ipv4Addr::new(169, 254, 169, 254))));
    assert_eq!(seen(validator.look(&http("meta.example")).await), "connection");
    for careful in [inside, unnamed] {
        let careful = Validator::new(careful).unwrap();
        assert_eq!(seen(careful.look(&http("host.example")).await), "connection");
    }

    let wanted = Target::TlsAlpn { host: "host.example".into(), digest: [7; 32] };
    for (host, digest, critical, name, expected) in [
        ("host.example", [7; 32], true, "acme-tls/1", "found"),
        ("host.example", [8; 32], true, "acme-tls/1", "incorrectResponse"),
        ("host.example", [7; 32], false, "acme-tls/1", "incorrectResponse"),
        ("other.example", [7; 32], true, "acme-tls/1", "incorrectResponse"),
        ("host.example", [7; 32], true, "http/1.1", "tls, again"),
    ] {
        *alpn.lock().unwrap() = Some(alpn_certificate(host, &digest, critical, name));
        assert_eq!(seen(validator.look(&wanted).await), expected, "{host} {critical} {name}");
    }

    let cname = Target::Cname { name: "_a.example".into(), value: "_b.example".into() };
    assert_eq!(seen(validator.look(&cname).await), "dns, again");
    for (value, expected) in [("_c.example.", "incorrectResponse, again"), ("_B.example.", "found")]
    {
        set(&zone, "_a.example", RData::CNAME(CNAME(Name::from_ascii(value).unwrap())));
        assert_eq!(seen(validator.look(&cname).await), expected);
    }
    // Another name's record in the answer proves nothing, alone or behind an own record that leads to it.
    let points = |owner: &str, value: &str| {
        (owner.to_owned(), RData::CNAME(CNAME(Name::from_ascii(value).unwrap())))
    };
    for records in [
        vec![points("_other.example", "_b.example.")],
        vec![points("_a.example", "_other.example."), points("_other.example", "_b.example.")],
    ] {
        zone.lock().unwrap().insert(("_a.example".into(), RecordType::CNAME), records);
        assert_ne!(seen(validator.look(&cname).await), "found");
    }
    let txt = Target::Txt { name: "_t.example".into(), value: "v".into() };
    set(&zone, "_t.example", RData::TXT(TXT::new(vec!["w".into()])));
    assert_eq!(seen(validator.look(&txt).await), "incorrectResponse, again");
}
