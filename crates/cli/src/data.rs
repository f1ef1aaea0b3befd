//! The data folder: what is in it, how it is made and opened.
//!
//! `store.db` records, `store.lock` which server serves it, `root.key` the root key (0600), `outlast.toml`
//! settings, `client/` an AWS profile for the administrator.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_api::service::Service;
use outlast_crypto::Secret;
use outlast_domain::Fault;
use outlast_domain::arn::is_account_id;
use outlast_domain::identity;
use outlast_domain::seal::{self, RootKey};
use outlast_domain::work::Work;
use outlast_net::certificate::{self, Kind, ServiceCertificate};
use outlast_net::server::system_clock;
use outlast_store::lock::FolderLock;
use outlast_store::sqlite::SqliteStore;
use outlast_store::{Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::commands::server;
use crate::failure::Failure;
use crate::root_key::Provider;
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
    _lock: Option<FolderLock>,
}

/// Which store, and where its root key is: for commands that work beside a server.
#[derive(clap::Args)]
pub(crate) struct StoreArguments {
    /// Data folder, made by `outlast init`.
    #[arg(long, env = "OUTLAST_DATA")]
    pub(crate) data: PathBuf,
    /// Settings file [default: outlast.toml in the data folder].
    #[arg(long, env = "OUTLAST_CONFIG")]
    config: Option<PathBuf>,
    /// What wraps the store's root key: file:PATH, passphrase:SOURCE or pkcs11:URI
    /// [default: file:root.key in the data folder].
    #[arg(long, env = "OUTLAST_ROOT_KEY", hide_env_values = true)]
    root_key: Option<String>,
}

impl StoreArguments {
    /// Where the root key is.
    pub(crate) fn provider(&self) -> Result<Provider, Failure> {
        let file = server::File::load(self.config.as_deref(), &self.data)?;
        Provider::choose(self.root_key.as_deref(), file.root_key.as_deref(), &self.data)
    }
}

#[derive(Serialize, Deserialize)]
struct StoreRecord {
    created_ms: i64,
    created_by: String,
    /// Fingerprint of the root key file that a store of the first layout was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root_key: Option<String>,
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
    /// Where the root key shall be; in the folder when absent.
    pub(crate) root_key: Option<Provider>,
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
    let (build, place) = begin(folder)?;
    let provider = provider_in(new.root_key.as_ref(), folder, build.path());
    let (kek, parameters) = provider.create()?;
    let root = RootKey::new(kek);
    let key = {
        let store = SqliteStore::open(&build.path().join("store.db")).map_err(store_failure)?;
        fill(&store, &root, parameters, build.path(), &place, new)?
    };
    complete(build, folder)?;
    Ok(key)
}

/// A folder in which a data folder is built, and the place where it will be.
pub(crate) fn begin(folder: &Path) -> Result<(tempfile::TempDir, PathBuf), Failure> {
    if is_initialised(folder) || std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some())
    {
        return Err(Failure::file(folder, &"the folder exists already and is not empty")
            .hint("choose another folder, or start it with: outlast server --data DIR"));
    }
    let parent = parent_of(folder);
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
    Ok((build, place))
}

/// Where the root key is while its folder is being built.
pub(crate) fn provider_in(given: Option<&Provider>, folder: &Path, build: &Path) -> Provider {
    match given {
        None => Provider::default_in(build),
        Some(Provider::File(path)) => {
            let absolute = |path: &Path| std::path::absolute(path).unwrap_or_default();
            match absolute(path).strip_prefix(absolute(folder)) {
                Ok(inside) => Provider::File(build.join(inside)),
                Err(_) => Provider::File(path.clone()),
            }
        }
        Some(other) => other.clone(),
    }
}

/// Moves a data folder that is complete to its place.
pub(crate) fn complete(build: tempfile::TempDir, folder: &Path) -> Result<(), Failure> {
    let parent = parent_of(folder);
    // An empty folder may be in the way; a full one makes the rename fail.
    std::fs::rename(build.path(), folder).map_err(|error| Failure::file(folder, &error))?;
    let _ = build.keep();
    if let Ok(parent) = std::fs::File::open(parent) {
        let _ = parent.sync_all();
    }
    Ok(())
}

fn parent_of(folder: &Path) -> &Path {
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn fill(
    store: &SqliteStore,
    root: &RootKey,
    parameters: Map<String, Value>,
    folder: &Path,
    final_place: &Path,
    new: NewData,
) -> Result<identity::AccessKey, Failure> {
    let mut work = Work::new(store, root, system_clock());
    let record = StoreRecord {
        created_ms: work.now_ms(),
        created_by: format!("outlast {}", env!("CARGO_PKG_VERSION")),
        root_key: None,
    };
    work.put(STORE_RECORD, &record)?;
    root.establish(&mut work, parameters)?;
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
    let profile = Profile { region: &new.region, port: new.port, root_pem: &chain.root_pem };
    write_client(folder, final_place, &profile, &key.id, &secret)?;
    write_settings(folder, new.root_key.as_ref())?;
    Ok(key)
}

/// What an AWS profile says besides its key.
pub(crate) struct Profile<'a> {
    /// Region.
    pub(crate) region: &'a str,
    /// Port of the server.
    pub(crate) port: u16,
    /// What to trust.
    pub(crate) root_pem: &'a str,
}

