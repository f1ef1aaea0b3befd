//! IAM Roles Anywhere: workloads outside exchange a signature by the key of an X.509 certificate for a session of a role.
//!
//! Source: "IAM Roles Anywhere User Guide" and its API reference. A trust anchor says which CAs are trusted, a profile which
//! roles their certificates may begin sessions of; the trust policy of the role has the last word. CRLs are imported, never
//! fetched.

mod alias;
mod attribute;
mod certificate;
mod crl;
mod mapping;
mod notification;
mod profile;
mod profile_mapping;
mod removal;
mod revocation;
mod session;
mod subject;
mod tag_set;
mod tags;
mod told;
mod trust_anchor;

pub use crl::{
    Crl, CrlUpdate, NewCrl, crls, delete_crl, find_crl, import_crl, set_crl_enabled, update_crl,
};
pub use mapping::{FIELDS, Mapping};
pub use notification::{CHANNELS, EVENTS, Notification};
pub use profile::{
    NewProfile, Profile, ProfileUpdate, create_profile, delete_profile, find_profile, profiles,
    set_profile_enabled, update_profile,
};
pub use profile_mapping::{delete_mapping, put_mapping};
pub use removal::delete_trust_anchor;
pub use revocation::has_ended;
pub use session::{Asked, Begun, Presented, Trusted, authenticate, begin, note_refusal};
pub use subject::{Instance, Seen, Subject, decimal, find_subject, subjects};
pub use tag_set::Tags;
pub use tags::{TAGGABLE, Taggable, add_tags, remove_tags};
pub use told::TELL;
pub use trust_anchor::{
    NewTrustAnchor, SOURCES, Source, TrustAnchor, TrustAnchorUpdate, create_trust_anchor,
    find_trust_anchor, put_notifications, reset_notifications, set_trust_anchor_enabled,
    trust_anchors, update_trust_anchor,
};

use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::identity::Denied;
use crate::ids;
use crate::quotas::Reached;
use crate::work::Work;

/// The service principal that begins sessions, as trust policies name it.
pub const SERVICE_PRINCIPAL: &str = "rolesanywhere.amazonaws.com";
/// Name of the service in ARNs.
const SERVICE: &str = "rolesanywhere";

/// Why Roles Anywhere refuses. Each variant is one AWS error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RolesAnywhereError {
    /// `ValidationException`
    #[error("{0}")]
    Validation(String),
    /// `ResourceNotFoundException`
    #[error("{0}")]
    NotFound(String),
    /// `AccessDeniedException`, for a certificate
    #[error("{0}")]
    Refused(String),
    /// `AccessDeniedException`, for a caller
    #[error(transparent)]
    Denied(#[from] Denied),
    /// `TooManyTagsException`
    #[error("{0}")]
    TooManyTags(String),
    /// `ThrottlingException`: AWS has no error for a quota of sessions, and after this one clients retry later.
    #[error("{0}")]
    Throttled(String),
    /// An internal failure.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Reached> for RolesAnywhereError {
    fn from(reached: Reached) -> Self {
        Self::Validation(reached.to_string())
    }
}

impl RolesAnywhereError {
    fn validation(text: impl Into<String>) -> Self {
        Self::Validation(text.into())
    }

    fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }
}

/// A kind of resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in ARNs.
    pub noun: &'static str,
    /// Its name in sentences.
    pub title: &'static str,
    /// CloudTrail's name of the type.
    pub cloudtrail: &'static str,
}

/// Trust anchors.
pub static TRUST_ANCHOR: Kind = Kind {
    noun: "trust-anchor",
    title: "Trust anchor",
    cloudtrail: "AWS::RolesAnywhere::TrustAnchor",
};
/// Profiles.
pub static PROFILE: Kind =
    Kind { noun: "profile", title: "Profile", cloudtrail: "AWS::RolesAnywhere::Profile" };
/// CRLs.
pub static CRL: Kind = Kind { noun: "crl", title: "CRL", cloudtrail: "AWS::RolesAnywhere::CRL" };
/// Subjects: those who have authenticated.
pub static SUBJECT: Kind =
    Kind { noun: "subject", title: "Subject", cloudtrail: "AWS::RolesAnywhere::Subject" };

impl Kind {
    /// ARN of the one with this id, or with `*` of any.
    pub fn arn(&self, scope: &Scope, id: &str) -> String {
        scope.arn(SERVICE, &format!("{}/{id}", self.noun))
    }

    /// ARN of an alias.
    pub fn alias_arn(&self, scope: &Scope, name: &str) -> String {
        scope.arn(SERVICE, &format!("alias/{}/{name}", self.noun))
    }

    fn prefix(&self, scope: &Scope) -> String {
        format!("rolesanywhere/{}/{}/{}/", self.noun, scope.account, scope.region)
    }

    fn record_key(&self, scope: &Scope, id: &str) -> String {
        format!("{}{id}", self.prefix(scope))
    }

    fn missing(&self, text: &str) -> RolesAnywhereError {
        let text: String = text.chars().take(256).collect();
        RolesAnywhereError::NotFound(format!("{} {text} not found", self.title))
    }

    /// The id that an id, an ARN or the ARN of an alias means in `scope`. Whether there is such a resource is not asked.
    fn id_of(
        &self,
        work: &mut Work<'_>,
        scope: &Scope,
        text: &str,
    ) -> Result<String, RolesAnywhereError> {
        if ids::uuid_bytes(text).is_some() {
            return Ok(text.to_owned());
        }
        let missing = || self.missing(text);
        let arn = Arn::parse(text).filter(|arn| arn.is_in(scope)).ok_or_else(missing)?;
        let Some(name) = arn.of(SERVICE, &format!("alias/{}/", self.noun)) else {
            return self.id_in(&arn).ok_or_else(missing);
        };
        alias::id_of(work, scope, self, name)?.ok_or_else(missing)
    }

    /// The id in the ARN of one.
    fn id_in(&self, arn: &Arn) -> Option<String> {
        let id = arn.of(SERVICE, &format!("{}/", self.noun))?;
        // One spelling: the service writes ids in lower case.
        let canonical = ids::uuid_bytes(id).map(ids::uuid_text)?;
        (canonical == id).then_some(canonical)
    }
}
