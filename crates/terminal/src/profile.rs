//! AWS profiles: the one that `init` writes, and those that commands read.

use std::path::{Path, PathBuf};

use ini::Ini;
use outlast_crypto::Secret;

use crate::failure::Failure;

/// Name of the profile that `init` writes.
pub const NAME: &str = "outlast";

/// `config` of the profile.
pub fn config_text(region: &str, host: &str, ca_bundle: &Path) -> String {
    format!(
        // Some SDKs call STS for a role and ignore the profile's endpoint_url.
        "[profile {NAME}]\nregion = {region}\nendpoint_url = https://{host}\n\
         ca_bundle = {}\nservices = {NAME}\n\n\
         [services {NAME}]\nsts =\n  endpoint_url = https://{host}\n",
        ca_bundle.display()
    )
}

/// `credentials` of the profile.
pub fn credentials_text(id: &str, secret: &Secret) -> Secret {
    let head = format!("[{NAME}]\naws_access_key_id = {id}\naws_secret_access_key = ");
    Secret::new([head.as_bytes(), secret.expose(), b"\n"].concat())
}

/// The region in a `config` that is exactly as `init` or the server wrote it; `None` if it was edited.
pub fn region_of_own(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let own = lines.next()? == format!("[profile {NAME}]");
    let region = lines.next()?.strip_prefix("region = ")?.to_owned();
    lines.next()?.strip_prefix("endpoint_url = https://")?;
    lines.next()?.strip_prefix("ca_bundle = ")?;
    let rest: Vec<_> = lines.collect();
    // Earlier versions wrote nothing more.
    let services = [&format!("services = {NAME}"), "", &format!("[services {NAME}]"), "sts ="];
    let known = rest.is_empty()
        || (rest.len() == services.len() + 1
            && rest.starts_with(&services)
            && rest[services.len()].starts_with("  endpoint_url = https://"));
    (own && known).then_some(region)
}

/// How to reach and trust the service, and the caller's credentials. Options come before variables and variables
/// before files, as in AWS's own tools.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct Connection {
    /// AWS profile to use; its keys come before those in the environment [env: AWS_PROFILE, whose keys come after].
    // Not by clap: an option and a variable differ, as in AWS's tools.
    #[arg(long)]
    profile: Option<String>,
    /// Endpoint, such as https://localhost:8443.
    #[arg(long, env = "AWS_ENDPOINT_URL")]
    endpoint_url: Option<String>,
    /// Region.
    #[arg(long, env = "AWS_REGION")]
    region: Option<String>,
    /// PEM file with the certificates to trust.
    #[arg(long, env = "AWS_CA_BUNDLE")]
    ca_bundle: Option<PathBuf>,
    /// PEM file with the certificate, and those above it, to show to a server that asks for one
    /// [default: the profile's outlast_client_cert].
    #[arg(long, env = "OUTLAST_CLIENT_CERT", value_name = "FILE")]
    client_cert: Option<PathBuf>,
    /// Its private key, unencrypted [default: the profile's outlast_client_key].
    #[arg(long, env = "OUTLAST_CLIENT_KEY", value_name = "FILE")]
    client_key: Option<PathBuf>,
    /// AWS config file [default: ~/.aws/config].
    #[arg(long, env = "AWS_CONFIG_FILE", hide = true)]
    config_file: Option<PathBuf>,
    /// AWS credentials file [default: ~/.aws/credentials].
    #[arg(long, env = "AWS_SHARED_CREDENTIALS_FILE", hide = true)]
    credentials_file: Option<PathBuf>,
}

/// Complete settings of a connection.
pub struct Settings {
    /// `https://host:port`
    pub endpoint_url: String,
    /// Region.
    pub region: String,
    /// PEM file with the certificates to trust.
    pub ca_bundle: PathBuf,
    /// Files with the client's certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Access key id.
    pub access_key_id: String,
    /// Secret access key.
    pub secret: Secret,
    /// Session token, with temporary credentials.
    pub token: Option<Secret>,
}

/// How to reach and trust the service, without credentials.
pub struct Reach {
    /// `https://host:port`
    pub endpoint_url: String,
    /// Region.
    pub region: String,
    /// PEM file with the certificates to trust.
    pub ca_bundle: PathBuf,
    /// Files with the client's certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// The profile's files.
struct Profile {
    name: String,
    section: String,
    config: Ini,
    credentials: Ini,
}

impl Profile {
    fn configured(&self, key: &str) -> Option<String> {
        self.config.get_from(Some(self.section.as_str()), key).map(str::to_owned)
    }
}

fn missing(what: &str, flag: &str) -> Failure {
    Failure::new(format!("no {what} is configured")).hint(format!(
        "give {flag}, or a profile: AWS_CONFIG_FILE=DATA/client/config \
         AWS_SHARED_CREDENTIALS_FILE=DATA/client/credentials AWS_PROFILE={NAME}"
    ))
}

/// The profile that `AWS_PROFILE` names.
fn named_by_environment() -> Option<String> {
    std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty())
}

