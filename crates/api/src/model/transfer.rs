//! Structures of Transfer Family that several operations share.

use std::collections::BTreeMap;

use outlast_domain::arn::{Arn, shown_in};
use outlast_domain::identity::action::{self, Action};
use outlast_domain::identity::{Permit, authorize};
use outlast_domain::policy::{Kind as PolicyKind, Policy};
use outlast_domain::transfer::{
    self, About, Attached, Attachment, Endpoint, HOST_KEY, HostKey, Mapping, MappingKind, Methods,
    Posix, Provider, SERVER, SERVICE_PRINCIPAL, Server, ServerChange, Taggable, TransferError,
    USER, User,
};
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::policy::SecurityPolicy;
use outlast_negotiate::ssh::{SshRules, served};

use super::{marker, request_tags, unique_tags_or};
pub use crate::aws::transfer::{
    DescribedHostKey, DescribedSecurityPolicy, DescribedServer, DescribedUser, EndpointDetails,
    HomeDirectoryMapEntry, IdentityProviderDetails, ListedHostKey, ListedServer, ListedUser,
    PosixProfile, ProtocolDetails, S3StorageOptions, SshPublicKey, Tag, WorkflowDetail,
    WorkflowDetails,
};
use crate::call::Call;
use crate::wire::{ApiError, Timestamp, validate};

/// The security policy of servers whose creation names none.
pub const DEFAULT_POLICY: &str = "TransferSecurityPolicy-2025-03";
/// The only protocol that is served.
pub const PROTOCOL: &str = "SFTP";
/// The only domain that is served.
pub const DOMAIN: &str = "S3";
/// Types of endpoints. Both are stored; the operator's listeners decide.
pub const ENDPOINT_TYPES: [&str; 2] = ["PUBLIC", "VPC"];
/// Where host keys are stored.
pub const STORAGE_TYPE: &str = "SERVICE_MANAGED";
/// States of servers.
pub const STATES: [&str; 2] = ["OFFLINE", "ONLINE"];
/// Types of home directories.
pub const HOME_TYPES: [&str; 2] = ["PATH", "LOGICAL"];

/// An `InvalidRequestException`.
pub fn invalid(text: impl Into<String>) -> ApiError {
    ApiError::new("InvalidRequestException", text)
}

/// Finds a server and notes it for the audit record.
pub fn find_server(call: &mut Call<'_>, id: &str) -> Result<Server, ApiError> {
    call.notes.parameter("serverId", id);
    let found = transfer::find_server(&mut call.work, &call.scope, id)?;
    call.notes.resource(found.arn(), SERVER.cloudtrail);
    Ok(found)
}

/// Finds a user of a server and notes it for the audit record.
pub fn find_user(call: &mut Call<'_>, server: &str, name: &str) -> Result<User, ApiError> {
    call.notes.parameter("serverId", server);
    call.notes.parameter("userName", name);
    let server = transfer::find_server(&mut call.work, &call.scope, server)?;
    let found = transfer::find_user(&mut call.work, &server, name)?;
    call.notes.resource(found.arn(), USER.cloudtrail);
    Ok(found)
}

/// Finds a host key of a server and notes it for the audit record.
pub fn find_host_key(call: &mut Call<'_>, server: &str, id: &str) -> Result<HostKey, ApiError> {
    call.notes.parameter("serverId", server);
    call.notes.parameter("hostKeyId", id);
    let server = transfer::find_server(&mut call.work, &call.scope, server)?;
    let found = transfer::find_host_key(&mut call.work, &server, id)?;
    call.notes.resource(found.arn(), HOST_KEY.cloudtrail);
    Ok(found)
}

/// Finds a resource that has tags, and notes it for the audit record: its ARN and its tags.
pub fn find_taggable(
    call: &mut Call<'_>,
    arn: &str,
) -> Result<(String, BTreeMap<String, String>), ApiError> {
    call.notes.parameter("arn", arn);
    let (row, arn, tags) = Taggable::find(&mut call.work, &call.scope, arn)?;
    call.notes.resource(arn.clone(), row.kind.cloudtrail);
    Ok((arn, tags))
}

/// Authorizes `action` on a resource with these tags.
pub fn authorize_tagged<A: Action>(
    call: &Call<'_>,
    action: A,
    arn: &str,
    tags: &BTreeMap<String, String>,
) -> Result<Permit<A>, ApiError> {
    let mut keys = call.conditions.clone();
    keys.set_tags("aws:ResourceTag", tags);
    Ok(authorize(&call.caller, &keys, action, arn)?)
}

