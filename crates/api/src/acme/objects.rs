//! ACME's objects in JSON (RFC 8555, section 7.1; RFC 9773).

use outlast_domain::acme::{
    Account, Authorization, Challenge, DnsName, Order, Problem, RenewalWindow, StoredProblem,
};
use outlast_pki::time::rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use super::resource::Urls;

/// What types of problems begin with.
pub const ERROR_PREFIX: &str = "urn:ietf:params:acme:error:";

/// An identifier.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Identifier {
    /// `dns`
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
    /// URLs.
    pub contact: Option<Vec<String>>,
    /// `deactivated`
    pub status: Option<String>,
    /// Asks for an account that there is, and makes none (RFC 8555, section 7.3.1).
    #[serde(default)]
    pub only_return_existing: bool,
    /// A JWS.
    pub external_account_binding: Option<Value>,
}

/// The payload of newOrder.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderRequest {
    /// The names.
    pub identifiers: Vec<Identifier>,
    /// RFC 3339.
    pub not_before: Option<String>,
    /// RFC 3339.
    pub not_after: Option<String>,
    /// RFC 9773, section 5.
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
    /// `deactivated`
    pub status: Option<String>,
}

/// The payload of revokeCert.
#[derive(Debug, Deserialize)]
pub struct RevokeRequest {
    /// DER in base64url.
    pub certificate: String,
    /// RFC 5280, section 5.3.1.
    pub reason: Option<u64>,
}

/// The inner payload of keyChange.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyChangeRequest {
    /// URL of the account.
    pub account: String,
    /// JWK.
    pub old_key: Value,
}

/// The directory.
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

/// An account.
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

/// An order.
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

/// An authorization.
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

/// A challenge.
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

/// When to renew a certificate.
pub fn renewal_info(window: RenewalWindow) -> Value {
    json!({ "suggestedWindow": { "start": rfc3339(window.start), "end": rfc3339(window.end) } })
}

/// A problem document (RFC 7807; RFC 8555, section 6.7). `algorithms` go with `badSignatureAlgorithm`.
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
