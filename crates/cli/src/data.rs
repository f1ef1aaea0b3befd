//! The data folder: its contents, and how it is made and opened.
//!
//! `store.db` has the records, `store.lock` names the server that serves it, `root.key` is the root key (0600),
//! `outlast.toml` has settings, `client/` an AWS profile for the administrator; `records-authenticated` exists once
//! this version has served it.

mod upgrade;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_api::audit::operator_event;
use outlast_api::service::Service;
use outlast_crypto::Secret;
use outlast_domain::Fault;
use outlast_domain::audit;
use outlast_domain::change::{Contended, change};
use outlast_domain::identity;
use outlast_domain::ids;
use outlast_domain::register;
use outlast_domain::seal::migration::{self, State};
use outlast_domain::seal::{self, RootKey};
use outlast_domain::work::Work;
use outlast_net::certificate;
use outlast_net::door::ServerCertificate;
use outlast_net::server::system_clock;
use outlast_net::tickets::{self, Tickets};
use outlast_store::lock::FolderLock;
use outlast_store::{Store, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::failure::Failure;
pub(crate) use crate::failure::store_failure;
use crate::location::StoreLocation;
use crate::root_key::Provider;
use crate::settings::{self, Settings};
use crate::temporary::Pending;
use crate::tls::{Shows, default_names};
use crate::{files, profile};
pub(crate) use upgrade::bring_up_to_date;
use upgrade::{AUTHENTICATED, note_authenticated, random_origin};

/// Record that binds a store to its root key.
const STORE_RECORD: &str = "meta/store";

/// A data folder that this process has open.
pub(crate) struct Data {
    /// All services on its store.
    pub(crate) service: Arc<Service>,
    folder: PathBuf,
    _lock: Option<FolderLock>,
}

/// Purpose for which a store is opened.
#[derive(Clone, Copy)]
enum Access {
    Serve,
    Beside,
    Read,
}

/// A store and its root key, for commands that work beside a server.
#[derive(clap::Args)]
pub(crate) struct StoreArguments {
    /// Data folder, made by `outlast init`.
    #[arg(long, env = "OUTLAST_DATA")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    options: StoreOptions,
}

/// Options of a store, without its folder.
#[derive(clap::Args, Clone)]
pub(crate) struct StoreOptions {
    /// Settings file [default: outlast.toml in the data folder].
    #[arg(long, env = "OUTLAST_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    store: settings::Store,
}

impl StoreArguments {
    /// For a command that can do without a folder.
    pub(crate) fn new(data: PathBuf, options: StoreOptions) -> Self {
        Self { data, options }
    }

    /// Reads the settings file.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        Settings::load(self.options.config.as_deref(), &self.data)
    }

    fn store(&self) -> Result<settings::Store, Failure> {
        Ok(self.options.store.clone().or(self.settings()?.store))
    }

    /// Where the root key is kept.
    pub(crate) fn provider(&self) -> Result<Provider, Failure> {
        Provider::choose(self.store()?.root_key.as_ref(), &self.data)
    }

    /// Where the records are kept.
    pub(crate) fn location(&self) -> Result<StoreLocation, Failure> {
        StoreLocation::choose(&self.data, self.store()?.store.as_deref())
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

/// Contents of a new data folder.
pub(crate) struct NewData {
    /// Account of the administrator.
    pub(crate) account: String,
    /// Access key id; `None` to generate one.
    pub(crate) access_key_id: Option<String>,
    /// Secret access key; `None` to generate one.
    pub(crate) secret: Option<Secret>,
    /// Region in the profile.
    pub(crate) region: String,
    /// Port in the profile.
    pub(crate) port: u16,
    /// Names in the TLS certificate.
    pub(crate) names: Vec<String>,
    /// Where to keep the root key; `None` for the folder.
    pub(crate) root_key: Option<Provider>,
    /// URL of the database for the records; `None` for the folder.
    pub(crate) database: Option<String>,
    /// Name of the audit log for verifiers; `None` for a random one.
    pub(crate) audit_origin: Option<String>,
}

/// The secret for a new access key, if the environment has one.
pub(crate) fn given_secret() -> Result<Option<Secret>, Failure> {
    let Some(text) = std::env::var_os("OUTLAST_SECRET_ACCESS_KEY") else { return Ok(None) };
    match text.into_string() {
        Ok(text) if text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(Some(Secret::new(text.into_bytes())))
        }
        _ => Err(Failure::new("OUTLAST_SECRET_ACCESS_KEY is not a secret access key")
            .hint("it needs 16 or more visible ASCII characters; AWS's have 40")),
    }
}

/// Makes a data folder. It appears complete or not at all.
pub(crate) fn create(folder: &Path, new: NewData) -> Result<identity::AccessKey, Failure> {
    let (build, location) = begin(folder)?;
    let provider = provider_in(new.root_key.as_ref(), folder, build.path());
    let (kek, parameters) = provider.create()?;
    let root = RootKey::new(kek);
    let target =
        StoreLocation { folder: build.path().to_path_buf(), database: new.database.clone() };
    let store = target.open()?;
    let (key, transaction) = fill(store.as_ref(), &root, parameters, build.path(), &location, new)?;
    if target.is_shared() {
        // The root key must be in its place before a database depends on it.
        complete(build, folder)?;
        store.commit_and_wait(transaction).map_err(|error| {
            let folder = folder.display();
            store_failure(error).hint(format!(
                "check the database; if no store was written to it, remove {folder} and try again"
            ))
        })?;
    } else {
        store.commit_and_wait(transaction).map_err(store_failure)?;
        drop(store);
        complete(build, folder)?;
    }
    Ok(key)
}

/// Makes the data folder of another server for a database that has a store already.
pub(crate) fn join(
    folder: &Path,
    url: String,
    provider: &Provider,
    region: &str,
    port: u16,
) -> Result<(), Failure> {
    let (build, location) = begin(folder)?;
    let target = StoreLocation { folder: build.path().to_path_buf(), database: Some(url) };
    let store = target.open()?;
    let (root, state) = unlock(store.as_ref(), provider)?;
    if !state.is_authenticated {
        return Err(Failure::new("the store is from an earlier version of outlast")
            .hint("start a server of this version once in its first data folder"));
    }
    let mut work = Work::new(store.as_ref(), &root, system_clock());
    let chain = certificate::ensure(&mut work, &certificate::KINDS[0], &default_names())?;
    let profile = Profile { region, port, root_pem: &chain.root_pem };
    write_public_client(build.path(), &location, &profile)?;
    write_settings(build.path(), Some(provider), target.database.as_deref())?;
    complete(build, folder)
}

/// A folder in which a data folder is built. Removed when dropped, or when the command is interrupted, unless it is
/// complete.
pub(crate) struct Build {
    folder: tempfile::TempDir,
    _pending: Pending,
}

impl Build {
    /// Path while it is built.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Starts to build a data folder; also returns its final path.
pub(crate) fn begin(folder: &Path) -> Result<(Build, PathBuf), Failure> {
    if StoreLocation::in_folder(folder).is_initialised()?
        || std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some())
    {
        return Err(Failure::file(folder, &"the folder exists already and is not empty")
            .hint("choose another folder, or start it with: outlast server --data DIR"));
    }
    let parent = parent_of(folder);
    std::fs::create_dir_all(parent).map_err(|error| files::io_failure(parent, &error))?;
    let location = std::fs::canonicalize(parent)
        .map_err(|error| files::io_failure(parent, &error))?
        .join(folder.file_name().unwrap_or_default());
    // Built next to its final path and moved when complete, so that a crash leaves no half of it.
    let (pending, build) =
        Pending::create(|| tempfile::Builder::new().prefix(".outlast-init-").tempdir_in(parent))
            .map_err(|error| files::io_failure(parent, &error))?;
    let build = Build { folder: build, _pending: pending };
    files::make_private_folder(build.path())?;
    Ok((build, location))
}

/// Where the root key is kept while its folder is being built.
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

/// Moves a complete data folder to its final path.
pub(crate) fn complete(build: Build, folder: &Path) -> Result<(), Failure> {
    let parent = parent_of(folder);
    // An empty folder may exist there; a full one makes the rename fail.
    std::fs::rename(build.path(), folder).map_err(|error| Failure::file(folder, &error))?;
    let _ = build.folder.keep();
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

/// Writes the files of the folder; returns the administrator's key and the store's first transaction.
fn fill(
    store: &dyn Store,
    root: &RootKey,
    parameters: Map<String, Value>,
    folder: &Path,
    final_place: &Path,
    new: NewData,
) -> Result<(identity::AccessKey, Transaction), Failure> {
    let mut work = Work::new(store, root, system_clock());
    if store.read(STORE_RECORD).map_err(store_failure)?.is_some() {
        return Err(Failure::new("the database has an outlast store already")
            .hint("for another server on it, add --join and the --root-key of the first one"));
    }
    let record = StoreRecord {
        created_ms: work.now_ms(),
        created_by: format!("outlast {}", env!("CARGO_PKG_VERSION")),
        root_key: None,
    };
    root.establish(&mut work, parameters)?;
    work.put(STORE_RECORD, &record)?;
    migration::set_state(&mut work, State { has_log: true, is_authenticated: true })?;
    let origin = match new.audit_origin {
        Some(origin) => origin,
        None => random_origin()?,
    };
    audit::establish(&mut work, &origin).map_err(|error| {
        Failure::new(format!("{origin} cannot be the name of the audit log: {error}")).hint(
            "give a host name and a path without spaces or plus signs: log.example.com/outlast",
        )
    })?;
    let secret = match new.secret {
        Some(secret) => secret,
        None => Secret::new(ids::base32("", 40)?.into_bytes()),
    };
    let key = identity::create_administrator(
        &mut work,
        &new.account,
        "administrator",
        new.access_key_id,
        &secret,
    )
    .map_err(|error| Failure::new(error.to_string()))?;
    let chain = certificate::ensure(&mut work, &certificate::KINDS[0], &new.names)?;
    let profile = Profile { region: &new.region, port: new.port, root_pem: &chain.root_pem };
    write_client(folder, final_place, &profile, &key.id, &secret)?;
    write_settings(folder, new.root_key.as_ref(), new.database.as_deref())?;
    register::begin(&mut work)?;
    Ok((key, work.into_first_transaction()))
}

/// An AWS profile without its access key.
pub(crate) struct Profile<'a> {
    /// Region.
    pub(crate) region: &'a str,
    /// Port of the server.
    pub(crate) port: u16,
    /// Root of the TLS chain, PEM.
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
    write_public_client(folder, final_place, profile)?;
    let credentials = profile::credentials_text(key_id, secret);
    files::write(&folder.join("client/credentials"), credentials.expose(), 0o600)
}

/// The part of the AWS profile that is not secret.
fn write_public_client(
    folder: &Path,
    final_place: &Path,
    profile: &Profile<'_>,
) -> Result<(), Failure> {
    let client = folder.join("client");
    files::make_private_folder(&client)?;
    files::write(&client.join("ca.pem"), profile.root_pem.as_bytes(), 0o644)?;
    let bundle = final_place.join("client/ca.pem");
    let host = format!("localhost:{}", profile.port);
    let config = profile::config_text(profile.region, &host, &bundle);
    files::write(&client.join("config"), config.as_bytes(), 0o644)
}

/// Writes `outlast.toml`, with the provider of the root key unless that is the default or has a PIN. Only its owner
/// can read it: the URL of a database may have a password.
pub(crate) fn write_settings(
    folder: &Path,
    root_key: Option<&Provider>,
    database: Option<&str>,
) -> Result<(), Failure> {
    let store = match database {
        Some(url) => format!("store = {}\n", Value::String(url.to_owned())),
        None => "# store = \"sqlite\"\n".to_owned(),
    };
    let root_key = match root_key {
        Some(given) if given.can_be_shown() => {
            format!("root_key = {}\n", Value::String(given.to_string()))
        }
        _ => "# root_key = \"file:root.key\"\n".to_owned(),
    };
    let settings = format!(
        "# Settings of `outlast server`. Options and OUTLAST_* variables override them.\n\
         # listen = \"127.0.0.1:8443\"\n\
         # tls_cert = \"ecdsa-p256\"\n\
         # tls_names = [\"kms.example.com\"]\n\
         # log = \"info\"\n\
         # client_ca = \"client-ca.pem\"\n\
         {store}{root_key}"
    );
    files::write(&folder.join("outlast.toml"), settings.as_bytes(), 0o600)
}

impl Data {
    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens a store to serve it.
    pub(crate) fn open(location: &StoreLocation, provider: &Provider) -> Result<Self, Failure> {
        location.require_initialised()?;
        let lock = location.lock()?;
        let data = Self::opened(location, provider, location.open()?, lock, Access::Serve)?;
        data.open_log()?;
        data.check_register()?;
        data.index_authorities()?;
        Ok(data)
    }

    /// Opens a store beside the server that may serve it.
    pub(crate) fn open_beside(
        location: &StoreLocation,
        provider: &Provider,
    ) -> Result<Self, Failure> {
        location.require_initialised()?;
        Self::opened(location, provider, location.open_beside()?, None, Access::Beside)
    }

    /// Opens a store read-only.
    pub(crate) fn open_read_only(
        location: &StoreLocation,
        provider: &Provider,
    ) -> Result<Self, Failure> {
        location.require_initialised()?;
        Self::opened(location, provider, location.open_read_only()?, None, Access::Read)
    }

    fn opened(
        location: &StoreLocation,
        provider: &Provider,
        store: Arc<dyn Store>,
        lock: Option<FolderLock>,
        access: Access,
    ) -> Result<Self, Failure> {
        let (root, state) = unlock(store.as_ref(), provider)?;
        match (state.is_authenticated, access) {
            (true, Access::Serve) => note_authenticated(&location.folder)?,
            (true, _) | (false, Access::Read) => {}
            (false, Access::Serve) => {
                if location.folder.join(AUTHENTICATED).exists() {
                    return Err(Failure::new(
                        "the store claims to be from an earlier version of outlast, but this version has served it: \
                         old records were put back into the database",
                    )
                    .hint("restore the newest good backup elsewhere: outlast restore BACKUP --data NEW"));
                }
                bring_up_to_date(store.as_ref(), &root, state)?;
                note_authenticated(&location.folder)?;
            }
            (false, Access::Beside) => {
                return Err(Failure::new("the store is from an earlier version of outlast")
                    .hint("start a server of this version on it once, which upgrades it"));
            }
        }
        let service = Arc::new(Service::new(store, root));
        Ok(Self { service, folder: location.folder.clone(), _lock: lock })
    }

    /// The store.
    pub(crate) fn store(&self) -> &dyn Store {
        self.service.store().as_ref()
    }

    /// The certificates to show: the service's own, for these names, renewed if they are due, or those in files.
    pub(crate) fn certificates(&self, shows: &Shows, names: &[String]) -> Result<Shown, Failure> {
        let mut shown = Shown { certificates: Vec::new(), roots: String::new(), untimely: None };
        match shows {
            Shows::Own(kinds) => {
                for kind in kinds {
                    let mut work = self.service.work(system_clock());
                    let chain = certificate::ensure(&mut work, kind, names)?;
                    self.commit(work)?;
                    shown.roots.push_str(&chain.root_pem);
                    shown.certificates.push(chain.certificate(kind));
                }
            }
            Shows::Files(list) => {
                for files in list {
                    let own = files.load()?;
                    let untimely = files.untimely(&own, system_clock().div_euclid(1000));
                    shown.untimely = shown.untimely.or(untimely);
                    shown.roots.push_str(own.root_pem.as_deref().unwrap_or_default());
                    shown.certificates.push(own.certificate);
                }
            }
        }
        Ok(shown)
    }

    /// Writes the roots of the current certificates into a file for clients.
    pub(crate) fn give_roots(&self, roots: &str) -> Result<(), Failure> {
        let path = self.folder.join("client/ca.pem");
        // Files need not contain their root; then the operator must give it to clients.
        if !roots.is_empty() && std::fs::read(&path).ok().as_deref() != Some(roots.as_bytes()) {
            files::make_private_folder(&self.folder.join("client"))?;
            files::write(&path, roots.as_bytes(), 0o644)?;
        }
        Ok(())
    }

    /// Returns the keys of session tickets; makes new ones in time.
    pub(crate) fn refresh_tickets(&self, tickets: &Tickets) -> Result<(), Failure> {
        let keys = self.change(|work| Ok::<_, Fault>((tickets::refresh(work)?, Vec::new())))?;
        tickets.replace(keys);
        Ok(())
    }

    /// Carries out a unit of work, with the events that record it, until its commit succeeds.
    pub(crate) fn change<T, E: Contended>(
        &self,
        make: impl FnMut(&mut Work<'_>) -> Result<(T, Vec<Vec<u8>>), E>,
    ) -> Result<T, E> {
        change(self.service.store().as_ref(), || self.service.work(system_clock()), make)
    }

    fn commit(&self, work: Work<'_>) -> Result<(), Failure> {
        if work.writes_anything() {
            let transaction = work.into_transaction(Vec::new());
            self.service.store().commit_and_wait(transaction).map_err(store_failure)?;
        }
        Ok(())
    }
}

/// Certificates that a server shows.
pub(crate) struct Shown {
    /// The preferred one first.
    pub(crate) certificates: Vec<ServerCertificate>,
    /// Their roots in PEM, as far as they are known.
    pub(crate) roots: String,
    /// A warning about the validity of a certificate in a file.
    pub(crate) untimely: Option<Failure>,
}

/// The root keys of a store, after they have opened its canary, and how its records are protected.
pub(crate) fn unlock(store: &dyn Store, provider: &Provider) -> Result<(RootKey, State), Failure> {
    let record = seal::read_record(store)?;
    let root = RootKey::new(provider.open(record.as_ref())?);
    let made = store
        .read(STORE_RECORD)
        .map_err(store_failure)?
        .ok_or_else(|| Failure::new("the store was never completed").hint("make a new one"))?;
    match migration::state(&mut Work::new(store, &root, 0)) {
        Ok(Some(state)) => Ok((root, state)),
        Err(fault @ (Fault::Store(_) | Fault::RootKey(_))) => Err(fault.into()),
        _ => {
            let stated = match &record {
                Some(record) => {
                    record.parameters.get("fingerprint").and_then(Value::as_str).map(str::to_owned)
                }
                None => serde_json::from_slice::<StoreRecord>(seal::json(&made.value))
                    .ok()
                    .and_then(|made| made.root_key),
            };
            Err(provider.wrong_key(root.kek(), stated.as_deref()))
        }
    }
}

/// The audit event of a command on the whole store, which belongs to no account.
pub(crate) fn store_event(now_ms: i64, name: &str, parameters: &Value) -> Result<Vec<u8>, Failure> {
    Ok(operator_event(now_ms, &ids::event_id(now_ms)?, "outlast", name, "", parameters))
}

/// Updates the profile that `init` wrote to the folder's present path and the address that is served. A profile that
/// was edited is left alone.
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