/// Writes the administrator's AWS profile into a folder that will be at `final_place`.
pub(crate) fn write_client(
    folder: &Path,
    final_place: &Path,
    profile: &Profile<'_>,
    key_id: &str,
    secret: &Secret,
) -> Result<(), Failure> {
    let client = folder.join("client");
    files::make_private_folder(&client)?;
    files::write(&client.join("ca.pem"), profile.root_pem.as_bytes(), 0o644)?;
    let credentials = profile::credentials_text(key_id, secret);
    files::write(&client.join("credentials"), credentials.expose(), 0o600)?;
    let bundle = final_place.join("client/ca.pem");
    let host = format!("localhost:{}", profile.port);
    let config = profile::config_text(profile.region, &host, &bundle);
    files::write(&client.join("config"), config.as_bytes(), 0o644)
}

/// Writes `outlast.toml`; it names the root key's place unless that is the default or holds a PIN.
pub(crate) fn write_settings(folder: &Path, root_key: Option<&Provider>) -> Result<(), Failure> {
    let root_key = match root_key {
        Some(given) if given.can_be_shown() => {
            format!("root_key = {}\n", Value::String(given.to_string()))
        }
        _ => "# root_key = \"file:root.key\"\n".to_owned(),
    };
    let settings = format!(
        "# Settings of `outlast server`. Flags and OUTLAST_* variables go before them.\n\
         # listen = \"127.0.0.1:8443\"\n\
         # tls_cert = \"ecdsa-p256\"\n\
         # tls_names = [\"kms.example.com\"]\n\
         # log = \"info\"\n\
         {root_key}"
    );
    files::write(&folder.join("outlast.toml"), settings.as_bytes(), 0o644)
}

/// Whether there is a store in the folder.
pub(crate) fn is_initialised(folder: &Path) -> bool {
    folder.join("store.db").exists()
}

impl Data {
    /// Opens a data folder as its only server.
    pub(crate) fn open(folder: &Path, provider: &Provider) -> Result<Self, Failure> {
        require_initialised(folder)?;
        let lock = lock(folder)?;
        let store = SqliteStore::open(&store_path(folder)).map_err(store_failure)?;
        Self::opened(folder, provider, store, Some(lock))
    }

    /// Opens a data folder beside the server that may serve it.
    pub(crate) fn open_beside(folder: &Path, provider: &Provider) -> Result<Self, Failure> {
        require_initialised(folder)?;
        let path = store_path(folder);
        let store = match lock(folder) {
            // Nobody serves it: an older schema may be upgraded. The lock is given back at once.
            Ok(_lock) => SqliteStore::open(&path),
            // The check comes first: the schema is not changed below a server.
            Err(_) => SqliteStore::open_read_only(&path).and_then(|_| SqliteStore::open(&path)),
        };
        Self::opened(folder, provider, store.map_err(store_failure)?, None)
    }

    /// Opens a data folder for a look at it.
    pub(crate) fn open_read_only(folder: &Path, provider: &Provider) -> Result<Self, Failure> {
        require_initialised(folder)?;
        let store = SqliteStore::open_read_only(&store_path(folder)).map_err(store_failure)?;
        Self::opened(folder, provider, store, None)
    }

    fn opened(
        folder: &Path,
        provider: &Provider,
        store: SqliteStore,
        lock: Option<FolderLock>,
    ) -> Result<Self, Failure> {
        let root = unlock(&store, provider)?;
        let service = Arc::new(Service::new(Arc::new(store), root));
        Ok(Self { service, folder: folder.to_path_buf(), _lock: lock })
    }

    /// The store.
    pub(crate) fn store(&self) -> &dyn Store {
        self.service.store().as_ref()
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

/// Where the records of a data folder are.
pub(crate) fn store_path(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

/// Takes the place of the folder's server.
pub(crate) fn lock(folder: &Path) -> Result<FolderLock, Failure> {
    FolderLock::acquire(&folder.join("store.lock")).map_err(store_failure)
}

/// Fails unless there is a store in the folder.
pub(crate) fn require_initialised(folder: &Path) -> Result<(), Failure> {
    if is_initialised(folder) {
        return Ok(());
    }
    Err(Failure::file(folder, &"there is no outlast store in this folder")
        .hint(format!("make one with: outlast init --data {}", folder.display())))
}

/// The root keys of a store, once they have opened what only they open.
pub(crate) fn unlock(store: &dyn Store, provider: &Provider) -> Result<RootKey, Failure> {
    let record = seal::read_record(store)?;
    let root = RootKey::new(provider.open(record.as_ref())?);
    let mut work = Work::new(store, &root, 0);
    let made = work
        .get::<StoreRecord>(STORE_RECORD)?
        .ok_or_else(|| Failure::new("the store was never completed").hint("make a new one"))?;
    match work.secret(CANARY) {
        Ok(Some(_)) => Ok(root),
        Err(fault @ (Fault::Store(_) | Fault::RootKey(_))) => Err(fault.into()),
        _ => {
            let stated = match &record {
                Some(record) => record.parameters.get("fingerprint").and_then(Value::as_str),
                None => made.root_key.as_deref(),
            };
            Err(provider.wrong_key(root.kek(), stated))
        }
    }
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
        StoreError::NotEmpty => Some("choose another place"),
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
