//! The settings, one row each. To add one: its row here, and the code that uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use outlast_domain::limits;
use outlast_ledger::limits as ledger_limits;
use outlast_negotiate::Rules;
use outlast_net::acme;
use serde::Deserialize;

use super::row::{Group, Row, help};
use super::value::{EventTargets, Located};
use crate::values::{self, ListenAddress};

/// Default port of the APIs.
pub(crate) const PORT: u16 = 8443;

settings! {
    /// Where the records are stored and what opens them, for all commands that work on a store.
    Store in "" {
        /// Where to keep the records: sqlite, or a URL such as postgres://USER@HOST/DATABASE, which several servers may
        /// share [default: sqlite, in the data folder].
        #[arg(hide_env_values = true)]
        store: String, "store", "OUTLAST_STORE";
        /// What wraps the store's root key: file:PATH, passphrase:SOURCE (env:NAME, file:PATH, or nothing, to be asked)
        /// or pkcs11:URI [default: file:root.key in the data folder].
        #[arg(hide_env_values = true)]
        root_key: Located, "root-key", "OUTLAST_ROOT_KEY";
    }
}

settings! {
    /// Address of the APIs.
    Api in "" {
        /// Address, or host name, and port [default: {}]; port 0 picks a free one.
        listen: ListenAddress = ListenAddress(SocketAddr::from(([127, 0, 0, 1], PORT))), "listen", "OUTLAST_LISTEN";
    }
}

settings! {
    /// Certificates of the server, and what it negotiates.
    Tls in "" {
        /// Security policy: see `outlast policy list` [default: {}].
        #[arg(value_name = "NAME", value_parser = values::tls_policies(), hide_possible_values = true)]
        policy: String = Rules::default().policy.name.to_owned(), "policy", "OUTLAST_POLICY";
        /// How to apply the policy's post-quantum groups: require, prefer, allow or off [default: the policy's own,
        /// which is prefer for most].
        #[arg(value_parser = values::modes(), hide_possible_values = true)]
        mode: String, "mode", "OUTLAST_MODE";
        /// Kind of the TLS certificate: ecdsa-p256, ecdsa-p384, ml-dsa-44, ml-dsa-65 or ml-dsa-87 for closed
        /// environments, or dual: ML-DSA-65 for clients that offer it, and ECDSA for the others [default: ecdsa-p256].
        tls_cert: String, "tls-cert", "OUTLAST_TLS_CERT";
        /// Certificate chain, leaf first, instead of the server's own certificate; twice for two, the preferred first.
        /// Read again when the files change, and at SIGHUP.
        #[arg(value_name = "FILE", value_delimiter = ',')]
        tls_cert_file: Vec<PathBuf>, "tls-cert-file", "OUTLAST_TLS_CERT_FILE", reread;
        /// Its private key, not encrypted; once for each --tls-cert-file.
        #[arg(value_name = "FILE", value_delimiter = ',')]
        tls_key_file: Vec<PathBuf>, "tls-key-file", "OUTLAST_TLS_KEY_FILE", reread;
        /// Another DNS name or address in the TLS certificate; may be repeated.
        #[arg(value_delimiter = ',')]
        tls_names: Vec<String>, "tls-name", "OUTLAST_TLS_NAMES";
    }
}

settings! {
    /// HTTP/3, plain HTTP for revocation, limits, and the URLs in certificates.
    Network in "" {
        /// HTTP/3 at the same port over UDP: on or off [default: on if the port is free].
        #[arg(value_name = "on|off")]
        http3: String, "http3", "OUTLAST_HTTP3";
        /// Connections that one peer (an IPv4 address or an IPv6 network of 64 bits) may have of the 4096 at each
        /// listener. Raise it if all clients come from one, such as a NAT or a load balancer [default: 512].
        #[arg(value_name = "NUMBER")]
        connections_per_peer: usize, "connections-per-peer", "OUTLAST_CONNECTIONS_PER_PEER";
        /// Address and port of plain HTTP for CRLs and OCSP, or off [default: the next port at the same address].
        #[arg(value_name = "ADDRESS|off")]
        revocation_listen: String, "revocation-listen", "OUTLAST_REVOCATION_LISTEN";
        /// URL of plain HTTP in certificates, such as http://pki.example.com [default: the address, or localhost].
        revocation_url: String, "revocation-url", "OUTLAST_REVOCATION_URL";
        /// Validity of an OCSP response, in seconds [default: {}].
        #[arg(value_name = "SECONDS")]
        ocsp_validity: i64 = limits::OCSP_VALIDITY_SECONDS, "ocsp-validity", "OUTLAST_OCSP_VALIDITY";
        /// URL at which clients reach this server, such as https://outlast.example.com [default: the address].
        service_url: String, "service-url", "OUTLAST_SERVICE_URL";
    }
}

