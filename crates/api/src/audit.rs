//! Audit events in the shape of AWS CloudTrail records.
//!
//! Source: "CloudTrail record contents", AWS CloudTrail user guide. Every call of an authenticated principal leaves
//! one event, in the same commit as the changes it made.

use outlast_domain::arn::Arn;
use outlast_domain::identity::{Identity, Principal};
use outlast_domain::policy::Policy;
use outlast_domain::work::Done;
use serde_json::{Map, Value, json};

use crate::wire::ApiError;

/// Longest text from a caller that a record quotes, in characters.
const MAX_TEXT: usize = 1024;

/// What the connection negotiated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsDetails {
    /// Protocol version: `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// IANA name of the cipher suite.
    pub cipher_suite: String,
    /// IANA name of the key-exchange group; `None` on a resumed TLS 1.2 session.
    pub key_exchange: Option<String>,
    /// Whether that group is post-quantum or hybrid.
    pub post_quantum: bool,
    /// `full`, `full-with-hello-retry-request` or `resumed`.
    pub handshake: &'static str,
    /// The client's certificate, if the client presented one.
    pub client_certificate: Option<ClientCertificate>,
}

/// The parts of a client's certificate that are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Subject (RFC 4514).
    pub subject: String,
    /// Serial number in hexadecimal.
    pub serial_number: String,
    /// Issuer (RFC 4514).
    pub issuer: String,
}

/// What an operation notes for its record while it runs. Never plaintext or key material.
#[derive(Debug, Default)]
pub struct Notes {
    parameters: Map<String, Value>,
    response: Map<String, Value>,
    resources: Vec<(String, &'static str)>,
    additional: Map<String, Value>,
}

impl Notes {
    /// A warning about a policy that was put: a statement that has no effect although it looks as if it had one.
    pub fn policy_findings(&mut self, policy: &Policy) {
        let findings = policy.findings();
        if !findings.is_empty() {
            self.additional.insert("policyFindings".to_owned(), findings.into());
        }
    }

    /// Adds a request parameter.
    pub fn parameter(&mut self, name: &str, value: impl Into<Value>) {
        self.parameters.insert(name.to_owned(), value.into());
    }

    /// Renames a noted request parameter, for an operation with two of the same kind.
    pub fn rename_parameter(&mut self, name: &str, new_name: &str) {
        if let Some(value) = self.parameters.remove(name) {
            self.parameters.insert(new_name.to_owned(), value);
        }
    }

    /// Adds a response element.
    pub fn response(&mut self, name: &str, value: impl Into<Value>) {
        self.response.insert(name.to_owned(), value.into());
    }

    /// Adds something that CloudTrail has no member for.
    pub fn additional(&mut self, name: &str, value: impl Into<Value>) {
        self.additional.insert(name.to_owned(), value.into());
    }

    /// Adds a resource that was used, with its CloudTrail type, such as `AWS::KMS::Key`.
    pub fn resource(&mut self, arn: String, kind: &'static str) {
        self.resources.push((arn, kind));
    }
}

/// Who called.
#[derive(Debug, Clone, Copy)]
pub enum Actor<'a> {
    /// A principal.
    Principal(&'a Principal),
    /// Somebody with a certificate that this account trusts.
    Certificate(&'a str),
}

impl<'a> From<&'a Principal> for Actor<'a> {
    fn from(principal: &'a Principal) -> Self {
        Self::Principal(principal)
    }
}

impl<'a> Actor<'a> {
    fn account(self) -> &'a str {
        match self {
            Self::Principal(principal) => &principal.account,
            Self::Certificate(account) => account,
        }
    }

    /// `userIdentity`.
    fn identity(self) -> Value {
        match self {
            Self::Principal(principal) => user_identity(principal),
            // As CloudTrail has it for CreateSession: nobody that IAM knows.
            Self::Certificate(account) => json!({
                "type": "Unknown", "principalId": "", "arn": "", "accountId": account, "accessKeyId": "", "userName": "",
            }),
        }
    }
}

/// Everything that goes into a record.
pub struct Event<'a> {
    /// Time of the request, milliseconds since 1970.
    pub now_ms: i64,
    /// Random id of the record, a UUID.
    pub event_id: &'a str,
    /// Id that the response carries, a UUID.
    pub request_id: &'a str,
    /// The service's host name in CloudTrail: `kms.amazonaws.com`.
    pub source: &'a str,
    /// Name of the operation.
    pub name: &'a str,
    /// Region of the call.
    pub region: &'a str,
    /// Whether the operation changes nothing.
    pub read_only: bool,
    /// Who called.
    pub actor: Actor<'a>,
    /// Address that the request came from.
    pub source_ip: &'a str,
    /// `User-Agent` header.
    pub user_agent: &'a str,
    /// `Host` header.
    pub host: &'a str,
    /// What the connection negotiated, unless the call was made inside the process.
    pub tls: Option<&'a TlsDetails>,
    /// What the operation noted.
    pub notes: &'a Notes,
    /// The error, if it failed.
    pub error: Option<&'a ApiError>,
    /// The service that called with the principal's rights, if the principal did not call itself.
    pub invoked_by: Option<&'a str>,
}