/// Keys of tags that AWS reserves, and that callers set all the same: its console keeps the host name of a server in them (Transfer
/// Family's user guide, "Working with custom hostnames"). They have no effect here.
const HOSTNAME_TAGS: [&str; 2] =
    ["aws:transfer:customHostname", "aws:transfer:route53HostedZoneId"];

/// Reads the tags of a request, for the decision and the audit record.
pub fn new_tags(
    call: &mut Call<'_>,
    list: Option<Vec<Tag>>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let pairs = list.unwrap_or_default().into_iter().map(|tag| (tag.key, tag.value));
    let tags = unique_tags_or(pairs, "InvalidRequestException", &HOSTNAME_TAGS)?;
    request_tags(&mut call.conditions, &tags);
    if !tags.is_empty() {
        call.notes.parameter("tags", tags.keys().cloned().collect::<Vec<_>>());
    }
    Ok(tags)
}

/// Authorizes the tags that a new resource gets.
pub fn may_tag(
    call: &Call<'_>,
    tags: &BTreeMap<String, String>,
    resource: &str,
) -> Result<(), ApiError> {
    if !tags.is_empty() {
        call.authorize(action::transfer::TagResource, resource)?;
    }
    Ok(())
}

/// Converts tags to AWS's list.
pub fn tag_list(tags: &BTreeMap<String, String>) -> Vec<Tag> {
    let of = |(key, value): (&String, &String)| Tag { key: key.clone(), value: value.clone() };
    tags.iter().map(of).collect()
}

/// The same where AWS leaves an empty list out.
pub(super) fn some_tags(tags: &BTreeMap<String, String>) -> Option<Vec<Tag>> {
    Some(tag_list(tags)).filter(|tags| !tags.is_empty())
}

/// Reads the marker of a list.
pub fn next_token(given: Option<&str>) -> Result<Option<String>, ApiError> {
    marker::unwrap(given, "InvalidNextTokenException")
}

/// Items on a page.
pub fn page_size(given: Option<i64>) -> Result<usize, ApiError> {
    validate::page_limit("maxResults", given)
}

/// Reads the ARN of a role.
pub fn role_arn(text: &str) -> Result<Arn, ApiError> {
    let arn = Arn::principal(text).filter(|arn| arn.of("iam", "role/").is_some());
    arn.ok_or_else(|| invalid(format!("{} is not the ARN of a role", validate::shorten(text))))
}

/// Authorizes passing roles to the service.
pub fn may_pass(
    call: &mut Call<'_>,
    roles: &[Arn],
) -> Result<Vec<Permit<action::iam::PassRole>>, ApiError> {
    call.conditions.set("iam:PassedToService", SERVICE_PRINCIPAL);
    let permit = |arn: &Arn| call.authorize(action::iam::PassRole, &arn.to_string());
    roles.iter().map(permit).collect()
}

/// Refuses protocols that are not served.
pub fn only_sftp(given: Option<&[String]>) -> Result<(), ApiError> {
    match given.unwrap_or_default().iter().find(|name| *name != PROTOCOL) {
        Some(other) => Err(invalid(format!("The protocol {other} is not served; use SFTP"))),
        None => Ok(()),
    }
}

/// Checks the description of a host key.
pub fn description(given: Option<String>) -> Result<Option<String>, ApiError> {
    let is_printable = |text: &String| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    match given {
        Some(text) if !is_printable(&text) => {
            Err(invalid("A description consists of printable characters of ASCII"))
        }
        given => Ok(given),
    }
}

/// Refuses what stores host keys elsewhere.
pub fn only_sealed(given: Option<&str>) -> Result<(), ApiError> {
    match given {
        None | Some(STORAGE_TYPE) => Ok(()),
        Some(_) => Err(invalid(
            "Host keys are sealed in the store of the service: leave the storage type out, or use SERVICE_MANAGED",
        )),
    }
}

/// The workflow that a server is to begin, in one of the lists of `WorkflowDetails`: `None` if the request does not say, and
/// `Some(None)` if there is to be none.
fn attached(given: Option<&Vec<WorkflowDetail>>) -> Result<Option<Option<Attachment>>, ApiError> {
    let Some(list) = given else { return Ok(None) };
    // The model allows one.
    let Some(detail) = list.first() else { return Ok(Some(None)) };
    let role = role_arn(&detail.execution_role)?.to_string();
    Ok(Some(Some(Attachment { workflow: detail.workflow_id.clone(), role })))
}

