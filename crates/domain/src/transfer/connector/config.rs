//! Connectors: their settings, and creating, changing, listing and deleting them.

use serde::{Deserialize, Serialize};

use super::url::Target;
use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::limits;
use crate::quotas;
use crate::secrets::Named;
use crate::transfer::server::check_role;
use crate::transfer::ssh_key::KeyLine;
use crate::transfer::tag_set::{self, Tags};
use crate::transfer::{CONNECTOR, TransferError, is_id, new_id};
use crate::work::{Page, Work};

/// What the ids of connectors begin with.
const PREFIX: &str = "c-";

/// A connector as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    id: String,
    url: String,
    /// Canonical ARN.
    access_role: String,
    /// Canonical ARN.
    logging_role: Option<String>,
    /// `UserSecretId`, as given.
    secret: Option<String>,
    /// Each `type base64`.
    trusted_host_keys: Vec<String>,
    max_connections: u32,
    security_policy: String,
    address_type: String,
    created_ms: i64,
    tags: Tags,
}

/// Properties of a new connector, or changes of one. What is `None` keeps its value, or gets its default.
#[derive(Debug, Clone, Default)]
pub struct ConnectorChange {
    /// `Url`
    pub url: Option<String>,
    /// `AccessRole`
    pub access_role: Option<Arn>,
    /// `LoggingRole`
    pub logging_role: Option<Arn>,
    /// `UserSecretId`
    pub secret: Option<String>,
    /// `TrustedHostKeys`
    pub trusted_host_keys: Option<Vec<String>>,
    /// `MaxConcurrentConnections`
    pub max_connections: Option<i64>,
    /// `SecurityPolicyName`, one that exists and that connectors can have.
    pub security_policy: Option<String>,
    /// `IpAddressType`
    pub address_type: Option<String>,
}

/// A connector that was found.
#[derive(Debug, Clone)]
pub struct Connector {
    scope: Scope,
    record: Record,
}

impl Connector {
    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Id, `c-` and 17 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// ARN.
    pub fn arn(&self) -> String {
        CONNECTOR.arn(&self.scope, &self.record.id)
    }

    /// `Url`
    pub fn url(&self) -> &str {
        &self.record.url
    }

    /// ARN of `AccessRole`.
    pub fn access_role(&self) -> &str {
        &self.record.access_role
    }

    /// ARN of `LoggingRole`.
    pub fn logging_role(&self) -> Option<&str> {
        self.record.logging_role.as_deref()
    }

    /// `UserSecretId`
    pub fn secret(&self) -> Option<&str> {
        self.record.secret.as_deref()
    }

    /// `TrustedHostKeys`, each `type base64`.
    pub fn trusted_host_keys(&self) -> &[String] {
        &self.record.trusted_host_keys
    }

    /// `MaxConcurrentConnections`
    pub fn max_connections(&self) -> u32 {
        self.record.max_connections
    }

    /// `SecurityPolicyName`
    pub fn security_policy(&self) -> &str {
        &self.record.security_policy
    }

