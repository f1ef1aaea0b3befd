//! One call in progress, and the trait that an operation implements.

use std::sync::Arc;

use outlast_domain::arn::Scope;
use outlast_domain::ca::{self, Authority};
use outlast_domain::identity::action::Action;
use outlast_domain::identity::session::SessionCertificate;
use outlast_domain::identity::{Caller, Permit, PolicyCache, authorize};
use outlast_domain::keyring::KeyRing;
use outlast_domain::kms::{self as keys, Access, EncryptionContext, Key};
use outlast_domain::policy::ConditionKeys;
use outlast_domain::settings::Settings;
use outlast_domain::transfer::connector::Report;
use outlast_domain::work::Work;
use serde::Serialize;

use crate::audit::Notes;
use crate::aws::{Operation, ServiceModel};
use crate::outside::Outside;
use crate::wire::{ApiError, Protocol};

/// An operation that is served, in a file of its own below `ops`.
pub trait Run: Operation {
    /// Whether its CloudTrail events say `readOnly`.
    const READ_ONLY: bool;
    /// Whether every call may take longer than a network thread can wait. (Slow algorithms are known one by one:
    /// [`outlast_crypto::pace`].)
    const SLOW: bool = false;

    /// Carries the operation out. Its writes go into `call.work`, which commits all of them or none.
    fn run(call: &mut Call<'_>, input: Self::Input) -> Result<Self::Output, ApiError>;
}

/// One call in progress.
pub struct Call<'a> {
    /// The unit of work: reads, and the writes to be committed.
    pub work: Work<'a>,
    /// Cache of unsealed keys.
    pub ring: &'a KeyRing,
    /// Cache of parsed policies.
    pub policies: &'a PolicyCache,
    /// The URLs at which clients reach this server.
    pub settings: Arc<Settings>,
    /// The caller.
    pub caller: Caller,
    /// The certificate that the caller's session began with, if it did with one.
    pub certificate: Option<SessionCertificate>,
    /// The account and Region that the call is for.
    pub scope: Scope,
    /// Condition keys of the request and their values.
    pub conditions: ConditionKeys,
    /// The request's `GrantTokens`.
    pub tokens: Vec<String>,
    /// Notes for the audit event.
    pub notes: Notes,
    /// Keys that cryptographic operations of this call have used.
    pub used: Vec<Key>,
    /// Calls that this one contains: each has an event of its own.
    pub forwarded: Vec<Forwarded>,
    /// What came of jobs of connectors that end with this call.
    pub reports: Vec<Report>,
    /// What has to be asked outside, or the reply.
    pub outside: Outside<'a>,
}

/// A call that another one contains, for the audit trail: of a service to another with the caller's rights ("forward access
/// session"), or one of many that a batch stands for.
pub struct Forwarded {
    /// The service that was called.
    pub service: &'static ServiceModel,
    /// The operation.
    pub name: &'static str,
    /// Name of the service that called, such as `secretsmanager.amazonaws.com`; `None` if it counts as the caller's own
    /// call.
    pub by: Option<&'static str>,
    /// Region of the call.
    pub region: String,
    /// Notes for its event.
    pub notes: Notes,
    /// The KMS key that it used.
    pub key: Option<Key>,
    /// Its error.
    pub error: Option<ApiError>,
}

impl Forwarded {
    /// A call of an operation that changes nothing.
    pub fn new(
        service: &'static ServiceModel,
        name: &'static str,
        by: Option<&'static str>,
    ) -> Self {
        let (region, notes) = (String::new(), Notes::default());
        Self { service, name, by, region, notes, key: None, error: None }
    }
}

impl<'a> Call<'a> {
    /// Authorizes `action` on the resource with this ARN, which has no policy of its own.
    pub fn authorize<A: Action>(&self, action: A, resource: &str) -> Result<Permit<A>, ApiError> {
        authorize(&self.caller, &self.conditions, action, resource).map_err(ApiError::from)
    }

    /// Authorizes `action` on a key, by its policy, identity policies and grants. `context` is the encryption
    /// context, where the operation has one.
    pub fn authorize_key<A: Action>(
        &mut self,
        action: A,
        key: &Key,
        context: Option<&EncryptionContext>,
    ) -> Result<Permit<A>, ApiError> {
        let (work, access) = self.split();
        Ok(keys::authorize(work, Access { context, ..access }, action, key)?)
    }

    /// Authorizes `action` on a certificate authority, by its policy and identity policies.
    pub fn authorize_authority<A: Action>(
        &mut self,
        action: A,
        authority: &Authority,
    ) -> Result<Permit<A>, ApiError> {
        let (work, access) = self.split();
        Ok(ca::authorize(work, access, action, authority)?)
    }

    /// The unit of work and the caller, for decisions that the domain makes itself.
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

/// Digest of an operation's input, the same in every protocol, which identifies a repeated request.
pub fn input_digest<T: Serialize>(input: &T) -> Result<String, ApiError> {
    Ok(hex::encode(outlast_crypto::digests::sha256(&Protocol::Json11.encode(input)?)))
}