/// Describes the workflows that a server begins.
fn shown_attached(call: &Call<'_>, of: &Attached) -> Option<WorkflowDetails> {
    let list = |attached: &Option<Attachment>| {
        let detail = attached.as_ref().map(|attached| WorkflowDetail {
            workflow_id: attached.workflow.clone(),
            execution_role: shown_in(&call.scope.region, &attached.role),
        });
        detail.map(|detail| vec![detail])
    };
    (!of.is_empty()).then(|| WorkflowDetails {
        on_upload: list(&of.on_upload),
        on_partial_upload: list(&of.on_partial_upload),
    })
}

/// Finds a security policy that covers SSH. Servers and connectors take the same ones.
pub fn security_policy(name: &str) -> Result<&'static SecurityPolicy, ApiError> {
    let found = SecurityPolicy::by_name(name).ok().filter(|policy| policy.has_ssh());
    found.ok_or_else(|| {
        let name = validate::shorten(name);
        let message = format!("Unknown security policy {name}");
        TransferError::NotFound(About::new(message, "SecurityPolicy", &name)).into()
    })
}

/// The names of all security policies that cover SSH, in order.
pub fn security_policies() -> Vec<&'static str> {
    let mut names: Vec<_> =
        POLICIES.iter().filter(|policy| policy.has_ssh()).map(|policy| policy.name).collect();
    names.sort_unstable();
    names
}

/// Settings of a server that creating and updating one have in common.
#[derive(Default)]
pub struct GivenServer {
    /// `EndpointDetails`
    pub endpoint_details: Option<EndpointDetails>,
    /// `EndpointType`
    pub endpoint_type: Option<String>,
    /// `IdentityProviderDetails`
    pub provider_details: Option<IdentityProviderDetails>,
    /// `IdentityProviderType`
    pub provider_type: Option<String>,
    /// `LoggingRole`
    pub logging_role: Option<String>,
    /// `PostAuthenticationLoginBanner`
    pub post_banner: Option<String>,
    /// `PreAuthenticationLoginBanner`
    pub pre_banner: Option<String>,
    /// `ProtocolDetails`
    pub protocol_details: Option<ProtocolDetails>,
    /// `SecurityPolicyName`
    pub security_policy_name: Option<String>,
    /// `StructuredLogDestinations`
    pub log_destinations: Option<Vec<String>>,
    /// `S3StorageOptions`
    pub storage_options: Option<S3StorageOptions>,
    /// `IpAddressType`
    pub ip_address_type: Option<String>,
    /// `WorkflowDetails`
    pub workflow_details: Option<WorkflowDetails>,
}

impl GivenServer {
    /// Reads the settings. `before` is who knew the users until now.
    pub fn read(
        self,
        call: &mut Call<'_>,
        before: &Provider,
    ) -> Result<(ServerChange, Vec<Permit<action::iam::PassRole>>), ApiError> {
        let endpoint_type = self.endpoint_type.as_deref();
        if endpoint_type.is_some_and(|name| !ENDPOINT_TYPES.contains(&name)) {
            return Err(invalid("EndpointType VPC_ENDPOINT is no longer accepted; use VPC"));
        }
        let provider = self.provider(call, before)?;
        let mut roles = Vec::new();
        let logging_role = match self.logging_role.as_deref() {
            None => None,
            Some("") => Some(None),
            Some(text) => {
                let arn = role_arn(text)?;
                roles.push(arn.clone());
                Some(Some(arn))
            }
        };
        if let Some(Provider::ApiGateway { invocation_role: Some(role), .. }) = &provider {
            roles.push(role_arn(role)?);
        }
        let workflows = self.workflow_details.unwrap_or_default();
        let on_upload = attached(workflows.on_upload.as_ref())?;
        let on_partial_upload = attached(workflows.on_partial_upload.as_ref())?;
        for attached in on_upload.iter().chain(&on_partial_upload).flatten() {
            roles.push(role_arn(&attached.role)?);
        }
        if let Some(name) = &self.security_policy_name {
            let policy = security_policy(name)?;
            if policy.ssh.for_connectors {
                return Err(invalid(
                    "The security policy is for connectors; name one of type SERVER",
                ));
            }
            SshRules::new(policy, None, served)
                .map_err(|why| invalid(format!("{why}: no client could connect")))?;
            call.notes.parameter("securityPolicyName", name.as_str());
        }
        let may_pass = may_pass(call, &roles)?;
        let protocol = self.protocol_details.unwrap_or_default();
        let has_proxy = protocol
            .proxy_config
            .and_then(|config| config.sftp_mode)
            .is_some_and(|mode| mode != "NONE");
        if protocol.as2_transports.is_some()
            || protocol.sftp_ports.is_some_and(|ports| !ports.is_empty())
            || has_proxy
        {
            return Err(invalid(
                "ProtocolDetails: the operator's listener has the port and says whether there is a proxy; AS2 is not served",
            ));
        }
        let change = ServerChange {
            endpoint_type: self.endpoint_type,
            endpoint: self.endpoint_details.map(|given| Endpoint {
                address_allocation_ids: given.address_allocation_ids,
                subnet_ids: given.subnet_ids,
                vpc_endpoint_id: given.vpc_endpoint_id,
                vpc_id: given.vpc_id,
                security_group_ids: given.security_group_ids,
            }),
            provider,
            logging_role,
            log_destinations: self.log_destinations,
            banner: self.pre_banner,
            welcome: self.post_banner,
            security_policy: self.security_policy_name,
            passive_ip: protocol.passive_ip,
            resumption: protocol.tls_session_resumption_mode,
            ignores_set_stat: protocol.set_stat_option.map(|name| name == "ENABLE_NO_OP"),
            listing: self.storage_options.and_then(|given| given.directory_listing_optimization),
            address_type: self.ip_address_type,
            on_upload,
            on_partial_upload,
        };
        Ok((change, may_pass))
    }

