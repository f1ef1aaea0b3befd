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

pub mod authorities;
mod documented;

use std::sync::Arc;

use http::{HeaderMap, Method};
use outlast_api::aws::Operation;
use outlast_api::client::{Client, ServiceError};
use outlast_api::service::{Request, Response, Route, Service};
use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::Secret;
use outlast_domain::identity::{self, Entry};
use outlast_domain::seal::RootKey;
use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use outlast_store::{Store, StoreError};
use serde_json::{Value, json};

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
    fn count(&self, prefix: &str) -> Result<u64, StoreError> {
        self.0.count(prefix)
    }

    fn commit(&self, transaction: outlast_store::Transaction, done: outlast_store::Completion) {
        self.0.commit(transaction, done);
    }
    fn events(&self, after: u64, limit: usize) -> Result<Vec<outlast_store::Event>, StoreError> {
        self.0.events(after, limit)
    }

    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError> {
        self.0.leaves(after, limit)
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        self.0.last_event()
    }

    fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        self.0.clock_ms()
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
        credentials: Credentials {
            access_key_id: id.into(),
            secret: Secret::new(SECRET.to_vec()),
            token: None,
        },
    }
}

impl Fixture {
    pub fn new() -> Self {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let service = Service::new(Arc::new(Shared(store.clone())), RootKey::generate().unwrap());
        let mut work = service.work(NOW * 1000);
        outlast_domain::audit::establish(&mut work, "log.example/api-tests").unwrap();
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        for (account, id) in [(ACCOUNT, ACCESS_KEY), ("210987654321", "AKIAOTHER")] {
            let mut work = service.work(NOW * 1000);
            let secret = Secret::new(SECRET.to_vec());
            identity::create_administrator(&mut work, account, "admin", Some(id.into()), &secret)
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
        let response = self.service.call(&self.received(request));
        documented::is_documented(request.headers(), &response);
        response
    }

    /// A signed request as the service receives it, from this machine.
    pub fn received<'a>(&self, signed: &'a http::Request<Vec<u8>>) -> Request<'a> {
        Request {
            method: signed.method(),
            path: signed.uri().path(),
            query: signed.uri().query().unwrap_or_default(),
            host: HOST,
            headers: signed.headers(),
            body: signed.body(),
            source_ip: "127.0.0.1",
            tls: None,
            now_ms: self.now.get() * 1000,
            request_id: "00000000-0000-0000-0000-000000000000",
        }
    }

    /// A signed request for any operation, with any body.
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

    pub fn events(&self) -> Vec<Value> {
        let events = self.store.events(0, 100_000).unwrap();
        let events = events.iter().map(|event| serde_json::from_slice(&event.body).unwrap());
        // The fixture's changes of users and roles have no events of their own.
        events.filter(|event: &Value| event["eventName"] != "RecordsChanged").collect()
    }
}

/// The operation that a signed request names.
pub fn route_of(signed: &http::Request<Vec<u8>>) -> Route {
    let route = Route::find(signed.method(), signed.uri().path(), signed.headers()).ok().unwrap();
    route.resolve(signed.body()).ok().unwrap()
}

/// The JSON of a stored record.
pub fn says(value: &[u8]) -> Value {
    serde_json::from_slice(outlast_domain::seal::json(value)).unwrap()
}

pub fn error_code(response: &Response) -> String {
    let body: Value = serde_json::from_slice(&response.body).unwrap();
    body["__type"].as_str().unwrap_or_default().to_owned()
}

pub const OTHER_ACCOUNT: &str = "210987654321";
pub const REGION: &str = "eu-west-1";

/// A caller for the untyped calls below.
#[derive(Clone)]
pub struct Who {
    pub id: String,
    pub secret: Vec<u8>,
    pub token: Option<String>,
    pub region: String,
    pub source_ip: String,
    pub tls: Option<outlast_api::audit::TlsDetails>,
}

