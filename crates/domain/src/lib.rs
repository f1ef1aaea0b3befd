//! The domain: keys, certificate authorities, identities, and the operations on them.
//!
//! No AWS wire format, no async runtime, no clock, no socket. Every change goes through a [`work::Work`], which
//! collects reads and writes and becomes one store transaction; nothing changes without an [`identity::Permit`] for
//! the action and the resource, which only `identity::access` makes.

pub mod acm;
pub mod acme;
pub mod arn;
pub mod artifacts;
pub mod audit;
pub mod backup;
pub mod ca;
pub mod certified_key;
pub mod change;
pub mod check;
pub mod events;
mod fault;
pub mod heartbeat;
pub mod identity;
pub mod ids;
pub mod keyring;
pub mod kms;
pub mod limits;
pub mod partition;
pub mod policy;
pub mod quotas;
pub mod records;
pub mod register;
pub mod rolesanywhere;
pub mod seal;
pub mod secrets;
pub mod settings;
pub mod ssh_ca;
pub mod tags;
pub mod transfer;
pub mod tsa;
pub mod upload_signing;
pub mod witness;
pub mod work;

pub use fault::Fault;
