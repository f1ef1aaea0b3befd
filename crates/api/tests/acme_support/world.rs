//! A service with a CA, a role and an ACME endpoint, and a client without sockets.

use std::sync::Mutex;

use http::{HeaderMap, Method};
use outlast_api::acme::jobs::Lane;
use outlast_api::acme::{Response, header};
use outlast_api::service::Request;
use outlast_domain::acme::{Job, Outcome, Queue};
use serde_json::{Value, json};

use super::{Signer, b64, binding, request, unb64};
use crate::common::{ACCOUNT, Fixture, HOST, Refused, Who, allow, policy, text};

pub const ROLE: &[&str] =
    &["acm:RequestCertificate", "acm:RevokeCertificate", "acm-pca:IssueCertificate"];

pub struct World {
    pub fixture: Fixture,
    pub authority: String,
    pub endpoint: String,
    pub role: String,
}

/// Calls an operation as anybody.
pub fn call(
    fixture: &Fixture,
    who: &Who,
    service: &str,
    operation: &str,
    body: &Value,
) -> Result<Value, Refused> {
    let prefix = if service == "acm" { "CertificateManager" } else { "ACMPrivateCA" };
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
    headers.insert("x-amz-target", format!("{prefix}.{operation}").parse().unwrap());
    let response = fixture.request(who, service, headers, body.to_string().as_bytes());
    let value: Value = serde_json::from_slice(&response.body).unwrap();
    if response.status == 200 {
        return Ok(value);
    }
    let member = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Err(Refused { code: member("__type"), message: member("message"), status: response.status })
}

/// Makes an active root CA and returns its ARN.
pub fn root(fixture: &Fixture, algorithm: &str) -> String {
    let pca = |operation: &str, body: Value| {
        call(fixture, &Who::admin(), "acm-pca", operation, &body).unwrap()
    };
    let signing = match algorithm {
        "EC_prime256v1" => "SHA256WITHECDSA",
        other => other,
    };
    let made = pca(
        "CreateCertificateAuthority",
        json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": algorithm, "SigningAlgorithm": signing,
                "Subject": { "CommonName": "Root" },
            },
            "CertificateAuthorityType": "ROOT",
        }),
    );
    let arn = text(&made["CertificateAuthorityArn"]).to_owned();
    let csr = pca("GetCertificateAuthorityCsr", json!({ "CertificateAuthorityArn": arn }));
    let issued = pca(
        "IssueCertificate",
        json!({
            "CertificateAuthorityArn": arn,
            "Csr": crate::common::b64(text(&csr["Csr"]).as_bytes()),
            "SigningAlgorithm": signing,
            "TemplateArn": "arn:aws:acm-pca:::template/RootCACertificate/V1",
            "Validity": { "Type": "YEARS", "Value": 10 },
        }),
    );
    let got = pca(
        "GetCertificate",
        json!({ "CertificateAuthorityArn": arn, "CertificateArn": issued["CertificateArn"] }),
    );
    pca(
        "ImportCertificateAuthorityCertificate",
        json!({
            "CertificateAuthorityArn": arn,
            "Certificate": crate::common::b64(text(&got["Certificate"]).as_bytes()),
        }),
    );
    arn
}

/// A role that ACME may assume.
pub fn role(fixture: &Fixture, name: &str, actions: &[&str]) -> String {
    let trust = policy(json!([{
        "Effect": "Allow",
        "Principal": { "Service": "acm-acme.amazonaws.com" },
        "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
    }]));
    fixture.role(ACCOUNT, name, &trust, &[allow(actions)])
}

impl World {
    /// A world with an endpoint that requires challenges.
    pub fn new() -> Self {
        Self::with("CHALLENGE", json!({}))
    }

    pub fn with(authorization: &str, public: Value) -> Self {
        Self::on(Fixture::new(), authorization, public)
    }

    /// The same, at the time and on the store of a fixture.
    pub fn on(fixture: Fixture, authorization: &str, public: Value) -> Self {
        let authority = root(&fixture, "EC_prime256v1");
        let role = role(&fixture, "acme", ROLE);
        let mut world = Self { fixture, authority, endpoint: String::new(), role };
        world.endpoint = world.another(authorization, public);
        world
    }