impl Connection {
    /// Settings of a data folder's own profile, whatever the environment says.
    pub fn of_folder(folder: &Path, endpoint_url: String) -> Self {
        Self {
            profile: Some(NAME.to_owned()),
            endpoint_url: Some(endpoint_url),
            region: None,
            ca_bundle: Some(folder.join("client/ca.pem")),
            client_cert: None,
            client_key: None,
            config_file: Some(folder.join("client/config")),
            credentials_file: Some(folder.join("client/credentials")),
        }
    }

    /// Looks up all settings.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let profile = self.load()?;
        let section = profile.section.as_str();
        let from_environment = || {
            // As in AWS's tools, only the option comes before keys in the environment; AWS_PROFILE does not.
            if self.profile.is_some() {
                return None;
            }
            let id = std::env::var("AWS_ACCESS_KEY_ID").ok()?;
            let secret = std::env::var("AWS_SECRET_ACCESS_KEY").ok()?;
            let token = std::env::var("AWS_SESSION_TOKEN").ok();
            let secret_of = |text: String| Secret::new(text.into_bytes());
            Some((id, secret_of(secret), token.map(secret_of)))
        };
        let from_file = || {
            let get = |key: &str| {
                let credentials = profile.credentials.get_from(Some(profile.name.as_str()), key);
                credentials.or_else(|| profile.config.get_from(Some(section), key))
            };
            let secret = get("aws_secret_access_key")?;
            let secret = Secret::new(secret.as_bytes().to_vec());
            let token = get("aws_session_token").map(|text| Secret::new(text.as_bytes().to_vec()));
            Some((get("aws_access_key_id")?.to_owned(), secret, token))
        };
        let (access_key_id, secret, token) = from_environment()
            .or_else(from_file)
            .ok_or_else(|| missing("access key", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"))?;
        let Reach { endpoint_url, region, ca_bundle, client } = self.reach_by(&profile)?;
        Ok(Settings { endpoint_url, region, ca_bundle, client, access_key_id, secret, token })
    }

    fn profile_name(&self) -> String {
        self.profile.clone().or_else(named_by_environment).unwrap_or_else(|| "default".to_owned())
    }

    /// Name of the profile, and its credentials file.
    pub fn credentials_file(&self) -> (String, PathBuf) {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let path = self.credentials_file.clone();
        (self.profile_name(), path.unwrap_or_else(|| home.join(".aws/credentials")))
    }

    /// Looks up everything but the credentials.
    pub fn reach(&self) -> Result<Reach, Failure> {
        self.reach_by(&self.load()?)
    }

    /// Completes what no option and no variable says by other settings.
    #[must_use]
    pub fn or(
        mut self,
        profile: Option<&str>,
        endpoint_url: Option<&str>,
        region: Option<&str>,
        ca_bundle: Option<&Path>,
    ) -> Self {
        if self.profile.is_none() && named_by_environment().is_none() {
            self.profile = profile.map(str::to_owned);
        }
        self.endpoint_url = self.endpoint_url.or_else(|| endpoint_url.map(str::to_owned));
        self.region = self.region.or_else(|| region.map(str::to_owned));
        self.ca_bundle = self.ca_bundle.or_else(|| ca_bundle.map(Path::to_path_buf));
        self
    }

    fn load(&self) -> Result<Profile, Failure> {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let load = |given: &Option<PathBuf>, default: &str| {
            let path = given.clone().unwrap_or_else(|| home.join(default));
            match Ini::load_from_file_noescape(&path) {
                Ok(ini) => Ok(ini),
                Err(ini::Error::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                    Ok(Ini::new())
                }
                Err(error) => Err(Failure::file(&path, &error)),
            }
        };
        let name = self.profile_name();
        Ok(Profile {
            section: match name.as_str() {
                "default" => name.clone(),
                name => format!("profile {name}"),
            },
            name,
            config: load(&self.config_file, ".aws/config")?,
            credentials: load(&self.credentials_file, ".aws/credentials")?,
        })
    }

    fn reach_by(&self, profile: &Profile) -> Result<Reach, Failure> {
        let path = |given: &Option<PathBuf>, key: &str| {
            given.clone().or_else(|| profile.configured(key).map(PathBuf::from))
        };
        let client = match (
            path(&self.client_cert, "outlast_client_cert"),
            path(&self.client_key, "outlast_client_key"),
        ) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                return Err(Failure::new(
                    "a client certificate and its key must be given together",
                )
                .hint("give both --client-cert and --client-key"));
            }
        };
        Ok(Reach {
            client,
            endpoint_url: self
                .endpoint_url
                .clone()
                .or_else(|| profile.configured("endpoint_url"))
                .ok_or_else(|| missing("endpoint", "--endpoint-url"))?,
            region: self
                .region
                .clone()
                .or_else(|| std::env::var("AWS_DEFAULT_REGION").ok())
                .or_else(|| profile.configured("region"))
                .ok_or_else(|| missing("region", "--region"))?,
            ca_bundle: path(&self.ca_bundle, "ca_bundle")
                .ok_or_else(|| missing("CA bundle", "--ca-bundle"))?,
        })
    }
}
