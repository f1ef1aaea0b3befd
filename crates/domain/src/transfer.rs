//! Transfer Family: SFTP servers, their host keys, users and keys, the decision of each login, and workflows.
//!
//! Source: "AWS Transfer Family User Guide" and its API reference. A user has a role of this service's account and homes in
//! buckets; what the role's policies and the user's session policy allow on them decides about each file. A role without
//! policies allows nothing, as with AWS. Sockets, the SSH protocol and files are elsewhere: `net` asks here.

mod authentication;
pub mod connector;
mod creation;
mod execution;
mod home;
mod host_key;
mod login;
mod material;
mod posix;
mod provider;
mod rights;
mod served;
mod server;
mod ssh_key;
mod tag_set;
mod tags;
mod user;
mod workflow;

pub use authentication::Methods;
pub use creation::{
    NewServer, create_server, delete_server, delete_workflow, import_host_key, set_host_key,
};
pub use execution::{
    Answered, Cause, Content, Event, Execution, FORGET_EXECUTIONS, FileLocation, Happened, Job,
    Outcome, Placed, Status, StepError, StepResult, Uploaded, answer, begin, called, claim,
    complete, due, executions, find_execution, pin, renew,
};
pub use home::{Directories, Directory, Home, Located, Mapping, MappingKind};
pub use host_key::{
    HostKey, NewHostKey, delete_host_key, find_host_key, host_keys, oldest_fingerprint,
    update_host_key,
};
pub use login::{
    Account, Certified, Login, Refusal, Step, login, still_admits, test_answer, test_question,
};
pub use posix::Posix;
pub use provider::{Answer, Provider, Question, Said};
pub use rights::{Access, Rights};
pub use served::{ServedHostKey, ServerFacts, Unserved, served};
pub use server::{
    Endpoint, Server, ServerChange, find_server, servers, set_online, update_server, user_count,
};
pub use tag_set::Tags;
pub use tags::{TAGGABLE, Taggable, add_tags, remove_tags};
pub use user::{
    AuthorizedKey, NewUser, User, UserChange, add_key, create_user, delete_user, find_user,
    remove_key, update_user, users,
};
pub use workflow::{
    Attached, Attachment, Deed, NewWorkflow, Step as WorkflowStep, Workflow, create_workflow,
    find_workflow, workflows,
};

use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::identity::Denied;
use crate::quotas::Reached;

/// The service principal that assumes the roles of users, as trust policies name it.
pub const SERVICE_PRINCIPAL: &str = "transfer.amazonaws.com";
/// Name of the service in ARNs.
const SERVICE: &str = "transfer";

/// Why Transfer Family refuses. Each variant is one AWS error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// `InvalidRequestException`
    #[error("{0}")]
    InvalidRequest(String),
    /// `ResourceNotFoundException`
    #[error("{}", .0.message)]
    NotFound(About),
    /// `ResourceExistsException`
    #[error("{}", .0.message)]
    Exists(About),
    /// `AccessDeniedException`
    #[error(transparent)]
    Denied(#[from] Denied),
    /// An internal failure.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The resource that is missing, or there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    message: String,
    /// `ResourceType`
    pub resource_type: &'static str,
    /// `Resource`: its id, or its name where a caller chooses it.
    pub resource: String,
}

impl About {
    /// A refusal with this message.
    pub fn new(message: String, resource_type: &'static str, resource: &str) -> Self {
        Self { message, resource_type, resource: resource.to_owned() }
    }
}

impl From<Reached> for TransferError {
    fn from(reached: Reached) -> Self {
        Self::InvalidRequest(reached.to_string())
    }
}

impl TransferError {
    fn invalid(text: impl Into<String>) -> Self {
        Self::InvalidRequest(text.into())
    }

    fn not_found(message: &str, resource_type: &'static str, resource: &str) -> Self {
        Self::NotFound(About::new(message.to_owned(), resource_type, resource))
    }

    fn exists(message: &str, resource_type: &'static str, resource: &str) -> Self {
        Self::Exists(About::new(message.to_owned(), resource_type, resource))
    }
}

/// A kind of resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in ARNs.
    pub noun: &'static str,
    /// CloudTrail's name of the type.
    pub cloudtrail: &'static str,
}

/// Servers.
pub static SERVER: Kind = Kind { noun: "server", cloudtrail: "AWS::Transfer::Server" };
/// Users of a server.
pub static USER: Kind = Kind { noun: "user", cloudtrail: "AWS::Transfer::User" };
/// Connectors.
pub static CONNECTOR: Kind = Kind { noun: "connector", cloudtrail: "AWS::Transfer::Connector" };
/// Host keys of a server.
pub static HOST_KEY: Kind = Kind { noun: "host-key", cloudtrail: "AWS::Transfer::HostKey" };
/// Workflows.
pub static WORKFLOW: Kind = Kind { noun: "workflow", cloudtrail: "AWS::Transfer::Workflow" };

impl Kind {
    /// ARN of the one with this id, or with `*` of any. Ids of users and host keys begin with that of their server.
    pub fn arn(&self, scope: &Scope, id: &str) -> String {
        scope.arn(SERVICE, &format!("{}/{id}", self.noun))
    }

    /// The id in an ARN of this kind, if it is one of `scope`.
    fn id_in<'a>(&self, arn: &'a Arn, scope: &Scope) -> Option<&'a str> {
        arn.of(SERVICE, self.noun)?.strip_prefix('/').filter(|_| arn.is_in(scope))
    }

    fn prefix(&self, scope: &Scope) -> String {
        format!("transfer/{}/{}/{}/", self.noun, scope.account, scope.region)
    }

    fn record_key(&self, scope: &Scope, id: &str) -> String {
        format!("{}{id}", self.prefix(scope))
    }
}

/// A new id: a prefix and 17 hexadecimal digits, as AWS's are.
fn new_id(prefix: &str) -> Result<String, Fault> {
    let mut digits = crate::ids::hex::<9>()?;
    digits.truncate(ID_DIGITS);
    Ok(format!("{prefix}{digits}"))
}

/// Whether this is an id that [`new_id`] could have made.
fn is_id(text: &str, prefix: &str) -> bool {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.strip_prefix(prefix)
        .is_some_and(|digits| digits.len() == ID_DIGITS && digits.bytes().all(lower))
}

/// Digits of ids.
const ID_DIGITS: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        let id = new_id("s-").unwrap();
        assert!(is_id(&id, "s-"), "{id}");
        for wrong in
            ["s-", "s-0123456789abcdef", "s-0123456789ABCDEF0", "s-0123456789abcdef01", "x"]
        {
            assert!(!is_id(wrong, "s-"), "{wrong}");
        }
    }
}