settings! {
    /// How ACME clients' names are validated.
    Acme in "acme" {
        /// DNS server for ACME's challenges, domain validations and the names of requested certificates [default: the system's].
        #[arg(value_name = "ADDRESS")]
        dns: SocketAddr, "acme-dns", "OUTLAST_ACME_DNS";
        /// Port of http-01 on the hosts to validate [default: {}].
        #[arg(value_name = "PORT")]
        http_port: u16 = acme::Settings::default().http_port, "acme-http-port", "OUTLAST_ACME_HTTP_PORT";
        /// Port of tls-alpn-01 on the hosts to validate [default: {}].
        #[arg(value_name = "PORT")]
        tls_port: u16 = acme::Settings::default().tls_port, "acme-tls-port", "OUTLAST_ACME_TLS_PORT";
        /// Network that hosts to validate must be in, such as 10.0.0.0/8; may be repeated [default: any but this
        /// machine's own, such as 127.0.0.0/8, which must be named].
        #[arg(value_name = "ACME_NETWORKS", value_delimiter = ',')]
        networks: Vec<String>, "acme-network", "OUTLAST_ACME_NETWORKS";
    }
}

settings! {
    /// Certificates whose requests name no CA.
    file Acm in "acm" {
        /// ARN of the private CA that issues in place of Amazon's public one, by account and Region:
        /// { "123456789012" = { us-east-1 = "arn:aws:acm-pca:..." } }. It must permit acm.amazonaws.com to issue (CreatePermission)
        /// [default: none, and such requests are refused].
        default_authority: BTreeMap<String, BTreeMap<String, String>>;
        /// Domains that are approved without a proof in DNS, by account: { "123456789012" = ["corp.example"] }. Each stands
        /// for itself, the names below it, and wildcards [default: none].
        approved_domains: BTreeMap<String, BTreeSet<String>>;
    }
}

settings! {
    /// The log.
    Log in "" {
        /// What to log to stderr: error, warn, info, debug, or directives such as outlast_net=debug
        /// [default: {}].
        log: String = "info".to_owned(), "log", "OUTLAST_LOG";
    }
}

settings! {
    /// Client certificates that are accepted.
    Clients in "" {
        /// Ask clients for certificates, and accept those issued below the CAs in this PEM file or folder.
        #[arg(value_name = "FILE")]
        client_ca: PathBuf, "client-ca", "OUTLAST_CLIENT_CA", reread;
        /// Whether a client must have a certificate: require or request [default: require].
        #[arg(value_name = "MODE")]
        client_auth: String, "client-auth", "OUTLAST_CLIENT_AUTH";
        /// CRL for client certificates; may be repeated. Read again when the file changes.
        #[arg(value_name = "FILE", value_delimiter = ',')]
        client_crls: Vec<PathBuf>, "client-crl", "OUTLAST_CLIENT_CRLS", reread;
    }
}

settings! {
    /// Metrics.
    Metrics in "" {
        /// Address and port where Prometheus reads /metrics over plain HTTP, such as 127.0.0.1:9464, or off [default:
        /// off]. Metrics are also pushed by OTLP if OTEL_EXPORTER_OTLP_ENDPOINT is set.
        #[arg(value_name = "ADDRESS|off")]
        metrics_listen: String, "metrics-listen", "OUTLAST_METRICS_LISTEN";
    }
}