    pub fn another(&self, authorization: &str, public: Value) -> String {
        let made = self.acm(
            "CreateAcmeEndpoint",
            json!({
                "AuthorizationBehavior": authorization,
                "CertificateAuthority": { "PublicCertificateAuthority": public },
                "Tags": [{ "Key": "outlast:certificate-authority-arn", "Value": self.authority }],
            }),
        );
        text(&made["AcmeEndpointArn"]).to_owned()
    }

    pub fn try_acm(&self, operation: &str, body: Value) -> Result<Value, Refused> {
        call(&self.fixture, &Who::admin(), "acm", operation, &body)
    }

    #[track_caller]
    pub fn acm(&self, operation: &str, body: Value) -> Value {
        self.try_acm(operation, body).unwrap()
    }

    pub fn endpoint_id(&self) -> &str {
        self.endpoint.rsplit('/').next().unwrap()
    }

    pub fn directory(&self) -> String {
        format!("https://{HOST}/acme/{}/directory", self.endpoint_id())
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{HOST}/acme/{}/{path}", self.endpoint_id())
    }

    /// A new binding: key id and MAC key.
    pub fn credentials(&self) -> (String, Vec<u8>) {
        let (arn, _) = self.binding(json!({}));
        self.credentials_of(&arn)
    }

    pub fn binding(&self, more: Value) -> (String, Value) {
        let body = json!({ "AcmeEndpointArn": self.endpoint, "RoleArn": self.role });
        let made = self.acm("CreateAcmeExternalAccountBinding", crate::common::with(&body, more));
        let made = made["ExternalAccountBinding"].clone();
        (text(&made["AcmeExternalAccountBindingArn"]).to_owned(), made)
    }

    pub fn credentials_of(&self, arn: &str) -> (String, Vec<u8>) {
        let body = json!({ "AcmeExternalAccountBindingArn": arn });
        let found = self.acm("GetAcmeExternalAccountBindingCredentials", body);
        (text(&found["KeyId"]).to_owned(), unb64(text(&found["MacKey"])))
    }

    pub fn send(&self, method: &Method, url: &str, content_type: &str, body: &[u8]) -> Response {
        let path = url.strip_prefix(&format!("https://{HOST}")).unwrap();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut headers = HeaderMap::new();
        if !content_type.is_empty() {
            headers.insert("content-type", content_type.parse().unwrap());
        }
        let response = self.fixture.service.acme_call(&Request {
            method,
            path,
            query,
            host: HOST,
            headers: &headers,
            body,
            source_ip: "127.0.0.1",
            tls: None,
            now_ms: self.fixture.now.get() * 1000,
            request_id: "00000000-0000-0000-0000-000000000000",
        });
        assert_eq!(header(&response, "cache-control"), Some("no-store"), "{url}");
        response
    }

    pub fn get(&self, url: &str) -> Response {
        self.send(&Method::GET, url, "", &[])
    }

    pub fn nonce(&self) -> String {
        let response = self.send(&Method::HEAD, &self.url("new-nonce"), "", &[]);
        assert_eq!(response.status, 200);
        header(&response, "replay-nonce").unwrap().to_owned()
    }

    /// A signed request: by account if `kid` is given, else by key.
    pub fn post(&self, signer: &Signer, kid: Option<&str>, url: &str, payload: &str) -> Response {
        let jws = signer.jws(kid, json!({ "nonce": self.nonce(), "url": url }), payload);
        self.post_jws(url, &jws)
    }

    pub fn post_jws(&self, url: &str, jws: &Value) -> Response {
        self.send(&Method::POST, url, "application/jose+json", jws.to_string().as_bytes())
    }

