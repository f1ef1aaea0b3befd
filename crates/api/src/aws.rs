//! AWS's surface as its models say it: structures, operations, limits and errors of each service, and nothing that we do.
//!
//! The modules of the services are generated from `crates/api/models` by `cargo xtask gen`. One of them, [`outlast`], is ours: it
//! has the same form (`docs/decisions/0037-an-own-service.md`).

pub mod acm;
pub mod acm_pca;
pub mod kms;
pub mod outlast;
pub mod rolesanywhere;
pub mod schema;
pub mod secretsmanager;
pub mod sts;
pub mod transfer;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::wire::Protocol;

/// One API operation, for servers and clients alike.
pub trait Operation {
    /// AWS's name.
    const NAME: &'static str;
    /// The service it belongs to.
    const SERVICE: &'static ServiceModel;
    /// What requests may be.
    const INPUT: &'static schema::Shape;
    /// What answers are.
    const OUTPUT: &'static schema::Shape;
    /// How it is called where the protocol does not say that by itself.
    const HTTP: Http = Http::RPC;
    /// Request body.
    type Input: Serialize + DeserializeOwned;
    /// Response body.
    type Output: Serialize + DeserializeOwned;
}

/// How an operation is called over HTTP (Smithy, "HTTP bindings").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http {
    /// Method.
    pub method: &'static str,
    /// Path, in which members stand in braces: `/trustanchor/{trustAnchorId}`.
    pub uri: &'static str,
    /// Status of answers that are no errors.
    pub status: u16,
}

impl Http {
    /// As all operations of the protocols are called that name the operation elsewhere.
    pub const RPC: Self = Self { method: "POST", uri: "/", status: 200 };
}

/// What a service is called and speaks.
#[derive(Debug)]
pub struct ServiceModel {
    /// Name in credential scopes and endpoints.
    pub signing_name: &'static str,
    /// Prefix of `X-Amz-Target`.
    pub target_prefix: &'static str,
    /// Name in CloudTrail's `eventSource`.
    pub event_source: &'static str,
    /// Every protocol that it is served over.
    pub protocols: &'static [Protocol],
    /// Smithy namespace of its errors; the XML namespace of a query service.
    pub namespace: &'static str,
    /// Its internal error.
    pub internal_error: &'static str,
    /// Its error for a member that is known and not served.
    pub refusal: &'static str,
    /// Member of its JSON errors that has the text: `message` or `Message`.
    pub message: &'static str,
    /// Largest request body in bytes.
    pub max_body: usize,
    /// The errors that its operations have, with their HTTP status; in order of name.
    pub errors: &'static [(&'static str, u16)],
}

impl ServiceModel {
    /// HTTP status of an error that the model names.
    pub fn status(&self, code: &str) -> Option<u16> {
        let at = self.errors.binary_search_by(|(known, _)| (*known).cmp(code)).ok()?;
        self.errors.get(at).map(|(_, status)| *status)
    }
}

/// The structure without members.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}
