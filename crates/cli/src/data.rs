//! The data folder: what is in it, how it is made and opened.
//!
//! `store.db` records, `store.lock` who has it open, `root.key` the root key (0600), `outlast.toml` settings,
//! `client/` an AWS profile for the administrator.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_api::service::Service;
use outlast_crypto::Secret;
use outlast_domain::arn::is_account_id;
use outlast_domain::identity;
use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_net::certificate::{self, Kind, ServiceCertificate};
use outlast_net::server::system_clock;
use outlast_store::lock::FolderLock;
use outlast_store::sqlite::SqliteStore;
use outlast_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{files, profile};

/// Record that binds a store to its root key.
const STORE_RECORD: &str = "meta/store";
/// Sealed with the root key: opens only under the right one.
const CANARY: &str = "meta/canary";

/// A data folder that this process has open.
pub(crate) struct Data {
    /// All services on its store.
    pub(crate) service: Arc<Service>,
    folder: PathBuf,
    _lock: FolderLock,
}

#[derive(Serialize, Deserialize)]
struct StoreRecord {
    created_ms: i64,
    created_by: String,
    root_key: String,
}

/// What a new data folder shall be.
pub(crate) struct NewData {
    /// Account of the administrator.
    pub(crate) account: String,
    /// Access key id; generated when absent.
    pub(crate) access_key_id: Option<String>,
    /// Secret access key; generated when absent.
    pub(crate) secret: Option<Secret>,
    /// Region that the profile names.
    pub(crate) region: String,
    /// Port that the profile names.
    pub(crate) port: u16,
    /// Names in the TLS certificate.
    pub(crate) names: Vec<String>,
}

/// Names that a server certificate always has.
pub(crate) fn default_names() -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
    let node = rustix::system::uname();
    let valid = |name: &&str| {
        !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    if let Some(name) = node.nodename().to_str().ok().filter(valid)
        && !names.iter().any(|known| known == name)
    {
        names.push(name.to_owned());
    }
    names
}

/// Makes a data folder. It appears complete or not at all.
pub(crate) fn create(folder: &Path, new: NewData) -> Result<identity::AccessKey, Failure> {
    if !is_account_id(&new.account) {
        return Err(Failure::new(format!("{} is not an account id", new.account))
            .hint("an account id has 12 digits"));
    }
    if let Some(id) = new.access_key_id.as_deref().filter(|id| !identity::is_access_key_id(id)) {
        return Err(Failure::new(format!("{id} is not an access key id"))
            .hint("an access key id has 3 to 128 letters, digits and underscores"));
    }
    if is_initialised(folder) || std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some())
    {
        return Err(Failure::file(folder, &"the folder exists already and is not empty")
            .hint("choose another folder, or start it with: outlast server --data DIR"));
    }
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent).map_err(|error| Failure::file(parent, &error))?;
    let place = std::fs::canonicalize(parent)
        .map_err(|error| Failure::file(parent, &error))?
        .join(folder.file_name().unwrap_or_default());
    // Built beside its place and moved there when complete, so that a crash leaves no half of it.
    let build = tempfile::Builder::new()
        .prefix(".outlast-init-")
        .tempdir_in(parent)
        .map_err(|error| Failure::file(parent, &error))?;
    files::make_private_folder(build.path())?;
    let root = RootKey::generate()?;
    files::write(&root_key_path(build.path()), root.to_file().expose(), 0o600)?;
    let key = {
        let store = SqliteStore::open(&build.path().join("store.db")).map_err(store_failure)?;
        fill(&store, &root, build.path(), &place, new)?
    };
    // An empty folder may be in the way; a full one makes the rename fail.
    std::fs::rename(build.path(), folder).map_err(|error| Failure::file(folder, &error))?;
    let _ = build.keep();
    if let Ok(parent) = std::fs::File::open(parent) {
        let _ = parent.sync_all();
    }
    Ok(key)
}

fn fill(
    store: &SqliteStore,
    root: &RootKey,
    folder: &Path,
    final_place: &Path,
    new: NewData,
) -> Result<identity::AccessKey, Failure> {
    let mut work = Work::new(store, root, system_clock());
    let record = StoreRecord {
        created_ms: work.now_ms(),
        created_by: format!("outlast {}", env!("CARGO_PKG_VERSION")),
        root_key: root.fingerprint(),
    };
    work.put(STORE_RECORD, &record)?;
    work.put_secret(CANARY, &Secret::new(b"canary".to_vec()))?;
    let secret = match new.secret {
        Some(secret) => secret,
        None => Secret::new(outlast_domain::ids::base32("", 40)?.into_bytes()),
    };
    let key = identity::create_access_key(
        &mut work,
        &new.account,
        "administrator",
        new.access_key_id,
        &secret,
    )?;
    let chain = certificate::ensure(&mut work, &certificate::KINDS[0], &new.names)?;
    store.commit_and_wait(work.into_transaction(Vec::new())).map_err(store_failure)?;
    let client = folder.join("client");
    files::make_private_folder(&client)?;
    files::write(&client.join("ca.pem"), chain.root_pem.as_bytes(), 0o644)?;
    let credentials = profile::credentials_text(&key.id, &secret);
    files::write(&client.join("credentials"), credentials.expose(), 0o600)?;
    let bundle = final_place.join("client/ca.pem");
    let host = format!("localhost:{}", new.port);
    let config = profile::config_text(&new.region, &host, &bundle);
    files::write(&client.join("config"), config.as_bytes(), 0o644)?;
    let settings = "# Settings of `outlast server`. Flags and OUTLAST_* variables go before them.\n\
                    # listen = \"127.0.0.1:8443\"\n\
                    # tls_cert = \"ecdsa-p256\"\n\
                    # tls_names = [\"kms.example.com\"]\n\
                    # log = \"info\"\n";
    files::write(&folder.join("outlast.toml"), settings.as_bytes(), 0o644)?;
    Ok(key)
}