settings! {
    /// The ledger of connections.
    Ledger in "" {
        /// Folder for the ledger of connections, or off [default: ledger in the data folder].
        #[arg(value_name = "DIR|off")]
        ledger: Located, "ledger", "OUTLAST_LEDGER";
        /// Days to keep the ledger, at least 1 [default: {}].
        #[arg(value_name = "DAYS")]
        ledger_days: u32 = ledger_limits::KEEP_DAYS, "ledger-days", "OUTLAST_LEDGER_DAYS";
        /// Largest size of the ledger in bytes, at least 1000000, above which the oldest records are deleted [default: {}].
        #[arg(value_name = "BYTES")]
        ledger_bytes: u64 = ledger_limits::TOTAL_BYTES, "ledger-bytes", "OUTLAST_LEDGER_BYTES";
    }
}

settings! {
    /// What Private CA claims about the storage of authorities' keys.
    file KeyStorage in "" {
        /// Standard that the token with the root key is certified for: a KeyStorageSecurityStandard of Private CA,
        /// such as FIPS_140_2_LEVEL_3_OR_HIGHER [default: nothing is claimed].
        key_storage_standard: String;
    }
}

settings! {
    /// Witnesses of the audit log, its readers, and its retention.
    file Audit in "audit" {
        /// Witnesses that cosign the log's heads, each a verifier key and a URL, separated by a space.
        witnesses: Vec<String>;
        /// Number of them that must cosign a head for verifiers to accept it [default: all].
        quorum: usize;
        /// PEM file with the roots of witnesses at https://.
        witness_ca: PathBuf;
        /// Whether to serve heads and tiles of hashes to everyone, below /tlog/ [default: {}].
        publish: bool = false;
        /// ARNs of the users and roles that may read entries there; each needs the permission outlast:GetAuditEntries, too.
        readers: Vec<String>;
        /// Days after which events are exported and pruned; requires archive [default: never].
        retention_days: u32;
        /// Folder for the exports; it must exist.
        archive: PathBuf;
    }
}

settings! {
    /// Witnesses of the artifact log, and who may read it.
    file ArtifactLog in "artifact_log" {
        /// Witnesses that cosign the log's heads, each a verifier key and a URL, separated by a space.
        witnesses: Vec<String>;
        /// Number of them that must cosign a head for verifiers to accept it [default: all].
        quorum: usize;
        /// PEM file with the roots of witnesses at https://.
        witness_ca: PathBuf;
        /// Whether to serve the log to everyone, below /log/ [default: {}].
        publish: bool = false;
    }
}

settings! {
    /// Backups that the server makes regularly.
    file Backup in "backup" {
        /// Folder for the backups; it must exist.
        folder: PathBuf;
        /// Hours between two backups [default: {}].
        every_hours: u32 = 24;
        /// Maximum number of backups to keep [default: all].
        keep: usize;
        /// Days after which a backup is removed [default: never].
        keep_days: u32;
    }
}

settings! {
    /// Storage of audit reports and CRLs: folders, or buckets behind an S3 endpoint.
    file Buckets in "buckets" {
        /// Folder with the buckets [default: buckets in the data folder].
        folder: PathBuf;
        /// URL of an S3 endpoint, such as https://s3.example.com, instead of a folder.
        endpoint: String;
        /// Region for which to sign requests to it [default: {}].
        region: String = "us-east-1".to_owned();
        /// Access key id to sign them with.
        access_key_id: String;
        /// File with its secret access key [default: the value of OUTLAST_BUCKETS_SECRET_ACCESS_KEY].
        secret_access_key_file: PathBuf;
        /// PEM file with the certificates to trust [default: those that the system trusts].
        ca_bundle: PathBuf;
        /// Whether to allow plain HTTP beyond this machine [default: {}].
        allow_plain: bool = false;
        /// Buckets that an account may use, by account: its authorities, and the users, connectors and workflows of its Transfer servers, as in { "123456789012" = ["reports"] }.
        /// Accounts that are not listed may use none [default: any account, any bucket].
        allow: BTreeMap<String, BTreeSet<String>>;
    }
}

settings! {
    /// Rotation of secrets.
    file Rotation in "rotation" {
        /// TOML file that says what each rotation function is: see docs/guide/secrets.md [default: none].
        functions: PathBuf;
    }
}