    /// A new account with a binding of its own.
    pub fn account(&self, algorithm: &str) -> Account<'_> {
        let signer = Signer::new(algorithm);
        let (kid, mac_key) = self.credentials();
        let url = self.url("new-account");
        let payload = json!({ "externalAccountBinding": binding(&kid, &mac_key, &signer, &url) });
        let response = self.post(&signer, None, &url, &payload.to_string());
        assert_eq!(response.status, 201, "{}", String::from_utf8_lossy(&response.body));
        let url = header(&response, "location").unwrap().to_owned();
        Account { world: self, signer, url }
    }

    /// Takes on the attempts that are due and records outcomes, as `net` does.
    pub fn look(&self, queue: Queue, found: impl Fn(&Job) -> Outcome) -> usize {
        let now_ms = self.fixture.now.get() * 1000;
        let lane = Mutex::new(Lane::new(8000));
        let jobs = self.fixture.service.acme_jobs(queue, now_ms, &lane).unwrap();
        for job in &jobs {
            self.fixture.service.acme_outcome(job, &found(job), now_ms).unwrap();
        }
        jobs.len()
    }
}

/// An account of an endpoint.
pub struct Account<'a> {
    pub world: &'a World,
    pub signer: Signer,
    pub url: String,
}

impl Account<'_> {
    pub fn post(&self, url: &str, payload: &str) -> Response {
        self.world.post(&self.signer, Some(&self.url), url, payload)
    }

    #[track_caller]
    pub fn read(&self, url: &str) -> Value {
        let response = self.post(url, "");
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        json_of(&response)
    }

    /// A new order: its URL and the order.
    #[track_caller]
    pub fn order(&self, names: &[&str]) -> (String, Value) {
        let response = self.try_order(names, json!({}));
        assert_eq!(response.status, 201, "{}", String::from_utf8_lossy(&response.body));
        (header(&response, "location").unwrap().to_owned(), json_of(&response))
    }

    pub fn try_order(&self, names: &[&str], more: Value) -> Response {
        let identifiers: Vec<_> =
            names.iter().map(|name| json!({ "type": "dns", "value": name })).collect();
        let body = crate::common::with(&json!({ "identifiers": identifiers }), more);
        self.post(&self.world.url("new-order"), &body.to_string())
    }

    /// Meets a challenge of each authorization of an order.
    pub fn prove(&self, order: &Value, kind: &str) {
        for authorization in order["authorizations"].as_array().unwrap() {
            let found = self.read(text(authorization));
            let challenge = challenge(&found, kind);
            let response = self.post(text(&challenge["url"]), "{}");
            assert_eq!(json_of(&response)["status"], "processing");
        }
        self.world.look(Queue::Challenges, |_| Outcome::Found);
    }

    pub fn finalize(&self, order: &Value, csr: &[u8]) -> Response {
        self.post(text(&order["finalize"]), &json!({ "csr": b64(csr) }).to_string())
    }

    /// A certificate for these names: the order, and the chain.
    pub fn certificate(&self, names: &[&str], leaf: &Signer) -> (Value, String) {
        let (url, order) = self.order(names);
        if order["status"] == "pending" {
            self.prove(&order, "dns-01");
        }
        let response = self.finalize(&order, &request(leaf, names, None));
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        let order = self.read(&url);
        let response = self.post(text(&order["certificate"]), "");
        assert_eq!(response.content_type, "application/pem-certificate-chain");
        (order, String::from_utf8(response.body).unwrap())
    }
}

#[track_caller]
pub fn challenge<'a>(authorization: &'a Value, kind: &str) -> &'a Value {
    let all = authorization["challenges"].as_array().unwrap();
    all.iter().find(|challenge| challenge["type"] == kind).unwrap()
}

pub fn json_of(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap()
}

/// Type and status of a problem document.
#[track_caller]
pub fn problem(response: &Response) -> (String, u16) {
    assert_eq!(
        response.content_type,
        "application/problem+json",
        "{}",
        String::from_utf8_lossy(&response.body)
    );
    let value = json_of(response);
    assert_eq!(value["status"], response.status);
    let kind = text(&value["type"]).strip_prefix("urn:ietf:params:acme:error:").unwrap();
    (kind.to_owned(), response.status)
}