    /// Who knows the users from now on, if the request says so.
    fn provider(
        &self,
        call: &mut Call<'_>,
        before: &Provider,
    ) -> Result<Option<Provider>, ApiError> {
        let details = self.provider_details.clone();
        if self.provider_type.is_none() && details.is_none() {
            return Ok(None);
        }
        let name = self.provider_type.as_deref().unwrap_or(before.name());
        call.notes.parameter("identityProviderType", name);
        let details = details.unwrap_or_default();
        let methods = match details.sftp_authentication_methods.as_deref() {
            Some(name) => Methods::by_name(name).unwrap_or_default(),
            None if name == before.name() => before.methods(),
            None => Methods::default(),
        };
        if details.directory_id.is_some() {
            return Err(invalid("DirectoryId: there is no directory service here"));
        }
        let required = |member: &str| {
            invalid(format!("IdentityProviderDetails.{member} is required for {name}"))
        };
        Ok(Some(match (name, details.url, details.function) {
            ("SERVICE_MANAGED", None, None) => Provider::ServiceManaged,
            ("API_GATEWAY", Some(url), None) => {
                let role = details.invocation_role.as_deref().map(role_arn).transpose()?;
                let invocation_role = role.map(|role| role.to_string());
                Provider::ApiGateway { url, invocation_role, methods }
            }
            ("API_GATEWAY", None, None) => match before {
                Provider::ApiGateway { url, invocation_role, .. } => Provider::ApiGateway {
                    url: url.clone(),
                    invocation_role: invocation_role.clone(),
                    methods,
                },
                _ => return Err(required("Url")),
            },
            ("AWS_LAMBDA", None, function) => {
                let function = match (function, before) {
                    (Some(function), _) => function,
                    (None, Provider::Lambda { function, .. }) => function.clone(),
                    _ => return Err(required("Function")),
                };
                let known = &call.settings.login_functions;
                if known.as_ref().is_some_and(|known| !known.contains(&function)) {
                    return Err(invalid(format!(
                        "The function {} is not one of those that the operator has configured",
                        validate::shorten(&function)
                    )));
                }
                call.authorize(action::lambda::InvokeFunction, &function)?;
                Provider::Lambda { function, methods }
            }
            ("AWS_DIRECTORY_SERVICE", ..) => {
                return Err(invalid("AWS_DIRECTORY_SERVICE: there is no directory service here"));
            }
            _ => {
                return Err(invalid(
                    "IdentityProviderDetails do not fit the IdentityProviderType: SERVICE_MANAGED has neither Url nor Function, \
                     API_GATEWAY has Url, and AWS_LAMBDA has Function",
                ));
            }
        }))
    }

    /// With the security policy of servers that name none.
    #[must_use]
    pub fn or_default_policy(mut self) -> Self {
        self.security_policy_name.get_or_insert_with(|| DEFAULT_POLICY.to_owned());
        self
    }
}

