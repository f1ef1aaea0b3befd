//! Certificate authorities for tests of Private CA.

use http::HeaderMap;
use outlast_api::ops::acm_pca::{
    create_certificate_authority, describe_certificate_authority, get_certificate,
    get_certificate_authority_csr, import_certificate_authority_certificate, issue_certificate,
};
use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::{Certificate, Content, Extension, key_identifier};
use outlast_pki::extensions::{self, authority_key_identifier, subject_key_identifier};
use outlast_pki::templates::CA_KEY_USAGE;
use outlast_pki::{csr, name, object, pem};
use serde_json::{Value, json};

use super::{Answer, Fixture, Who, answer, b64};

pub fn input<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub fn create(fixture: &Fixture, kind: &str, name: &str, algorithms: (&str, &str)) -> String {
    let new = json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": algorithms.0, "SigningAlgorithm": algorithms.1,
            "Subject": { "CommonName": name, "Country": "DE", "Organization": "Outlast" },
        },
        "CertificateAuthorityType": kind,
    });
    fixture
        .call::<create_certificate_authority::CreateCertificateAuthority>(&input(new))
        .unwrap()
        .certificate_authority_arn
}

pub fn ca_request(fixture: &Fixture, arn: &str) -> String {
    let get = json!({ "CertificateAuthorityArn": arn });
    fixture
        .call::<get_certificate_authority_csr::GetCertificateAuthorityCsr>(&input(get))
        .unwrap()
        .csr
}

/// What to issue; the rest is the same everywhere.
pub struct Issue<'a> {
    pub authority: &'a str,
    pub request: &'a [u8],
    pub algorithm: &'a str,
    pub template: &'a str,
    pub validity: Value,
}

pub fn issue(fixture: &Fixture, what: &Issue<'_>) -> Result<String, String> {
    let request = json!({
        "CertificateAuthorityArn": what.authority,
        "Csr": b64(what.request),
        "SigningAlgorithm": what.algorithm,
        "TemplateArn": format!("arn:aws:acm-pca:::template/{}/V1", what.template),
        "Validity": what.validity,
    });
    fixture
        .call::<issue_certificate::IssueCertificate>(&input(request))
        .map(|made| made.certificate_arn)
        .map_err(|error| error.code)
}

pub fn get(fixture: &Fixture, authority: &str, arn: &str) -> (Certificate, Vec<Certificate>) {
    let get = json!({ "CertificateAuthorityArn": authority, "CertificateArn": arn });
    let found = fixture.call::<get_certificate::GetCertificate>(&input(get)).unwrap();
    let parse = |text: &str| {
        let list = pem::read_certificates(text.as_bytes()).unwrap();
        list.iter().map(|der| Certificate::parse(der).unwrap()).collect::<Vec<_>>()
    };
    let chain = found.certificate_chain.as_deref().map(parse).unwrap_or_default();
    (parse(&found.certificate).remove(0), chain)
}

pub fn import(
    fixture: &Fixture,
    arn: &str,
    certificate: &[u8],
    chain: Option<&[u8]>,
) -> Result<(), String> {
    let request = json!({
        "CertificateAuthorityArn": arn, "Certificate": b64(certificate),
        "CertificateChain": chain.map(b64),
    });
    fixture
        .call::<import_certificate_authority_certificate::ImportCertificateAuthorityCertificate>(
            &input(request),
        )
        .map(|_| ())
        .map_err(|error| error.code)
}

pub fn years(value: i64) -> Value {
    json!({ "Value": value, "Type": "YEARS" })
}

pub fn root(fixture: &Fixture, algorithms: (&str, &str)) -> String {
    let arn = create(fixture, "ROOT", "Root", algorithms);
    let request = ca_request(fixture, &arn);
    let what = Issue {
        authority: &arn,
        request: request.as_bytes(),
        algorithm: algorithms.1,
        template: "RootCACertificate",
        validity: years(10),
    };
    let certificate = issue(fixture, &what).unwrap();
    let (certificate, chain) = get(fixture, &arn, &certificate);
    assert!(chain.is_empty());
    import(fixture, &arn, pem::certificate(certificate.der()).as_bytes(), None).unwrap();
    arn
}