impl Who {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            secret: SECRET.to_vec(),
            token: None,
            region: REGION.into(),
            source_ip: "127.0.0.1".into(),
            tls: None,
        }
    }

    pub fn admin() -> Self {
        Self::new(ACCESS_KEY)
    }

    /// The administrator of another account.
    pub fn stranger() -> Self {
        Self::new("AKIAOTHER")
    }

    pub fn at(&self, region: &str) -> Self {
        Self { region: region.into(), ..self.clone() }
    }
}

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub code: String,
    pub message: String,
    pub status: u16,
}

pub type Answer = Result<Value, Refused>;

/// The code of an answer that must be an error.
#[track_caller]
pub fn code(answer: Answer) -> String {
    match answer {
        Ok(value) => panic!("it succeeded: {value}"),
        Err(refused) => refused.code,
    }
}

#[track_caller]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

pub fn b64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[track_caller]
pub fn unb64(value: &Value) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text(value)).unwrap()
}

/// The members of both objects; those of `more` win.
pub fn with(body: &Value, more: Value) -> Value {
    let mut body = body.as_object().unwrap().clone();
    let Value::Object(more) = more else { panic!("no object: {more}") };
    body.extend(more);
    Value::Object(body)
}

pub fn key_arn(account: &str, region: &str, id: &str) -> String {
    format!("arn:aws:kms:{region}:{account}:key/{id}")
}

impl Fixture {
    /// A request by anybody.
    pub fn request(
        &self,
        who: &Who,
        service: &str,
        mut headers: HeaderMap,
        body: &[u8],
    ) -> Response {
        if let Some(token) = &who.token {
            headers.insert("x-amz-security-token", token.parse().unwrap());
        }
        let (region, path) = (who.region.as_str(), "/");
        let target = outlast_api::wire::sigv4::Target { path, host: HOST, body, region, service };
        let credentials = Credentials {
            access_key_id: who.id.clone(),
            secret: Secret::new(who.secret.clone()),
            token: None,
        };
        outlast_api::wire::sigv4::sign(&mut headers, &target, &credentials, self.now.get())
            .unwrap();
        headers.insert("host", HOST.parse().unwrap());
        let response = self.service.call(&Request {
            method: &Method::POST,
            path,
            query: "",
            host: HOST,
            headers: &headers,
            body,
            source_ip: &who.source_ip,
            tls: who.tls.as_ref(),
            now_ms: self.now.get() * 1000,
            request_id: "00000000-0000-0000-0000-000000000000",
        });
        documented::is_documented(&headers, &response);
        response
    }

