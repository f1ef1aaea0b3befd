//! The rows of record kinds, in the order of their keys.

use super::Protection::{Ordered, Plain, Sealed, Unordered};
use super::{Owner, Protection, RecordKind, Sample};
use crate::ca::{crl, ocsp};
use crate::heartbeat;
use crate::seal::{CANARY, ROOT, WRAPPED};
use crate::tsa::LAST_TIMES;

const KEY: &str = "kms/key/{account}/{region}/{key}";
const NO_SECRET: &str = "the secret that it belongs to is missing";
const NO_SERVER: &str = "the server that it belongs to is missing";
const NO_CONNECTOR: &str = "the connector that it belongs to is missing";
const NO_PAIR: &str = "the record that this secret belongs to is missing";

/// All kinds.
pub static KINDS: &[RecordKind] = &[
    row("acm/account/", "account/region", Ordered, "the settings of Certificate Manager of account {account} in {region}")
        .registered(),
    row("acm/certificate/", "account/region/id", Ordered, "the certificate arn:{partition}:acm:{region}:{account}:certificate/{id}"),
    row("acm/ended/", "account/region/id", Ordered, "the note that the certificate arn:{partition}:acm:{region}:{account}:certificate/{id} has ended")
        .of("acm/certificate/{account}/{region}/{id}", "its certificate is missing"),
    row("acm/imported/", "account/region/id", Ordered, "the note that the certificate arn:{partition}:acm:{region}:{account}:certificate/{id} was imported")
        .of("acm/certificate/{account}/{region}/{id}", "its certificate is missing")
        .counted(2),
    row("acm/material/", "account/region/id/key", Sealed, "the private key of the certificate arn:{partition}:acm:{region}:{account}:certificate/{id}"),
    row("acm/renewal/", "account/region/id", Ordered, "the renewal of the certificate arn:{partition}:acm:{region}:{account}:certificate/{id}")
        .of("acm/certificate/{account}/{region}/{id}", "its certificate is missing"),
    row("acm/serial/", "account/region/authority/serial", Ordered, "the index entry of serial number {serial} of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{authority}"),
    row("acm/text/", "account/region/id", Ordered, "the text of the certificate arn:{partition}:acm:{region}:{account}:certificate/{id}"),
    row("acm/token/", "account/region/operation/digest", Ordered, "an idempotency token of {operation} of account {account} in {region}"),
    row("acm/validation-key", "", Sealed, "the key of Certificate Manager's validation records"),
    row("acm/validation-task/", "account/region/id/number", Ordered, "the look-up of a name of the certificate arn:{partition}:acm:{region}:{account}:certificate/{id}")
        .of("acm/certificate/{account}/{region}/{id}", "its certificate is missing"),
    row("acme/account-count/", "endpoint", Ordered, "the number of accounts of the ACME endpoint {endpoint}"),
    row("acme/account-key/", "endpoint/thumbprint", Ordered, "the key {thumbprint} of an account of the ACME endpoint {endpoint}")
        .registered(),
    row("acme/account/", "endpoint/id", Ordered, "the account {id} of the ACME endpoint {endpoint}").registered(),
    row("acme/authorization/", "endpoint/holder/id", Ordered, "the authorization {id} of the ACME endpoint {endpoint}"),
    row("acme/binding-accounts/", "endpoint/id", Ordered, "the number of accounts of the binding {id} of the ACME endpoint {endpoint}"),
    row("acme/binding-secret/", "endpoint/id", Sealed, "the MAC key of the binding {id} of the ACME endpoint {endpoint}")
        .of("acme/binding/{endpoint}/{id}", NO_PAIR),
    row("acme/binding/", "endpoint/id", Ordered, "the binding {id} of the ACME endpoint {endpoint}").registered(),
    row("acme/certificate-digest/", "endpoint/digest", Ordered, "the index entry of a certificate of the ACME endpoint {endpoint}"),
    row("acme/certificate/", "endpoint/id", Ordered, "the certificate {id} of the ACME endpoint {endpoint}"),
    row("acme/challenge-task/", "endpoint/holder/id", Ordered, "the challenge {id} of the ACME endpoint {endpoint}"),
    row("acme/deleted/", "endpoint", Ordered, "the note that the ACME endpoint {endpoint} was deleted"),
    row("acme/domain-task/", "endpoint/id", Ordered, "the domain validation {id} of the ACME endpoint {endpoint}"),
    row("acme/endpoint/", "account/region/id", Ordered, "the ACME endpoint arn:{partition}:acm:{region}:{account}:acme-endpoint/{id}")
        .registered(),
    row("acme/home/", "endpoint", Ordered, "the location of the ACME endpoint {endpoint}"),
    row("acme/nonce-key", "", Sealed, "the key of ACME's nonces"),
    row("acme/nonce/", "nonce", Ordered, "a nonce of ACME"),
    row("acme/open-order/", "endpoint/holder/id", Ordered, "the note that the order {id} of the ACME endpoint {endpoint} is open"),
    row("acme/order/", "endpoint/holder/id", Ordered, "the order {id} of the ACME endpoint {endpoint}"),
    row("acme/token/", "account/region/operation/digest", Ordered, "an idempotency token of {operation} of account {account} in {region}"),
    row("acme/validation-of/", "endpoint/domain", Ordered, "the index entry of {domain} of the ACME endpoint {endpoint}"),
    row("acme/validation/", "endpoint/id", Ordered, "the validation {id} of the ACME endpoint {endpoint}"),
    row("artifacts/cosigned-head", "", Ordered, "the artifact log's head with its cosignatures")
        .is("artifacts/cosigned-head", r#"{"head":"","count":0}"#),
    row("artifacts/entry/", "index", Ordered, "the entry {index} of the artifact log"),
    row("artifacts/head", "", Ordered, "the artifact log's head").registered(),
    row("artifacts/key", "", Sealed, "the keys that sign the artifact log"),
    row("artifacts/tile/", "level/index", Ordered, "tile {index} of level {level} of the artifact log"),
    row("audit/alarm", "", Sealed, "the alarm of the audit log").is("audit/alarm", "a sample"),
    row("audit/checkpoint/", "sequence", Ordered, "the signature over the audit events up to {sequence}, of an earlier version")
        .is("audit/checkpoint/00000000000000000001", r#"{"sequence":1,"chain":"","at_ms":0,"key_id":"","signature":""}"#),
    row("audit/cosigned-head", "", Ordered, "the audit log's head with its cosignatures")
        .is("audit/cosigned-head", r#""log.example.com/sample\n0\n""#),
    row("audit/current-key", "", Ordered, "the name of the audit log's key, of an earlier version").is("audit/current-key", r#""0011""#),
    row("audit/head", "", Sealed, "the audit log's sealed head"),
    row("audit/key/", "id", Sealed, "the audit log's key {id}, of an earlier version").is("audit/key/0011", "a sample"),
    row("audit/last", "", Sealed, "the audit log's last signature, of an earlier version").is("audit/last", "a sample"),
    row("audit/log-key", "", Sealed, "the keys that sign the audit log"),
    row("audit/public-key/", "id", Ordered, "the audit log's public key {id}, of an earlier version").is("audit/public-key/0011", r#""""#),
    row("audit/records", "", Sealed, "the register of the records that decide who may do what"),
    row("audit/signed-head", "", Ordered, "the audit log's signed head"),
    row("audit/tile/", "level/index", Ordered, "tile {index} of level {level} of the audit log"),
    row("ca/authority/", "account/region/id", Ordered, "the CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}")
        .registered()
        .counted(2),
    row("ca/certificate/", "account/region/id/serial", Ordered, "the certificate arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}/certificate/{serial}")
        .counted(3),
    row("ca/chain/", "account/region/id/chain", Ordered, "a certificate chain of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}"),
    row(crl::DER, "crl", Plain, "the CRL of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{authority}")
        .because("a signed CRL, whose digest is in an authenticated record")
        .named_by("ca/crl/{crl}")
        .of("ca/crl/{crl}", "its CA is missing"),
    row("ca/crl-due/", "account/region/id", Ordered, "the date of the next CRL of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}"),
    row(crl::MARKS, "account/region/id/part", Unordered, "the note that a CRL of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id} is due")
        .because("revocations at the same time do not wait for each other; an older mark asks for the same CRL"),
    row("ca/crl-publish/", "crl", Ordered, "the note that the CRL of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{authority} is for a bucket")
        .named_by("ca/crl/{crl}"),
    row("ca/crl/", "crl", Ordered, "the state of the CRL of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{authority}")
        .named_by("ca/crl/{crl}"),
    row("ca/material/", "account/region/id", Sealed, "the private key of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}"),
    row(ocsp::EPOCHS, "account/region/id", Unordered, "the OCSP epoch of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}")
        .because("revocations at the same time do not wait for each other; only its version counts"),
    row("ca/ocsp-issuer/", "hash/issuer", Ordered, "an index entry for OCSP of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{authority}")
        .named_by("ca/ocsp-issuer/{hash}/{issuer}"),
    row("ca/permission/", "account/region/id/principal", Ordered, "a permission of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}")
        .registered()
        .of("ca/authority/{account}/{region}/{id}", "its CA is missing"),
    row("ca/policy/", "account/region/id", Ordered, "the policy of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}")
        .registered()
        .of("ca/authority/{account}/{region}/{id}", "its CA is missing"),
    row("ca/report-pending/", "account/region/id", Ordered, "the note that an audit report of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id} is to be written"),
    row("ca/report/", "account/region/id/report", Ordered, "the audit report {report} of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}"),
    row("ca/responder-certificate/", "account/region/id", Ordered, "the OCSP responder's certificate of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}"),
    row("ca/responder-due/", "account/region/id", Ordered, "the date of the next OCSP responder of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}"),
    row("ca/responder-key/", "account/region/id/key", Sealed, "the OCSP responder's private key of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}"),
    row("ca/revoked/", "account/region/id/serial", Ordered, "the revocation of the certificate arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}/certificate/{serial}"),
    row("ca/served/", "id", Ordered, "the location of CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id}")
        .named_by("ca/served/{id}"),
    row("ca/shared/", "with/region/account/id", Ordered, "the note for account {with} that CA arn:{partition}:acm-pca:{region}:{account}:certificate-authority/{id} is shared with it")
        .registered(),
    row("ca/token/", "account/region/operation/digest", Ordered, "an idempotency token of {operation} of account {account} in {region}"),
    row("events/outbox/", "target/id", Ordered, "the event {id} that waits for the target {target}").counted(1),
    row("events/told/", "kind/subject", Ordered, "the note of the last event {kind} about {subject}"),
    row("iam/access-key-secret/", "id", Sealed, "the secret of the access key {id}").of("iam/access-key/{id}", NO_PAIR),
    row("iam/access-key/", "id", Ordered, "the access key {id}").registered(),
    row("iam/role/", "account/name", Ordered, "the role arn:aws:iam::{account}:role/{name}").registered(),
    row("iam/session-of/", "account/id", Ordered, "the note that the session {id} is of account {account}")
        .of("iam/session/{id}", "its session is missing")
        .counted(1),
    row("iam/session-secret/", "id", Sealed, "the secret of the session {id}").of("iam/session/{id}", NO_PAIR),
    row("iam/session/", "id", Ordered, "the session {id}"),
    row("iam/user/", "account/name", Ordered, "the user arn:aws:iam::{account}:user/{name}").registered(),
    row("kms/alias-count/", "account/region/key", Ordered, "the number of aliases of the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .of(KEY, "its key is missing"),
    row("kms/alias-of/", "account/region/key/name", Ordered, "the index entry of an alias of the key arn:{partition}:kms:{region}:{account}:key/{key}"),
    row("kms/alias/", "account/region/name", Ordered, "the alias arn:{partition}:kms:{region}:{account}:{name}").registered(),
    row("kms/by-grantee/", "account/region/key/principal/operation/constraints/grant", Ordered, "the index entry of the grant {grant} of the key arn:{partition}:kms:{region}:{account}:key/{key}"),
    row("kms/grant-count/", "account/region/key", Ordered, "the number of grants of the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .registered()
        .of(KEY, "its key is missing"),
    row("kms/grant-named/", "account/region/key/digest", Ordered, "the index entry of a named grant of the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .registered(),
    row("kms/grant-of/", "account/region/principal/grant", Ordered, "the index entry of a grant that a principal of account {account} may retire in {region}")
        .registered(),
    row("kms/grant-to/", "account/region/key/principal/grant", Ordered, "the index entry of a grant of the key arn:{partition}:kms:{region}:{account}:key/{key}, of an earlier version")
        .registered(),
    row("kms/grant/", "account/region/key/grant", Ordered, "the grant {grant} of the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .registered()
        .of(KEY, "its key is missing"),
    row("kms/import-secret/", "account/region/key/token", Sealed, "the wrapping key for an import into the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .of("kms/import/{account}/{region}/{key}/{token}", NO_PAIR),
    row("kms/import/", "account/region/key/token", Ordered, "the parameters for an import into the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .of(KEY, "its key is missing"),
    row("kms/key/", "account/region/key", Ordered, "the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .registered()
        .counted(2),
    row("kms/last-use/", "account/region/key", Plain, "the last use of the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .because("written by each use of a key, decides nothing, and names the audit event that proves it")
        .of(KEY, "its key is missing"),
    row("kms/material/", "account/region/key/material", Sealed, "the key material {material} of the key arn:{partition}:kms:{region}:{account}:key/{key}"),
    row("kms/signing-message/", "account/region/key/principal/message", Ordered, "the index entry of a message that waits for approval, of the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .registered(),
    row("kms/signing-request/", "account/region/id", Ordered, "the request for approval arn:{partition}:outlast:{region}:{account}:signing-request/{id}")
        .registered()
        .counted(2),
    row(CANARY, "", Sealed, "the record of how the store is protected"),
    row(ROOT, "", Ordered, "the record of the root keys"),
    row(WRAPPED, "id", Plain, "the wrapped root key {id}").because("wrapped for its place by the key-encryption key"),
    row("meta/store", "", Ordered, "the record of the store's creation"),
    row("rolesanywhere/alias/", "account/region/kind/name", Ordered, "the alias arn:{partition}:rolesanywhere:{region}:{account}:alias/{kind}/{name}")
        .registered(),
    row("rolesanywhere/crl/", "account/region/id", Ordered, "the imported CRL arn:{partition}:rolesanywhere:{region}:{account}:crl/{id}")
        .registered(),
    row("rolesanywhere/profile/", "account/region/id", Ordered, "the profile arn:{partition}:rolesanywhere:{region}:{account}:profile/{id}")
        .registered()
        .counted(2),
    row("rolesanywhere/subject/", "account/region/id", Ordered, "the subject arn:{partition}:rolesanywhere:{region}:{account}:subject/{id}")
        .counted(2),
    row("rolesanywhere/trust-anchor/", "account/region/id", Ordered, "the trust anchor arn:{partition}:rolesanywhere:{region}:{account}:trust-anchor/{id}")
        .registered()
        .counted(2),
    row("secrets/created/", "account/region/created/name", Ordered, "the index entry of the secret {name} of account {account} in {region}")
        .of("secrets/secret/{account}/{region}/{name}", NO_SECRET),
    row("secrets/policy/", "account/region/name", Ordered, "the policy of the secret {name} of account {account} in {region}")
        .registered()
        .often_absent()
        .of("secrets/secret/{account}/{region}/{name}", NO_SECRET),
    row("secrets/rotation/", "account/region/name", Ordered, "the next step of the rotation of the secret {name} of account {account} in {region}")
        .of("secrets/secret/{account}/{region}/{name}", NO_SECRET),
    row("secrets/secret/", "account/region/name", Ordered, "the secret {name} of account {account} in {region}")
        .counted(2),
    row("secrets/value/", "account/region/suffix/number/name", Ordered, "a value of the secret arn:{partition}:secretsmanager:{region}:{account}:secret:{name}-{suffix}")
        .of("secrets/secret/{account}/{region}/{name}", NO_SECRET),
    row(heartbeat::PREFIX, "id", Ordered, "the heartbeat of the server {id}")
        .is("server/heartbeat/0011", r#"{"id":"0011","host":"a","process":1,"started_ms":0,"beat_ms":0,"beats":1}"#),
    row("tls/certificate/", "kind/role", Ordered, "the server's own TLS certificate of kind {kind}, {role}"),
    row("tls/key/", "kind/role", Sealed, "the private key of the server's own TLS certificate of kind {kind}, {role}"),
    row("tls/ticket-keys", "", Sealed, "the keys of TLS session tickets"),
    row("transfer/connector-job/", "account/region/connector/id", Ordered, "the job {id} of the connector arn:{partition}:transfer:{region}:{account}:connector/{connector}")
        .counted(2),
    row("transfer/connector-lease/", "account/region/connector", Ordered, "the leases of jobs of the connector arn:{partition}:transfer:{region}:{account}:connector/{connector}")
        .of("transfer/connector/{account}/{region}/{connector}", NO_CONNECTOR),
    row("transfer/connector-task/", "account/region/connector/id", Ordered, "the note that the job {id} of the connector arn:{partition}:transfer:{region}:{account}:connector/{connector} has not ended")
        .of("transfer/connector-job/{account}/{region}/{connector}/{id}", "its job is missing")
        .counted(3),
    row("transfer/connector/", "account/region/id", Ordered, "the connector arn:{partition}:transfer:{region}:{account}:connector/{id}")
        .registered()
        .counted(2),
    row("transfer/execution-task/", "account/region/workflow/id", Ordered, "the next step of the execution {id} of the workflow arn:{partition}:transfer:{region}:{account}:workflow/{workflow}")
        .of("transfer/execution/{account}/{region}/{workflow}/{id}", "its execution is missing"),
    row("transfer/execution/", "account/region/workflow/id", Ordered, "the execution {id} of the workflow arn:{partition}:transfer:{region}:{account}:workflow/{workflow}")
        .counted(3),
    row("transfer/host-key-secret/", "account/region/server/id", Sealed, "the private key of the host key arn:{partition}:transfer:{region}:{account}:host-key/{server}/{id}")
        .of("transfer/host-key/{account}/{region}/{server}/{id}", NO_PAIR),
    row("transfer/host-key/", "account/region/server/id", Ordered, "the host key arn:{partition}:transfer:{region}:{account}:host-key/{server}/{id}")
        .registered()
        .of("transfer/server/{account}/{region}/{server}", NO_SERVER)
        .counted(3),
    row("transfer/server/", "account/region/id", Ordered, "the server arn:{partition}:transfer:{region}:{account}:server/{id}")
        .registered()
        .counted(2),
    row("transfer/user/", "account/region/server/name", Ordered, "the user arn:{partition}:transfer:{region}:{account}:user/{server}/{name}")
        .registered()
        .of("transfer/server/{account}/{region}/{server}", NO_SERVER)
        .counted(3),
    row("transfer/workflow/", "account/region/id", Ordered, "the workflow arn:{partition}:transfer:{region}:{account}:workflow/{id}")
        .registered()
        .counted(2),
    row(LAST_TIMES, "account/region/key", Unordered, "the time of the last timestamp by the key arn:{partition}:kms:{region}:{account}:key/{key}")
        .because("timestamps at the same time do not wait for each other; a restarted server begins a second later")
        .is("tsa/last/123456789012/eu-west-1/00000000-0000-0000-0000-000000000000", "0"),
    row("witness/key", "", Sealed, "the witness's key").is("witness/key", "a sample"),
    row("witness/log/", "hash", Sealed, "the witness's state of a log").is("witness/log/00", "a sample"),
    row("witness/name", "", Sealed, "the witness's name").is("witness/name", "a sample"),
];

const fn row(
    key: &'static str,
    below: &'static str,
    protection: Protection,
    title: &'static str,
) -> RecordKind {
    RecordKind {
        key,
        below,
        protection,
        why: "",
        is_registered: false,
        is_often_absent: false,
        title,
        named_by: "",
        owner: None,
        counted: 0,
        sample: Sample::Made,
    }
}

impl RecordKind {
    const fn registered(mut self) -> Self {
        self.is_registered = true;
        self
    }

    const fn often_absent(mut self) -> Self {
        self.is_often_absent = true;
        self
    }

    const fn because(mut self, why: &'static str) -> Self {
        self.why = why;
        self
    }

    const fn named_by(mut self, key: &'static str) -> Self {
        self.named_by = key;
        self
    }

    const fn of(mut self, key: &'static str, missing: &'static str) -> Self {
        self.owner = Some(Owner { key, missing });
        self
    }

    const fn counted(mut self, parts: usize) -> Self {
        self.counted = parts;
        self
    }

    const fn is(mut self, key: &'static str, value: &'static str) -> Self {
        self.sample = Sample::Is(key, value);
        self
    }
}
