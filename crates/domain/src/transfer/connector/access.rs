//! What a connector does in the name of its access role: the session, the rights on buckets, and the endpoint.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::config::Connector;
use super::credentials::Credentials;
use super::endpoint::Endpoint;
use super::held;
use super::job::{Failure, FailureCode, Job};
use crate::Fault;
use crate::arn::Arn;
use crate::identity::session::{authorize_transfer, without_credentials};
use crate::identity::{Caller, Entry, IdentityError, PolicyCache, Role};
use crate::transfer::home::Home;
use crate::transfer::login::Account;
use crate::transfer::rights::Rights;
use crate::transfer::{SERVICE_PRINCIPAL, TransferError};
use crate::work::Work;

/// Address from which a connector acts, for conditions of policies.
pub const SOURCE_IP: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A session of the access role of a connector.
pub struct Session {
    /// The connector.
    pub connector: Connector,
    /// The session.
    pub caller: Caller,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The server with the next lease does the job.
    #[error("the lease of the job is lost: another server has it now")]
    Lost,
    /// The result of the job.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The service has failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Begins a session of the access role for a job whose lease holds.
pub fn session_of(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    job: &Job,
) -> Result<Session, Refused> {
    let connector = held::connector_of(work, job)?.ok_or(Refused::Lost)?;
    assume(work, policies, connector, &job.id)
}

/// Begins a session of the access role, whose trust policy decides as for users: for the ARN of the connector.
pub fn assume(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    connector: Connector,
    name: &str,
) -> Result<Session, Refused> {
    let refused =
        |message: String| Refused::Failure(Failure::new(FailureCode::AssumeRole, message));
    let (scope, arn) = (connector.scope(), connector.access_role());
    let role = Arn::principal(arn).filter(|role| role.account() == scope.account);
    let Some(role) = role.as_ref().and_then(|role| role.of("iam", "role/")) else {
        return Err(refused(format!(
            "The access role {arn} is not one of the connector's account"
        )));
    };
    let role = match Role::find(work, &scope.account, role) {
        Ok(role) => role,
        Err(IdentityError::Fault(fault)) => return Err(fault.into()),
        Err(_) => return Err(refused(format!("There is no access role {arn}"))),
    };
    let (source, now_ms) = (SOURCE_IP.to_string(), work.now_ms());
    let may =
        authorize_transfer(policies, &role, SERVICE_PRINCIPAL, &connector.arn(), &source, now_ms)?;
    let may = may.ok_or_else(|| {
        refused(format!(
            "The trust policy of the access role {arn} does not allow {SERVICE_PRINCIPAL} to assume it for this connector"
        ))
    })?;
    let name = format!("{}.{name}", connector.id());
    let caller = without_credentials(policies, &role, &name, None, &may, now_ms)?;
    Ok(Session { connector, caller })
}

impl Session {
    /// What the access role may do with files of buckets, in the form that users have it: all buckets are at the root.
    pub fn account(self) -> Result<Arc<Account>, Refused> {
        let Self { connector, caller } = self;
        let home = Home { directory: None, mappings: None };
        let directories = home
            .resolve(connector.id())
            .map_err(|error| Failure::new(FailureCode::Internal, error))?;
        let region = connector.scope().region.clone();
        let rights = Rights::new(caller, connector.id(), &region, &directories, SOURCE_IP);
        Ok(Arc::new(Account {
            user_arn: connector.arn(),
            user: connector.id().to_owned(),
            server_arn: connector.arn(),
            scope: connector.scope().clone(),
            role_arn: connector.access_role().to_owned(),
            directories,
            rights,
            posix: None,
            key: None,
            certificate: None,
            welcome: None,
            ignores_set_stat: false,
        }))
    }
}

/// The secret that a connector needs for a connection.
pub fn secret_of(connector: &Connector) -> Result<&str, Failure> {
    connector.secret().ok_or_else(|| {
        Failure::new(
            FailureCode::Connection,
            "The connector has no UserSecretId: name the secret with UpdateConnector",
        )
    })
}

/// Where a connector connects to, with these credentials. `connections` may be open at a time.
pub fn endpoint(
    connector: &Connector,
    credentials: Credentials,
    connections: u32,
) -> Result<Endpoint, TransferError> {
    let target = connector.target()?;
    Ok(Endpoint {
        connector_arn: connector.arn(),
        host: target.host,
        port: target.port,
        security_policy: connector.security_policy().to_owned(),
        trusted_host_keys: connector.trusted_host_keys().to_vec(),
        user: credentials.user,
        private_key: credentials.private_key,
        password: credentials.password,
        max_connections: connections,
    })
}

/// The connections that a job may have at a time.
pub fn connections(job: &Job) -> u32 {
    job.connections
}
