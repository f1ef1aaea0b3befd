//! SFTP, according to the settings.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_api::service::Sink;
use outlast_domain::upload_signing::UploadKey;
use outlast_negotiate::Mode;
use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::providers::Providers;
use outlast_net::s3::Client;
use outlast_net::server::system_clock;
use outlast_net::sftp::roster::Roster;
use outlast_net::sftp::{Buckets, ReadAuthorities, S3Buckets, Settings, WorkflowFiles};
use outlast_pki::pem;
use outlast_sftp::arrival::Inspector;
use outlast_sftp::error::{Error, Result as SftpResult};
use outlast_sftp::local::{Folder, FolderOptions};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::Volume;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::files;
use crate::login_functions::LoginFunctions;
use crate::settings::{self, Sftp, SftpUploads};
use crate::sftp_authorities::Files;
use crate::sftp_scan::{self, Scan};
use crate::sftp_users::{Stamps, Users};
use crate::values;
use crate::workflow_functions::WorkflowFunctions;

/// What is served, and where.
pub(crate) struct Chosen {
    pub(crate) listen: SocketAddr,
    server: Option<String>,
    mode: Option<Mode>,
    /// Users of a file.
    users: Option<PathBuf>,
    scan: Option<Arc<Scan>>,
    /// The key that signs uploads.
    pub(crate) sign: Option<UploadKey>,
    /// Where the signatures go.
    signatures: Option<PathBuf>,
    atomic_uploads: bool,
    authorities: Option<ReadAuthorities>,
    login_grace: Duration,
    idle: Duration,
    connections: Option<usize>,
    sessions_per_user: Option<usize>,
}

/// Identity providers, which `TestIdentityProvider` asks even where SFTP is off.
#[derive(Default)]
pub(crate) struct Identity {
    /// Asks them.
    pub(crate) providers: Arc<Providers>,
    /// ARNs of the functions among them.
    pub(crate) functions: BTreeSet<String>,
}

impl Identity {
    fn choose(said: &Sftp) -> Result<Self, Failure> {
        let https = said.identity_ca_bundle.as_deref().map(connector).transpose()?;
        let Some(path) = &said.identity_functions else {
            let providers = Providers { https, functions: None };
            return Ok(Self { providers: Arc::new(providers), functions: BTreeSet::new() });
        };
        let read = LoginFunctions::read(path);
        let functions = read.map_err(|failure| failure.about("sftp.identity_functions"))?;
        let names = functions.names();
        let providers = Providers { https, functions: Some(functions.call()) };
        Ok(Self { providers: Arc::new(providers), functions: names })
    }
}

/// The functions that workflows call. They are known even where SFTP is off, so that workflows can be created there.
pub(crate) fn workflow_functions(said: &Sftp) -> Result<WorkflowFunctions, Failure> {
    let Some(path) = &said.workflow_functions else { return Ok(WorkflowFunctions::default()) };
    let read = WorkflowFunctions::read(path);
    read.map_err(|failure| failure.about("sftp.workflow_functions"))
}

/// Checks the settings. There is nothing to serve if SFTP is off.
pub(crate) fn choose(
    said: Sftp,
    uploads: &SftpUploads,
) -> Result<(Option<Chosen>, Identity), Failure> {
    let identity = Identity::choose(&said)?;
    Ok((listening(said, uploads)?, identity))
}