/// The first characters of what a caller sent, so that a record stays small.
fn capped(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

impl Event<'_> {
    /// The record as JSON text.
    pub fn to_json(&self) -> Vec<u8> {
        let some = |map: &Map<String, Value>| {
            if map.is_empty() { Value::Null } else { Value::Object(map.clone()) }
        };
        let account = self.actor.account();
        let resources: Vec<_> = self
            .notes
            .resources
            .iter()
            .map(|(arn, kind)| {
                let parsed = Arn::parse(arn);
                let owner = parsed.as_ref().map_or(account, Arn::account);
                json!({ "accountId": owner, "type": kind, "ARN": arn })
            })
            .collect();
        let mut event = json!({
            "eventVersion": "1.11",
            "userIdentity": self.actor.identity(),
            "eventTime": outlast_pki::time::rfc3339(self.now_ms.div_euclid(1000)),
            "eventSource": self.source,
            "eventName": self.name,
            "awsRegion": self.region,
            "sourceIPAddress": self.source_ip,
            "userAgent": capped(self.user_agent),
            "requestParameters": some(&self.notes.parameters),
            "responseElements": some(&self.notes.response),
            "requestID": self.request_id,
            "eventID": self.event_id,
            "readOnly": self.read_only,
            "resources": resources,
            "eventType": "AwsApiCall",
            "managementEvent": true,
            "recipientAccountId": account,
            "eventCategory": "Management",
        });
        if !self.notes.additional.is_empty() {
            event["additionalEventData"] = Value::Object(self.notes.additional.clone());
        }
        if let Some(tls) = self.tls {
            event["tlsDetails"] = json!({
                "tlsVersion": tls.version,
                "cipherSuite": tls.cipher_suite,
                "clientProvidedHostHeader": capped(self.host),
                "keyExchange": tls.key_exchange,
                // CloudTrail has no more members here; the following are ours.
                "postQuantum": tls.post_quantum,
                "handshake": tls.handshake,
            });
            if let Some(client) = &tls.client_certificate {
                event["tlsDetails"]["clientCertificate"] = json!({
                    "subject": capped(&client.subject),
                    "serialNumber": client.serial_number,
                    "issuer": capped(&client.issuer),
                });
            }
        }
        if let Some(service) = self.invoked_by {
            event["userIdentity"]["invokedBy"] = service.into();
        }
        if let Some(error) = self.error {
            event["errorCode"] = error.code.into();
            event["errorMessage"] = capped(&error.message).into();
        }
        event.to_string().into_bytes()
    }
}

/// `userIdentity` (CloudTrail user guide, "CloudTrail userIdentity element").
fn user_identity(principal: &Principal) -> Value {
    let account = &principal.account;
    match &principal.identity {
        Identity::User { name, id } => json!({
            "type": "IAMUser",
            "principalId": id,
            "arn": principal.arn(),
            "accountId": account,
            "accessKeyId": principal.access_key_id,
            "userName": name,
        }),
        Identity::Session { role, role_id, issued_ms, .. } => json!({
            "type": "AssumedRole",
            "principalId": principal.unique_id(),
            "arn": principal.arn(),
            "accountId": account,
            "accessKeyId": principal.access_key_id,
            "sessionContext": {
                "sessionIssuer": {
                    "type": "Role",
                    "principalId": role_id,
                    "arn": principal.role_arn(),
                    "accountId": account,
                    "userName": role,
                },
                "attributes": {
                    "creationDate": outlast_pki::time::rfc3339(issued_ms.div_euclid(1000)),
                    "mfaAuthenticated": "false",
                },
            },
        }),
    }
}

/// The record of an action of the service itself, such as a deletion whose waiting period is over, or a rotation.
pub fn service_event(now_ms: i64, event_id: &str, source: &str, done: &Done) -> Vec<u8> {
    service_event_with(now_ms, event_id, source, done, None)
}

/// The same, with `additionalEventData`.
pub fn service_event_with(
    now_ms: i64,
    event_id: &str,
    source: &str,
    done: &Done,
    additional: Option<Value>,
) -> Vec<u8> {
    let mut event = json!({
        "eventVersion": "1.11",
        "userIdentity": { "accountId": done.scope.account, "invokedBy": "AWS Internal" },
        "eventTime": outlast_pki::time::rfc3339(now_ms.div_euclid(1000)),
        "eventSource": source,
        "eventName": done.event,
        "awsRegion": done.scope.region,
        "sourceIPAddress": "AWS Internal",
        "userAgent": "AWS Internal",
        "requestParameters": null,
        "responseElements": null,
        "eventID": event_id,
        "readOnly": false,
        "resources": [{ "accountId": done.scope.account, "ARN": done.arn }],
        "eventType": "AwsServiceEvent",
        "managementEvent": true,
        "recipientAccountId": done.scope.account,
        "eventCategory": "Management",
    });
    if let Some(additional) = additional {
        event["additionalEventData"] = additional;
    }
    event.to_string().into_bytes()
}

/// The record of an operator's command: there is no caller with an access key.
pub fn operator_event(
    now_ms: i64,
    event_id: &str,
    source: &str,
    name: &str,
    account: &str,
    parameters: &Value,
) -> Vec<u8> {
    json!({
        "eventVersion": "1.11",
        "userIdentity": { "type": "Root", "accountId": account, "invokedBy": "outlast command line" },
        "eventTime": outlast_pki::time::rfc3339(now_ms.div_euclid(1000)),
        "eventSource": source,
        "eventName": name,
        "awsRegion": "",
        "sourceIPAddress": "",
        "userAgent": "outlast command line",
        "requestParameters": parameters,
        "responseElements": null,
        "eventID": event_id,
        "readOnly": false,
        "resources": [],
        "eventType": "AwsApiCall",
        "managementEvent": true,
        "recipientAccountId": account,
        "eventCategory": "Management",
    })
    .to_string()
    .into_bytes()
}