pub fn subordinate(
    fixture: &Fixture,
    root: &str,
    algorithms: (&str, &str),
    template: &str,
) -> String {
    // A certificate with its issuer's name would be refused.
    let name = format!("Sub of {}", &root[root.len() - 12..]);
    let arn = create(fixture, "SUBORDINATE", &name, algorithms);
    let request = ca_request(fixture, &arn);
    let signing = describe(fixture, root)["CertificateAuthorityConfiguration"]["SigningAlgorithm"]
        .as_str()
        .unwrap()
        .to_owned();
    let what = Issue {
        authority: root,
        request: request.as_bytes(),
        algorithm: &signing,
        template,
        validity: years(5),
    };
    let certificate = issue(fixture, &what).unwrap();
    let (certificate, chain) = get(fixture, root, &certificate);
    let chain = pem::chain(chain.iter().map(Certificate::der));
    let certificate = pem::certificate(certificate.der());
    import(fixture, &arn, certificate.as_bytes(), Some(chain.as_bytes())).unwrap();
    arn
}

pub fn describe(fixture: &Fixture, arn: &str) -> Value {
    let get = json!({ "CertificateAuthorityArn": arn });
    let found = fixture
        .call::<describe_certificate_authority::DescribeCertificateAuthority>(&input(get))
        .unwrap();
    serde_json::to_value(found.certificate_authority).unwrap()
}

/// A key of somebody outside, and a request made with it.
pub fn leaf_request(spec: &str, subject: &str) -> (Box<dyn Key>, Vec<u8>) {
    let spec = KeySpec::by_name(spec).unwrap();
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    let algorithm: &'static SignatureAlgorithm =
        spec.signing.iter().find(|row| row.oid.is_some()).unwrap();
    let subject = name::common_name(subject).unwrap();
    let unsigned = csr::Unsigned::new(subject, key.public_key().unwrap(), Vec::new()).unwrap();
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    let request = unsigned.assemble(algorithm, &signature).unwrap();
    (key, request)
}

pub const ML_DSA: (&str, &str) = ("ML_DSA_65", "ML_DSA_65");

pub const EC: (&str, &str) = ("EC_prime256v1", "SHA256WITHECDSA");

/// The same as [`leaf_request`], with extensions.
pub fn request_with(
    spec: &str,
    subject: &str,
    extensions: Vec<Extension>,
) -> (Box<dyn Key>, Vec<u8>) {
    let subject = if subject.is_empty() {
        name::Name::default()
    } else {
        name::common_name(subject).unwrap()
    };
    let spec = KeySpec::by_name(spec).unwrap();
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    let algorithm: &'static SignatureAlgorithm =
        spec.signing.iter().find(|row| row.oid.is_some()).unwrap();
    let unsigned = csr::Unsigned::new(subject, key.public_key().unwrap(), extensions).unwrap();
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    let request = unsigned.assemble(algorithm, &signature).unwrap();
    (key, request)
}

impl Fixture {
    /// Calls an operation of Private CA, untyped.
    pub fn pca_as(&self, who: &Who, operation: &str, body: Value) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        headers.insert("x-amz-target", format!("ACMPrivateCA.{operation}").parse().unwrap());
        answer(&self.request(who, "acm-pca", headers, body.to_string().as_bytes()))
    }

    /// The same by the administrator.
    pub fn pca(&self, operation: &str, body: Value) -> Answer {
        self.pca_as(&Who::admin(), operation, body)
    }
}

/// The body of an IssueCertificate for a year's leaf.
pub fn leaf_body(authority: &str, request: &[u8], algorithm: &str, template: &str) -> Value {
    json!({
        "CertificateAuthorityArn": authority, "Csr": b64(request), "SigningAlgorithm": algorithm,
        "TemplateArn": format!("arn:aws:acm-pca:::template/{template}/V1"),
        "Validity": { "Type": "DAYS", "Value": 30 },
    })
}

/// A root outside the service, which restricts nothing by itself.
pub struct External {
    key: Box<dyn Key>,
    algorithm: &'static SignatureAlgorithm,
    pub certificate: Certificate,
}

