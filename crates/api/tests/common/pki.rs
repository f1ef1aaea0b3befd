//! Authorities that issue and revoke by calls of the service, and checks of CRLs and OCSP.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::ops::Deref;
use std::sync::Arc;

use http::{HeaderMap, Method, Response};
use outlast_api::service::{Plain, Service};
use outlast_crypto::Secret;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_domain::identity;
use outlast_domain::seal::{RootKey, SoftwareKek};
use outlast_domain::settings::Settings;
use outlast_pki::certificate::{Certificate, Extension};
use outlast_pki::crl::Crl;
use outlast_pki::ocsp::{CertId, OcspError, Request, Response as Ocsp, Status};
use outlast_pki::{csr, name};
use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use outlast_store::{Completion, Event, Item, Record, Store, StoreError, Transaction};
use serde_json::{Value, json};

use crate::common::{self, ACCESS_KEY, Fixture, NOW, REGION, SECRET, Who, b64, text};

pub const DAY: i64 = 86_400;
pub const URL: &str = "http://pki.example:8444";

pub const EC: (&str, &str) = ("EC_prime256v1", "SHA256WITHECDSA");
pub const ML_DSA: (&str, &str) = ("ML_DSA_65", "ML_DSA_65");

/// A service with a listener for plain HTTP.
pub struct World(pub Fixture);

impl Deref for World {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.0
    }
}

pub struct Authority {
    pub arn: String,
    pub signing: String,
    pub certificate: Certificate,
}

impl Authority {
    pub fn id(&self) -> &str {
        self.arn.rsplit('/').next().unwrap()
    }
}

pub struct Leaf(Certificate);

impl Deref for Leaf {
    type Target = Certificate;

    fn deref(&self) -> &Certificate {
        &self.0
    }
}

impl Leaf {
    /// The URLs of its CRL.
    pub fn cdp(&self) -> Vec<String> {
        self.urls("2.5.29.31")
    }

    /// The URLs of OCSP.
    pub fn ocsp(&self) -> Vec<String> {
        self.urls("1.3.6.1.5.5.7.1.1")
    }

    fn urls(&self, oid: &str) -> Vec<String> {
        let is = |one: &&Extension| one.extn_id.to_string() == oid;
        let Some(extension) = self.extensions().iter().find(is) else { return Vec::new() };
        let bytes = extension.extn_value.as_bytes();
        let starts: Vec<_> =
            (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"http")).collect();
        let url = |at: &usize| bytes[*at..*at + usize::from(bytes[*at - 1])].to_vec();
        starts.iter().map(|at| String::from_utf8(url(at)).unwrap()).collect()
    }
}

/// A store over the network.
struct Remote(Arc<FaultyStore<MemoryStore>>);

impl Store for Remote {
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.0.read(key)
    }
    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        self.0.scan(prefix, after, limit)
    }
    fn count(&self, prefix: &str) -> Result<u64, StoreError> {
        self.0.count(prefix)
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        self.0.commit(transaction, done);
    }
    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.0.events(after, limit)
    }

    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError> {
        self.0.leaves(after, limit)
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        self.0.last_event()
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.0.snapshot(out)
    }
    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<(), StoreError> {
        self.0.restore(items)
    }
}

fn settings(url: &str) -> Settings {
    Settings {
        revocation_url: Some(url.into()),
        service_url: "https://localhost:8443".into(),
        service_url_is_given: true,
        ..Settings::default()
    }
}

impl World {
    pub fn new(url: &str) -> Self {
        let fixture = Fixture::new();
        fixture.service.set_settings(settings(url));
        Self(fixture)
    }

    /// Two servers on one database.
    pub fn pair(url: &str) -> (Self, Self) {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let one = || {
            let kek = SoftwareKek::from_key(Secret::new(vec![7; 32])).unwrap();
            let root = RootKey::new(Box::new(kek));
            let service = Service::new(Arc::new(Remote(store.clone())), root);
            service.set_settings(settings(url));
            let now = std::cell::Cell::new(NOW);
            Self(Fixture {
                service,
                store: store.clone(),
                client: common::client(ACCESS_KEY, REGION),
                now,
            })
        };
        let (first, second) = (one(), one());
        let mut work = first.service.work(NOW * 1000);
        let secret = Secret::new(SECRET.to_vec());
        let id = Some(ACCESS_KEY.into());
        identity::create_administrator(&mut work, common::ACCOUNT, "admin", id, &secret).unwrap();
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        (first, second)
    }

