//! Enrolment by ACME (RFC 8555) with an account key of ML-DSA (RFC 9964): what a machine signs and sends.
//!
//! Only the messages: the command line carries them. An external account binding says who may enrol: its key is given to
//! a machine once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use der::Encode as _;
use der::asn1::{ObjectIdentifier, OctetStringRef};
use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Family, Message, SignatureAlgorithm};
use outlast_crypto::{Secret, digests, hmac, random, signatures};
use outlast_pki::certificate::Content;
use outlast_pki::csr;
use outlast_pki::extensions::{custom, subject_alternative_names};
use outlast_pki::general_name::GeneralName;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::name::common_name;
use serde_json::{Value, json};

/// `id-pe-acmeIdentifier` (RFC 8737, section 6.1).
const ACME_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.31");
/// Validity of a certificate that answers tls-alpn-01, in seconds.
const TLS_ANSWER_SECONDS: i64 = 86_400;
/// Names in a certificate, at most.
pub const MAX_NAMES: usize = 100;

/// Why something cannot be signed. Reveals nothing of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnrolError {
    /// The key is of another kind.
    #[error("keys of type {0} are not used to enrol; ML-DSA keys are")]
    Kind(&'static str),
    /// The key cannot be used.
    #[error("the private key cannot be used: {0}")]
    Key(String),
    /// The key of the account binding is not base64url.
    #[error("the key of the account binding is not base64url")]
    Binding,
    /// A name cannot be requested.
    #[error("the request for a certificate cannot be made: {0}")]
    Request(String),
    /// The certificate that answers tls-alpn-01 cannot be made.
    #[error("the certificate for tls-alpn-01 cannot be made: {0}")]
    TlsAnswer(String),
}

/// A self-signed certificate that answers tls-alpn-01, and its key.
pub struct TlsAnswer {
    /// DER.
    pub certificate: Vec<u8>,
    /// PKCS #8.
    pub private_key: Secret,
}

/// A private key that signs messages or requests.
pub struct Signer {
    key: Box<dyn Key>,
    algorithm: &'static SignatureAlgorithm,
    public_key: Vec<u8>,
}

impl Signer {
    /// A key of ML-DSA.
    pub fn of(key: &PrivateKey) -> Result<Self, EnrolError> {
        let spec: &KeySpec = key.spec;
        let row = spec.signing.first().filter(|row| row.family == Family::MlDsa);
        let algorithm = *row.ok_or(EnrolError::Kind(spec.name))?;
        let failed = |error: &dyn std::fmt::Display| EnrolError::Key(error.to_string());
        let pkcs8 = key.to_pkcs8().map_err(|error| failed(&error))?;
        let stored = spec.import(pkcs8.expose()).map_err(|error| failed(&error))?.stored;
        let loaded = spec.load(&stored).map_err(|error| failed(&error))?;
        Ok(Self { key: loaded, algorithm, public_key: key.public_key.clone() })
    }

    /// The key's public half, a DER `SubjectPublicKeyInfo`.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Name of its algorithm in JOSE.
    fn alg(&self) -> String {
        self.algorithm.pca_name.unwrap_or_default().replace('_', "-")
    }

    /// The public key as JSON (RFC 9964, section 3). Its members stand in the order of the thumbprint.
    fn jwk(&self) -> Value {
        // FIPS 204, table 2; the key is what remains of the structure.
        let len = match self.algorithm.pca_name {
            Some("ML_DSA_44") => 1312,
            Some("ML_DSA_65") => 1952,
            _ => 2592,
        };
        let at = self.public_key.len().saturating_sub(len);
        let raw = self.public_key.get(at..).unwrap_or_default();
        json!({ "alg": self.alg(), "kty": "AKP", "pub": URL_SAFE_NO_PAD.encode(raw) })
    }

    /// What a challenge is answered with (RFC 8555, section 8.1).
    pub fn key_authorization(&self, token: &str) -> String {
        let thumbprint = digests::sha256(self.jwk().to_string().as_bytes());
        format!("{token}.{}", URL_SAFE_NO_PAD.encode(thumbprint))
    }

    /// A message as a JWS (RFC 8555, section 6.2). `account` is the account's URL, once there is one; no payload asks
    /// for what is at the URL.
    pub fn message(
        &self,
        url: &str,
        nonce: &str,
        account: Option<&str>,
        payload: Option<&Value>,
    ) -> Result<Vec<u8>, EnrolError> {
        let mut header = json!({ "alg": self.alg(), "nonce": nonce, "url": url });
        match account {
            Some(account) => header["kid"] = account.into(),
            None => header["jwk"] = self.jwk(),
        }
        let payload = payload.map(Value::to_string).unwrap_or_default();
        let sign = |signed: &[u8]| {
            let signature = self.key.sign(self.algorithm, Message::Raw(signed));
            signature.map_err(|error| EnrolError::Key(error.to_string()))
        };
        Ok(flattened(&header, &payload, sign)?.to_string().into_bytes())
    }

