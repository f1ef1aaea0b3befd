//! Operations: one file each. The lists in `kms.rs` and `acm_pca.rs` are generated from the folders by
//! `cargo xtask gen`.

pub mod acm;
pub mod acm_pca;
pub mod kms;
pub mod sts;

use std::sync::Arc;

use outlast_domain::arn::Scope;
use outlast_domain::ca::{self, Authority};
use outlast_domain::identity::action::Action;
use outlast_domain::identity::{Caller, Permit, PolicyCache, authorize};
use outlast_domain::keyring::KeyRing;
use outlast_domain::kms::{self as keys, Access, EncryptionContext, Key};
use outlast_domain::policy::ConditionKeys;
use outlast_domain::settings::Settings;
use outlast_domain::work::Work;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::audit::Notes;
use crate::wire::fields::fields_of;
use crate::wire::{ApiError, Protocol};

/// One API operation. Input and output serve the server and the client alike.
pub trait Operation {
    /// AWS's name.
    const NAME: &'static str;
    /// `readOnly` of its CloudTrail events: whether it changes nothing.
    const READ_ONLY: bool;
    /// Whether it takes longer than a network thread can wait, whatever is asked. (What making a key or a signature takes is
    /// said by the algorithm: [`outlast_crypto::pace`].)
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
    /// Parsed policies.
    pub policies: &'a PolicyCache,
    /// Where this server is reached.
    pub settings: Arc<Settings>,
    /// Who calls.
    pub caller: Caller,
    /// The caller's account in the region that was asked.
    pub scope: Scope,
    /// What policies can ask about the request.
    pub conditions: ConditionKeys,
    /// `GrantTokens`.
    pub tokens: Vec<String>,
    /// What goes into the audit record.
    pub notes: Notes,
    /// Keys that a cryptographic operation has used.
    pub used: Vec<Key>,
}

impl<'a> Call<'a> {
    /// Decides whether the caller may do `action` on the resource with this ARN, which has no policy of its own.
    pub fn authorize<A: Action>(&self, action: A, resource: &str) -> Result<Permit<A>, ApiError> {
        authorize(&self.caller, &self.conditions, action, resource).map_err(ApiError::from)
    }

    /// Decides whether the caller may do `action` with a key, by its policy, identity policies and grants.
    /// `context` is the encryption context, where the operation has one.
    pub fn authorize_key<A: Action>(
        &mut self,
        action: A,
        key: &Key,
        context: Option<&EncryptionContext>,
    ) -> Result<Permit<A>, ApiError> {
        let (work, access) = self.split();
        Ok(keys::authorize(work, Access { context, ..access }, action, key)?)
    }

    /// Decides whether the caller may do `action` with a certificate authority, by its policy and identity policies.
    pub fn authorize_authority<A: Action>(
        &mut self,
        action: A,
        authority: &Authority,
    ) -> Result<Permit<A>, ApiError> {
        let (work, access) = self.split();
        Ok(ca::authorize(work, access, action, authority)?)
    }

    /// The work, and who asks: for what the domain decides itself.
    pub fn split(&mut self) -> (&mut Work<'a>, Access<'_>) {
        let access = Access {
            caller: &self.caller,
            conditions: &self.conditions,
            policies: self.policies,
            tokens: &self.tokens,
            context: None,
        };
        (&mut self.work, access)
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
    /// Members of its input.
    pub input_fields: fn() -> &'static [&'static str],
    /// Members of its output.
    pub output_fields: fn() -> &'static [&'static str],
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
            input_fields: fields_of::<O::Input>,
            output_fields: fields_of::<O::Output>,
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
    /// What it speaks.
    pub protocols: &'static [Protocol],
    /// Smithy namespace of its errors; the XML namespace of a query service.
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
    protocols: &[Protocol::Json11],
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
    protocols: &[Protocol::Json11, Protocol::RpcV2Cbor],
    namespace: "com.amazonaws.acmpca",
    internal_error: "InternalFailure",
    // A chain of 2,097,152 bytes in base64.
    max_body: 3 * 1024 * 1024,
    operations: acm_pca::OPERATIONS,
};

/// Certificate Manager, API version 2015-12-08.
pub static ACM: ServiceRow = ServiceRow {
    signing_name: "acm",
    target_prefix: "CertificateManager",
    event_source: "acm.amazonaws.com",
    protocols: &[Protocol::Json11],
    namespace: "com.amazonaws.acm",
    internal_error: "InternalFailure",
    // A chain of 2,097,152 bytes in base64.
    max_body: 3 * 1024 * 1024,
    operations: acm::OPERATIONS,
};

/// Security Token Service, API version 2011-06-15.
pub static STS: ServiceRow = ServiceRow {
    signing_name: "sts",
    target_prefix: "",
    event_source: "sts.amazonaws.com",
    protocols: &[Protocol::Query],
    namespace: "https://sts.amazonaws.com/doc/2011-06-15/",
    internal_error: "InternalFailure",
    // A session policy of 2,048 characters, tags and ARNs.
    max_body: 64 * 1024,
    operations: sts::OPERATIONS,
};

/// Every service.
pub static SERVICES: &[&ServiceRow] = &[&KMS, &ACM_PCA, &ACM, &STS];

/// The empty structure.
#[derive(Debug, Default, Serialize, serde::Deserialize)]
pub struct Empty {}
