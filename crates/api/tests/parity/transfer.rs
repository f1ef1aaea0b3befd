//! Transfer Family.

use std::collections::BTreeSet;

use outlast_api::model::connectors::{EGRESS_TYPE, STATUS};
use outlast_api::model::transfer::{
    DOMAIN, ENDPOINT_TYPES, HOME_TYPES, PROTOCOL, STATES, STORAGE_TYPE,
};
use outlast_api::model::workflows::{FAILED, OVERWRITE, SUCCEEDED};
use outlast_domain::transfer::connector::STATUSES;
use outlast_domain::transfer::{Cause, Deed, Methods, Provider, Status};

use super::set;

/// The values that are served of enumerations.
pub(super) fn enumerations() -> Vec<(&'static str, BTreeSet<String>)> {
    vec![
        ("As2Transport", set([])),
        ("CommunicationMode", set([])),
        ("CustomStepStatus", set([SUCCEEDED, FAILED])),
        ("ConnectorEgressType", set([EGRESS_TYPE])),
        ("ConnectorStatus", set([STATUS])),
        // Stored and returned.
        ("ConnectorsIpAddressType", set(["IPV4", "DUALSTACK"])),
        ("DirectoryListingOptimization", set(["ENABLED", "DISABLED"])),
        ("Domain", set([DOMAIN])),
        ("EncryptionType", set([])),
        ("EndpointType", set(ENDPOINT_TYPES)),
        ("ExecutionErrorType", set(Cause::ALL.map(Cause::name))),
        ("ExecutionStatus", set(Status::ALL.map(Status::name))),
        ("HomeDirectoryType", set(HOME_TYPES)),
        ("HostKeyStorageType", set([STORAGE_TYPE])),
        ("IdentityProviderType", set(Provider::NAMES)),
        ("IpAddressType", set(["IPV4", "DUALSTACK"])),
        ("MapType", set(["FILE", "DIRECTORY"])),
        ("OverwriteExisting", set(OVERWRITE)),
        ("Protocol", set([PROTOCOL])),
        ("ProxyMode", set(["NONE"])),
        ("SecurityPolicyProtocol", set([PROTOCOL])),
        ("SecurityPolicyResourceType", set(["SERVER", "CONNECTOR"])),
        ("SetStatOption", set(["DEFAULT", "ENABLE_NO_OP"])),
        ("SftpAuthenticationMethods", set(Methods::ALL.map(|(_, name)| name))),
        ("State", set(STATES)),
        ("TransferTableStatus", set(STATUSES)),
        ("TlsSessionResumptionMode", set(["DISABLED", "ENABLED", "ENFORCED"])),
        ("WorkflowStepType", set(Deed::NAMES)),
    ]
}
