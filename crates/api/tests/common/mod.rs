//! A service on a store in memory, and a client that signs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]
#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use http::{HeaderMap, Method};
use outlast_api::client::{Client, ServiceError};
use outlast_api::ops::Operation;
use outlast_api::service::{Request, Response, Service};
use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::Secret;
use outlast_domain::identity;
use outlast_domain::seal::RootKey;
use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use outlast_store::{Store, StoreError};

pub const ACCOUNT: &str = "123456789012";
pub const ACCESS_KEY: &str = "AKIAEXAMPLE";
pub const SECRET: &[u8] = b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
pub const HOST: &str = "localhost:8443";
/// 2026-11-21T00:00:00Z
pub const NOW: i64 = 1_795_219_200;

/// The store is shared with the service, so that faults can be injected.
pub struct Shared(pub Arc<FaultyStore<MemoryStore>>);

impl Store for Shared {
    fn read(&self, key: &str) -> Result<Option<outlast_store::Record>, StoreError> {
        self.0.read(key)
    }
    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, outlast_store::Record)>, StoreError> {
        self.0.scan(prefix, after, limit)
    }
    fn commit(&self, transaction: outlast_store::Transaction, done: outlast_store::Completion) {
        self.0.commit(transaction, done);
    }
    fn events(&self, after: u64, limit: usize) -> Result<Vec<outlast_store::Event>, StoreError> {
        self.0.events(after, limit)
    }
    fn last_event(&self) -> Result<(u64, [u8; 32]), StoreError> {
        self.0.last_event()
    }
    fn snapshot(
        &self,
        out: &mut dyn FnMut(outlast_store::Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.0.snapshot(out)
    }
    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<outlast_store::Item, StoreError>>,
    ) -> Result<(), StoreError> {
        self.0.restore(items)
    }
}

pub struct Fixture {
    pub service: Service,
    pub store: Arc<FaultyStore<MemoryStore>>,
    pub client: Client,
    pub now: std::cell::Cell<i64>,
}

pub fn client(id: &str, region: &str) -> Client {
    Client {
        host: HOST.into(),
        region: region.into(),
        credentials: Credentials { access_key_id: id.into(), secret: Secret::new(SECRET.to_vec()) },
    }
}

impl Fixture {
    pub fn new() -> Self {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let service = Service::new(Arc::new(Shared(store.clone())), RootKey::generate().unwrap());
        for (account, id) in [(ACCOUNT, ACCESS_KEY), ("210987654321", "AKIAOTHER")] {
            let mut work = service.work(NOW * 1000);
            let secret = Secret::new(SECRET.to_vec());
            identity::create_access_key(&mut work, account, "admin", Some(id.into()), &secret)
                .unwrap();
            store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        }
        let now = std::cell::Cell::new(NOW);
        Self { service, store, client: client(ACCESS_KEY, "eu-west-1"), now }
    }

    /// Calls an operation as the administrator.
    pub fn call<O: Operation>(&self, input: &O::Input) -> Result<O::Output, ServiceError> {
        self.call_as::<O>(&self.client, input)
    }

    pub fn call_as<O: Operation>(
        &self,
        client: &Client,
        input: &O::Input,
    ) -> Result<O::Output, ServiceError> {
        let request = client.request::<O>(input, self.now.get()).unwrap();
        let response = self.send(&request);
        Client::response::<O>(response.status, &response.body)
    }

    /// The error code of a call that must fail.
    pub fn error<O: Operation>(&self, input: &O::Input) -> String {
        match self.call::<O>(input) {
            Ok(_) => panic!("{} succeeded", O::NAME),
            Err(error) => error.code,
        }
    }

    pub fn send(&self, request: &http::Request<Vec<u8>>) -> Response {
        self.service.call(&Request {
            method: request.method(),
            path: request.uri().path(),
            query: request.uri().query().unwrap_or_default(),
            host: HOST,
            headers: request.headers(),
            body: request.body(),
            source_ip: "127.0.0.1",
            tls: None,
            now_ms: self.now.get() * 1000,
            request_id: "00000000-0000-0000-0000-000000000000",
        })
    }

    /// A signed request with any body for any operation.
    pub fn raw(&self, service: &str, target: &str, body: &[u8]) -> http::Request<Vec<u8>> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        headers.insert("x-amz-target", target.parse().unwrap());
        self.signed(service, "/", headers, body)
    }

    pub fn signed(
        &self,
        service: &str,
        path: &str,
        mut headers: HeaderMap,
        body: &[u8],
    ) -> http::Request<Vec<u8>> {
        let target = outlast_api::wire::sigv4::Target {
            path,
            host: HOST,
            body,
            region: "eu-west-1",
            service,
        };
        outlast_api::wire::sigv4::sign(
            &mut headers,
            &target,
            &self.client.credentials,
            self.now.get(),
        )
        .unwrap();
        headers.insert("host", HOST.parse().unwrap());
        let mut request = http::Request::new(body.to_vec());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.parse().unwrap();
        *request.headers_mut() = headers;
        request
    }

    pub fn events(&self) -> Vec<serde_json::Value> {
        let events = self.store.events(0, 100_000).unwrap();
        events.iter().map(|event| serde_json::from_slice(&event.body).unwrap()).collect()
    }
}

pub fn error_code(response: &Response) -> String {
    let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    body["__type"].as_str().unwrap_or_default().to_owned()
}