    pub fn pca_as(&self, who: &Who, operation: &str, body: &Value) -> Result<Value, String> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        headers.insert("x-amz-target", format!("ACMPrivateCA.{operation}").parse().unwrap());
        let response = self.request(who, "acm-pca", headers, body.to_string().as_bytes());
        let value: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        if response.status == 200 { Ok(value) } else { Err(text(&value["__type"]).to_owned()) }
    }

    pub fn pca(&self, operation: &str, body: &Value) -> Result<Value, String> {
        self.pca_as(&Who::admin(), operation, body)
    }

    #[track_caller]
    pub fn root(&self, algorithms: (&str, &str), revocation: Value) -> Authority {
        self.try_root(algorithms, revocation).unwrap()
    }

    /// A root that is active; `None` if there is no such algorithm.
    pub fn try_root(&self, (key, signing): (&str, &str), revocation: Value) -> Option<Authority> {
        let new = json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": key, "SigningAlgorithm": signing, "Subject": { "CommonName": "Root" },
            },
            "RevocationConfiguration": revocation,
            "CertificateAuthorityType": "ROOT",
        });
        let made = self.pca("CreateCertificateAuthority", &new).ok()?;
        let arn = text(&made["CertificateAuthorityArn"]).to_owned();
        let csr =
            self.pca("GetCertificateAuthorityCsr", &json!({ "CertificateAuthorityArn": arn }));
        let csr = text(&csr.unwrap()["Csr"]).to_owned();
        let pem = self.issue(&arn, signing, csr.as_bytes(), "RootCACertificate", 3650);
        let import = json!({ "CertificateAuthorityArn": arn, "Certificate": b64(pem.as_bytes()) });
        self.pca("ImportCertificateAuthorityCertificate", &import).unwrap();
        let certificate = Certificate::parse_one(pem.as_bytes()).unwrap();
        Some(Authority { arn, signing: signing.into(), certificate })
    }

    fn issue(&self, arn: &str, signing: &str, csr: &[u8], template: &str, days: i64) -> String {
        let issue = json!({
            "CertificateAuthorityArn": arn, "Csr": b64(csr), "SigningAlgorithm": signing,
            "TemplateArn": format!("arn:aws:acm-pca:::template/{template}/V1"),
            "Validity": { "Type": "DAYS", "Value": days },
        });
        let made = self.pca("IssueCertificate", &issue).unwrap();
        let get =
            json!({ "CertificateAuthorityArn": arn, "CertificateArn": made["CertificateArn"] });
        text(&self.pca("GetCertificate", &get).unwrap()["Certificate"]).to_owned()
    }

    pub fn leaf(&self, authority: &Authority, days: i64) -> Leaf {
        let spec = KeySpec::by_name("ECC_NIST_P256").unwrap();
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        let subject = name::common_name("leaf.example").unwrap();
        let unsigned = csr::Unsigned::new(subject, key.public_key().unwrap(), Vec::new()).unwrap();
        let algorithm = spec.signing[0];
        let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
        let request = unsigned.assemble(algorithm, &signature).unwrap();
        let pem =
            self.issue(&authority.arn, &authority.signing, &request, "EndEntityCertificate", days);
        Leaf(Certificate::parse_one(pem.as_bytes()).unwrap())
    }

    pub fn revoke(&self, authority: &Authority, leaf: &Leaf, reason: &str) -> Result<(), String> {
        self.revoke_as(&Who::admin(), authority, leaf, reason)
    }

    pub fn revoke_as(
        &self,
        who: &Who,
        authority: &Authority,
        leaf: &Leaf,
        reason: &str,
    ) -> Result<(), String> {
        let revoke = json!({
            "CertificateAuthorityArn": authority.arn, "RevocationReason": reason,
            "CertificateSerial": hex::encode(leaf.serial()),
        });
        self.pca_as(who, "RevokeCertificate", &revoke).map(|_| ())
    }

    /// Writes records of revocations, one serial number after the other.
    pub fn revoke_unissued(&self, authority: &Authority, count: u32) {
        let prefix = format!("ca/revoked/{}/{REGION}/{}/", common::ACCOUNT, authority.id());
        let now = self.now.get();
        let value = json!({
            "reason": "KEY_COMPROMISE", "revoked_ms": now * 1000, "not_after": now + 86_400 * 365,
        });
        let mut work = self.service.work(now * 1000);
        for number in 0..count {
            let digest = outlast_crypto::digests::sha256(&number.to_be_bytes());
            let serial =
                hex::encode([[0x40 | (digest[0] & 0x3f)].as_slice(), &digest[1..16]].concat());
            work.create(&format!("{prefix}{serial}"), &value).unwrap();
        }
        self.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    }

    #[track_caller]
    pub fn update(&self, authority: &Authority, revocation: Value) {
        let update = json!({
            "CertificateAuthorityArn": authority.arn, "RevocationConfiguration": revocation,
        });
        self.pca("UpdateCertificateAuthority", &update).unwrap();
    }

    #[track_caller]
    pub fn set_status(&self, authority: &Authority, status: &str) {
        let update = json!({ "CertificateAuthorityArn": authority.arn, "Status": status });
        self.pca("UpdateCertificateAuthority", &update).unwrap();
    }

    #[track_caller]
    pub fn delete(&self, authority: &Authority) {
        self.set_status(authority, "DISABLED");
        let delete = json!({ "CertificateAuthorityArn": authority.arn });
        self.pca("DeleteCertificateAuthority", &delete).unwrap();
    }

    #[track_caller]
    pub fn restore(&self, authority: &Authority) {
        let restore = json!({ "CertificateAuthorityArn": authority.arn });
        self.pca("RestoreCertificateAuthority", &restore).unwrap();
    }

    /// The OCSP status of a certificate that was never issued.
    pub fn other_serial(&self, authority: &Authority) -> CertId {
        let hash = outlast_pki::ocsp::cert_id::hashes().last().unwrap();
        let key = authority.certificate.public_key().unwrap();
        CertId::new(hash, authority.certificate.subject(), &key, &[0x55; 16]).unwrap()
    }

    pub fn write(&self, record_key: &str, value: &[u8]) {
        let writes = vec![(record_key.to_owned(), Some(value.to_vec()))];
        self.store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
    }
}

