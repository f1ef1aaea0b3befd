//! SFTP connectors: servers of others that this service connects to, and the jobs that it does there.
//!
//! Source: Transfer Family User Guide, "AWS Transfer Family SFTP connectors". A request is answered when its job is on disk; a
//! server takes the job under a lease, opens the connection as the connector says, and records each result. Sockets, SSH and
//! files are elsewhere.

mod access;
mod config;
mod credentials;
mod delete;
mod endpoint;
mod held;
mod job;
mod lease;
mod record;
mod report;
mod request;
mod run;
mod url;

pub use access::{
    Refused, SOURCE_IP, Session, assume, connections, endpoint, secret_of, session_of,
};
pub(super) use config::set_tags;
pub use config::{
    Connector, ConnectorChange, connectors, create_connector, find_connector, update_connector,
};
pub use credentials::Credentials;
pub use delete::delete_connector;
pub use endpoint::{ConnectionFacts, Endpoint};
pub use job::{Failure, FailureCode, FileOutcome, FileTask, Finish, Job, Task};
pub use report::Report;
pub use request::{FileStatus, Request, STATUSES, Started, results, start};
pub use run::{
    Claim, FORGET, account_and_job, behind, claim, connector_part, ended, file_ended, renew,
    unended,
};
