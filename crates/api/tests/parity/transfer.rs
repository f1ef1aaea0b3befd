//! Transfer Family.

use std::collections::BTreeSet;

use outlast_api::model::connectors::{EGRESS_TYPE, STATUS};
use outlast_api::model::transfer::{
    DOMAIN, ENDPOINT_TYPES, HOME_TYPES, PROTOCOL, STATES, STORAGE_TYPE,
};
use outlast_domain::transfer::connector::STATUSES;
use outlast_domain::transfer::{Methods, Provider};

use super::set;

/// The values that are served of enumerations.
pub(super) fn enumerations() -> Vec<(&'static str, BTreeSet<String>)> {
    vec![
        ("As2Transport", set([])),
        ("CommunicationMode", set([])),
        ("ConnectorEgressType", set([EGRESS_TYPE])),
        ("ConnectorStatus", set([STATUS])),
        // Stored and returned.
        ("ConnectorsIpAddressType", set(["IPV4", "DUALSTACK"])),
        ("DirectoryListingOptimization", set(["ENABLED", "DISABLED"])),
        ("Domain", set([DOMAIN])),
        ("EndpointType", set(ENDPOINT_TYPES)),
        ("HomeDirectoryType", set(HOME_TYPES)),
        ("HostKeyStorageType", set([STORAGE_TYPE])),
        ("IdentityProviderType", set(Provider::NAMES)),
        ("IpAddressType", set(["IPV4", "DUALSTACK"])),
        ("MapType", set(["FILE", "DIRECTORY"])),
        ("Protocol", set([PROTOCOL])),
        ("ProxyMode", set(["NONE"])),
        ("SecurityPolicyProtocol", set([PROTOCOL])),
        ("SecurityPolicyResourceType", set(["SERVER", "CONNECTOR"])),
        ("SetStatOption", set(["DEFAULT", "ENABLE_NO_OP"])),
        ("SftpAuthenticationMethods", set(Methods::ALL.map(|(_, name)| name))),
        ("State", set(STATES)),
        ("TransferTableStatus", set(STATUSES)),
        ("TlsSessionResumptionMode", set(["DISABLED", "ENABLED", "ENFORCED"])),
    ]
}
