//! Plain HTTP under load and misuse: concurrent requests, bodies that are too long, and more requests than can be
//! signed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast_api::aws::Operation;
use outlast_api::client::Client;
use outlast_api::ops::acm_pca;
use outlast_api::service::{Request, Service};
use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::Secret;
use outlast_crypto::digests::SHA1_FOR_IDENTIFIERS;
use outlast_domain::identity;
use outlast_domain::seal::RootKey;
use outlast_domain::settings::Settings;
use outlast_net::limits;
use outlast_net::plain::PlainServer;
use outlast_net::server::system_clock;
use outlast_pki::certificate::Certificate;
use outlast_pki::ocsp::{self, CertId, Failure, OcspError};
use outlast_store::memory::MemoryStore;
use outlast_store::{Completion, Event, Item, Record, Store, StoreError, Transaction};
use outlast_testing::{PATIENCE, skip};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A store whose disk hangs on demand.
#[derive(Default)]
struct Stalling {
    inner: MemoryStore,
    stalled: AtomicBool,
    waiting: Mutex<Vec<(Transaction, Completion)>>,
}

impl Stalling {
    fn go_on(&self) {
        self.stalled.store(false, Ordering::SeqCst);
        for (transaction, done) in std::mem::take(&mut *self.waiting.lock().unwrap()) {
            self.inner.commit(transaction, done);
        }
    }
}

impl Store for Stalling {
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.inner.read(key)
    }
    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        self.inner.scan(prefix, after, limit)
    }
    fn count(&self, prefix: &str) -> Result<u64, StoreError> {
        self.inner.count(prefix)
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        if self.stalled.load(Ordering::SeqCst) {
            self.waiting.lock().unwrap().push((transaction, done));
        } else {
            self.inner.commit(transaction, done);
        }
    }
    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.inner.events(after, limit)
    }

    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError> {
        self.inner.leaves(after, limit)
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        self.inner.last_event()
    }
    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.inner.snapshot(out)
    }
    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<(), StoreError> {
        self.inner.restore(items)
    }
}

struct World {
    store: Arc<Stalling>,
    service: Arc<Service>,
    client: Client,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(Stalling::default());
        let service = Service::new(store.clone(), RootKey::generate().unwrap());
        service.set_settings(Settings {
            revocation_url: Some("http://localhost".into()),
            ..Settings::default()
        });
        let secret = || Secret::new(b"a secret access key".to_vec());
        let mut work = service.work(system_clock());
        let id = Some("AKIA1".to_owned());
        identity::create_administrator(&mut work, "123456789012", "admin", id, &secret()).unwrap();
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        let credentials =
            Credentials { access_key_id: "AKIA1".into(), secret: secret(), token: None };
        let client = Client { host: "localhost".into(), region: "us-east-1".into(), credentials };
        Self { store, service: Arc::new(service), client }
    }

    fn call<O: Operation>(&self, input: Value) -> O::Output {
        let input = serde_json::from_value(input).unwrap();
        let now_ms = system_clock();
        let request = self.client.request::<O>(&input, now_ms.div_euclid(1000)).unwrap();
        let response = self.service.call(&Request {
            method: request.method(),
            path: "/",
            query: "",
            host: "localhost",
            headers: request.headers(),
            body: request.body(),
            source_ip: "127.0.0.1",
            tls: None,
            now_ms,
            request_id: "00000000-0000-0000-0000-000000000000",
        });
        Client::response::<O>(response.status, &response.body).unwrap()
    }

    /// An authority that answers: its certificate.
    fn authority(&self) -> Certificate {
        use acm_pca::{
            create_certificate_authority as create, get_certificate as get,
            get_certificate_authority_csr as csr,
            import_certificate_authority_certificate as import, issue_certificate as issue,
        };
        let made = self.call::<create::CreateCertificateAuthority>(json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": "EC_prime256v1", "SigningAlgorithm": "SHA256WITHECDSA",
                "Subject": { "CommonName": "Root" },
            },
            "RevocationConfiguration": { "OcspConfiguration": { "Enabled": true } },
            "CertificateAuthorityType": "ROOT",
        }));
        let arn = made.certificate_authority_arn;
        let authority = json!({ "CertificateAuthorityArn": arn });
        let csr = self.call::<csr::GetCertificateAuthorityCsr>(authority).csr;
        let made = self.call::<issue::IssueCertificate>(json!({
            "CertificateAuthorityArn": arn, "Csr": blob(csr.as_bytes()),
            "SigningAlgorithm": "SHA256WITHECDSA",
            "TemplateArn": "arn:aws:acm-pca:::template/RootCACertificate/V1",
            "Validity": { "Type": "YEARS", "Value": 10 },
        }));
        let get = json!({
            "CertificateAuthorityArn": arn, "CertificateArn": made.certificate_arn,
        });
        let pem = self.call::<get::GetCertificate>(get).certificate;
        self.call::<import::ImportCertificateAuthorityCertificate>(json!({
            "CertificateAuthorityArn": arn, "Certificate": blob(pem.as_bytes()),
        }));
        self.service.keep_revocation(system_clock()).unwrap();
        Certificate::parse_one(pem.as_bytes()).unwrap()
    }

    async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::new(PlainServer::new(self.service.clone(), system_clock));
        tokio::spawn(server.run(listener, std::future::pending()));
        address
    }
}

