//! Quotas of accounts: AWS's, with AWS's defaults, which the operator can change.
//!
//! A quota is one row of [`QUOTAS`]. Everything that creates a counted resource calls [`Work::admit`] first; the
//! commit checks the count again, so that simultaneous creations cannot exceed a quota together.
//!
//! [`Work::admit`]: crate::work::Work::admit

use std::collections::BTreeMap;

use outlast_store::{Store, StoreError};
use serde::Serialize;

use crate::arn::Scope;
use crate::records;

/// A limit on the number of resources of a kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Quota {
    /// Name in the settings.
    pub name: &'static str,
    /// Limit by default.
    pub default: u64,
    /// The resources, for a sentence.
    pub what: &'static str,
    /// Their owner, for the same sentence.
    pub of: &'static str,
    /// What a caller who has reached the limit can do.
    pub instead: &'static str,
    /// AWS's name of the quota; empty if AWS has none.
    pub aws: &'static str,
    /// Kind of the records that the store counts ([`crate::records::RecordKind::counted`]); empty if a separate
    /// record has the number.
    pub kind: &'static str,
}

/// KMS keys in any state.
pub const KMS_KEYS: Quota = Quota {
    name: "kms_keys",
    default: 100_000,
    what: "KMS keys",
    of: "of an account in a Region",
    instead: "Schedule the deletion of keys that are not needed",
    aws: "AWS KMS keys",
    kind: "kms/key/",
};
/// Aliases.
pub const ALIASES_PER_KMS_KEY: Quota = Quota {
    name: "aliases_per_kms_key",
    default: 50,
    what: "aliases",
    of: "of a KMS key",
    instead: "Delete aliases that are not needed",
    aws: "Aliases per KMS key",
    kind: "",
};
/// Grants.
pub const GRANTS_PER_KMS_KEY: Quota = Quota {
    name: "grants_per_kms_key",
    default: 50_000,
    what: "grants",
    of: "of a KMS key",
    instead: "Revoke or retire grants that are not needed",
    aws: "Grants per KMS key",
    kind: "",
};
/// Private CAs, including those that can still be restored.
pub const PRIVATE_CAS: Quota = Quota {
    name: "private_cas",
    default: 200,
    what: "private certificate authorities",
    of: "of an account in a Region",
    instead: "Delete CAs that are not needed (a deleted CA counts until it can no longer be restored)",
    aws: "Number of private certificate authorities (CAs)",
    kind: "ca/authority/",
};
/// Certificates that a private CA has issued, including expired ones.
pub const CERTIFICATES_PER_PRIVATE_CA: Quota = Quota {
    name: "certificates_per_private_ca",
    default: 1_000_000,
    what: "certificates",
    of: "of a private certificate authority",
    instead: "Issue from another CA",
    aws: "Number of private certificates per private CA",
    kind: "ca/certificate/",
};
/// Certificates that were imported into Certificate Manager. (Those that a private CA signed count for that CA and
/// not towards AWS's quota "ACM certificates"; there are no others.)
pub const IMPORTED_CERTIFICATES: Quota = Quota {
    name: "imported_certificates",
    default: 2500,
    what: "imported certificates",
    of: "of an account in a Region",
    instead: "Delete certificates that are not needed",
    aws: "Imported certificates",
    kind: "acm/imported/",
};
/// Secrets, including those that can still be restored.
pub const SECRETS: Quota = Quota {
    name: "secrets",
    default: 500_000,
    what: "secrets",
    of: "of an account in a Region",
    instead: "Delete secrets that are not needed",
    aws: "Secrets",
    kind: "secrets/secret/",
};
/// Sessions of roles that have not expired.
pub const SESSIONS: Quota = Quota {
    name: "sessions",
    default: 100_000,
    what: "sessions of roles",
    of: "of an account",
    instead: "Try again when some have ended",
    aws: "",
    kind: "iam/session-of/",
};

/// Trust anchors of Roles Anywhere.
pub const TRUST_ANCHORS: Quota = Quota {
    name: "trust_anchors",
    default: 50,
    what: "trust anchors",
    of: "of an account in a Region",
    instead: "Delete trust anchors that are not needed",
    aws: "Trust anchors",
    kind: "rolesanywhere/trust-anchor/",
};
/// Profiles of Roles Anywhere.
pub const PROFILES: Quota = Quota {
    name: "profiles",
    default: 250,
    what: "profiles",
    of: "of an account in a Region",
    instead: "Delete profiles that are not needed",
    aws: "Profiles",
    kind: "rolesanywhere/profile/",
};
/// CRLs of a trust anchor.
pub const CRLS_PER_TRUST_ANCHOR: Quota = Quota {
    name: "crls_per_trust_anchor",
    default: 2,
    what: "CRLs",
    of: "of a trust anchor",
    instead: "Update or delete CRLs that are not needed",
    aws: "Certificate revocation lists",
    kind: "",
};
/// Subjects that have authenticated with a certificate.
pub const SUBJECTS: Quota = Quota {
    name: "subjects",
    default: 100_000,
    what: "subjects of certificates",
    of: "of an account in a Region",
    instead: "Use certificates with subjects that are known",
    aws: "",
    kind: "rolesanywhere/subject/",
};