/// Reads the mappings of a home.
pub fn mappings(given: Vec<HomeDirectoryMapEntry>) -> Vec<Mapping> {
    let kind = |name: String| match name.as_str() {
        "FILE" => MappingKind::File,
        _ => MappingKind::Directory,
    };
    let of = |given: HomeDirectoryMapEntry| Mapping {
        entry: given.entry,
        target: given.target,
        kind: given.kind.map(kind),
    };
    given.into_iter().map(of).collect()
}

/// Reads a POSIX profile.
pub fn posix(given: &PosixProfile) -> Posix {
    // The model bounds them.
    let id = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
    let secondary_gids = given.secondary_gids.iter().flatten().map(|gid| id(*gid)).collect();
    Posix { uid: id(given.uid), gid: id(given.gid), secondary_gids }
}

/// Notes what is unusual in the session policy of a user.
pub fn note_policy(call: &mut Call<'_>, text: Option<&str>) {
    if let Some(Ok(policy)) = text.map(|text| Policy::parse(text, PolicyKind::Identity)) {
        call.notes.policy_findings(&policy);
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn state(server: &Server) -> String {
    STATES[usize::from(server.is_online())].to_owned()
}

fn details(provider: &Provider) -> Option<IdentityProviderDetails> {
    let of = IdentityProviderDetails::default();
    let methods = Some(provider.methods().name().to_owned());
    match provider {
        Provider::ServiceManaged => None,
        Provider::ApiGateway { url, invocation_role, .. } => Some(IdentityProviderDetails {
            url: Some(url.clone()),
            invocation_role: invocation_role.clone(),
            sftp_authentication_methods: methods,
            ..of
        }),
        Provider::Lambda { function, .. } => Some(IdentityProviderDetails {
            function: Some(function.clone()),
            sftp_authentication_methods: methods,
            ..of
        }),
    }
}

/// Describes a server. `fingerprint` is that of its oldest host key.
pub fn described_server(
    call: &Call<'_>,
    server: &Server,
    fingerprint: Option<String>,
) -> Result<DescribedServer, ApiError> {
    let users = transfer::user_count(&call.work, server).map_err(TransferError::from)?;
    let set_stat = if server.ignores_set_stat() { "ENABLE_NO_OP" } else { "DEFAULT" };
    Ok(DescribedServer {
        arn: server.arn(),
        protocol_details: ProtocolDetails {
            passive_ip: server.passive_ip().map(str::to_owned),
            tls_session_resumption_mode: server.resumption().map(str::to_owned),
            set_stat_option: Some(set_stat.to_owned()),
            ..ProtocolDetails::default()
        },
        domain: DOMAIN.to_owned(),
        endpoint_details: server.endpoint().map(|endpoint| EndpointDetails {
            address_allocation_ids: endpoint.address_allocation_ids.clone(),
            subnet_ids: endpoint.subnet_ids.clone(),
            vpc_endpoint_id: endpoint.vpc_endpoint_id.clone(),
            vpc_id: endpoint.vpc_id.clone(),
            security_group_ids: endpoint.security_group_ids.clone(),
        }),
        endpoint_type: server.endpoint_type().to_owned(),
        host_key_fingerprint: fingerprint,
        identity_provider_details: details(server.provider()),
        identity_provider_type: server.provider().name().to_owned(),
        logging_role: server.logging_role().map(|arn| shown_in(&call.scope.region, arn)),
        post_authentication_login_banner: server.welcome().map(str::to_owned),
        pre_authentication_login_banner: server.banner().map(str::to_owned),
        protocols: vec![PROTOCOL.to_owned()],
        security_policy_name: server.security_policy().to_owned(),
        server_id: server.id().to_owned(),
        state: state(server),
        tags: some_tags(server.tags()),
        user_count: i64::try_from(users).unwrap_or(i64::MAX),
        structured_log_destinations: Some(server.log_destinations().to_vec())
            .filter(|list| !list.is_empty()),
        s3_storage_options: S3StorageOptions {
            directory_listing_optimization: Some(server.listing().unwrap_or("DISABLED").to_owned()),
        },
        ip_address_type: server.address_type().to_owned(),
        workflow_details: shown_attached(call, server.workflows()),
    })
}

/// Describes a server in a list.
pub fn listed_server(call: &Call<'_>, server: &Server) -> Result<ListedServer, ApiError> {
    let users = transfer::user_count(&call.work, server).map_err(TransferError::from)?;
    Ok(ListedServer {
        arn: server.arn(),
        domain: DOMAIN.to_owned(),
        identity_provider_type: server.provider().name().to_owned(),
        endpoint_type: server.endpoint_type().to_owned(),
        logging_role: server.logging_role().map(|arn| shown_in(&call.scope.region, arn)),
        server_id: server.id().to_owned(),
        state: state(server),
        user_count: i64::try_from(users).unwrap_or(i64::MAX),
    })
}

fn home_type(user: &User) -> String {
    HOME_TYPES[usize::from(user.home().is_logical())].to_owned()
}

fn shown_mapping(mapping: &Mapping) -> HomeDirectoryMapEntry {
    let kind = mapping.kind.map(|kind| match kind {
        MappingKind::File => "FILE".to_owned(),
        MappingKind::Directory => "DIRECTORY".to_owned(),
    });
    HomeDirectoryMapEntry { entry: mapping.entry.clone(), target: mapping.target.clone(), kind }
}

/// Describes a user.
pub fn described_user(call: &Call<'_>, user: &User) -> DescribedUser {
    let mappings = user.home().mappings.as_ref();
    DescribedUser {
        arn: user.arn(),
        home_directory: user.home().directory.clone(),
        home_directory_mappings: mappings.map(|list| list.iter().map(shown_mapping).collect()),
        home_directory_type: home_type(user),
        policy: user.policy().map(str::to_owned),
        posix_profile: user.posix().map(|posix| PosixProfile {
            uid: posix.uid.into(),
            gid: posix.gid.into(),
            secondary_gids: Some(posix.secondary_gids.iter().map(|gid| (*gid).into()).collect()),
        }),
        role: shown_in(&call.scope.region, user.role()),
        ssh_public_keys: user
            .keys()
            .iter()
            .map(|key| SshPublicKey {
                date_imported: at(key.imported_ms),
                ssh_public_key_body: key.line.clone(),
                ssh_public_key_id: key.id.clone(),
            })
            .collect(),
        tags: some_tags(user.tags()),
        user_name: user.name().to_owned(),
    }
}

/// Describes a user in a list.
pub fn listed_user(call: &Call<'_>, user: &User) -> ListedUser {
    ListedUser {
        arn: user.arn(),
        home_directory: user.home().directory.clone(),
        home_directory_type: home_type(user),
        role: shown_in(&call.scope.region, user.role()),
        ssh_public_key_count: count(user.keys().len()),
        user_name: user.name().to_owned(),
    }
}

/// Describes a host key.
pub fn described_host_key(key: &HostKey) -> Result<DescribedHostKey, ApiError> {
    Ok(DescribedHostKey {
        arn: key.arn(),
        host_key_id: key.id().to_owned(),
        host_key_fingerprint: key.fingerprint().map_err(TransferError::from)?,
        description: key.description().map(str::to_owned),
        kind: key.kind().to_owned(),
        date_imported: at(key.imported_ms()),
        tags: some_tags(key.tags()),
        storage_type: STORAGE_TYPE.to_owned(),
    })
}

/// Describes a host key in a list.
pub fn listed_host_key(key: &HostKey) -> Result<ListedHostKey, ApiError> {
    Ok(ListedHostKey {
        arn: key.arn(),
        host_key_id: key.id().to_owned(),
        fingerprint: key.fingerprint().map_err(TransferError::from)?,
        description: key.description().map(str::to_owned),
        kind: key.kind().to_owned(),
        date_imported: at(key.imported_ms()),
        storage_type: STORAGE_TYPE.to_owned(),
    })
}

impl From<&SecurityPolicy> for DescribedSecurityPolicy {
    fn from(policy: &SecurityPolicy) -> Self {
        // What a policy names and this service does not speak is never negotiated.
        let names = |names: &[&str]| {
            names
                .iter()
                .filter(|name| outlast_ssh::supported(name))
                .map(|name| (*name).to_owned())
                .collect()
        };
        Self {
            fips: policy.is_fips(),
            security_policy_name: policy.name.to_owned(),
            ssh_ciphers: names(policy.ssh.ciphers),
            ssh_kexs: names(policy.ssh.key_exchanges),
            ssh_macs: names(policy.ssh.macs),
            ssh_host_key_algorithms: names(policy.ssh.host_keys),
            kind: if policy.ssh.for_connectors { "CONNECTOR" } else { "SERVER" }.to_owned(),
            protocols: vec![PROTOCOL.to_owned()],
        }
    }
}