settings! {
    /// Events for programs outside, in EventBridge's shape.
    file Events in "events" {
        /// Where events go, by a name of your choice: { pager = { url = "https://..." }, mail = { program = ["/usr/local/bin/mail"] } }.
        /// See docs/guide/events.md [default: nowhere, and none are kept].
        targets: EventTargets;
        /// Days before the end of a private CA's certificate at which its daily events begin [default: {}].
        authority_days: u32 = limits::AUTHORITY_EVENT_DAYS;
    }
}

settings! {
    /// Sessions of workloads by certificate: IAM Roles Anywhere.
    file RolesAnywhere in "rolesanywhere" {
        /// Whether a revocation of a certificate also ends the sessions that run by it, not only new ones [default: {}].
        end_sessions_on_revocation: bool = false;
    }
}

settings! {
    /// The time-stamping authorities at /tsa.
    file Tsa in "tsa" {
        /// The authorities, by names of your choice that are their paths below /tsa/: { release = { key = "arn:aws:kms:...:alias/tsa",
        /// policies = "1.3.6.1.4.1.99999.1" } }. See docs/guide/timestamps.md [default: none].
        authorities: BTreeMap<String, BTreeMap<String, String>>;
        /// Name of the authority at /tsa itself [default: the only one].
        default_authority: String;
        /// ARNs of the users and roles that may ask, with signed requests; each needs the permission outlast:GetTimestamp, too
        /// [default: everybody].
        callers: Vec<String>;
        /// How far the clock may be off, in milliseconds, as tokens say [default: they say nothing].
        accuracy_ms: u32;
        /// Whether the times of an authority's tokens ascend strictly; not with several servers on one database [default: {}].
        ordering: bool = false;
        /// File that the time service touches whenever it has synchronised the clock, such as /run/systemd/timesync/synchronized.
        /// Without a recent one there are no tokens [default: the clock is believed].
        synchronised_file: PathBuf;
        /// Age in seconds up to which that file is recent [default: {}].
        synchronised_seconds: u32 = 7200;
        /// Tokens a second for everybody together, if everybody may ask [default: 100].
        per_second: u32;
        /// Tokens a second for one address; five times as many at once [default: 10].
        per_address: u32;
    }
}

settings! {
    /// SFTP for the users of Transfer Family.
    Sftp in "sftp" {
        /// Address and port of SFTP, such as 127.0.0.1:2222, or off [default: off].
        #[arg(value_name = "ADDRESS|off")]
        address: String, "sftp-listen", "OUTLAST_SFTP_LISTEN";
        /// Id of the Transfer server that it serves [default: the only one that is online, if all are of one account].
        #[arg(value_name = "ID")]
        transfer_server: String, "sftp-server", "OUTLAST_SFTP_SERVER";
        /// Users in a file, instead of those of the Transfer Family API: see docs/guide/sftp.md [default: none].
        #[arg(value_name = "FILE")]
        users: PathBuf, "sftp-users", "OUTLAST_SFTP_USERS", reread;
        /// How the server's security policy is applied to SSH: require, prefer, allow or off [default: as the policy says].
        #[arg(value_name = "MODE")]
        ssh_mode: String, "sftp-mode", "OUTLAST_SFTP_MODE";
        /// Whether an uploaded file becomes visible when it is closed, whole, or not at all [default: {}].
        #[arg(value_name = "true|false")]
        atomic_uploads: bool = false, "sftp-atomic-uploads", "OUTLAST_SFTP_ATOMIC_UPLOADS";
        /// CAs of identity providers, in PEM: servers whose users a provider knows need it [default: none is asked].
        #[arg(value_name = "FILE")]
        identity_ca_bundle: PathBuf, "sftp-identity-ca-bundle", "OUTLAST_SFTP_IDENTITY_CA_BUNDLE";
        /// Public keys of the authorities whose SSH certificates log users in, one a line, as of OpenSSH's TrustedUserCAKeys; read again when the file changes [default: none].
        #[arg(value_name = "FILE")]
        trusted_user_ca_keys: PathBuf, "sftp-trusted-user-ca-keys", "OUTLAST_SFTP_TRUSTED_USER_CA_KEYS", reread;
        /// Revoked keys and certificates: an OpenSSH key revocation list, or public keys, one a line; read again when the file changes [default: none].
        #[arg(value_name = "FILE")]
        revoked_keys: PathBuf, "sftp-revoked-keys", "OUTLAST_SFTP_REVOKED_KEYS", reread;
        /// SSH certificate that is shown beside the host key that it is for; may be repeated; read again when the file changes [default: none].
        #[arg(value_name = "FILE", value_delimiter = ',')]
        host_certificates: Vec<PathBuf>, "sftp-host-certificate", "OUTLAST_SFTP_HOST_CERTIFICATES", reread;
        /// TOML file that says what each function that decides about logins is: see docs/guide/transfer.md [default: none].
        #[arg(value_name = "FILE")]
        identity_functions: PathBuf, "sftp-identity-functions", "OUTLAST_SFTP_IDENTITY_FUNCTIONS";
        /// TOML file that says what each function is that workflows call: see docs/guide/workflows.md [default: none].
        #[arg(value_name = "FILE")]
        workflow_functions: PathBuf, "sftp-workflow-functions", "OUTLAST_SFTP_WORKFLOW_FUNCTIONS";
        /// Seconds from the beginning of a connection to the end of authentication [default: {}].
        #[arg(value_name = "SECONDS")]
        login_grace_seconds: u32 = 60, "sftp-login-grace", "OUTLAST_SFTP_LOGIN_GRACE";
        /// Seconds without a request after which a session ends [default: {}].
        #[arg(value_name = "SECONDS")]
        idle_seconds: u32 = 1800, "sftp-idle", "OUTLAST_SFTP_IDLE";
        /// Connections, at most [default: 8192].
        #[arg(value_name = "NUMBER")]
        connections: usize, "sftp-connections", "OUTLAST_SFTP_CONNECTIONS";
        /// Sessions of one user, at most [default: 1024].
        #[arg(value_name = "NUMBER")]
        sessions_per_user: usize, "sftp-sessions-per-user", "OUTLAST_SFTP_SESSIONS_PER_USER";
    }
}