/// Requests for approval of signatures, including those that have ended in the last days.
pub const SIGNING_REQUESTS: Quota = Quota {
    name: "signing_requests",
    default: 1000,
    what: "requests for approval of signatures",
    of: "of an account in a Region",
    instead: "Try again when some are gone; they go a week after they have ended",
    aws: "",
    kind: "kms/signing-request/",
};

/// SFTP servers.
pub const TRANSFER_SERVERS: Quota = Quota {
    name: "transfer_servers",
    default: 50,
    what: "servers",
    of: "of an account in a Region",
    instead: "Delete servers that are not needed",
    aws: "Servers per account",
    kind: "transfer/server/",
};
/// Users of an SFTP server.
pub const USERS_PER_SERVER: Quota = Quota {
    name: "users_per_server",
    default: 10_000,
    what: "users",
    of: "of a server",
    instead: "Delete users that are not needed",
    aws: "Service-managed users per server",
    kind: "transfer/user/",
};
/// Host keys of an SFTP server.
pub const HOST_KEYS_PER_SERVER: Quota = Quota {
    name: "host_keys_per_server",
    default: 10,
    what: "host keys",
    of: "of a server",
    instead: "Delete host keys that are not needed",
    aws: "Host keys per server",
    kind: "transfer/host-key/",
};
/// Public keys of a user of an SFTP server.
pub const SSH_KEYS_PER_USER: Quota = Quota {
    name: "ssh_keys_per_user",
    default: 10,
    what: "SSH public keys",
    of: "of a user",
    instead: "Delete keys that are not needed",
    aws: "SSH keys per user",
    kind: "",
};

/// Workflows.
pub const WORKFLOWS: Quota = Quota {
    name: "workflows",
    default: 10,
    what: "workflows",
    of: "of an account in a Region",
    instead: "Delete workflows that are not needed",
    aws: "Workflows per account",
    kind: "transfer/workflow/",
};
/// Connectors.
pub const CONNECTORS: Quota = Quota {
    name: "connectors",
    default: 100,
    what: "connectors",
    of: "of an account in a Region",
    instead: "Delete connectors that are not needed",
    aws: "SFTP connectors per account",
    kind: "transfer/connector/",
};
/// Jobs of a connector that wait or run.
pub const JOBS_PER_CONNECTOR: Quota = Quota {
    name: "jobs_per_connector",
    default: 1000,
    what: "unfinished jobs",
    of: "of a connector",
    instead: "Try again when some have ended",
    aws: "Maximum queue size for pending file transfers",
    kind: "transfer/connector-task/",
};
/// Jobs of connectors, including those that have ended in the last days.
pub const CONNECTOR_JOBS: Quota = Quota {
    name: "connector_jobs",
    default: 100_000,
    what: "jobs of connectors",
    of: "of an account in a Region",
    instead: "Try again when some are gone; they go a week after their request",
    aws: "",
    kind: "transfer/connector-job/",
};

/// All quotas.
pub const QUOTAS: &[Quota] = &[
    KMS_KEYS,
    ALIASES_PER_KMS_KEY,
    GRANTS_PER_KMS_KEY,
    PRIVATE_CAS,
    CERTIFICATES_PER_PRIVATE_CA,
    IMPORTED_CERTIFICATES,
    SECRETS,
    SESSIONS,
    TRUST_ANCHORS,
    PROFILES,
    CRLS_PER_TRUST_ANCHOR,
    SUBJECTS,
    SIGNING_REQUESTS,
    TRANSFER_SERVERS,
    USERS_PER_SERVER,
    HOST_KEYS_PER_SERVER,
    SSH_KEYS_PER_USER,
    WORKFLOWS,
    CONNECTORS,
    JOBS_PER_CONNECTOR,
    CONNECTOR_JOBS,
];

/// Limits that the operator has set instead of the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quotas(BTreeMap<&'static str, u64>);

impl Quotas {
    /// Sets the limit. Returns whether there is a quota of this name.
    pub fn set(&mut self, name: &str, most: u64) -> bool {
        let quota = QUOTAS.iter().find(|quota| quota.name == name);
        if let Some(quota) = quota {
            self.0.insert(quota.name, most);
        }
        quota.is_some()
    }

    /// The limit in force.
    pub fn get(&self, quota: &Quota) -> u64 {
        self.0.get(quota.name).copied().unwrap_or(quota.default)
    }
}

/// Use of a quota by one owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Used {
    /// Name of the quota.
    pub limit: &'static str,
    /// The owner: an account, an account in a Region, or the ARN of a private CA or of an SFTP server.
    pub of: String,
    /// Number of resources.
    pub used: u64,
}

