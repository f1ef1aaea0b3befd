//! CAs outside the service, certificates of workloads, and signed requests for sessions.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::atomic::{AtomicU8, Ordering};

use http::{HeaderMap, Method};
use outlast_api::service::Request;
use outlast_crypto::digests::sha256;
use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_domain::rolesanywhere::decimal;
use outlast_pki::certificate::{Certificate, Content, Extension, key_identifier};
use outlast_pki::crl::{self, Entry};
use outlast_pki::extensions::{
    self, CLIENT_AUTH, KeyUsages, authority_key_identifier, subject_key_identifier,
};
use outlast_pki::templates::CA_KEY_USAGE;
use outlast_pki::{name, pem};
use serde_json::{Value, json};

use crate::common::{ACCOUNT, Fixture, HOST, NOW, REGION, Refused, Who, policy, text, with};

pub const DAY: i64 = 86_400;

/// A key with the certificate for it.
pub struct Holder {
    pub key: Box<dyn Key>,
    pub spec: &'static KeySpec,
    pub certificate: Certificate,
}

/// What is in a certificate besides its key.
pub struct Made {
    pub subject: name::Name,
    pub extensions: Vec<Extension>,
    pub not_before: i64,
    pub not_after: i64,
    pub serial: Option<[u8; 16]>,
}

fn spec(name: &str) -> &'static KeySpec {
    KeySpec::by_name(name).unwrap_or_else(|| panic!("no key type {name}"))
}

