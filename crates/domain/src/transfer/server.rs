//! Servers.

use serde::{Deserialize, Serialize};

use super::provider::Provider;
use super::tag_set::Tags;
use super::workflow::{Attached, Attachment, attach};
use super::{SERVER, TransferError, USER, is_id};
use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::work::{Page, Work};

/// A server as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) online: bool,
    pub(super) endpoint_type: String,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) provider: Provider,
    /// Canonical ARN.
    pub(super) logging_role: Option<String>,
    pub(super) log_destinations: Vec<String>,
    pub(super) banner: Option<String>,
    pub(super) welcome: Option<String>,
    pub(super) security_policy: String,
    pub(super) passive_ip: Option<String>,
    pub(super) resumption: Option<String>,
    pub(super) ignores_set_stat: bool,
    pub(super) listing: Option<String>,
    pub(super) address_type: String,
    pub(super) created_ms: i64,
    pub(super) tags: Tags,
    #[serde(default, skip_serializing_if = "Attached::is_empty")]
    pub(super) workflows: Attached,
}

/// `EndpointDetails`, which are stored and have no effect: the operator's listeners decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `AddressAllocationIds`
    pub address_allocation_ids: Option<Vec<String>>,
    /// `SubnetIds`
    pub subnet_ids: Option<Vec<String>>,
    /// `VpcEndpointId`
    pub vpc_endpoint_id: Option<String>,
    /// `VpcId`
    pub vpc_id: Option<String>,
    /// `SecurityGroupIds`
    pub security_group_ids: Option<Vec<String>>,
}

/// Properties of a new server, or changes of one. What is `None` keeps its value, or gets its default.
#[derive(Debug, Clone, Default)]
pub struct ServerChange {
    /// `EndpointType`
    pub endpoint_type: Option<String>,
    /// `EndpointDetails`
    pub endpoint: Option<Endpoint>,
    /// Who knows the users.
    pub provider: Option<Provider>,
    /// `LoggingRole`; `Some(None)` removes it.
    pub logging_role: Option<Option<Arn>>,
    /// `StructuredLogDestinations`
    pub log_destinations: Option<Vec<String>>,
    /// `PreAuthenticationLoginBanner`
    pub banner: Option<String>,
    /// `PostAuthenticationLoginBanner`
    pub welcome: Option<String>,
    /// `SecurityPolicyName`, one that exists.
    pub security_policy: Option<String>,
    /// `PassiveIp`
    pub passive_ip: Option<String>,
    /// `TlsSessionResumptionMode`
    pub resumption: Option<String>,
    /// `SetStatOption`: whether `ENABLE_NO_OP`.
    pub ignores_set_stat: Option<bool>,
    /// `DirectoryListingOptimization`
    pub listing: Option<String>,
    /// `IpAddressType`
    pub address_type: Option<String>,
    /// `OnUpload`; `Some(None)` removes it.
    pub on_upload: Option<Option<Attachment>>,
    /// `OnPartialUpload`; `Some(None)` removes it.
    pub on_partial_upload: Option<Option<Attachment>>,
}

/// A server that was found.
#[derive(Debug, Clone)]
pub struct Server {
    scope: Scope,
    pub(super) record: Record,
}

impl Server {
    /// One with this record.
    pub(super) fn new(scope: &Scope, record: Record) -> Self {
        Self { scope: scope.clone(), record }
    }

    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Id, `s-` and 17 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// ARN.
    pub fn arn(&self) -> String {
        SERVER.arn(&self.scope, &self.record.id)
    }

    /// Whether it serves.
    pub fn is_online(&self) -> bool {
        self.record.online
    }

    /// `EndpointType`
    pub fn endpoint_type(&self) -> &str {
        &self.record.endpoint_type
    }

    /// `EndpointDetails`
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.record.endpoint.as_ref()
    }

    /// Who knows the users.
    pub fn provider(&self) -> &Provider {
        &self.record.provider
    }

    /// ARN of `LoggingRole`.
    pub fn logging_role(&self) -> Option<&str> {
        self.record.logging_role.as_deref()
    }

    /// `StructuredLogDestinations`
    pub fn log_destinations(&self) -> &[String] {
        &self.record.log_destinations
    }

    /// `PreAuthenticationLoginBanner`
    pub fn banner(&self) -> Option<&str> {
        self.record.banner.as_deref()
    }

    /// `PostAuthenticationLoginBanner`
    pub fn welcome(&self) -> Option<&str> {
        self.record.welcome.as_deref()
    }

    /// `SecurityPolicyName`
    pub fn security_policy(&self) -> &str {
        &self.record.security_policy
    }

    /// `PassiveIp`
    pub fn passive_ip(&self) -> Option<&str> {
        self.record.passive_ip.as_deref()
    }

    /// `TlsSessionResumptionMode`
    pub fn resumption(&self) -> Option<&str> {
        self.record.resumption.as_deref()
    }

    /// Whether requests to set attributes are ignored (`SetStatOption`).
    pub fn ignores_set_stat(&self) -> bool {
        self.record.ignores_set_stat
    }

    /// `DirectoryListingOptimization`
    pub fn listing(&self) -> Option<&str> {
        self.record.listing.as_deref()
    }

    /// `IpAddressType`
    pub fn address_type(&self) -> &str {
        &self.record.address_type
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    /// `WorkflowDetails`
    pub fn workflows(&self) -> &Attached {
        &self.record.workflows
    }

    /// The ids of users and host keys begin with this.
    pub(super) fn within(&self, id: &str) -> String {
        format!("{}/{id}", self.record.id)
    }
}

