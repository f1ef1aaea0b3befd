//! Structures of Transfer Family's connectors that several operations share.

use outlast_domain::arn::shown_in;
use outlast_domain::identity::Permit;
use outlast_domain::identity::action;
use outlast_domain::transfer::CONNECTOR;
use outlast_domain::transfer::connector::{self, Connector, ConnectorChange, FileStatus};

use super::transfer::{DEFAULT_POLICY, invalid, may_pass, role_arn, security_policy, some_tags};
pub use crate::aws::transfer::{
    ConnectorFileTransferResult, DescribedConnector, ListedConnector, SftpConnectorConfig,
    SftpConnectorConnectionDetails,
};
use crate::call::Call;
use crate::wire::ApiError;

/// How connectors leave: through the machine's own network.
pub const EGRESS_TYPE: &str = "SERVICE_MANAGED";
/// State of connectors.
pub const STATUS: &str = "ACTIVE";

/// Finds a connector and notes it for the audit record.
pub fn find_connector(call: &mut Call<'_>, id: &str) -> Result<Connector, ApiError> {
    call.notes.parameter("connectorId", id);
    let found = connector::find_connector(&mut call.work, &call.scope, id)?;
    call.notes.resource(found.arn(), CONNECTOR.cloudtrail);
    Ok(found)
}

/// Settings of a connector that creating and updating one have in common.
#[derive(Default)]
pub struct GivenConnector {
    /// `Url`
    pub url: Option<String>,
    /// `AccessRole`
    pub access_role: Option<String>,
    /// `LoggingRole`
    pub logging_role: Option<String>,
    /// `SftpConfig`
    pub sftp: Option<SftpConnectorConfig>,
    /// `SecurityPolicyName`
    pub security_policy_name: Option<String>,
    /// `IpAddressType`
    pub ip_address_type: Option<String>,
}

impl GivenConnector {
    /// With what a connector has whose creation does not say it.
    #[must_use]
    pub fn or_defaults(mut self) -> Self {
        self.security_policy_name.get_or_insert_with(|| DEFAULT_POLICY.to_owned());
        self
    }

    /// Reads the settings.
    pub fn read(
        self,
        call: &mut Call<'_>,
    ) -> Result<(ConnectorChange, Vec<Permit<action::iam::PassRole>>), ApiError> {
        if let Some(url) = &self.url {
            call.notes.parameter("url", url.as_str());
        }
        if let Some(name) = &self.security_policy_name {
            security_policy(name)?;
            call.notes.parameter("securityPolicyName", name.as_str());
        }
        let access_role = self.access_role.as_deref().map(role_arn).transpose()?;
        if let Some(role) = &access_role {
            call.notes.parameter("accessRole", role.to_string());
        }
        let logging_role = self.logging_role.as_deref().map(role_arn).transpose()?;
        let roles: Vec<_> = access_role.iter().chain(&logging_role).cloned().collect();
        let may_pass = may_pass(call, &roles)?;
        let sftp = self.sftp.unwrap_or_default();
        if sftp.ordered_user_secret_version_stages.is_some() {
            return Err(invalid(
                "OrderedUserSecretVersionStages: the version of the secret with the label AWSCURRENT is read; leave it out",
            ));
        }
        if let Some(secret) = &sftp.user_secret_id {
            call.notes.parameter("userSecretId", secret.as_str());
        }
        let change = ConnectorChange {
            url: self.url,
            access_role,
            logging_role,
            secret: sftp.user_secret_id,
            trusted_host_keys: sftp.trusted_host_keys,
            max_connections: sftp.max_concurrent_connections,
            security_policy: self.security_policy_name,
            address_type: self.ip_address_type,
        };
        Ok((change, may_pass))
    }
}

/// Describes a connector.
pub fn described(call: &Call<'_>, connector: &Connector) -> DescribedConnector {
    let shown = |arn: &str| shown_in(&call.scope.region, arn);
    let keys = connector.trusted_host_keys();
    DescribedConnector {
        arn: connector.arn(),
        connector_id: connector.id().to_owned(),
        url: connector.url().to_owned(),
        access_role: shown(connector.access_role()),
        logging_role: connector.logging_role().map(shown),
        tags: some_tags(connector.tags()),
        sftp_config: SftpConnectorConfig {
            user_secret_id: connector.secret().map(str::to_owned),
            trusted_host_keys: Some(keys.to_vec()).filter(|keys| !keys.is_empty()),
            max_concurrent_connections: Some(connector.max_connections().into()),
            ordered_user_secret_version_stages: None,
        },
        security_policy_name: connector.security_policy().to_owned(),
        egress_type: EGRESS_TYPE.to_owned(),
        status: STATUS.to_owned(),
        ip_address_type: connector.address_type().to_owned(),
    }
}

/// Describes a connector in a list.
pub fn listed(connector: &Connector) -> ListedConnector {
    ListedConnector {
        arn: connector.arn(),
        connector_id: connector.id().to_owned(),
        url: connector.url().to_owned(),
    }
}

/// The result of a file.
pub fn file_result(file: &FileStatus) -> ConnectorFileTransferResult {
    let failure = file.failure.clone();
    let (failure_code, failure_message) = failure.unzip();
    ConnectorFileTransferResult {
        file_path: file.path.clone(),
        status_code: file.status.to_owned(),
        failure_code,
        failure_message,
    }
}

/// A path that the request must have.
pub fn required(path: Option<String>, why: &str) -> Result<String, ApiError> {
    path.ok_or_else(|| invalid(why))
}