impl External {
    /// A root that allows so many CAs below it.
    pub fn root(path_len: Option<u8>, not_before: i64) -> Self {
        let spec = KeySpec::by_name("ECC_NIST_P256").unwrap();
        let key = spec.load(&spec.generate().unwrap()).unwrap();
        let own = key.public_key().unwrap().to_vec();
        let subject = name::common_name("External root").unwrap();
        let extensions = ca_extensions(&own, &own, path_len);
        let der =
            sign(&*key, spec.signing[0], &subject, subject.clone(), own, extensions, not_before);
        Self { key, algorithm: spec.signing[0], certificate: Certificate::parse(&der).unwrap() }
    }

    /// Installs a certificate in an authority that is waiting for one, valid from `not_before` on, with these
    /// extensions besides the usual ones. It does not limit a CA's path length.
    pub fn certify(&self, fixture: &Fixture, arn: &str, more: Vec<Extension>, not_before: i64) {
        let request = ca_request(fixture, arn);
        let request = csr::CertificateRequest::parse_and_verify(request.as_bytes()).unwrap();
        let own = self.key.public_key().unwrap();
        let mut extensions = ca_extensions(&request.public_key, own, None);
        extensions.extend(more);
        let issuer = self.certificate.subject();
        let der = sign(
            &*self.key,
            self.algorithm,
            issuer,
            request.subject,
            request.public_key,
            extensions,
            not_before,
        );
        let certificate = pem::certificate(&der);
        let chain = pem::certificate(self.certificate.der());
        import(fixture, arn, certificate.as_bytes(), Some(chain.as_bytes())).unwrap();
    }
}

fn ca_extensions(key: &[u8], issuer_key: &[u8], path_len: Option<u8>) -> Vec<Extension> {
    vec![
        extensions::basic_constraints(true, path_len, true).unwrap(),
        extensions::key_usage(CA_KEY_USAGE).unwrap(),
        subject_key_identifier(&key_identifier(key).unwrap()).unwrap(),
        authority_key_identifier(&key_identifier(issuer_key).unwrap()).unwrap(),
    ]
}

fn sign(
    key: &dyn Key,
    algorithm: &'static SignatureAlgorithm,
    issuer: &name::Name,
    subject: name::Name,
    public_key: Vec<u8>,
    extensions: Vec<Extension>,
    not_before: i64,
) -> Vec<u8> {
    let content = Content {
        serial: outlast_crypto::random::bytes().unwrap().map(|byte: u8| byte & 0x7f | 1),
        issuer: issuer.clone(),
        subject,
        public_key,
        not_before,
        not_after: not_before + 9 * 365 * 86_400,
        extensions,
    };
    let unsigned = content.prepare(algorithm, key.public_key().unwrap()).unwrap();
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    unsigned.assemble(&signature).unwrap()
}

/// A self-signed certificate with no extensions but basic constraints, and its key; PEM.
pub fn self_signed(name: &str, end: i64) -> (String, String) {
    let spec = KeySpec::by_name("ECC_NIST_P256").unwrap();
    let stored = spec.generate().unwrap();
    let key = spec.load(&stored).unwrap();
    let public_key = key.public_key().unwrap();
    let subject =
        name::name(&[("CommonName", name), ("Country", "DE"), ("Title", "Mx")], &[]).unwrap();
    let unsigned = Content {
        serial: [7; 16],
        issuer: subject.clone(),
        subject,
        public_key: public_key.to_vec(),
        not_before: super::NOW - 3600,
        not_after: end,
        extensions: vec![extensions::basic_constraints(false, None, false).unwrap()],
    }
    .prepare(spec.signing[0], public_key)
    .unwrap();
    let message = Message::Raw(&unsigned.to_be_signed);
    let signature = key.sign(spec.signing[0], message).unwrap();
    let certificate = pem::certificate(&unsigned.assemble(&signature).unwrap());
    let object =
        object::Object { kind: object::Kind::PrivateKey, der: spec.to_pkcs8(&stored).unwrap() };
    let key = String::from_utf8(object.to_pem().unwrap().expose().to_vec()).unwrap();
    (certificate, key)
}