    /// Proof that an account may be made, for this URL of newAccount (RFC 8555, section 7.3.4). `key` is in base64url.
    pub fn binding(&self, id: &str, key: &Secret, url: &str) -> Result<Value, EnrolError> {
        let text: Vec<u8> = key.expose().iter().copied().filter(|byte| *byte != b'=').collect();
        let mac = URL_SAFE_NO_PAD.decode(text).map_err(|_| EnrolError::Binding)?;
        let mac = Secret::new(mac);
        let header = json!({ "alg": "HS256", "kid": id, "url": url });
        flattened(&header, &self.jwk().to_string(), |signed| {
            Ok(hmac::sha256(mac.expose(), signed).to_vec())
        })
    }

    /// A certificate request in DER for these names, the first of which is the subject's.
    pub fn request(&self, names: &[String]) -> Result<Vec<u8>, EnrolError> {
        let failed = |error: &dyn std::fmt::Display| EnrolError::Request(error.to_string());
        let first = names.first().ok_or_else(|| failed(&"there is no name"))?;
        if names.len() > MAX_NAMES {
            return Err(failed(&format!("there are more than {MAX_NAMES} names")));
        }
        let subject = common_name(first).map_err(|error| failed(&error))?;
        let alternatives: Vec<_> = names.iter().cloned().map(GeneralName::DnsName).collect();
        let extension = subject_alternative_names(&alternatives, false);
        let extension = extension.map_err(|error| failed(&error))?;
        let unsigned = csr::Unsigned::new(subject, &self.public_key, vec![extension]);
        let unsigned = unsigned.map_err(|error| failed(&error))?;
        let signature = self.key.sign(self.algorithm, Message::Raw(&unsigned.to_be_signed));
        let signature = signature.map_err(|error| EnrolError::Key(error.to_string()))?;
        unsigned.assemble(self.algorithm, &signature).map_err(|error| failed(&error))
    }
}

/// The TXT record that answers dns-01 (RFC 8555, section 8.4): its name, fully qualified, and its value.
pub fn dns_answer(name: &str, key_authorization: &str) -> (String, String) {
    let digest = digests::sha256(key_authorization.as_bytes());
    (format!("_acme-challenge.{name}."), URL_SAFE_NO_PAD.encode(digest))
}

/// The certificate that answers tls-alpn-01 (RFC 8737, section 3). `now` is the time in seconds since 1970.
pub fn tls_answer(name: &str, key_authorization: &str, now: i64) -> Result<TlsAnswer, EnrolError> {
    let failed = |error: &dyn std::fmt::Display| EnrolError::TlsAnswer(error.to_string());
    // P-256, whatever the machine's own key is: every validator must verify the handshake.
    let spec = KeySpec::by_name("ECC_NIST_P256").ok_or(EnrolError::Kind("ECC_NIST_P256"))?;
    let stored = spec.generate().map_err(|error| failed(&error))?;
    let key = spec.load(&stored).map_err(|error| failed(&error))?;
    let own = key.public_key().ok_or_else(|| failed(&"the key has no public half"))?;
    let digest = digests::sha256(key_authorization.as_bytes());
    let digest = OctetStringRef::new(&digest).and_then(|octets| octets.to_der());
    let digest = digest.map_err(|error| failed(&error))?;
    let alternatives = [GeneralName::DnsName(name.to_owned())];
    let extensions =
        [subject_alternative_names(&alternatives, false), custom(ACME_IDENTIFIER, true, &digest)];
    let extensions = extensions.into_iter().collect::<Result<_, _>>();
    let subject = common_name("ACME validation").map_err(|error| failed(&error))?;
    let content = Content {
        serial: random::bytes().map_err(|error| failed(&error))?,
        issuer: subject.clone(),
        subject,
        public_key: own.to_vec(),
        // The validator's clock may be behind this one.
        not_before: now - TLS_ANSWER_SECONDS,
        not_after: now + TLS_ANSWER_SECONDS,
        extensions: extensions.map_err(|error| failed(&error))?,
    };
    let algorithm = &signatures::ECDSA_SHA_256;
    let unsigned = content.prepare(algorithm, own).map_err(|error| failed(&error))?;
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed));
    let signature = signature.map_err(|error| failed(&error))?;
    let certificate = unsigned.assemble(&signature).map_err(|error| failed(&error))?;
    let private_key = spec.to_pkcs8(&stored).map_err(|error| failed(&error))?;
    Ok(TlsAnswer { certificate, private_key })
}

/// When a certificate is renewed: when a third of its life is left.
pub fn renew_at(not_before: i64, not_after: i64) -> i64 {
    not_after - (not_after - not_before).max(0) / 3
}

fn flattened(
    header: &Value,
    payload: &str,
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, EnrolError>,
) -> Result<Value, EnrolError> {
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    let payload = URL_SAFE_NO_PAD.encode(payload);
    let signature = sign(format!("{protected}.{payload}").as_bytes())?;
    Ok(json!({
        "protected": protected, "payload": payload, "signature": URL_SAFE_NO_PAD.encode(signature),
    }))
}
