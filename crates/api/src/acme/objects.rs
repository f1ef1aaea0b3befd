//! ACME's objects in JSON (RFC 8555, section 7.1; RFC 9773).

use outlast_domain::acme::{
    Account, Authorization, Challenge, DnsName, Order, Problem, RenewalWindow, StoredProblem,
};
use outlast_pki::time::rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use super::resource::Urls;

/// Prefix of the `type` of every problem document.
pub const ERROR_PREFIX: &str = "urn:ietf:params:acme:error:";

/// An identifier.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Identifier {
    /// Type of the identifier; only `dns` is supported.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name.
    pub value: String,
}

impl From<&DnsName> for Identifier {
    fn from(name: &DnsName) -> Self {
        Self { kind: "dns".into(), value: name.to_string() }
    }
}

/// The payload of newAccount, and of an account's URL.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountRequest {
    /// Contact URLs.
    pub contact: Option<Vec<String>>,
    /// `deactivated`, if the client deactivates the account.
    pub status: Option<String>,
    /// Finds an existing account and creates none (RFC 8555, section 7.3.1).
    #[serde(default)]
    pub only_return_existing: bool,
    /// External account binding: a JWS (RFC 8555, section 7.3.4).
    pub external_account_binding: Option<Value>,
}

/// The payload of newOrder.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderRequest {
    /// Names to certify.
    pub identifiers: Vec<Identifier>,
    /// Start of validity, RFC 3339.
    pub not_before: Option<String>,
    /// End of validity, RFC 3339.
    pub not_after: Option<String>,
    /// Identifier of the certificate that this order replaces (RFC 9773, section 5).
    pub replaces: Option<String>,
}

/// The payload of finalize.
#[derive(Debug, Deserialize)]
pub struct FinalizeRequest {
    /// PKCS #10 in base64url.
    pub csr: String,
}

/// The payload of an authorization's URL.
#[derive(Debug, Deserialize)]
pub struct AuthorizationRequest {
    /// `deactivated`, if the client gives the authorization up.
    pub status: Option<String>,
}

/// The payload of revokeCert.
#[derive(Debug, Deserialize)]
pub struct RevokeRequest {
    /// DER in base64url.
    pub certificate: String,
    /// Reason code (RFC 5280, section 5.3.1).
    pub reason: Option<u64>,
}

/// The inner payload of keyChange.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyChangeRequest {
    /// URL of the account.
    pub account: String,
    /// The key to be replaced, as a JWK.
    pub old_key: Value,
}

/// The directory object.
pub fn directory(urls: &Urls) -> Value {
    json!({
        "newNonce": urls.below("new-nonce"),
        "newAccount": urls.below("new-account"),
        "newOrder": urls.below("new-order"),
        "revokeCert": urls.below("revoke-cert"),
        "keyChange": urls.below("key-change"),
        "renewalInfo": urls.below("renewal-info"),
        "meta": { "externalAccountRequired": true },
    })
}

/// The account object.
pub fn account(account: &Account, urls: &Urls) -> Value {
    let binding: Value = serde_json::from_str(account.binding_jws()).unwrap_or(Value::Null);
    json!({
        "status": account.status().name(),
        "contact": account.contacts(),
        "externalAccountBinding": binding,
        "orders": urls.account(account.id()) + "/orders",
    })
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OrderObject {
    status: &'static str,
    expires: String,
    identifiers: Vec<Identifier>,
    not_before: Option<String>,
    not_after: Option<String>,
    error: Option<Value>,
    authorizations: Vec<String>,
    finalize: String,
    certificate: Option<String>,
    replaces: Option<String>,
}

/// The order object.
pub fn order(order: &Order, urls: &Urls) -> Value {
    let authorizations = order.authorizations().iter();
    json!(OrderObject {
        status: order.status().name(),
        expires: rfc3339(order.expires_ms().div_euclid(1000)),
        identifiers: order.names().iter().map(Identifier::from).collect(),
        not_before: order.not_before().map(rfc3339),
        not_after: order.not_after().map(rfc3339),
        error: order.error().map(stored_problem),
        authorizations: authorizations.map(|id| urls.authorization(order.account(), id)).collect(),
        finalize: urls.order(order) + "/finalize",
        certificate: order.certificate().map(|id| urls.certificate(id)),
        replaces: order.replaces().map(str::to_owned),
    })
}

#[skip_serializing_none]
#[derive(Serialize)]
struct AuthorizationObject {
    identifier: Identifier,
    status: &'static str,
    expires: String,
    challenges: Vec<Value>,
    wildcard: Option<bool>,
}

/// The authorization object.
pub fn authorization(found: &Authorization, urls: &Urls) -> Value {
    json!(AuthorizationObject {
        // RFC 8555, section 7.1.4: without the wildcard prefix.
        identifier: Identifier { kind: "dns".into(), value: found.name().base().to_owned() },
        status: found.status().name(),
        expires: rfc3339(found.expires_ms().div_euclid(1000)),
        challenges: found.challenges().iter().map(|one| challenge(one, found, urls)).collect(),
        wildcard: found.name().is_wildcard().then_some(true),
    })
}

#[skip_serializing_none]
#[derive(Serialize)]
struct ChallengeObject<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    url: String,
    status: &'static str,
    validated: Option<String>,
    error: Option<Value>,
    token: &'a str,
}

/// The challenge object.
pub fn challenge(challenge: &Challenge, of: &Authorization, urls: &Urls) -> Value {
    json!(ChallengeObject {
        kind: challenge.kind.name(),
        url: urls.challenge(of, challenge.kind),
        status: challenge.status.name(),
        validated: challenge.validated_ms.map(|ms| rfc3339(ms.div_euclid(1000))),
        error: challenge.error.as_ref().map(stored_problem),
        token: &challenge.token,
    })
}

/// The renewal information object: when to renew a certificate.
pub fn renewal_info(window: RenewalWindow) -> Value {
    json!({ "suggestedWindow": { "start": rfc3339(window.start), "end": rfc3339(window.end) } })
}

/// A problem document (RFC 7807; RFC 8555, section 6.7). `algorithms` is sent with `badSignatureAlgorithm`.
pub fn problem(problem: &Problem, status: u16, algorithms: Option<&[&str]>) -> Value {
    let mut out = json!({
        "type": format!("{ERROR_PREFIX}{}", problem.kind.name),
        "detail": problem.detail,
        "status": status,
    });
    if let Some(algorithms) = algorithms {
        out["algorithms"] = json!(algorithms);
    }
    if !problem.subproblems.is_empty() {
        out["subproblems"] = problem
            .subproblems
            .iter()
            .map(|sub| {
                json!({
                    "type": format!("{ERROR_PREFIX}{}", sub.kind.name),
                    "detail": sub.detail,
                    "identifier": Identifier::from(&sub.name),
                })
            })
            .collect();
    }
    out
}

fn stored_problem(problem: &StoredProblem) -> Value {
    json!({ "type": format!("{ERROR_PREFIX}{}", problem.kind), "detail": problem.detail })
}