pub fn both() -> Value {
    json!({
        "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 8 },
        "OcspConfiguration": { "Enabled": true },
    })
}

pub fn crl_only(more: Value) -> Value {
    let crl = json!({ "Enabled": true, "ExpirationInDays": 8 });
    json!({ "CrlConfiguration": common::with(&crl, more) })
}

pub fn get(fixture: &Fixture, path: &str) -> Response<bytes::Bytes> {
    plain(fixture, &Method::GET, path, &HeaderMap::new(), b"")
}

pub fn plain(
    fixture: &Fixture,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Response<bytes::Bytes> {
    plain_from(fixture, [192, 0, 2, 1].into(), (method, path), headers, body)
}

/// The same, from another peer.
pub fn plain_from(
    fixture: &Fixture,
    peer: std::net::IpAddr,
    (method, path): (&Method, &str),
    headers: &HeaderMap,
    body: &[u8],
) -> Response<bytes::Bytes> {
    let now_ms = fixture.now.get() * 1000;
    fixture.service.call_plain(&Plain { method, path, headers, body, now_ms, peer })
}

pub fn post(fixture: &Fixture, request: &Request) -> Result<Ocsp, OcspError> {
    let der = request.to_der().unwrap();
    let response = plain(fixture, &Method::POST, "/ocsp", &HeaderMap::new(), &der);
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/ocsp-response");
    Ocsp::parse(response.body())
}

/// The same, from another peer.
pub fn post_from(
    fixture: &Fixture,
    peer: std::net::IpAddr,
    request: &Request,
) -> Result<Ocsp, OcspError> {
    let der = request.to_der().unwrap();
    let response = plain_from(fixture, peer, (&Method::POST, "/ocsp"), &HeaderMap::new(), &der);
    Ocsp::parse(response.body())
}

/// The OCSP status of a certificate, from a client that verifies the response.
#[track_caller]
pub fn status(fixture: &Fixture, authority: &Authority, leaf: &Leaf) -> Status {
    let request = Request::new(&authority.certificate, leaf, None).unwrap();
    let response = post(fixture, &request).unwrap();
    let now = fixture.now.get();
    response.verify(&authority.certificate, leaf, None, now).unwrap().status
}

pub fn keep(fixture: &Fixture) {
    fixture.service.keep_revocation(fixture.now.get() * 1000).unwrap();
}

#[track_caller]
pub fn crl_at(fixture: &Fixture, authority: &Authority, path: &str) -> Crl {
    let response = get(fixture, path);
    assert_eq!(response.status(), 200, "{path}");
    assert_eq!(response.headers()["content-type"], "application/pkix-crl");
    let crl = Crl::parse(response.body()).unwrap();
    assert!(crl.signed_by(&authority.certificate), "{path}");
    assert_eq!(crl.unusable(), None);
    crl
}

#[track_caller]
pub fn crl_of(fixture: &Fixture, authority: &Authority) -> Crl {
    crl_at(fixture, authority, &format!("/crl/{}.crl", authority.id()))
}

pub fn count(fixture: &Fixture, event: &str) -> usize {
    fixture.events().iter().filter(|found| found["eventName"] == event).count()
}

pub fn left(fixture: &Fixture, prefix: &str) -> usize {
    fixture.store.scan(prefix, "", 1000).unwrap().len()
}