impl ServerChange {
    /// Applies the changes. `may_pass` are the permits to pass the roles in them on.
    pub(super) fn apply(
        self,
        work: &mut Work<'_>,
        record: &mut Record,
        scope: &Scope,
        may_pass: &[Permit<action::iam::PassRole>],
    ) -> Result<(), TransferError> {
        let logging = self.logging_role.iter().flatten();
        let invoking = self.provider.iter().filter_map(Provider::invocation_role);
        for role in logging.map(Arn::to_string).chain(invoking.map(str::to_owned)) {
            check_role(scope, &role, may_pass)?;
        }
        for attached in self.on_upload.iter().chain(&self.on_partial_upload).flatten() {
            check_role(scope, &attached.role, may_pass)?;
            attach(work, scope, &attached.workflow)?;
        }
        if let Some(attached) = self.on_upload {
            record.workflows.on_upload = attached;
        }
        if let Some(attached) = self.on_partial_upload {
            record.workflows.on_partial_upload = attached;
        }
        if let Some(provider) = self.provider {
            provider.check(scope)?;
            record.provider = provider;
        }
        if let Some(role) = self.logging_role {
            record.logging_role = role.map(|role| role.to_string());
        }
        let text = |text: String| (!text.is_empty()).then_some(text);
        record.endpoint_type = self.endpoint_type.unwrap_or_else(|| record.endpoint_type.clone());
        record.endpoint = self.endpoint.or_else(|| record.endpoint.take());
        record.log_destinations =
            self.log_destinations.unwrap_or_else(|| std::mem::take(&mut record.log_destinations));
        record.banner = self.banner.map_or_else(|| record.banner.take(), text);
        record.welcome = self.welcome.map_or_else(|| record.welcome.take(), text);
        if let Some(name) = self.security_policy {
            record.security_policy = name;
        }
        record.passive_ip = self.passive_ip.or_else(|| record.passive_ip.take());
        record.resumption = self.resumption.or_else(|| record.resumption.take());
        record.ignores_set_stat = self.ignores_set_stat.unwrap_or(record.ignores_set_stat);
        record.listing = self.listing.or_else(|| record.listing.take());
        if let Some(name) = self.address_type {
            record.address_type = name;
        }
        Ok(())
    }
}

/// Checks that a role is one of the account, and that the caller may pass it on.
pub(super) fn check_role(
    scope: &Scope,
    role: &str,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<(), TransferError> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte);
    let is_name = |part: &str| !matches!(part, "." | "..") && part.bytes().all(word);
    let arn = Arn::principal(role)
        .filter(|arn| arn.of("iam", "role/").is_some_and(|name| name.split('/').all(is_name)));
    if arn.is_none_or(|arn| arn.account() != scope.account) {
        return Err(TransferError::invalid(format!(
            "The role {role} is not one of the account of the server"
        )));
    }
    let permit = may_pass.iter().find(|permit| permit.opens(role).is_ok());
    Ok(Permit::required(permit, role)?)
}

/// Finds a server by its id.
pub fn find_server(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<Server, TransferError> {
    let missing = || TransferError::not_found("Unknown server", "Server", id);
    if !is_id(id, PREFIX) {
        return Err(missing());
    }
    let record = work.get::<Record>(&SERVER.record_key(scope, id))?.ok_or_else(missing)?;
    Ok(Server::new(scope, record))
}

/// What the ids of servers begin with.
pub(super) const PREFIX: &str = "s-";

/// Lists servers, after the marker of the previous page.
pub fn servers(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::transfer::ListServers>,
) -> Result<Page<Server>, TransferError> {
    permit.opens(&SERVER.arn(scope, "*"))?;
    let page = work.page::<Record>(&SERVER.prefix(scope), marker, limit)?;
    let items = page.items.into_iter().map(|record| Server::new(scope, record)).collect();
    Ok(Page { items, next: page.next })
}

/// Users of a server. Takes no part in conflict detection.
pub fn user_count(work: &Work<'_>, server: &Server) -> Result<u64, Fault> {
    Ok(work.store().count(&USER.record_key(&server.scope, &server.within("")))?)
}

/// Changes a server. The permits allow that, and passing each of the new roles.
pub fn update_server(
    work: &mut Work<'_>,
    mut server: Server,
    change: ServerChange,
    permit: &Permit<action::transfer::UpdateServer>,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<Server, TransferError> {
    permit.opens(&server.arn())?;
    change.apply(work, &mut server.record, &server.scope, may_pass)?;
    save(work, &server)?;
    Ok(server)
}

/// Starts or stops a server.
pub fn set_online(
    work: &mut Work<'_>,
    mut server: Server,
    online: bool,
    permit: &Permit<impl action::StartsServer>,
) -> Result<(), TransferError> {
    permit.opens(&server.arn())?;
    server.record.online = online;
    Ok(save(work, &server)?)
}

/// Writes a server that was changed.
pub(super) fn save(work: &mut Work<'_>, server: &Server) -> Result<(), Fault> {
    work.put(&SERVER.record_key(&server.scope, &server.record.id), &server.record)
}