/// What keys of a type sign certificates with.
fn algorithm(spec: &'static KeySpec) -> &'static SignatureAlgorithm {
    let pkcs1 = spec.signing.iter().find(|row| row.kms_name == "RSASSA_PKCS1_V1_5_SHA_256");
    pkcs1.or_else(|| spec.signing.iter().find(|row| row.oid.is_some())).unwrap()
}

fn serial() -> [u8; 16] {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let mut bytes: [u8; 16] = outlast_crypto::random::bytes().unwrap();
    bytes[15] = NEXT.fetch_add(1, Ordering::Relaxed);
    bytes[0] = 0x40;
    bytes
}

pub fn ca_extensions(path_len: Option<u8>) -> Vec<Extension> {
    vec![
        extensions::basic_constraints(true, path_len, true).unwrap(),
        extensions::key_usage(CA_KEY_USAGE).unwrap(),
    ]
}

/// What AWS asks of a workload's certificate, and the purpose.
pub fn leaf_extensions() -> Vec<Extension> {
    vec![
        extensions::basic_constraints(false, None, true).unwrap(),
        extensions::key_usage(&[KeyUsages::DigitalSignature]).unwrap(),
        extensions::extended_key_usage(&[CLIENT_AUTH], false).unwrap(),
    ]
}

/// A workload's certificate for this subject, valid for 30 days.
pub fn workload(subject: &str) -> Made {
    Made {
        subject: name::parse(subject).unwrap(),
        extensions: leaf_extensions(),
        not_before: NOW - DAY,
        not_after: NOW + 30 * DAY,
        serial: None,
    }
}

/// A CA's certificate for this subject, valid for ten years.
pub fn authority(subject: &str) -> Made {
    Made { extensions: ca_extensions(None), not_after: NOW + 3650 * DAY, ..workload(subject) }
}

impl Holder {
    fn issued(key: Box<dyn Key>, spec: &'static KeySpec, made: Made, by: Option<&Holder>) -> Self {
        let own = key.public_key().unwrap().to_vec();
        let (issuer, issuer_key, algorithm) = match by {
            Some(by) => (
                by.certificate.subject().clone(),
                by.certificate.public_key().unwrap(),
                algorithm(by.spec),
            ),
            None => (made.subject.clone(), own.clone(), algorithm(spec)),
        };
        let mut extensions = made.extensions;
        extensions.push(subject_key_identifier(&key_identifier(&own).unwrap()).unwrap());
        extensions.push(authority_key_identifier(&key_identifier(&issuer_key).unwrap()).unwrap());
        let unsigned = Content {
            serial: made.serial.unwrap_or_else(serial),
            issuer,
            subject: made.subject,
            public_key: own,
            not_before: made.not_before,
            not_after: made.not_after,
            extensions,
        }
        .prepare(algorithm, &issuer_key)
        .unwrap();
        let signer = by.map_or(&key, |by| &by.key);
        let signature = signer.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
        let der = unsigned.assemble(&signature).unwrap();
        Self { key, spec, certificate: Certificate::parse(&der).unwrap() }
    }

    fn new(key_spec: &str, made: Made, by: Option<&Holder>) -> Self {
        let spec = spec(key_spec);
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        Self::issued(key, spec, made, by)
    }

    /// A root.
    pub fn root(key_spec: &str, subject: &str) -> Self {
        Self::new(key_spec, authority(subject), None)
    }

    /// A certificate from this CA.
    pub fn issue(&self, key_spec: &str, made: Made) -> Self {
        Self::new(key_spec, made, Some(self))
    }

    /// A holder of a certificate that others have made for this key.
    pub fn of(key: Box<dyn Key>, key_spec: &str, certificate: Certificate) -> Self {
        Self { key, spec: spec(key_spec), certificate }
    }

    pub fn pem(&self) -> String {
        pem::certificate(self.certificate.der())
    }

    /// A CRL from this CA that lists these certificates, valid from `at` for 30 days.
    pub fn crl(&self, revoked: &[&Certificate], at: i64) -> Vec<u8> {
        self.crl_as(&self.certificate, revoked, at)
    }

    /// The same in the name of another issuer.
    pub fn crl_as(&self, issuer: &Certificate, revoked: &[&Certificate], at: i64) -> Vec<u8> {
        let key_id = key_identifier(&issuer.public_key().unwrap()).unwrap();
        let mut entries: Vec<_> = revoked
            .iter()
            .map(|one| Entry {
                serial: one.serial().to_vec(),
                revoked_at: at,
                reason: crl::reason::UNSPECIFIED,
            })
            .collect();
        entries.sort_by(|one, other| one.serial.cmp(&other.serial));
        let unsigned = crl::Content {
            issuer: issuer.subject().clone(),
            issuer_key_id: key_id,
            number: 1,
            this_update: at,
            next_update: at + 30 * DAY,
            distribution_points: Vec::new(),
            scope: crl::Scope::default(),
        }
        .prepare(algorithm(self.spec), entries)
        .unwrap();
        let message = Message::Raw(&unsigned.to_be_signed);
        let signature = self.key.sign(algorithm(self.spec), message).unwrap();
        unsigned.assemble(&signature).unwrap()
    }
}

/// A request for a session, whose parts a test may change before it is signed.
pub struct Signing<'a> {
    pub holder: &'a Holder,
    pub chain: Vec<Certificate>,
    pub algorithm: Option<&'static str>,
    pub region: &'static str,
    pub at: i64,
    pub query: String,
    pub body: Vec<u8>,
    pub serial: Option<String>,
    /// Headers that are not signed although they are sent.
    pub unsigned: &'static [&'static str],
}

pub struct Signed {
    pub query: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// `20261121T020000Z`
fn basic(at: i64) -> String {
    outlast_pki::time::rfc3339(at).replace(['-', ':'], "")
}

impl<'a> Signing<'a> {
    pub fn new(holder: &'a Holder, body: &Value, at: i64) -> Self {
        Self {
            holder,
            chain: Vec::new(),
            algorithm: None,
            region: REGION,
            at,
            query: String::new(),
            body: body.to_string().into_bytes(),
            serial: None,
            unsigned: &[],
        }
    }