fn listening(said: Sftp, uploads: &SftpUploads) -> Result<Option<Chosen>, Failure> {
    let scan = sftp_scan::choose(uploads)?.map(Arc::new);
    // What is scanned must not be visible before.
    let sign = uploads.sign.as_deref().map(upload_key).transpose()?;
    let atomic_uploads = said.atomic_uploads() || scan.is_some() || sign.is_some();
    let (grace, idle) = (said.login_grace_seconds(), said.idle_seconds());
    if said.address.is_none() && said.users.is_some() {
        tracing::warn!(
            "there are users for SFTP, but no listener: add --sftp-listen with an address such as 127.0.0.1:2222"
        );
    }
    let Some(listen) = said.address.filter(|text| text != "off") else { return Ok(None) };
    let listen = values::address(&listen).map_err(|error| {
        Failure::new(error)
            .hint("give --sftp-listen an address such as 127.0.0.1:2222, or off")
            .about("sftp.address")
    })?;
    let of_api = said.transfer_server.is_some() || said.identity_ca_bundle.is_some();
    if said.users.is_some() && of_api {
        return Err(Failure::new("the listener's users are in a file, and a setting is about a Transfer server")
            .hint("a listener serves one of both: leave --sftp-users out, or --sftp-server and --sftp-identity-ca-bundle")
            .about("sftp.users"));
    }
    if said.users.is_some() && said.trusted_user_ca_keys.is_some() {
        return Err(Failure::new(
            "users of a file have certificate authorities of their own",
        )
        .hint("leave --sftp-trusted-user-ca-keys out, and name authorities in the file; --sftp-revoked-keys works with both")
        .about("sftp.trusted_user_ca_keys"));
    }
    let mode = said.ssh_mode.map(|text| text.parse::<Mode>()).transpose().map_err(|error| {
        Failure::new(error.to_string())
            .hint("choose require, prefer, allow or off")
            .about("sftp.ssh_mode")
    })?;
    let authorities = Files {
        trusted: said.trusted_user_ca_keys,
        revoked: said.revoked_keys,
        host_certificates: said.host_certificates.unwrap_or_default(),
    };
    Ok(Some(Chosen {
        listen,
        authorities: authorities.reader()?,
        mode,
        server: said.transfer_server,
        users: said.users,
        scan,
        sign,
        signatures: uploads.signatures.clone(),
        atomic_uploads,
        login_grace: Duration::from_secs(grace.into()),
        idle: Duration::from_secs(idle.into()),
        connections: said.connections,
        sessions_per_user: said.sessions_per_user,
    }))
}

/// The key that signs uploads.
fn upload_key(arn: &str) -> Result<UploadKey, Failure> {
    UploadKey::new(arn).map_err(|error| {
        Failure::new(error)
            .hint("make one with: outlast sign setup; its ARN is that of the key or its alias")
            .about("sftp_uploads.sign")
    })
}

fn connector(path: &Path) -> Result<Connector, Failure> {
    const KEY: &str = "sftp.identity_ca_bundle";
    let wrong = |error: &dyn std::fmt::Display| Failure::file(path, error).about(KEY);
    let bytes = files::read(path, 4 << 20).map_err(|failure| failure.about(KEY))?;
    let roots = pem::read_certificates(&bytes).map_err(|error| wrong(&error))?;
    Connector::new(&Policy::default(), &roots).map_err(|error| wrong(&error))
}

impl Chosen {
    /// The settings of the listener. `buckets` says where buckets are.
    pub(crate) fn settings(
        &self,
        buckets: &SharedBuckets,
        sink: Arc<dyn Sink>,
        providers: &Arc<Providers>,
        data: &Path,
    ) -> Result<(Settings, Option<Following>), Failure> {
        let buckets = self.storage(buckets, data, self.atomic_uploads)?;
        let mut default = Settings::new(buckets, sink);
        if let Some(connections) = self.connections {
            default = default.with_connections(connections);
        }
        let users = self.users.clone().map(|path| Users::new(path, data, self.mode));
        let following = users.map(|users| {
            let begun = users.begin().map_err(|failure| failure.about("sftp.users"))?;
            let (roster, stamps) = begun;
            let (sender, receiver) = watch::channel(Arc::new(roster));
            Ok::<_, Failure>((receiver, Following { users, sender, stamps }))
        });
        let (users, following) = following.transpose()?.unzip();
        let inspector = self.scan.clone().map(|scan| scan as Arc<dyn Inspector>);
        let settings = Settings {
            server: self.server.clone(),
            mode: self.mode,
            users,
            inspector,
            signatures: self.signatures(data)?,
            atomic_uploads: self.atomic_uploads,
            ask: providers.ask(),
            authorities: self.authorities.clone(),
            login_grace: self.login_grace,
            idle: self.idle,
            sessions_by_user: self.sessions_per_user.unwrap_or(default.sessions_by_user),
            ..default
        };
        Ok((settings, following))
    }

