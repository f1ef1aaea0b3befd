//! Audit events in the shape of AWS CloudTrail records.
//!
//! Source: "CloudTrail record contents", AWS CloudTrail user guide. Every call of an authenticated principal leaves
//! one event, in the same commit as the changes it made.

use std::borrow::Cow;

use outlast_domain::arn::Arn;
use outlast_domain::identity::{Identity, Principal};
use outlast_domain::policy::Policy;
use outlast_domain::work::Done;
use serde::Serialize;
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
    pub(crate) fn identity(self) -> Value {
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
fn capped(text: &str) -> &str {
    text.char_indices().nth(MAX_TEXT).map_or(text, |(end, _)| &text[..end])
}

/// A record, member by member. Written straight to text, since every call leaves at least one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    event_version: &'static str,
    user_identity: Value,
    event_time: String,
    event_source: &'a str,
    event_name: &'a str,
    aws_region: &'a str,
    #[serde(rename = "sourceIPAddress")]
    source_ip_address: &'a str,
    user_agent: &'a str,
    request_parameters: Option<&'a Map<String, Value>>,
    response_elements: Option<&'a Map<String, Value>>,
    #[serde(rename = "requestID")]
    request_id: &'a str,
    #[serde(rename = "eventID")]
    event_id: &'a str,
    read_only: bool,
    resources: Vec<Resource<'a>>,
    event_type: &'static str,
    management_event: bool,
    recipient_account_id: &'a str,
    event_category: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_event_data: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_details: Option<Tls<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    account_id: Cow<'a, str>,
    r#type: &'a str,
    #[serde(rename = "ARN")]
    arn: &'a str,
}

impl<'a> Resource<'a> {
    /// A resource with its type; it belongs to `account` unless its ARN says otherwise.
    fn new((arn, kind): &'a (String, &'static str), account: &'a str) -> Self {
        let owner = Arn::parse(arn).map(|parsed| parsed.account().to_owned());
        let account_id = owner.map_or(Cow::Borrowed(account), Cow::Owned);
        Self { account_id, r#type: kind, arn }
    }
}

/// `tlsDetails`. CloudTrail has no members after `keyExchange`; the following are ours.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tls<'a> {
    tls_version: &'a str,
    cipher_suite: &'a str,
    client_provided_host_header: &'a str,
    key_exchange: Option<&'a str>,
    post_quantum: bool,
    handshake: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate: Option<Client<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Client<'a> {
    subject: &'a str,
    serial_number: &'a str,
    issuer: &'a str,
}

impl<'a> Tls<'a> {
    fn new(details: &'a TlsDetails, host: &'a str) -> Self {
        let client = |client: &'a ClientCertificate| Client {
            subject: capped(&client.subject),
            serial_number: &client.serial_number,
            issuer: capped(&client.issuer),
        };
        Self {
            tls_version: &details.version,
            cipher_suite: &details.cipher_suite,
            client_provided_host_header: capped(host),
            key_exchange: details.key_exchange.as_deref(),
            post_quantum: details.post_quantum,
            handshake: details.handshake,
            client_certificate: details.client_certificate.as_ref().map(client),
        }
    }
}

/// Bytes of most records.
const USUAL_LEN: usize = 2048;

impl Event<'_> {
    /// The record as JSON text.
    pub fn to_json(&self) -> Vec<u8> {
        fn some(map: &Map<String, Value>) -> Option<&Map<String, Value>> {
            (!map.is_empty()).then_some(map)
        }
        let account = self.actor.account();
        let mut user_identity = self.actor.identity();
        if let Some(service) = self.invoked_by {
            user_identity["invokedBy"] = service.into();
        }
        let record = Record {
            event_version: "1.11",
            user_identity,
            event_time: outlast_pki::time::rfc3339(self.now_ms.div_euclid(1000)),
            event_source: self.source,
            event_name: self.name,
            aws_region: self.region,
            source_ip_address: self.source_ip,
            user_agent: capped(self.user_agent),
            request_parameters: some(&self.notes.parameters),
            response_elements: some(&self.notes.response),
            request_id: self.request_id,
            event_id: self.event_id,
            read_only: self.read_only,
            resources: self
                .notes
                .resources
                .iter()
                .map(|used| Resource::new(used, account))
                .collect(),
            event_type: "AwsApiCall",
            management_event: true,
            recipient_account_id: account,
            event_category: "Management",
            additional_event_data: some(&self.notes.additional),
            tls_details: self.tls.map(|details| Tls::new(details, self.host)),
            error_code: self.error.map(|error| error.code),
            error_message: self.error.map(|error| capped(&error.message)),
        };
        let mut text = Vec::with_capacity(USUAL_LEN);
        // Neither its keys nor a vector can fail to be written.
        let written = serde_json::to_writer(&mut text, &record);
        debug_assert!(written.is_ok());
        text
    }
}

/// `userIdentity` (CloudTrail user guide, "CloudTrail userIdentity element").
pub(crate) fn user_identity(principal: &Principal) -> Value {
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