    /// Signs as the user guide says, without any code of the server.
    pub fn sign(self) -> Signed {
        use crate::common::b64;
        let is = |prefix: &str| self.holder.spec.name.starts_with(prefix);
        let name = self.algorithm.unwrap_or(match () {
            () if is("RSA") => "AWS4-X509-RSA-SHA256",
            () if is("ECC") => "AWS4-X509-ECDSA-SHA256",
            () => "AWS4-X509-MLDSA",
        });
        let date = basic(self.at);
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("host", HOST.to_owned()),
            ("x-amz-date", date.clone()),
            ("x-amz-x509", b64(self.holder.certificate.der())),
        ];
        if !self.chain.is_empty() {
            let chain: Vec<_> = self.chain.iter().map(|one| b64(one.der())).collect();
            headers.push(("x-amz-x509-chain", chain.join(",")));
        }
        let signed: Vec<_> =
            headers.iter().filter(|(name, _)| !self.unsigned.contains(name)).collect();
        let names: Vec<_> = signed.iter().map(|(name, _)| *name).collect();
        let mut canonical = format!("POST\n/sessions\n{}\n", self.query);
        for (name, value) in &signed {
            canonical.push_str(&format!("{name}:{value}\n"));
        }
        canonical.push_str(&format!("\n{}\n{}", names.join(";"), hex::encode(sha256(&self.body))));
        let scope = format!("{}/{}/rolesanywhere/aws4_request", &date[..8], self.region);
        let digest = hex::encode(sha256(canonical.as_bytes()));
        let to_sign = format!("{name}\n{date}\n{scope}\n{digest}");
        let row = self.holder.spec.signing.iter().find(|row| match name {
            "AWS4-X509-RSA-SHA256" => row.kms_name == "RSASSA_PKCS1_V1_5_SHA_256",
            "AWS4-X509-ECDSA-SHA256" => row.kms_name == "ECDSA_SHA_256",
            _ => row.oid.is_some(),
        });
        let signature = match row {
            Some(row) => self.holder.key.sign(row, Message::Raw(to_sign.as_bytes())).unwrap(),
            None => self.holder.sign_sha256(to_sign.as_bytes()),
        };
        let serial = self.serial.unwrap_or_else(|| decimal(self.holder.certificate.serial()));
        let authorization = format!(
            "{name} Credential={serial}/{scope}, SignedHeaders={}, Signature={}",
            names.join(";"),
            hex::encode(signature)
        );
        let mut map = HeaderMap::new();
        for (name, value) in &headers {
            map.insert(*name, value.parse().unwrap());
        }
        map.insert("authorization", authorization.parse().unwrap());
        Signed { query: self.query, headers: map, body: self.body }
    }
}

impl Holder {
    /// ECDSA with SHA-256 by a key of a larger curve, which the tables do not offer. What ECDSA signs is a number, and zeros
    /// before it make it the length of the digest that they do offer.
    fn sign_sha256(&self, text: &[u8]) -> Vec<u8> {
        let row = self.spec.signing[0];
        let len = if row.digest == Some("sha512") { 64 } else { 48 };
        let mut digest = vec![0; len - 32];
        digest.extend(sha256(text));
        self.key.sign(row, Message::Digest(&digest)).unwrap()
    }
}

/// A fixture with a root, its trust anchor, a role and a profile.
pub struct Scene {
    pub fixture: Fixture,
    pub root: Holder,
    pub anchor: String,
    pub profile: String,
    pub role: String,
}

/// A trust policy for the service with this condition.
pub fn trust(condition: &Value) -> Value {
    policy(json!([{
        "Effect": "Allow", "Principal": { "Service": "rolesanywhere.amazonaws.com" },
        "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"], "Condition": condition,
    }]))
}

/// A policy that allows everything.
pub fn everything() -> Value {
    policy(json!([{ "Effect": "Allow", "Action": "*", "Resource": "*" }]))
}

