//! What a listener needs to know of the server that it serves.

use outlast_crypto::{Secret, digests};

use super::authentication::Methods;
use super::creation::open;
use super::host_key;
use super::server::{Record, Server};
use super::{SERVER, TransferError};
use crate::Fault;
use crate::arn::Scope;
use crate::limits::MAX_PAGE;
use crate::work::Work;

/// Facts of a server at one time.
pub struct ServerFacts {
    /// Account and Region.
    pub scope: Scope,
    /// Id.
    pub id: String,
    /// ARN.
    pub arn: String,
    /// Whether it serves; otherwise connections are refused.
    pub is_online: bool,
    /// Name of the security policy.
    pub security_policy: String,
    /// Text before authentication.
    pub banner: Option<String>,
    /// Text after authentication.
    pub welcome: Option<String>,
    /// What users can authenticate with.
    pub methods: Methods,
    /// Whether requests to set attributes are ignored (`SetStatOption`).
    pub ignores_set_stat: bool,
    /// Host keys, the oldest first.
    pub host_keys: Vec<ServedHostKey>,
    /// Digest of all that: another one means that something has changed.
    pub version: [u8; 32],
}

/// A host key with its private key.
pub struct ServedHostKey {
    /// Id.
    pub id: String,
    /// Name of its algorithm.
    pub kind: String,
    /// `SHA256:` and the digest of the public key.
    pub fingerprint: String,
    /// The private key, as OpenSSH's file.
    pub private: Secret,
}

/// Why there is no server to be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unserved {
    /// There is none with this id.
    #[error("there is no Transfer server {0}")]
    Unknown(String),
    /// There is none that is online.
    #[error("there is no Transfer server that is online: create one with CreateServer")]
    None,
    /// Several are online, and none was chosen.
    #[error(
        "{0} Transfer servers are online: set transfer_server in section [sftp] (--sftp-server) to the id of the one that this listener \
         serves"
    )]
    Several(usize),
    /// The servers are of several accounts, and none was chosen.
    #[error(
        "the Transfer servers here belong to several accounts: set transfer_server in section [sftp] to the id of the one that this \
         listener serves"
    )]
    Accounts,
    /// This service failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The server with this id, or the only one that is online in the store. It is chosen only while all servers of the store, online
/// or not, belong to one account: otherwise an account could take over the listener of another one whose server is stopped.
pub fn served(work: &mut Work<'_>, id: Option<&str>) -> Result<ServerFacts, Unserved> {
    let mut found = Vec::new();
    let mut account: Option<String> = None;
    let mut after = String::new();
    loop {
        let page = work.scan::<Record>(ALL, &after, MAX_PAGE)?;
        let Some((last, _)) = page.last() else { break };
        after.clone_from(last);
        for (record_key, record) in page {
            let scope = scope_of(&record_key).ok_or(Fault::Damaged(record_key))?;
            let is_wanted = match id {
                Some(id) => record.id == id,
                None if account.as_ref().is_some_and(|account| *account != scope.account) => {
                    return Err(Unserved::Accounts);
                }
                None => record.online,
            };
            account = Some(scope.account.clone());
            if is_wanted {
                found.push((scope, record));
            }
        }
    }
    if found.len() > 1 {
        return Err(Unserved::Several(found.len()));
    }
    let Some((scope, record)) = found.pop() else {
        return Err(id.map_or(Unserved::None, |id| Unserved::Unknown(id.to_owned())));
    };
    facts(work, &Server::new(&scope, record))
}

/// Prefix of the records of servers.
const ALL: &str = "transfer/server/";

/// Account and Region in the key of a server's record.
fn scope_of(record_key: &str) -> Option<Scope> {
    let mut parts = record_key.strip_prefix(ALL)?.split('/');
    Some(Scope { account: parts.next()?.to_owned(), region: parts.next()?.to_owned() })
}

fn facts(work: &mut Work<'_>, server: &Server) -> Result<ServerFacts, Unserved> {
    let mut keys = host_key::page(work, server, None, MAX_PAGE)?.items;
    keys.sort_by(|one, other| {
        (one.imported_ms(), one.id()).cmp(&(other.imported_ms(), other.id()))
    });
    let mut host_keys = Vec::new();
    for key in keys {
        // One that was deleted meanwhile is none.
        let private = open(work, &key).map_err(|error| match error {
            TransferError::Fault(fault) => fault,
            other => Fault::Encoding(other.to_string()),
        })?;
        let Some(private) = private else { continue };
        host_keys.push(ServedHostKey {
            id: key.id().to_owned(),
            kind: key.kind().to_owned(),
            fingerprint: key.fingerprint()?,
            private,
        });
    }
    let record = &server.record;
    let ids: Vec<_> = host_keys.iter().map(|key| key.id.as_str()).collect();
    let told =
        serde_json::to_vec(&(record, ids)).map_err(|error| Fault::Encoding(error.to_string()))?;
    Ok(ServerFacts {
        scope: server.scope().clone(),
        id: server.id().to_owned(),
        arn: SERVER.arn(server.scope(), server.id()),
        is_online: record.online,
        security_policy: record.security_policy.clone(),
        banner: record.banner.clone(),
        welcome: record.welcome.clone(),
        methods: record.provider.methods(),
        ignores_set_stat: record.ignores_set_stat,
        host_keys,
        version: digests::sha256(&told),
    })
}
