//! Requests as JWS in the flattened form (RFC 7515, section 7.2.2; RFC 8555, section 6.2).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_domain::acme::{AcmeError, Kind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::jwk::algorithm_names;

/// A JWS as it is sent. An unprotected header and the member `signatures` count as unknown members, and are refused
/// (RFC 8555, section 6.2: "The JWS MUST NOT have multiple signatures", and no unprotected header).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flattened {
    protected: String,
    payload: String,
    signature: String,
}

/// The protected header.
#[derive(Debug, Clone, Deserialize)]
struct Header {
    alg: String,
    nonce: Option<String>,
    url: Option<String>,
    jwk: Option<Value>,
    kid: Option<String>,
    crit: Option<Value>,
    b64: Option<Value>,
}

/// Who claims to have signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// The key itself.
    Jwk(Value),
    /// The URL of an account, or the id of an external account binding.
    Kid(String),
}

/// A JWS whose signature has not been verified yet.
#[derive(Debug, Clone)]
pub struct Jws {
    /// The header's `alg`.
    pub algorithm: String,
    /// The header's `nonce`, in base64url.
    pub nonce: Option<String>,
    /// The header's `url`: the URL that the request was signed for.
    pub url: Option<String>,
    /// The header's `jwk` or `kid`.
    pub signer: Signer,
    /// The signed octets: header and payload in base64url, joined by a dot.
    pub signed: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
    payload: Vec<u8>,
}

/// MAC of external account bindings (RFC 8555, section 7.3.4).
pub const HS256: &str = "HS256";

impl Jws {
    /// Reads a JWS from JSON.
    pub fn parse(json: &[u8]) -> Result<Self, AcmeError> {
        let flattened: Flattened = serde_json::from_slice(json).map_err(|_| {
            AcmeError::malformed(
                "The body is not a JWS in the flattened JSON form without other members.",
            )
        })?;
        Self::from_flattened(flattened)
    }

    /// Reads a JWS that is nested in a payload.
    pub fn from_value(value: &Value) -> Result<Self, AcmeError> {
        let flattened = Flattened::deserialize(value).map_err(|_| {
            AcmeError::malformed("The inner JWS is not in the flattened JSON form.")
        })?;
        Self::from_flattened(flattened)
    }

    fn from_flattened(flattened: Flattened) -> Result<Self, AcmeError> {
        let decode = |part: &str, text: &str| {
            // RFC 8555, section 6.1: without padding.
            URL_SAFE_NO_PAD.decode(text).map_err(|_| {
                AcmeError::malformed(format!(
                    "The {part} of the JWS is not base64url without padding."
                ))
            })
        };
        let header: Header = serde_json::from_slice(&decode("header", &flattened.protected)?)
            .map_err(|_| AcmeError::malformed("The protected header of the JWS is not valid."))?;
        if header.crit.is_some() || header.b64.is_some() {
            return Err(AcmeError::malformed("The JWS has an unknown critical header."));
        }
        if !algorithm_names().contains(&header.alg.as_str()) && header.alg != HS256 {
            return Err(AcmeError::new(
                Kind::BAD_SIGNATURE_ALGORITHM,
                "The JWS has an algorithm that is not supported.",
            ));
        }
        // RFC 8555, section 6.2: "The jwk and kid fields are mutually exclusive."
        let signer = match (header.jwk, header.kid) {
            (Some(jwk), None) => Signer::Jwk(jwk),
            (None, Some(kid)) => Signer::Kid(kid),
            _ => return Err(AcmeError::malformed("The JWS must have either `jwk` or `kid`.")),
        };
        let payload = decode("payload", &flattened.payload)?;
        let signature = decode("signature", &flattened.signature)?;
        let signed = format!("{}.{}", flattened.protected, flattened.payload).into_bytes();
        Ok(Self {
            algorithm: header.alg,
            nonce: header.nonce,
            url: header.url,
            signer,
            signed,
            signature,
            payload,
        })
    }

    /// The payload; empty in a POST-as-GET (RFC 8555, section 6.3).
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The payload as JSON. Unknown members are ignored (RFC 8555, section 7.1.1).
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, AcmeError> {
        serde_json::from_slice(&self.payload).map_err(|error| {
            // serde's message would quote what the client sent.
            let place = format!("line {}, column {}", error.line(), error.column());
            AcmeError::malformed(format!(
                "The payload is not the JSON that is expected here: {place}."
            ))
        })
    }
}
