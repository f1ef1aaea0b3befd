//! Operations: one file each. The lists in `kms.rs` and `acm_pca.rs` are generated from the folders by
//! `cargo xtask gen`.

pub mod acm_pca;
pub mod kms;

use outlast_domain::arn::Scope;
use outlast_domain::identity::{Allowed, Principal, authorize};
use outlast_domain::keyring::KeyRing;
use outlast_domain::work::Work;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::audit::Notes;
use crate::wire::{ApiError, Protocol};

/// One API operation. Input and output serve the server and the client alike.
pub trait Operation {
    /// AWS's name.
    const NAME: &'static str;
    /// Whether it changes nothing, as CloudTrail has it.
    const READ_ONLY: bool;
    /// Whether it may take longer than a network thread can wait (RSA key generation).
    const SLOW: bool = false;
    /// The service it belongs to.
    const SERVICE: &'static ServiceRow;
    /// Request body.
    type Input: Serialize + DeserializeOwned;
    /// Response body.
    type Output: Serialize + DeserializeOwned;

    /// Does it. Whatever is written goes into `call.work` and happens only if all of it succeeds.
    fn run(call: &mut Call<'_>, input: Self::Input) -> Result<Self::Output, ApiError>;
}

/// One call under way.
pub struct Call<'a> {
    /// Reads and writes.
    pub work: Work<'a>,
    /// Loaded keys.
    pub ring: &'a KeyRing,
    /// Who calls.
    pub principal: Principal,
    /// The caller's account in the region that was asked.
    pub scope: Scope,
    /// What goes into the audit record.
    pub notes: Notes,
}

impl Call<'_> {
    /// Decides whether the caller may do `action` on the resource with this ARN.
    pub fn authorize(&self, action: &'static str, resource: &str) -> Result<Allowed, ApiError> {
        authorize(&self.principal, action, resource).map_err(ApiError::from)
    }
}

/// Digest of an operation's input, the same in every protocol: recognises a repetition.
pub fn input_digest<T: Serialize>(input: &T) -> Result<String, ApiError> {
    Ok(hex::encode(outlast_crypto::digests::sha256(&Protocol::Json11.encode(input)?)))
}

/// Body in, body out.
pub type Run = fn(&mut Call<'_>, Protocol, &[u8]) -> Result<Vec<u8>, ApiError>;

/// An operation in a table.
pub struct Row {
    /// AWS's name.
    pub name: &'static str,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether it may take long.
    pub slow: bool,
    /// Decodes, runs, encodes.
    pub run: Run,
}

impl Row {
    /// The row of an operation.
    pub const fn of<O: Operation>() -> Self {
        Self {
            name: O::NAME,
            read_only: O::READ_ONLY,
            slow: O::SLOW,
            run: |call, protocol, body| {
                let input = protocol.decode::<O::Input>(body)?;
                let output = O::run(call, input)?;
                protocol.encode(&output)
            },
        }
    }
}

/// An AWS service.
pub struct ServiceRow {
    /// Name in credential scopes and endpoints.
    pub signing_name: &'static str,
    /// Prefix of `X-Amz-Target`.
    pub target_prefix: &'static str,
    /// Name in CloudTrail's `eventSource`.
    pub event_source: &'static str,
    /// Whether it speaks Smithy RPC v2 CBOR, too.
    pub cbor: bool,
    /// Smithy namespace of its errors.
    pub namespace: &'static str,
    /// Its internal error.
    pub internal_error: &'static str,
    /// Largest request body in bytes.
    pub max_body: usize,
    /// Its operations.
    pub operations: &'static [Row],
}

/// Key Management Service, API version 2014-11-01.
pub static KMS: ServiceRow = ServiceRow {
    signing_name: "kms",
    target_prefix: "TrentService",
    event_source: "kms.amazonaws.com",
    cbor: false,
    namespace: "com.amazonaws.kms",
    internal_error: "KMSInternalException",
    // The largest member is a policy of 131,072 characters.
    max_body: 256 * 1024,
    operations: kms::OPERATIONS,
};

/// Private Certificate Authority, API version 2017-08-22.
pub static ACM_PCA: ServiceRow = ServiceRow {
    signing_name: "acm-pca",
    target_prefix: "ACMPrivateCA",
    event_source: "acm-pca.amazonaws.com",
    cbor: true,
    namespace: "com.amazonaws.acmpca",
    internal_error: "InternalFailure",
    // A chain of 2,097,152 bytes in base64.
    max_body: 3 * 1024 * 1024,
    operations: acm_pca::OPERATIONS,
};

/// Every service.
pub static SERVICES: &[&ServiceRow] = &[&KMS, &ACM_PCA];

/// The empty structure.
#[derive(Debug, Default, Serialize, serde::Deserialize)]
pub struct Empty {}