    /// `IpAddressType`
    pub fn address_type(&self) -> &str {
        &self.record.address_type
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    /// Host and port of `Url`.
    pub(super) fn target(&self) -> Result<Target, TransferError> {
        Target::parse(&self.record.url)
    }

    pub(super) fn record_key(&self) -> String {
        CONNECTOR.record_key(&self.scope, &self.record.id)
    }
}

impl ConnectorChange {
    /// Applies the changes. `may_pass` are the permits to pass the roles in them on.
    fn apply(
        self,
        record: &mut Record,
        scope: &Scope,
        may_pass: &[Permit<action::iam::PassRole>],
    ) -> Result<(), TransferError> {
        if let Some(url) = self.url {
            Target::parse(&url)?;
            record.url = url;
        }
        if let Some(role) = self.access_role {
            record.access_role = checked("AccessRole", &role, scope, may_pass)?;
        }
        if let Some(role) = self.logging_role {
            record.logging_role = Some(checked("LoggingRole", &role, scope, may_pass)?);
        }
        if let Some(id) = self.secret {
            Named::parse(scope, &id).map_err(|_| {
                TransferError::invalid(
                    "UserSecretId is not the name or ARN of a secret of the connector's Region",
                )
            })?;
            record.secret = Some(id);
        }
        if let Some(lines) = self.trusted_host_keys {
            record.trusted_host_keys = host_keys(&lines)?;
        }
        if let Some(most) = self.max_connections {
            let allowed = limits::CONNECTOR_CONNECTIONS;
            record.max_connections =
                u32::try_from(most).ok().filter(|_| allowed.contains(&most)).ok_or_else(|| {
                    let (low, high) = (allowed.start(), allowed.end());
                    TransferError::invalid(format!(
                        "MaxConcurrentConnections must be between {low} and {high}"
                    ))
                })?;
        }
        if let Some(name) = self.security_policy {
            record.security_policy = name;
        }
        if let Some(name) = self.address_type {
            record.address_type = name;
        }
        Ok(())
    }
}

/// Checks that a role is one of the account and may be passed on; returns its ARN.
fn checked(
    member: &str,
    role: &Arn,
    scope: &Scope,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<String, TransferError> {
    let text = role.to_string();
    if role.account() != scope.account {
        return Err(TransferError::invalid(format!(
            "{member}: the role {text} is not one of the account of the connector"
        )));
    }
    check_role(scope, &text, may_pass)?;
    Ok(text)
}

/// Reads host keys: lines of `type base64`. A comment is dropped.
fn host_keys(lines: &[String]) -> Result<Vec<String>, TransferError> {
    let most = limits::MAX_TRUSTED_HOST_KEYS;
    if lines.len() > most {
        return Err(TransferError::invalid(format!("TrustedHostKeys has at most {most} keys")));
    }
    let mut all = Vec::new();
    for line in lines {
        let read = KeyLine::parse(line).map_err(|error| {
            TransferError::invalid(format!(
                "TrustedHostKeys: {error}; a line is TYPE BASE64, as ssh-keyscan writes it after the host"
            ))
        })?;
        let line = read.key.to_openssh_line();
        if !all.contains(&line) {
            all.push(line);
        }
    }
    Ok(all)
}

/// Creates a connector. The permits allow that, and passing each of its roles.
pub fn create_connector(
    work: &mut Work<'_>,
    scope: &Scope,
    change: ConnectorChange,
    tags: Tags,
    permit: &Permit<action::transfer::CreateConnector>,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<Connector, TransferError> {
    permit.opens(&CONNECTOR.arn(scope, "*"))?;
    tag_set::check(&tags)?;
    work.admit::<TransferError>(&quotas::CONNECTORS, &[&scope.account, &scope.region])?;
    if change.url.is_none() {
        return Err(TransferError::invalid("Url is required for an SFTP connector"));
    }
    if change.access_role.is_none() {
        return Err(TransferError::invalid("AccessRole is required"));
    }
    let mut record = Record {
        id: new_id(PREFIX)?,
        url: String::new(),
        access_role: String::new(),
        logging_role: None,
        secret: None,
        trusted_host_keys: Vec::new(),
        max_connections: 1,
        security_policy: String::new(),
        address_type: "IPV4".into(),
        created_ms: work.now_ms(),
        tags,
    };
    change.apply(&mut record, scope, may_pass)?;
    let made = Connector { scope: scope.clone(), record };
    save(work, &made)?;
    Ok(made)
}

/// Finds a connector by its id.
pub fn find_connector(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<Connector, TransferError> {
    look_up(work, scope, id)?
        .ok_or_else(|| TransferError::not_found("Unknown connector", "Connector", id))
}

/// The same for a job.
pub(super) fn look_up(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<Option<Connector>, Fault> {
    if !is_id(id, PREFIX) {
        return Ok(None);
    }
    let record = work.get::<Record>(&CONNECTOR.record_key(scope, id))?;
    Ok(record.map(|record| Connector { scope: scope.clone(), record }))
}

/// Lists connectors, after the marker of the previous page.
pub fn connectors(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::transfer::ListConnectors>,
) -> Result<Page<Connector>, TransferError> {
    permit.opens(&CONNECTOR.arn(scope, "*"))?;
    let page = work.page::<Record>(&CONNECTOR.prefix(scope), marker, limit)?;
    let of = |record| Connector { scope: scope.clone(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Changes a connector: jobs that begin from now on have the new settings. The permits allow that, and passing each of the new
/// roles.
pub fn update_connector(
    work: &mut Work<'_>,
    mut connector: Connector,
    change: ConnectorChange,
    permit: &Permit<action::transfer::UpdateConnector>,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<Connector, TransferError> {
    permit.opens(&connector.arn())?;
    change.apply(&mut connector.record, &connector.scope, may_pass)?;
    save(work, &connector)?;
    Ok(connector)
}

/// Replaces the tags of a connector.
pub(in crate::transfer) fn set_tags(
    work: &mut Work<'_>,
    mut connector: Connector,
    tags: Tags,
) -> Result<(), Fault> {
    connector.record.tags = tags;
    save(work, &connector)
}

fn save(work: &mut Work<'_>, connector: &Connector) -> Result<(), Fault> {
    work.put(&connector.record_key(), &connector.record)
}