settings! {
    /// SFTP connectors: transfers to and from servers outside.
    Connectors in "connectors" {
        /// Where connectors may connect to, such as sftp.example.com:22, *.example.com or 10.1.0.0/16:22; may be repeated. A host
        /// permits the public addresses of its name, a network the addresses in it; those of this machine must be named
        /// by themselves, such as 127.0.0.1 [default: all public addresses, and no others].
        #[arg(value_name = "DESTINATIONS", value_delimiter = ',')]
        destinations: Vec<String>, "connector-destination", "OUTLAST_CONNECTOR_DESTINATIONS";
    }
}

settings! {
    /// Uploads over SFTP.
    file SftpUploads in "sftp_uploads" {
        /// Program, with its words, that gets each upload as its standard input before it appears; only if it ends with 0, the upload
        /// appears. {path} is a path where it can open the content [default: none].
        scan: Vec<String>;
        /// Seconds after which that program is killed, and the upload refused [default: {}].
        scan_timeout_seconds: u32 = 60;
        /// ARN of a KMS key that signs each upload before it appears [default: none].
        sign: String;
        /// Folder of the signatures, whose names are the digests of the files [default: upload-signatures in the data folder].
        signatures: PathBuf;
    }
}

settings! {
    /// The server as a process.
    file Process in "process" {
        /// Whether a debugger of the same user may read the server's memory, and a crash may write it to a core dump: it
        /// contains keys [default: {}].
        allow_dumps: bool = false;
    }
}

/// Section whose keys are the names of quotas (`outlast_domain::quotas`).
pub(super) const LIMITS: &str = "limits";