    /// An operation of KMS, untyped.
    pub fn kms_as(&self, who: &Who, operation: &str, body: Value) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        headers.insert("x-amz-target", format!("TrentService.{operation}").parse().unwrap());
        answer(&self.request(who, "kms", headers, body.to_string().as_bytes()))
    }

    /// The same by the administrator.
    pub fn kms(&self, operation: &str, body: Value) -> Answer {
        self.kms_as(&Who::admin(), operation, body)
    }

    /// An operation of STS: the answer's XML.
    pub fn sts_as(&self, who: &Who, form: &[(&str, &str)]) -> Response {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.append_pair("Version", "2011-06-15").extend_pairs(form);
        let mut headers = HeaderMap::new();
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        headers.insert("content-type", form.parse().unwrap());
        self.request(who, "sts", headers, body.finish().as_bytes())
    }

    /// A request of REST JSON by anybody.
    pub fn rest(&self, who: &Who, method: &Method, uri: &str, body: &[u8]) -> Response {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let mut headers = HeaderMap::new();
        let token = who.token.as_ref().map(|token| Secret::new(token.clone().into_bytes()));
        let credentials = Credentials {
            access_key_id: who.id.clone(),
            secret: Secret::new(who.secret.clone()),
            token,
        };
        let (region, service) = (who.region.as_str(), "rolesanywhere");
        let target = outlast_api::wire::sigv4::Target { path, host: HOST, body, region, service };
        let now = self.now.get();
        outlast_api::wire::sigv4::sign_rest(
            &mut headers,
            method.as_str(),
            query,
            &target,
            &credentials,
            now,
        )
        .unwrap();
        headers.insert("host", HOST.parse().unwrap());
        self.service.call(&Request {
            method,
            path,
            query,
            host: HOST,
            headers: &headers,
            body,
            source_ip: &who.source_ip,
            tls: who.tls.as_ref(),
            now_ms: now * 1000,
            request_id: "00000000-0000-0000-0000-000000000000",
        })
    }

    /// An operation of Roles Anywhere, untyped: all its members in one structure.
    pub fn ra_as(&self, who: &Who, operation: &str, body: Value) -> Answer {
        let service = &outlast_api::ops::ROLES_ANYWHERE;
        let row = service.operations.iter().find(|row| row.name == operation).unwrap();
        let Value::Object(members) = body else { panic!("no object: {body}") };
        let written = outlast_api::wire::rest::write(&row.http, row.input, members).unwrap();
        let uri = match written.query.as_str() {
            "" => written.path,
            query => format!("{}?{query}", written.path),
        };
        let body = Value::Object(written.body).to_string();
        let response = self.rest(who, &row.http.method.parse().unwrap(), &uri, body.as_bytes());
        let value: Value = serde_json::from_slice(&response.body).unwrap();
        let Some(code) = response.error else {
            assert_eq!(response.status, row.http.status);
            return Ok(value);
        };
        documented::is_documented_of("rolesanywhere", operation, code);
        let message = value["message"].as_str().unwrap_or_default().to_owned();
        Err(Refused { code: code.to_owned(), message, status: response.status })
    }

    /// The same by the administrator.
    pub fn ra(&self, operation: &str, body: Value) -> Answer {
        self.ra_as(&Who::admin(), operation, body)
    }

    /// A new key: its id.
    #[track_caller]
    pub fn key(&self, body: Value) -> String {
        text(&self.kms("CreateKey", body).unwrap()["KeyMetadata"]["KeyId"]).to_owned()
    }

    #[track_caller]
    pub fn key_of(&self, spec: &str, usage: &str) -> String {
        self.key(json!({ "KeySpec": spec, "KeyUsage": usage }))
    }

    #[track_caller]
    pub fn state(&self, key: &str) -> String {
        let found = self.kms("DescribeKey", json!({ "KeyId": key })).unwrap();
        text(&found["KeyMetadata"]["KeyState"]).to_owned()
    }

    /// Encrypts with `SYMMETRIC_DEFAULT`: the ciphertext in base64.
    #[track_caller]
    pub fn encrypted(&self, key: &str, plaintext: &[u8]) -> String {
        let made = self.kms("Encrypt", json!({ "KeyId": key, "Plaintext": b64(plaintext) }));
        text(&made.unwrap()["CiphertextBlob"]).to_owned()
    }

    #[track_caller]
    pub fn decrypted(&self, ciphertext: &str) -> Vec<u8> {
        unb64(&self.kms("Decrypt", json!({ "CiphertextBlob": ciphertext })).unwrap()["Plaintext"])
    }

    pub fn advance(&self, seconds: i64) {
        self.now.set(self.now.get() + seconds);
    }

    pub fn run_housekeeping(&self) {
        self.service.run_housekeeping(self.now.get() * 1000).unwrap();
    }

    /// Changes users and roles.
    pub fn directory<T>(&self, change: impl FnOnce(&mut outlast_domain::work::Work<'_>) -> T) -> T {
        let mut work = self.service.work(self.now.get() * 1000);
        let done = change(&mut work);
        self.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        done
    }

    /// A user of an account with an access key and these policies.
    pub fn user(&self, account: &str, name: &str, policies: &[Value]) -> Who {
        let id = format!("AKIA{}{account}", name.to_ascii_uppercase());
        self.directory(|work| {
            let tags = std::collections::BTreeMap::from([("team".to_owned(), name.to_owned())]);
            let mut user = identity::create_user(work, account, name, tags).unwrap();
            for (number, policy) in policies.iter().enumerate() {
                user = user.put_policy(work, &format!("p{number}"), &policy.to_string()).unwrap();
            }
            let secret = Secret::new(SECRET.to_vec());
            identity::add_access_key(work, user, Some(id.clone()), &secret).unwrap();
        });
        Who::new(&id)
    }

    /// A role that the principals in `trust` may assume; returns its ARN.
    pub fn role(&self, account: &str, name: &str, trust: &Value, policies: &[Value]) -> String {
        self.directory(|work| {
            let trust = trust.to_string();
            let mut role = identity::create_role(work, account, name, &trust, 7200).unwrap();
            for (number, policy) in policies.iter().enumerate() {
                role = role.put_policy(work, &format!("p{number}"), &policy.to_string()).unwrap();
            }
            role.arn()
        })
    }

    /// The session of a role that `who` starts.
    #[track_caller]
    pub fn session(&self, who: &Who, role: &str, more: &[(&str, &str)]) -> Who {
        let mut form =
            vec![("Action", "AssumeRole"), ("RoleArn", role), ("RoleSessionName", "session")];
        form.extend_from_slice(more);
        let response = self.sts_as(who, &form);
        let xml = String::from_utf8(response.body).unwrap();
        assert_eq!(response.status, 200, "{xml}");
        Who {
            id: element(&xml, "AccessKeyId"),
            secret: element(&xml, "SecretAccessKey").into_bytes(),
            token: Some(element(&xml, "SessionToken")),
            ..who.clone()
        }
    }
}