fn blob(bytes: &[u8]) -> Value {
    serde_json::to_value(outlast_api::wire::Blob(bytes.to_vec())).unwrap()
}

/// A request about a certificate with this number.
fn question(issuer: &Certificate, number: u32) -> Vec<u8> {
    let key = issuer.public_key().unwrap();
    let serial = [[0x41].as_slice(), &number.to_be_bytes()].concat();
    let id = CertId::new(&SHA1_FOR_IDENTIFIERS, issuer.subject(), &key, &serial).unwrap();
    ocsp::Request { ids: vec![id], nonce: None }.to_der().unwrap()
}

fn post(body: &[u8]) -> Vec<u8> {
    let head = format!("POST /ocsp HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Sends, and reads this many responses: statuses and bodies.
async fn exchange(stream: &mut TcpStream, bytes: &[u8], count: usize) -> Vec<(u16, Vec<u8>)> {
    stream.write_all(bytes).await.unwrap();
    let (mut buffer, mut found) = (Vec::new(), Vec::new());
    while found.len() < count {
        match first(&buffer) {
            Some((status, body, end)) => {
                found.push((status, body));
                buffer.drain(..end);
            }
            None => assert_ne!(stream.read_buf(&mut buffer).await.unwrap(), 0, "closed"),
        }
    }
    found
}

/// Status, body and end of the first response, if it has arrived completely.
fn first(bytes: &[u8]) -> Option<(u16, Vec<u8>, usize)> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let len = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let end = head + 4 + len.unwrap_or(0);
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    Some((status, bytes.get(head + 4..end)?.to_vec(), end))
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_come_together_are_answered_in_their_order() {
    let world = World::new();
    let issuer = world.authority();
    let address = world.listen().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let own = CertId::new(
        &SHA1_FOR_IDENTIFIERS,
        issuer.subject(),
        &issuer.public_key().unwrap(),
        issuer.serial(),
    );
    let own = ocsp::Request { ids: vec![own.unwrap()], nonce: None }.to_der().unwrap();
    let path = blob(&own).as_str().unwrap().to_owned();
    let get = format!("GET /ocsp/{path} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes();
    let missing = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let all = [get.clone(), missing, post(&question(&issuer, 7)), get.clone(), get].concat();
    let answers = exchange(&mut stream, &all, 5).await;
    let statuses: Vec<_> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 404, 200, 200, 200]);
    assert!(answers[0].1 == answers[3].1 && answers[3].1 == answers[4].1);
    let unknown = ocsp::Response::parse(&answers[2].1).unwrap();
    assert_eq!(unknown.responses[0].status, ocsp::Status::Unknown);
    // HEAD has no body, and a body that is too long is not read.
    stream.write_all(b"HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut buffer = vec![0; 4096];
    let read = stream.read(&mut buffer).await.unwrap();
    let head = String::from_utf8_lossy(&buffer[..read]).into_owned();
    assert!(head.starts_with("HTTP/1.1 404") && head.ends_with("\r\n\r\n"), "{head}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let long = "POST /ocsp HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n";
    assert_eq!(exchange(&mut stream, long.as_bytes(), 1).await[0].0, 413);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "M".repeat(limits::MAX_PLAIN_HEAD));
    let _ = stream.write_all(long.as_bytes()).await;
    let read = stream.read(&mut buffer).await.unwrap_or(0);
    let head = String::from_utf8_lossy(&buffer[..read]).into_owned();
    assert!(head.is_empty() || head.starts_with("HTTP/1.1 4"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_questions_than_can_be_signed_are_told_to_come_later() {
    let world = World::new();
    let issuer = world.authority();
    let address = world.listen().await;
    world.store.stalled.store(true, Ordering::SeqCst);
    let asked = limits::MAX_QUESTIONS + 50;
    let mut tasks = Vec::new();
    for number in 0..asked {
        let request = post(&question(&issuer, u32::try_from(number).unwrap()));
        tasks.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let body = exchange(&mut stream, &request, 1).await.remove(0).1;
            ocsp::Response::parse(&body)
        }));
    }
    // Only responses being signed reach the disk, so operations find it free.
    let begun = Instant::now();
    while world.store.waiting.lock().unwrap().len() < limits::MAX_SIGNING {
        assert!(begun.elapsed() < PATIENCE, "nothing is signed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(limits::SIGNING_WAIT + Duration::from_secs(1)).await;
    assert_eq!(world.store.waiting.lock().unwrap().len(), limits::MAX_SIGNING);
    world.store.go_on();
    // Beyond its rate a peer gets an unsigned refusal.
    let (mut later, mut signed, mut others) = (0, 0, Vec::new());
    for task in tasks {
        match task.await.unwrap() {
            Err(OcspError::Failure(Failure::TryLater | Failure::Unauthorized)) => later += 1,
            Ok(_) => signed += 1,
            Err(error) => others.push(error.to_string()),
        }
    }
    assert_eq!(others, [""; 0]);
    // Some may have arrived when the disk worked again; on a busy machine most.
    assert_eq!(signed + later, asked);
    assert!(signed >= limits::MAX_SIGNING && later >= 50, "{signed}");
    let begun = Instant::now();
    loop {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let body = exchange(&mut stream, &post(&question(&issuer, 1)), 1).await.remove(0).1;
        if ocsp::Response::parse(&body).is_ok() {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "and now there is time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_does_not_lock_out_who_does() {
    let world = World::new();
    let address = world.listen().await;
    let mut silent = Vec::new();
    for _ in 0..limits::MAX_PLAIN_CONNECTIONS + 20 {
        match TcpStream::connect(address).await {
            Ok(stream) => silent.push(stream),
            Err(error) => return skip(format_args!("too many open files: {error}")),
        }
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    let get = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    let answering = tokio::time::timeout(PATIENCE, exchange(&mut stream, get, 1));
    assert_eq!(answering.await.unwrap()[0].0, 404);
    let mut byte = [0];
    assert_eq!(silent[0].read(&mut byte).await.unwrap_or(0), 0, "the first one was closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_do_not_lock_out_who_asks() {
    let world = World::new();
    let address = world.listen().await;
    let begun = b"POST /ocsp HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nnot all";
    let mut slow = Vec::new();
    for _ in 0..limits::MAX_PLAIN_CONNECTIONS + 20 {
        let mut stream = match TcpStream::connect(address).await {
            Ok(stream) => stream,
            Err(error) => return skip(format_args!("too many open files: {error}")),
        };
        // It may already be closed.
        let _ = stream.write_all(begun).await;
        slow.push(stream);
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    let get = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    let answering = tokio::time::timeout(PATIENCE, exchange(&mut stream, get, 1));
    assert_eq!(answering.await.unwrap()[0].0, 404);
}

/// Stores a CRL that no buffer on the way can hold, and returns its path.
fn large_crl(world: &World, len: usize) -> String {
    let name = "00000000-0000-4000-8000-000000000001";
    let bytes = vec![7; len];
    let made = json!({
        "account": "123456789012", "region": "us-east-1", "authority": name, "path": "x.crl",
        "digest": hex(&outlast_crypto::digests::sha256(&bytes)), "number": 1, "this_update": 0,
        "next_update": 1, "regular_at": 0, "entries": 0,
    });
    let mut work = world.service.work(0);
    work.put(&format!("ca/crl/{name}"), &made).unwrap();
    let mut transaction = work.into_transaction(Vec::new());
    transaction.writes.push((format!("ca/crl-der/{name}"), Some(bytes)));
    world.store.commit_and_wait(transaction).unwrap();
    format!("/crl/{name}.crl")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_and_does_not_read_is_not_read_on() {
    let world = World::new();
    let path = large_crl(&world, 1 << 20);
    let address = world.listen().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let together = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(100);
    let before = resident();
    // More than the buffers of both ends hold if nothing is read: 100,000 responses of 1 MiB.
    let mut all_taken = true;
    for _ in 0..1000 {
        let writing = stream.write_all(together.as_bytes());
        if tokio::time::timeout(Duration::from_secs(2), writing).await.is_err() {
            all_taken = false;
            break;
        }
        assert!(resident() < before + (256 << 20), "answers pile up in memory");
    }
    assert!(!all_taken, "the server goes on reading while nothing is read from it");
    assert!(resident() < before + (256 << 20), "answers pile up in memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_slowly_gets_all_and_who_does_not_read_is_closed() {
    const LEN: usize = 64 << 20;
    let world = World::new();
    let path = large_crl(&world, LEN);
    let address = world.listen().await;
    let get = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut slow = TcpStream::connect(address).await.unwrap();
    let mut silent = TcpStream::connect(address).await.unwrap();
    for stream in [&mut slow, &mut silent] {
        stream.write_all(get.as_bytes()).await.unwrap();
    }
    // Each step is shorter than the idle limit of a connection, but all together are longer.
    let mut taken = 0;
    let mut buffer = vec![0; 1 << 20];
    for _ in 0..6 {
        tokio::time::sleep(limits::PLAIN_IDLE / 4).await;
        for _ in 0..8 {
            slow.read_exact(&mut buffer).await.unwrap();
            taken += buffer.len();
        }
    }
    while let Ok(read @ 1..) = slow.read(&mut buffer).await {
        taken += read;
        if taken > LEN {
            break;
        }
    }
    assert!(taken > LEN, "cut off after {taken} bytes");
    let mut rest = 0;
    while let Ok(read @ 1..) = silent.read(&mut buffer).await {
        rest += read;
    }
    assert!(rest < LEN, "who does not read is not waited for");
}