/// The use of every quota by every owner, in the order of [`QUOTAS`]. Reads one record for each line.
pub fn used(store: &dyn Store) -> Result<Vec<Used>, StoreError> {
    let mut all = Vec::new();
    for quota in QUOTAS.iter().filter(|quota| !quota.kind.is_empty()) {
        let mut after = String::new();
        while let Some((record_key, _)) = store.scan(quota.kind, &after, 1)?.pop() {
            let tally = records::kind(&record_key).and_then(|kind| kind.tally_of(&record_key));
            let Some(prefix) = tally else { break };
            let of = owner(quota, prefix.strip_prefix(quota.kind).unwrap_or_default());
            all.push(Used { limit: quota.name, of, used: store.count(&prefix)? });
            // Sorts after all records of the owner: keys are ASCII.
            after = format!("{prefix}\u{7f}");
        }
    }
    Ok(all)
}

/// The owner of the records below these parts of their keys.
fn owner(quota: &Quota, parts: &str) -> String {
    let parts: Vec<_> = parts.trim_end_matches('/').split('/').collect();
    match parts.as_slice() {
        [account, region] => format!("account {account} in {region}"),
        [account, region, id] => {
            let scope = Scope { account: (*account).to_owned(), region: (*region).to_owned() };
            match quota.kind.starts_with("transfer/") {
                true => scope.arn("transfer", &format!("server/{id}")),
                false => scope.arn("acm-pca", &format!("certificate-authority/{id}")),
            }
        }
        parts => format!("account {}", parts.join("/")),
    }
}

/// The limit is reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "The limit of {most} {what} {of} is reached. {instead}, or ask the operator of this service to raise {name} in \
     [limits]."
)]
pub struct Reached {
    name: &'static str,
    what: &'static str,
    of: &'static str,
    instead: &'static str,
    most: u64,
}

impl Reached {
    pub(crate) fn new(quota: &Quota, most: u64) -> Self {
        let Quota { name, what, of, instead, .. } = *quota;
        Self { name, what, of, instead, most }
    }
}

#[cfg(test)]
mod tests {
    use outlast_store::memory::MemoryStore;

    use super::*;
    use crate::Fault;
    use crate::records::KINDS;
    use crate::seal::RootKey;
    use crate::work::Work;

    #[derive(Debug, PartialEq)]
    enum Refused {
        Fault(Fault),
        Reached(Reached),
    }

    impl From<Fault> for Refused {
        fn from(fault: Fault) -> Self {
            Self::Fault(fault)
        }
    }

    impl From<Reached> for Refused {
        fn from(reached: Reached) -> Self {
            Self::Reached(reached)
        }
    }

    #[test]
    fn what_is_made_in_one_go_counts_together() {
        let (store, root) = (MemoryStore::new(), RootKey::generate().unwrap());
        let mut quotas = Quotas::default();
        quotas.set(SESSIONS.name, 3);
        let mut work = Work::new(&store, &root, 0).limited(&quotas);
        for id in ["a", "b", "c"] {
            work.admit::<Refused>(&SESSIONS, &["1"]).unwrap();
            work.create(&format!("iam/session-of/1/{id}"), &()).unwrap();
        }
        let refused = work.admit::<Refused>(&SESSIONS, &["1"]).unwrap_err();
        assert_eq!(refused, Refused::Reached(Reached::new(&SESSIONS, 3)));
        work.admit::<Refused>(&SESSIONS, &["11"]).unwrap();
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        let mut work = Work::new(&store, &root, 0).limited(&quotas);
        work.put("iam/session-of/1/a", &()).unwrap();
        assert_eq!(work.admit::<Refused>(&SESSIONS, &["1"]).unwrap_err(), refused);
        work.delete("iam/session-of/1/b");
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        assert_eq!(store.count("iam/session-of/1/").unwrap(), 2);
        let mut work = Work::new(&store, &root, 0).limited(&quotas);
        work.admit::<Refused>(&SESSIONS, &["1"]).unwrap();
    }

    #[test]
    fn what_is_counted_has_a_quota_and_the_other_way_round() {
        // Events wait for a target of the operator's, not for an account.
        let by_target = crate::events::outbox::PREFIX;
        let counted = KINDS.iter().filter(|row| row.counted > 0).map(|row| row.key);
        // Executions begin with uploads: beyond their limit none begins, and nobody is refused.
        let by_workflow = "transfer/execution/";
        let counted: Vec<_> =
            counted.filter(|key| ![by_target, by_workflow].contains(key)).collect();
        let mut limited: Vec<_> =
            QUOTAS.iter().map(|quota| quota.kind).filter(|kind| !kind.is_empty()).collect();
        limited.sort_unstable();
        assert_eq!(counted, limited);
    }

    #[test]
    fn a_quota_is_what_was_said_or_the_default() {
        let mut quotas = Quotas::default();
        for quota in QUOTAS {
            assert_eq!(quotas.get(quota), quota.default);
            assert!(quotas.set(quota.name, quota.default + 1), "{}", quota.name);
            assert_eq!(quotas.get(quota), quota.default + 1, "{}", quota.name);
        }
        assert!(!quotas.set("kms-keys", 1));
    }
}