#[track_caller]
pub fn anchor(fixture: &Fixture, certificates: &str) -> String {
    let body = json!({
        "name": "anchor", "enabled": true,
        "source": {
            "sourceType": "CERTIFICATE_BUNDLE", "sourceData": { "x509CertificateData": certificates },
        },
    });
    let made = fixture.ra("CreateTrustAnchor", body).unwrap();
    text(&made["trustAnchor"]["trustAnchorArn"]).to_owned()
}

#[track_caller]
pub fn profile(fixture: &Fixture, roles: &[&str], more: Value) -> String {
    let body = with(&json!({ "name": "profile", "enabled": true, "roleArns": roles }), more);
    let made = fixture.ra("CreateProfile", body).unwrap();
    text(&made["profile"]["profileArn"]).to_owned()
}

/// The id at the end of an ARN.
pub fn id(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap()
}

impl Scene {
    pub fn new() -> Self {
        Self::on(Fixture::new())
    }

    pub fn on(fixture: Fixture) -> Self {
        let root = Holder::root("ECC_NIST_P256", "CN=Root,O=Example");
        let anchor = anchor(&fixture, &root.pem());
        let role = fixture.role(ACCOUNT, "workload", &trust(&json!({})), &[everything()]);
        let profile = profile(&fixture, &[&role], json!({}));
        Self { fixture, root, anchor, profile, role }
    }

    /// The body of a request.
    pub fn body(&self, more: Value) -> Value {
        let body = json!({
            "trustAnchorArn": self.anchor, "profileArn": self.profile, "roleArn": self.role,
        });
        with(&body, more)
    }

    pub fn signing<'a>(&self, holder: &'a Holder) -> Signing<'a> {
        Signing::new(holder, &self.body(json!({})), self.fixture.now.get())
    }

    /// The answer to a request.
    pub fn answer(&self, signed: &Signed) -> Result<Value, Refused> {
        answered(&self.fixture, signed)
    }

    /// A session that a certificate begins with the usual request.
    #[track_caller]
    pub fn session(&self, holder: &Holder) -> Result<Value, Refused> {
        self.answer(&self.signing(holder).sign())
    }

    #[track_caller]
    pub fn session_with(&self, holder: &Holder, more: Value) -> Result<Value, Refused> {
        let signing = Signing::new(holder, &self.body(more), self.fixture.now.get());
        self.answer(&signing.sign())
    }
}

/// The answer to a request.
pub fn answered(fixture: &Fixture, signed: &Signed) -> Result<Value, Refused> {
    let response = fixture.service.call(&Request {
        method: &Method::POST,
        path: "/sessions",
        query: &signed.query,
        host: HOST,
        headers: &signed.headers,
        body: &signed.body,
        source_ip: "192.0.2.7",
        tls: None,
        now_ms: fixture.now.get() * 1000,
        request_id: "00000000-0000-0000-0000-000000000000",
    });
    let value: Value = serde_json::from_slice(&response.body).unwrap();
    match response.error {
        None => {
            assert_eq!(response.status, 201);
            Ok(value)
        }
        Some(code) => Err(Refused {
            code: code.to_owned(),
            message: value["message"].as_str().unwrap_or_default().to_owned(),
            status: response.status,
        }),
    }
}

/// The holder of the credentials of a session.
pub fn who(answer: &Value) -> Who {
    let found = &answer["credentialSet"][0]["credentials"];
    Who {
        id: text(&found["accessKeyId"]).to_owned(),
        secret: text(&found["secretAccessKey"]).as_bytes().to_vec(),
        token: Some(text(&found["sessionToken"]).to_owned()),
        ..Who::admin()
    }
}

/// Whether a session may still call.
pub fn may_call(fixture: &Fixture, who: &Who) -> bool {
    match fixture.kms_as(who, "ListKeys", json!({})) {
        Ok(_) => true,
        Err(refused) => {
            assert_eq!(refused.code, "ExpiredTokenException");
            false
        }
    }
}