/// The text of an element that occurs once.
#[track_caller]
pub fn element(xml: &str, name: &str) -> String {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut parts = xml.split(&open);
    let inner = parts.nth(1).unwrap_or_else(|| panic!("no {name}: {xml}"));
    assert!(parts.next().is_none(), "{name} twice: {xml}");
    inner.split(&close).next().unwrap().to_owned()
}

pub fn answer(response: &Response) -> Answer {
    let value: Value = serde_json::from_slice(&response.body).unwrap();
    if response.status == 200 {
        return Ok(value);
    }
    let member = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let (code, message) = (member("__type"), member("message") + &member("Message"));
    assert_eq!(response.error, Some(code.as_str()));
    Err(Refused { code, message, status: response.status })
}

/// A policy of one statement.
pub fn policy(statement: Value) -> Value {
    json!({ "Version": "2012-10-17", "Statement": statement })
}

/// An identity policy that allows these actions on everything.
pub fn allow(actions: &[&str]) -> Value {
    policy(json!([{ "Effect": "Allow", "Action": actions, "Resource": "*" }]))
}

/// A key policy with the usual statement for the account, and others.
pub fn key_policy(more: Value) -> String {
    let root = format!("arn:aws:iam::{ACCOUNT}:root");
    let mut statements = vec![json!({
        "Effect": "Allow", "Principal": { "AWS": root }, "Action": "kms:*", "Resource": "*",
    })];
    let Value::Array(more) = more else { panic!("no list: {more}") };
    statements.extend(more);
    policy(json!(statements)).to_string()
}

impl Fixture {
    /// The contents of a record.
    pub fn record(&self, record_key: &str) -> Value {
        says(&self.store.read(record_key).unwrap().unwrap().value)
    }

    /// Writes a record as the service would, without the service's knowledge.
    pub fn put_record(&self, record_key: &str, value: &Value) {
        let mut work = self.service.work(self.now.get() * 1000);
        work.put(record_key, value).unwrap();
        self.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    }

    /// All records, except those that every use writes.
    pub fn store_without_uses(&self) -> Vec<(String, Vec<u8>)> {
        let found = self.store.scan("", "", 100_000).unwrap();
        let kept = found.into_iter().filter(|(record_key, _)| {
            !record_key.starts_with("kms/last-use/") && !record_key.starts_with("iam/")
        });
        kept.map(|(record_key, record)| (record_key, record.value)).collect()
    }
}
