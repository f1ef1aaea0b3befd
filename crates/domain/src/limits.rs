//! Limits on what a caller controls. Numbers are AWS's unless a comment says "Ours". Those that an operator can
//! change are in [`crate::quotas`].

/// Tags on one resource.
pub const MAX_TAGS: usize = 50;
/// Characters of a tag key.
pub const MAX_TAG_KEY: usize = 128;
/// Characters of a tag value.
pub const MAX_TAG_VALUE: usize = 256;
/// Characters of a secret's name.
pub const MAX_SECRET_NAME: usize = 512;
/// Versions of a secret: "around 100".
pub const MAX_SECRET_VERSIONS: usize = 100;
/// Staging labels on all versions of a secret together.
pub const MAX_STAGING_LABELS: usize = 20;
/// Regions that a secret is replicated to. Ours.
pub const MAX_REPLICAS: usize = 32;
/// Attempts at one step of a rotation before it has failed. Ours.
pub const ROTATION_ATTEMPTS: u32 = 5;
/// Items on one page of a list.
pub const MAX_PAGE: usize = 1000;
/// Items on a page by default.
pub const DEFAULT_PAGE: usize = 100;
/// Entries of an encryption context. Ours; AWS limits the whole to 8192 characters.
pub const MAX_CONTEXT_ENTRIES: usize = 128;
/// Characters of an encryption context, keys and values together.
pub const MAX_CONTEXT_CHARS: usize = 8192;
/// Loaded keys that are kept in memory. Ours.
pub const MAX_LOADED_KEYS: usize = 1024;
/// Records whose newest stamp is kept in memory, so that an older one that is put back is recognised: 16 bytes each,
/// and the overhead of a hash map. Ours.
pub const MAX_SEEN_STAMPS: usize = 1 << 19;
/// Days before a key is deleted.
pub const DELETION_WINDOW_DAYS: std::ops::RangeInclusive<i64> = 7..=30;
/// How long an idempotency token of Private CA is remembered, in seconds.
pub const IDEMPOTENCY_SECONDS: i64 = 300;
/// Bytes of a certificate request. AWS accepts 32,768; an SLH-DSA signature alone has 29,792, before base64.
pub const MAX_CSR: usize = 65_536;
/// Bytes of a CA's own certificate. AWS accepts 32,768; see [`MAX_CSR`].
pub const MAX_CA_CERTIFICATE: usize = 65_536;
/// Longest validity of a certificate from a CA for short-lived certificates, in seconds.
pub const SHORT_LIVED_SECONDS: i64 = 7 * 86_400;
/// How long before its issue a certificate becomes valid, in seconds: clocks differ.
pub const BACKDATE_SECONDS: i64 = 3600;
/// Certificates in an imported chain. Ours.
pub const MAX_CHAIN: usize = 16;
/// Access keys of one user: two, so that they can be rotated (IAM quota).
pub const MAX_ACCESS_KEYS_PER_USER: usize = 2;
/// Inline policies of one user or role. Ours.
pub const MAX_POLICIES: usize = 20;
/// Range of `MaxSessionDuration` of a role, in seconds.
pub const MAX_SESSION_SECONDS: std::ops::RangeInclusive<i64> = 3600..=43_200;
/// Shortest session of a role, in seconds.
pub const MIN_SESSION_SECONDS: i64 = 900;
/// How long a request for signatures can be approved and used by default, in minutes. Ours.
pub const SIGNING_APPROVAL_MINUTES: i64 = 1440;
/// Keys that one request for signatures can name. Ours.
pub const SIGNING_REQUEST_KEYS: usize = 4;
/// How long a request for signatures is kept after it has ended, in milliseconds. Ours.
pub const SIGNING_REQUEST_KEPT_MS: i64 = 7 * 86_400_000;
/// Parsed certificates of authorities that are kept in memory. Ours.
pub const MAX_READ_CERTIFICATES: usize = 256;
/// Parsed policies that are kept in memory. Ours.
pub const MAX_CACHED_POLICIES: usize = 1024;
/// Steps that the policies of one decision may take together: a comparison of a character, a character of a value
/// that is read, a pattern or principal that is compared. A decision that needs more is a denial. About a
/// millisecond. Ours.
pub const MAX_POLICY_STEPS: u64 = 1 << 20;
/// Longest value of a condition key that conditions and variables compare, in bytes, by the key in lower case. A
/// policy that compares a longer value denies; other policies are not affected. Ours; CloudTrail keeps 1 KB of a
/// `User-Agent`.
pub const MAX_CONDITION_VALUES: &[(&str, usize)] =
    &[("aws:referer", 2048), ("aws:useragent", 1024), ("outlast:clientcertificatesubject", 4096)];