/// Whether there is a store in the folder.
pub(crate) fn is_initialised(folder: &Path) -> bool {
    folder.join("store.db").exists()
}

fn root_key_path(folder: &Path) -> PathBuf {
    folder.join("root.key")
}

impl Data {
    /// Opens a data folder for this process alone.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        if !is_initialised(folder) {
            return Err(Failure::file(folder, &"there is no outlast store in this folder")
                .hint(format!("make one with: outlast init --data {}", folder.display())));
        }
        let lock = FolderLock::acquire(&folder.join("store.lock")).map_err(store_failure)?;
        let key_path = root_key_path(folder);
        let text = Secret::new(files::read(&key_path, 1024).map_err(|failure| {
            failure.hint("the store cannot be opened without its root key; restore the file")
        })?);
        let mode = std::fs::metadata(&key_path).map_or(0, |found| found.permissions().mode());
        if mode & 0o077 != 0 {
            crate::output::warning(&format!(
                "{}: others can read the root key; chmod 600 it",
                key_path.display()
            ));
        }
        let root = std::str::from_utf8(text.expose())
            .ok()
            .and_then(|text| RootKey::from_file(text).ok())
            .ok_or_else(|| Failure::file(&key_path, &"the file is not a root key"))?;
        let store = SqliteStore::open(&folder.join("store.db")).map_err(store_failure)?;
        check_root_key(&store, &root, &key_path)?;
        let service = Arc::new(Service::new(Arc::new(store), root));
        Ok(Self { service, folder: folder.to_path_buf(), _lock: lock })
    }

    /// The TLS chain of this kind for these names; renewed if need be, and its root given to clients.
    pub(crate) fn certificate(
        &self,
        kind: &Kind,
        names: &[String],
    ) -> Result<ServiceCertificate, Failure> {
        let mut work = self.service.work(system_clock());
        let chain = certificate::ensure(&mut work, kind, names)?;
        if work.writes_anything() {
            let transaction = work.into_transaction(Vec::new());
            self.service.store().commit_and_wait(transaction).map_err(store_failure)?;
        }
        let path = self.folder.join("client/ca.pem");
        if std::fs::read(&path).ok().as_deref() != Some(chain.root_pem.as_bytes()) {
            files::make_private_folder(&self.folder.join("client"))?;
            files::write(&path, chain.root_pem.as_bytes(), 0o644)?;
        }
        Ok(chain)
    }
}

fn check_root_key(store: &SqliteStore, root: &RootKey, path: &Path) -> Result<(), Failure> {
    let mut work = Work::new(store, root, 0);
    let record = work
        .get::<StoreRecord>(STORE_RECORD)?
        .ok_or_else(|| Failure::new("the store was never completed").hint("make a new one"))?;
    if work.secret(CANARY).is_ok_and(|canary| canary.is_some()) {
        return Ok(());
    }
    Err(Failure::file(
        path,
        &format!(
            "this is the root key of another store (its fingerprint is {}, and the store needs {})",
            root.fingerprint(),
            record.root_key
        ),
    )
    .hint("put the root key back that the store was made with"))
}

/// The store's errors with what to do about them.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    let hint = match &error {
        StoreError::TooNew { .. } => {
            Some("use the version of outlast that wrote it, or a newer one")
        }
        StoreError::InUse(_) => Some("stop the other process, or use another data folder"),
        StoreError::Full => Some("make room on the disk and try again"),
        StoreError::Foreign(_) => Some("check the data folder; the file was left as it is"),
        _ => None,
    };
    let failure = Failure::new(error.to_string());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Brings the profile that `init` wrote up to date with the folder's place, which may have moved, and the
/// address that is served. A profile that somebody has edited is left alone.
pub(crate) fn update_profile(folder: &Path, address: SocketAddr) -> Result<(), Failure> {
    let path = folder.join("client/config");
    let Some(region) = profile::region_of_own(&path) else { return Ok(()) };
    let folder = std::fs::canonicalize(folder).map_err(|error| Failure::file(folder, &error))?;
    let host = match address.ip() {
        ip if ip.is_loopback() || ip.is_unspecified() => format!("localhost:{}", address.port()),
        _ => address.to_string(),
    };
    let text = profile::config_text(&region, &host, &folder.join("client/ca.pem"));
    if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
        files::write(&path, text.as_bytes(), 0o644)?;
    }
    Ok(())
}
