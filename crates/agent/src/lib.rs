//! What `outlast agent` and `outlast credentials` decide, without sockets, files or clocks.
//!
//! The agent: [`interface`] reads requests as AWS's Secrets Manager Agent does, [`callers`] says who may read which
//! secret over the unix socket, [`upstream`] asks Secrets Manager and judges its answers, [`cache`] keeps them in the
//! locked memory of [`memory`], [`role`] has the sessions of other roles, and [`template`] turns them into files. The credentials: [`session`] signs the request
//! for a session of Roles Anywhere, [`signer`] holds the key, [`acme`] gets the certificate, and [`imds`] answers as the
//! metadata service of EC2 does.
//! Sockets are in `outlast-net`, files and processes in the command line.

pub mod acme;
pub mod cache;
pub mod callers;
pub mod imds;
pub mod interface;
pub mod memory;
pub mod role;
pub mod session;
pub mod signer;
pub mod template;
pub mod upstream;