    /// The folder of signatures, if uploads are signed. It is made if it is not there.
    fn signatures(&self, data: &Path) -> Result<Option<PathBuf>, Failure> {
        if self.sign.is_none() {
            return Ok(None);
        }
        let folder = self.signatures.clone().unwrap_or_else(|| data.join("upload-signatures"));
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::file(&folder, &error).about("sftp_uploads.signatures"))?;
        Ok(Some(folder))
    }

    /// The files of workflows; users of a file have none.
    pub(crate) fn workflow_files(
        &self,
        buckets: &SharedBuckets,
        sink: Arc<dyn Sink>,
        data: &Path,
    ) -> Result<Option<WorkflowFiles>, Failure> {
        if self.users.is_some() {
            return Ok(None);
        }
        // A copy is whole, whatever uploads are.
        let buckets = self.storage(buckets, data, true)?;
        let (stopped, lost) = (Arc::default(), Arc::default());
        Ok(Some(WorkflowFiles { buckets, sink, clock: system_clock, stopped, lost }))
    }

    fn storage(
        &self,
        buckets: &SharedBuckets,
        data: &Path,
        atomic_uploads: bool,
    ) -> Result<Arc<dyn Buckets>, Failure> {
        let wanted = [
            (self.scan.is_some(), "sftp_uploads.scan"),
            (self.sign.is_some(), "sftp_uploads.sign"),
        ];
        let wanted = wanted.iter().find(|(is_wanted, _)| *is_wanted);
        storage(buckets, data, atomic_uploads, wanted.map(|(_, key)| *key))
    }
}

/// What the settings say of buckets. Those behind an S3 endpoint share their memory for open files: the listener's, those of
/// workflows and those of connectors.
pub(crate) struct SharedBuckets {
    said: settings::Buckets,
    s3: Option<Arc<S3Buckets>>,
}

impl SharedBuckets {
    /// `client` is that of their S3 endpoint. Must be called inside a tokio runtime.
    pub(crate) fn new(said: settings::Buckets, client: Option<Client>) -> Self {
        let s3 = client.map(|client| Arc::new(S3Buckets::new(client, Handle::current())));
        Self { said, s3 }
    }
}

/// Buckets behind an S3 endpoint, or folders; `needs_folders` is a setting that needs folders.
pub(crate) fn storage(
    shared: &SharedBuckets,
    data: &Path,
    atomic_uploads: bool,
    needs_folders: Option<&'static str>,
) -> Result<Arc<dyn Buckets>, Failure> {
    if let Some(s3) = &shared.s3 {
        if let Some(key) = needs_folders {
            return Err(Failure::new(
                "uploads are scanned and signed in folders only, and [buckets] names an S3 endpoint",
            )
            .hint("name a folder there, or leave scan and sign out")
            .about(key));
        }
        return Ok(s3.clone());
    }
    let folder = shared.said.folder.clone().unwrap_or_else(|| data.join("buckets"));
    Ok(Arc::new(Local::open(folder, atomic_uploads)?))
}

/// The users of a file, and those who are told of new ones.
pub(crate) struct Following {
    users: Users,
    sender: watch::Sender<Arc<Roster>>,
    /// Of the files that were read.
    stamps: Stamps,
}

impl Following {
    /// Reads the file again when it changes. Never ends.
    pub(crate) async fn run(self) {
        self.users.follow(self.sender, self.stamps).await;
    }
}

/// Buckets that are folders.
struct Local(Folder);

impl Local {
    fn open(path: PathBuf, atomic_uploads: bool) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::file(&path, &error);
        std::fs::create_dir_all(&path).map_err(failed)?;
        let options = FolderOptions { atomic_uploads };
        // A link may take the place of no bucket.
        Ok(Self(Folder::open(&path, options).map_err(failed)?))
    }
}

impl Buckets for Local {
    fn open(&self, bucket: &str) -> SftpResult<Arc<dyn Volume>> {
        Ok(Arc::new(self.0.below(&place(bucket)?, false)?).without_links())
    }

    fn make(&self, bucket: &str) -> SftpResult<()> {
        self.0.below(&place(bucket)?, true).map(|_| ())
    }
}

/// The folder of a bucket. Its name is no path: names of buckets have no slash, and begin with a letter or a digit.
fn place(bucket: &str) -> SftpResult<RemotePath> {
    if bucket.contains('/') || bucket.starts_with('.') {
        return Err(Error::not_found());
    }
    Ok(RemotePath::root().join(bucket.as_bytes()))
}