macro_rules! groups {
    ($(#[$before:meta] $first:ident: $one:ident,)+ ; $(#[$after:meta] $second:ident: $two:ident,)+) => {
        /// All settings, from one source or several.
        #[derive(clap::Args, Clone, Default)]
        pub(crate) struct Settings {
            $(#[$before] pub(crate) $first: $one,)+
            /// Trust the clock even if it is far from the last audit event, after a wrong clock was corrected. Otherwise a
            /// server on SQLite erases nothing while the clock is behind that event, and waits up to a day if it is ahead.
            // It applies to one start, so it has no key in the settings file.
            #[arg(long, env = "OUTLAST_TRUST_CLOCK")]
            pub(crate) trust_clock: bool,
            $(#[$after] pub(crate) $second: $two,)+
            /// Quotas of accounts, by name.
            #[arg(skip)]
            pub(crate) limits: BTreeMap<String, u64>,
        }

        impl Settings {
            /// The values set here, completed by those of `other`.
            pub(crate) fn or(self, other: Self) -> Self {
                Self {
                    trust_clock: self.trust_clock || other.trust_clock,
                    $($first: self.$first.or(other.$first),)+
                    $($second: self.$second.or(other.$second),)+
                    limits: if self.limits.is_empty() { other.limits } else { self.limits },
                }
            }

            /// Parses the text of the settings file of a data folder. Does not look for unknown keys.
            pub(super) fn read(text: &str, folder: &Path) -> Result<Self, toml::de::Error> {
                #[derive(Deserialize)]
                struct Limits {
                    #[serde(default)]
                    limits: BTreeMap<String, u64>,
                }
                Ok(Self {
                    trust_clock: false,
                    $($first: $one::read(text)?.below(folder),)+
                    $($second: $two::read(text)?.below(folder),)+
                    limits: toml::from_str::<Limits>(text)?.limits,
                })
            }

            /// Each row with its value, if it is set.
            pub(crate) fn shown(&self) -> Vec<(&'static Row, Option<String>)> {
                let values = [$(self.$first.shown(),)+ $(self.$second.shown()),+];
                Self::rows().zip(values.into_iter().flatten()).collect()
            }

            /// All groups, in the order of the options.
            pub(super) fn groups() -> impl Iterator<Item = Group> {
                [$($one::GROUP,)+ $($two::GROUP),+].into_iter()
            }

            /// All rows.
            pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
                Self::groups().flat_map(|group| group.rows)
            }
        }
    };
}

groups! {
    #[command(flatten)] store: Store,
    #[command(flatten)] api: Api,
    #[command(flatten)] tls: Tls,
    #[command(flatten)] network: Network,
    #[command(flatten)] acme: Acme,
    #[command(flatten)] sftp: Sftp,
    #[command(flatten)] connectors: Connectors,
    ;
    #[command(flatten)] log: Log,
    #[command(flatten)] clients: Clients,
    #[command(flatten)] metrics: Metrics,
    #[command(flatten)] ledger: Ledger,
    #[arg(skip)] acm: Acm,
    #[arg(skip)] key_storage: KeyStorage,
    #[arg(skip)] audit: Audit,
    #[arg(skip)] artifact_log: ArtifactLog,
    #[arg(skip)] backup: Backup,
    #[arg(skip)] buckets: Buckets,
    #[arg(skip)] rotation: Rotation,
    #[arg(skip)] events: Events,
    #[arg(skip)] roles_anywhere: RolesAnywhere,
    #[arg(skip)] tsa: Tsa,
    #[arg(skip)] sftp_uploads: SftpUploads,
    #[arg(skip)] process: Process,
}

#[cfg(test)]
mod tests {
    use outlast_net::certificate::KINDS;
    use outlast_net::limits::{MAX_CONNECTIONS, PEER_SHARE};

    use super::*;

    #[test]
    fn defaults_that_rows_tell_in_words_are_those_of_the_code() {
        let told = |name: &str| {
            let row = Settings::rows().find(|row| row.name() == name).unwrap();
            row.meaning_and_default().1
        };
        assert_eq!(told("tls_cert"), KINDS[0].name);
        assert_eq!(told("connections_per_peer"), (MAX_CONNECTIONS / PEER_SHARE).to_string());
    }

    /// `name()` finds a row, and `clap`'s id of an option is its key.
    #[test]
    fn no_two_rows_have_one_name() {
        let names = |only_options: bool| {
            let rows = Settings::rows().filter(move |row| !only_options || row.given_by.is_some());
            rows.map(move |row| if only_options { row.key.to_owned() } else { row.name() })
        };
        for only_options in [false, true] {
            let mut all: Vec<String> = names(only_options).collect();
            all.sort();
            let count = all.len();
            all.dedup();
            assert_eq!(all.len(), count);
        }
    }
}