/// Characters of a principal and of the key id of an SSH certificate. Ours.
pub const MAX_SSH_NAME: usize = 256;
/// How long an SSH certificate of a user lasts by default, in seconds: a working day. Ours.
pub const SSH_USER_SECONDS: i64 = 16 * 3600;
/// How long an SSH certificate of a host lasts by default, in seconds. Ours.
pub const SSH_HOST_SECONDS: i64 = 90 * 86_400;
/// Longest time from now to the end of an SSH certificate, in seconds: ten years. Ours.
pub const MAX_SSH_SECONDS: i64 = 3653 * 86_400;
/// How long before its issue an SSH certificate becomes valid by default, in seconds, as ssh-keygen's does. Ours.
pub const SSH_BACKDATE_SECONDS: i64 = 60;
/// Bytes of the values of all other condition keys: what [`MAX_CONTEXT_CHARS`] can take in UTF-8.
pub const MAX_CONDITION_VALUE: usize = 4 * MAX_CONTEXT_CHARS;
/// Days between automatic rotations.
pub const ROTATION_PERIOD_DAYS: std::ops::RangeInclusive<i64> = 90..=2560;
/// Days between automatic rotations by default.
pub const DEFAULT_ROTATION_PERIOD_DAYS: i64 = 365;
/// Rotations on demand of one key.
pub const MAX_ON_DEMAND_ROTATIONS: usize = 25;
/// How long the parameters for an import are valid, in milliseconds: 24 hours.
pub const IMPORT_PARAMETERS_MS: i64 = 86_400_000;
/// Longest lifetime of imported key material, in milliseconds: 365 days.
pub const MAX_IMPORT_LIFE_MS: i64 = 365 * 86_400_000;
/// Parameters for an import that one key may have open. Ours.
pub const MAX_OPEN_IMPORTS: usize = 16;
/// Pairs of an encryption context constraint of a grant.
pub const MAX_CONSTRAINT_ENTRIES: usize = 8;
/// Characters of an encryption context constraint of a grant.
pub const MAX_CONSTRAINT_CHARS: usize = 384;
/// Longest session that a session of another role starts, in seconds ("role chaining").
pub const MAX_CHAINED_SESSION_SECONDS: i64 = 3600;
/// How long an idempotency token of Certificate Manager is remembered, in seconds: an hour.
pub const ACM_IDEMPOTENCY_SECONDS: i64 = 3600;
/// Names of a certificate in a request to Certificate Manager.
pub const MAX_CERTIFICATE_NAMES: usize = 100;
/// DNS records that are looked up for the certificates that an account has requested in a Region without naming a CA. Ours.
pub const MAX_PENDING_LOOKUPS: usize = 5000;
/// Characters of a name in DNS (RFC 1035, section 2.3.4).
pub const MAX_DNS_NAME: usize = 253;
/// Characters of a common name (RFC 5280, appendix A: ub-common-name).
pub const MAX_COMMON_NAME: usize = 64;
/// Validity of a certificate that Certificate Manager requests from a private CA, in seconds: 13 months.
pub const MANAGED_SECONDS: i64 = 395 * 86_400;
/// How long before its end a certificate is renewed, in seconds.
pub const RENEW_BEFORE_SECONDS: i64 = 60 * 86_400;
/// Interval between attempts to renew a certificate, in milliseconds. Ours.
pub const RENEWAL_RETRY_MS: i64 = 3_600_000;
/// Certificates that are renewed in one round of housekeeping; the rest waits for the next. Ours: making RSA keys
/// takes long, and other work is due, too.
pub const RENEWALS_PER_ROUND: usize = 256;
/// Certificates that are renewed in one step. Ours: making RSA keys takes long.
pub const RENEWALS_AT_ONCE: usize = 8;
/// Bytes of a passphrase for an exported key.
pub const EXPORT_PASSPHRASE: std::ops::RangeInclusive<usize> = 4..=128;
/// How long a certificate that ACME issued is kept after its end, in milliseconds: a year.
pub const KEEP_ENDED_ACME_MS: i64 = 365 * 86_400_000;
/// Nesting of a search's filters. Ours.
pub const MAX_FILTER_DEPTH: usize = 8;
/// Filters of a search, in all its lists. Ours; AWS allows 15 in each list.
pub const MAX_FILTERS: usize = 200;
/// Filters in one list of a search.
pub const MAX_FILTER_LIST: usize = 15;
/// Records that a search reads in one step. Ours.
pub const SEARCH_STEP: usize = 500;
/// Days that a CRL is valid at most (`ExpirationInDays`).
pub const MAX_CRL_DAYS: i64 = 5000;
/// Earlier URLs that a partition of a CRL still names after the authority's configuration changed. Ours.
pub const MAX_CRL_URLS: usize = 4;
/// Validity of an OCSP response by default, in seconds: an hour. Ours.
pub const OCSP_VALIDITY_SECONDS: i64 = 3600;
/// Range that an operator can choose from.
pub const OCSP_VALIDITY_RANGE: std::ops::RangeInclusive<i64> = 60..=7 * 86_400;
/// Validity of an OCSP responder's certificate, in seconds: 30 days. Ours.
pub const RESPONDER_SECONDS: i64 = 30 * 86_400;
/// Bytes of an audit report: it is made in memory. Ours.
pub const MAX_REPORT_BYTES: usize = 256 * 1024 * 1024;
/// Interval between attempts to make an OCSP responder for an authority whose name constraints forbid one, in
/// milliseconds: a day. Ours.
pub const RESPONDER_RETRY_MS: i64 = 86_400_000;
/// First interval before a CRL is written to its bucket again, in milliseconds; it doubles. Ours.
pub const FIRST_RETRY_MS: i64 = 1000;
/// Longest such interval: AWS tries every 15 minutes.
pub const LAST_RETRY_MS: i64 = 15 * 60_000;
/// A rate: a burst, and a number per second from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Size of the burst.
    pub at_once: i64,
    /// Number per second.
    pub per_second: i64,
}
/// OCSP responses that a server signs for one client only: with a nonce, about several certificates, or about one
/// that was not issued. Ours.
pub const OCSP_SIGNINGS: Rate = Rate { at_once: 500, per_second: 100 };
/// The same for one peer: a fifth of it. Beyond it responses come without a nonce, which RFC 9654, section 2.1,
/// allows. Ours.
pub const OCSP_SIGNINGS_OF_PEER: Rate = Rate { at_once: 100, per_second: 20 };
/// Peers whose rate is remembered. Ours.
pub const PEERS_REMEMBERED: usize = 4096;
/// Such responses that one audit event announces: after a crash it is unknown how many of them were signed. Ours.
pub const OCSP_ANNOUNCED: u64 = 1000;
/// Time that one announcement and one sum cover, in milliseconds: a minute. Ours.
pub const OCSP_WINDOW_MS: i64 = 60_000;
/// Peers that a sum names. Ours.
pub const OCSP_PEERS_NAMED: usize = 32;
/// Sums that are written in one transaction. Ours.
pub const OCSP_SUMS_AT_ONCE: usize = 100;
/// Timestamps that a server makes for strangers, by default: each has an audit event of about 1.5 kB. Ours.
pub const TIMESTAMPS: Rate = Rate { at_once: 500, per_second: 100 };
/// The same for one peer. Ours.
pub const TIMESTAMPS_OF_PEER: Rate = Rate { at_once: 50, per_second: 10 };
/// How far the times of an authority with strict order may run ahead of the clock, in milliseconds. Ours.
pub const TIMESTAMPS_AHEAD_MS: i64 = 1000;
/// Bytes of OCSP responses in the cache. Ours.
pub const MAX_KEPT_ANSWERS_BYTES: usize = 128 * 1024 * 1024;
/// Bytes of request paths in that cache. Ours.
pub const MAX_KEPT_PATHS_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of CRLs in the cache. Ours.
pub const MAX_KEPT_CRLS_BYTES: usize = 64 * 1024 * 1024;
/// How long a cached OCSP response is sent without asking a database that other servers share, in milliseconds. Ours.
pub const MAX_EPOCH_AGE_MS: i64 = 10_000;
/// Names in one ACME order. Ours, as all limits of ACME.
pub const MAX_ACME_IDENTIFIERS: usize = 100;
/// Orders of one ACME account that are neither valid nor invalid.
pub const MAX_ACME_OPEN_ORDERS: usize = 300;
/// ACME accounts of one endpoint.
pub const MAX_ACME_ACCOUNTS: u64 = 100_000;
/// ACME accounts that one external account binding can make, so that no binding uses an endpoint's up.
pub const MAX_ACME_BINDING_ACCOUNTS: u64 = 1000;
/// Challenges of one ACME account that are waiting for validation.
pub const MAX_ACME_PENDING_CHALLENGES: usize = 200;
/// How far in the past a certificate from ACME may start, in seconds: one hour.
pub const MAX_ACME_BACKDATING_SECONDS: i64 = 3600;
/// Contacts of one ACME account.
pub const MAX_ACME_CONTACTS: usize = 10;
/// Characters of such a contact.
pub const MAX_ACME_CONTACT: usize = 320;
/// ACME endpoints of one account in a Region.
pub const MAX_ACME_ENDPOINTS: usize = 100;
/// External account bindings of one ACME endpoint.
pub const MAX_ACME_BINDINGS: usize = 1000;
/// Domain validations of one ACME endpoint.
pub const MAX_ACME_VALIDATIONS: usize = 1000;
/// How long an ACME nonce is valid, in milliseconds: one hour.
pub const ACME_NONCE_MS: i64 = 3_600_000;
/// How long an order and its authorizations stay open, in milliseconds: seven days.
pub const ACME_ORDER_MS: i64 = 7 * 86_400_000;
/// How long an idempotency token of an ACME resource is remembered, in milliseconds: one day.
pub const ACME_TOKEN_MS: i64 = 86_400_000;
/// How long a domain validation, and that of a requested certificate, is attempted, in milliseconds: AWS's 72 hours.
pub const ACME_VALIDATION_MS: i64 = 72 * 3_600_000;
/// How long a server may work on a validation before another one takes over, in milliseconds.
pub const ACME_LEASE_MS: i64 = 60_000;
/// Attempts to validate a challenge.
pub const MAX_ACME_ATTEMPTS: u32 = 3;
/// Bytes of a certificate request in an ACME finalization.
pub const MAX_ACME_CSR: usize = 32 * 1024;
/// Longest lifetime of an external account binding, in milliseconds: ten years.
pub const MAX_ACME_BINDING_MS: i64 = 3650 * 86_400_000;
/// How long an ACME order is kept after its end, with its authorizations, in milliseconds: 90 days.
pub const KEEP_ENDED_ACME_ORDER_MS: i64 = 90 * 86_400_000;
/// Certificates in the chain of a request of Roles Anywhere.
pub const MAX_X509_CHAIN: usize = 5;
/// Bytes of a request for a session of Roles Anywhere, besides its headers. Ours.
pub const MAX_SESSION_REQUEST: usize = 32 * 1024;
/// Certificates of a trust anchor. Ours.
pub const MAX_ANCHOR_CERTIFICATES: usize = 100;
/// Mapping rules for one field of certificates. Ours.
pub const MAX_MAPPING_RULES: usize = 50;
/// Certificates, and sets of instance properties, that are remembered of a subject. Ours.
pub const MAX_SUBJECT_CREDENTIALS: usize = 10;
/// How long an event is delivered again after failures, in milliseconds: EventBridge's 24 hours.
pub const KEEP_EVENT_MS: i64 = 86_400_000;
/// Events that wait for one target; the oldest beyond are given up. Ours, as are the following.
pub const MAX_WAITING_EVENTS: u64 = 10_000;
/// Events that one step reads or gives up.
pub const EVENTS_PAGE: usize = 500;
/// Characters of a text in an event.
pub const MAX_EVENT_TEXT: usize = 1024;
/// How long after an end it is still told, in milliseconds: 14 days, AWS's number for trust anchors.
pub const ENDED_EVENT_MS: i64 = 14 * 86_400_000;
/// How long it is remembered what was told, in milliseconds: 60 days, longer than any period in which it is told.
pub const KEEP_EVENT_NOTE_MS: i64 = 60 * 86_400_000;
/// Days before the end of a CA's certificate at which events begin by default.
pub const AUTHORITY_EVENT_DAYS: u32 = 90;
/// How far the clock may differ from its reference before sweeps stop, in milliseconds: five minutes, the same as the
/// tolerance for signed requests. Ours, as are the following.
pub const CLOCK_TOLERANCE_MS: i64 = 300_000;
/// Interval between log lines about a clock that stays wrong, in milliseconds.
pub const CLOCK_LOG_INTERVAL_MS: i64 = 600_000;
/// Without a database's clock, a server waits this fraction of the time since the last audit event before it sweeps:
/// an eighth.
pub const CLOCK_WAIT_SHARE: i64 = 8;
/// The longest such wait, in milliseconds: a day, as late as AWS may be with deleting a key.
pub const MAX_CLOCK_WAIT_MS: i64 = 86_400_000;
/// Heartbeats that one read returns. A killed server's heartbeat stays until somebody notices that the server is
/// gone.
pub const MAX_HEARTBEATS: usize = 1000;
/// Entries of the directory mappings of a user. Ours; AWS has 50,000.
pub const MAX_HOME_MAPPINGS: usize = 1000;
/// Bytes of the answer of an identity provider. Ours.
pub const MAX_PROVIDER_ANSWER: usize = 256 << 10;
/// Failed logins at an SFTP server that have an event of their own, in each window. Ours.
pub const SFTP_FAILURES_RECORDED: u64 = 60;
/// The window in which failed logins at an SFTP server are counted, in milliseconds. Ours.
pub const SFTP_FAILURES_WINDOW_MS: i64 = 60_000;
/// Users and peers that the sum of failed logins names. Ours.
pub const SFTP_FAILURES_NAMED: usize = 20;
/// Characters of a name that a peer gives, in events. Ours.
pub const SFTP_USER_QUOTED: usize = 100;
/// Bytes of a path, in events. Ours.
pub const SFTP_PATH_QUOTED: usize = 1024;
/// Executions of a workflow that are stored, those that have ended within [`EXECUTION_KEPT_MS`] included. Beyond it none begins,
/// and from half of it on those that end are forgotten at once. Ours.
pub const EXECUTIONS_PER_WORKFLOW: u64 = 10_000;
/// How long an execution that has ended is shown, in milliseconds: a day. Ours; AWS promises it for running ones only.
pub const EXECUTION_KEPT_MS: i64 = 86_400_000;
/// Lease of a step of a workflow, in milliseconds; it is prolonged while the step is carried out. Ours.
pub const EXECUTION_LEASE_MS: i64 = 10_000;
/// Seconds that a custom step has, unless the workflow says otherwise: that of AWS's console.
pub const CUSTOM_STEP_SECONDS: u32 = 60;
/// Seconds of the session of a function's program, at least: the shortest that STS has.
pub const FUNCTION_SESSION_SECONDS: i64 = 900;
/// Bytes of the key of a file that a workflow makes (AWS: "Naming Amazon S3 objects").
pub const MAX_FILE_KEY: usize = 1024;
/// Trusted host keys of a connector.
pub const MAX_TRUSTED_HOST_KEYS: usize = 10;
/// `MaxConcurrentConnections` of a connector.
pub const CONNECTOR_CONNECTIONS: std::ops::RangeInclusive<i64> = 1..=5;
/// Files of one transfer.
pub const MAX_TRANSFER_FILES: usize = 10;
/// Files and directories in a list of a remote directory (`MaxItems`).
pub const MAX_LISTED_ITEMS: u32 = 200_000;
/// The same by default.
pub const DEFAULT_LISTED_ITEMS: u32 = 1000;
/// Jobs of one connector that wait or run.
pub const MAX_CONNECTOR_JOBS: u64 = 1000;
/// How long a job waits before it has failed, and how long it may run, in milliseconds: 12 hours.
pub const CONNECTOR_JOB_MS: i64 = 12 * 3_600_000;
/// How long the results of a job are kept after the request, in milliseconds: 7 days.
pub const CONNECTOR_RESULTS_MS: i64 = 7 * 86_400_000;
/// Lease of a job, which its server renews, in milliseconds. Ours.
pub const CONNECTOR_LEASE_MS: i64 = 60_000;
/// Characters of the message of a failure. Ours.
pub const MAX_FAILURE_MESSAGE: usize = 1024;
/// Characters of `Username`, `PrivateKey` and `Password` in the secret of a connector.
pub const MAX_CONNECTOR_USER: usize = 100;
/// See [`MAX_CONNECTOR_USER`].
pub const MAX_CONNECTOR_KEY: usize = 8192;
/// See [`MAX_CONNECTOR_USER`].
pub const MAX_CONNECTOR_PASSWORD: usize = 1024;
