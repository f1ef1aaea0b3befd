//! SFTP connectors: servers of others that this service connects to, and the jobs that it does there.
//!
//! Source: Transfer Family User Guide, "AWS Transfer Family SFTP connectors". A request is answered when its job is on disk; a
//! server takes the job under a lease, opens the connection as the connector says, and records each result. Sockets, SSH and
//! files are elsewhere.

mod endpoint;
mod job;

pub use endpoint::{ConnectionFacts, Endpoint};
pub use job::{Failure, FailureCode, FileOutcome, FileTask, Finish, Job, Task};
