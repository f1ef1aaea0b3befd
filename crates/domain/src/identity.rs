//! Callers, and what they may do.
//!
//! Users and roles belong to an account and have inline policies; a session is a role that a principal has assumed.
//! [`access::authorize`] evaluates their policies; for resources with policies of their own (KMS keys, roles) those
//! are evaluated, too.

pub mod access;
pub mod action;
pub mod directory;
pub mod managed;
pub mod principal;
pub mod session;
mod trust;
pub mod unique;

pub use access::{Caller, Denied, Permit, PolicyCache, authorize};
pub use directory::{
    AccessKey, Entry, IdentityError, Role, User, access_key_secret, add_access_key,
    create_administrator, create_user, is_access_key_id,
};
pub use principal::{Identity, Principal};
pub use session::{Credential, find_credential};
pub use trust::create_role;
