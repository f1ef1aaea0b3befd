//! The agent's configuration file. Keys of AWS's agent have its names, its defaults and its limits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderName;
use outlast_agent::cache::Limits;
use outlast_agent::callers::{Pattern, Rule};
use outlast_agent::interface::Interface;
use outlast_agent::memory::Locking;
use outlast_agent::template;
use outlast_crypto::Secret;
use serde::Deserialize;

use super::files::{FileSettings, Notify, Source};
use super::upstream::{self, Credentials};
use super::users;
use crate::anywhere::{self, located, secret_line};
use crate::failure::Failure;
use crate::profile::{Connection, Reach};
use crate::{files, metrics_options, settings};

/// Largest configuration file or template that is read, in bytes.
const MAX_FILE: usize = 1 << 20;
/// Longest token.
const MAX_TOKEN: usize = 4096;

/// The file. Unknown keys are errors.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    log_level: Option<String>,
    log_to_file: Option<bool>,
    http: Option<bool>,
    http_address: Option<String>,
    http_port: Option<Number>,
    path_prefix: Option<String>,
    ssrf_headers: Option<Vec<String>>,
    ssrf_env_variables: Option<Vec<String>>,
    max_conn: Option<Number>,
    max_roles: Option<Number>,
    region: Option<String>,
    ttl_seconds: Option<Number>,
    cache_size: Option<Number>,
    ignore_transient_errors: Option<bool>,
    validate_credentials: Option<bool>,
    stale_seconds: Option<u64>,
    cache_bytes: Option<usize>,
    lock_memory: Option<String>,
    endpoint_url: Option<String>,
    sts_endpoint_url: Option<String>,
    ca_bundle: Option<PathBuf>,
    profile: Option<String>,
    policy: Option<String>,
    mode: Option<String>,
    upstream_timeout_seconds: Option<u64>,
    socket: Option<PathBuf>,
    socket_mode: Option<String>,
    metrics_listen: Option<String>,
    roles_anywhere: Option<Anywhere>,
    caller: Vec<Caller>,
    file: Vec<Rendered>,
}

/// `[roles_anywhere]`
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Anywhere {
    endpoint_url: Option<String>,
    certificate: Option<PathBuf>,
    private_key: Option<String>,
    passphrase_file: Option<PathBuf>,
    intermediates: Option<PathBuf>,
    trust_anchor_arn: Option<String>,
    profile_arn: Option<String>,
    role_arn: Option<String>,
    session_duration: Option<u32>,
    role_session_name: Option<String>,
}

/// `[[caller]]`
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Caller {
    name: Option<String>,
    user: Option<Name>,
    group: Option<Name>,
    executable: Option<PathBuf>,
    secrets: Vec<String>,
}

/// `[[file]]`
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rendered {
    path: PathBuf,
    secret: Option<String>,
    template: Option<PathBuf>,
    mode: Option<String>,
    user: Option<Name>,
    group: Option<Name>,
    allow_disk: bool,
    keep_when_revoked: bool,
    refresh_seconds: Option<u64>,
    signal: Option<String>,
    pid_file: Option<PathBuf>,
    command: Vec<String>,
}

/// A number, which AWS's agent also takes as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Number(u64),
    Text(String),
}

/// A user or group: its name or its number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Number(u32),
    Text(String),
}

/// The configuration, checked.
pub(crate) struct Settings {
    /// What to log.
    pub(crate) log: String,
    /// Address of TCP, if there is one.
    pub(crate) tcp: Option<SocketAddr>,
    /// Path and mode of the unix socket.
    pub(crate) socket: Option<(PathBuf, u32)>,
    /// Where metrics are shown.
    pub(crate) metrics: metrics_options::Settings,
    pub(super) interface: Interface,
    pub(super) rules: Vec<Rule>,
    pub(super) limits: Limits,
    pub(super) max_connections: usize,
    pub(super) upstream: upstream::Settings,
    pub(super) validate_credentials: bool,
    pub(super) ignore_transient_errors: bool,
    pub(super) files: Vec<FileSettings>,
}

impl File {
    /// Reads the file, or takes all defaults.
    pub(crate) fn load(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::default()) };
        let bytes = files::read(path, MAX_FILE)?;
        let text = String::from_utf8_lossy(&bytes);
        toml::from_str(&text).map_err(|error| Failure::file(path, &error.to_string().trim_end()))
    }

    /// Checks everything and reads the files that it names; paths are relative to `base`. `connection` and `mode` are
    /// the options, which come first.
    pub(crate) fn settings(
        self,
        base: &Path,
        connection: &Connection,
        mode: Option<&str>,
    ) -> Result<Settings, Failure> {
        if self.log_to_file == Some(true) {
            return Err(Failure::new("log_to_file = true: this agent logs to stderr only")
                .hint("remove the key; the service manager keeps what goes to stderr"));
        }
        let is_http = self.http.unwrap_or(true);
        if !is_http && self.socket.is_none() && self.file.is_empty() {
            return Err(Failure::new("there is nothing to do: no TCP, no socket, no file")
                .hint("give socket = \"PATH\", or remove http = false"));
        }
        if self.socket.is_some() && self.caller.is_empty() {
            return Err(Failure::new("nobody may read anything over the socket")
                .hint("add a table [[caller]] with user or group, and secrets"));
        }
        let ttl = number(self.ttl_seconds.as_ref(), "ttl_seconds", 0..=3600, 300)?;
        let ignore_transient_errors = self.ignore_transient_errors.unwrap_or(true);
        let stale = match ignore_transient_errors {
            true => self.stale_seconds.unwrap_or(3600),
            false => 0,
        };
        let locking = match self.lock_memory.as_deref() {
            None | Some("require") => Locking::Require,
            Some("prefer") => Locking::Prefer,
            Some(other) => return Err(unknown("lock_memory", other, "require and prefer")),
        };
        let secrets = number(self.cache_size.as_ref(), "cache_size", 1..=1000, 1000)?;
        let limits = Limits {
            secrets: NonZeroUsize::new(as_usize(secrets)).unwrap_or(NonZeroUsize::MIN),
            bytes: self.cache_bytes.unwrap_or(4 << 20),
            ttl_ms: ttl * 1000,
            stale_ms: stale.saturating_mul(1000),
            locking,
        };
        let mode = match mode.or(self.mode.as_deref()) {
            None | Some("require") => "require",
            Some("prefer") => "prefer",
            Some(other) => return Err(unknown("mode", other, "require and prefer")),
        };
        let ca_bundle = self.ca_bundle.as_deref().map(|path| located(path, base)).transpose()?;
        let connection = connection.clone().or(
            self.profile.as_deref(),
            self.endpoint_url.as_deref(),
            self.region.as_deref(),
            ca_bundle.as_deref(),
        );
        let (reach, credentials) = match self.roles_anywhere {
            None => {
                let found = connection.settings()?;
                let reach = Reach {
                    endpoint_url: found.endpoint_url,
                    region: found.region,
                    ca_bundle: found.ca_bundle,
                    client: found.client,
                };
                let fixed = outlast_api::wire::sigv4::Credentials {
                    access_key_id: found.access_key_id,
                    secret: found.secret,
                    token: found.token,
                };
                (reach, Credentials::Fixed(fixed))
            }
            Some(anywhere) => {
                let reach = connection.reach()?;
                let endpoint = anywhere.endpoint_url.clone();
                let endpoint_url = endpoint.unwrap_or_else(|| reach.endpoint_url.clone());
                let options = anywhere.options();
                // Mistakes are told at the start, not when the first secret is asked for.
                options.wanted()?;
                options.identity(base)?;
                let base = base.to_path_buf();
                (reach, Credentials::Anywhere { options: Box::new(options), base, endpoint_url })
            }
        };
        let timeout = self.upstream_timeout_seconds.unwrap_or(5).clamp(1, 60);
        let upstream = upstream::Settings {
            reach,
            sts_endpoint_url: self.sts_endpoint_url,
            credentials,
            max_roles: as_usize(number(self.max_roles.as_ref(), "max_roles", 1..=20, 20)?),
            policy: self.policy.clone(),
            mode: mode.to_owned(),
            timeout: Duration::from_secs(timeout),
        };
        let max_conn = number(self.max_conn.as_ref(), "max_conn", 1..=1000, 800)?;
        let log = log(self.log_level.as_deref())?;
        let metrics_listen = self.metrics_listen.clone();
        let default_refresh = if ttl == 0 { 300 } else { ttl };
        // It was right for the time to live, and may be old for as long as a secret may.
        let keep = Duration::from_secs(default_refresh.saturating_add(stale));
        Ok(Settings {
            log,
            tcp: tcp(is_http, self.http_address.as_deref(), self.http_port.as_ref())?,
            socket: socket(self.socket.as_deref(), self.socket_mode.as_deref(), base)?,
            metrics: metrics_options::Settings::choose(settings::Metrics { metrics_listen })?,
            interface: interface(
                is_http,
                self.path_prefix,
                self.ssrf_headers,
                self.ssrf_env_variables,
                base,
            )?,
            rules: self
                .caller
                .into_iter()
                .enumerate()
                .map(Caller::rule)
                .collect::<Result<_, _>>()?,
            limits,
            max_connections: as_usize(max_conn),
            upstream,
            validate_credentials: self.validate_credentials.unwrap_or(true),
            ignore_transient_errors,
            files: self
                .file
                .into_iter()
                .map(|file| file.settings(base, default_refresh, keep))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl Anywhere {
    fn options(self) -> anywhere::Options {
        anywhere::Options {
            certificate: self.certificate,
            private_key: self.private_key,
            passphrase_file: self.passphrase_file,
            intermediates: self.intermediates,
            trust_anchor_arn: self.trust_anchor_arn,
            profile_arn: self.profile_arn,
            role_arn: self.role_arn,
            session_duration: self.session_duration,
            role_session_name: self.role_session_name,
        }
    }
}

impl Caller {
    fn rule((index, caller): (usize, Self)) -> Result<Rule, Failure> {
        let name = caller.name.unwrap_or_else(|| format!("caller {}", index + 1));
        if caller.secrets.is_empty() {
            return Err(Failure::new(format!("{name} may read no secret"))
                .hint("secrets = [\"prod/db\", \"prod/web/*\"] names them"));
        }
        if caller.user.is_none() && caller.group.is_none() && caller.executable.is_none() {
            return Err(Failure::new(format!("{name} describes every program of this machine"))
                .hint("give user or group, and executable beside them if it must be one program"));
        }
        if let (None, None, Some(executable)) = (&caller.user, &caller.group, &caller.executable) {
            // A user who starts it has power over it: by ptrace, or by LD_PRELOAD.
            let said = format!("{name} names {} and no user", executable.display());
            return Err(Failure::new(said).hint(
                "every user of this machine may start that program, and can then read its memory: give user or group beside executable",
            ));
        }
        Ok(Rule {
            uid: caller.user.as_ref().map(Name::uid).transpose()?,
            gid: caller.group.as_ref().map(Name::gid).transpose()?,
            executable: caller.executable,
            secrets: caller.secrets.into_iter().map(Pattern::new).collect(),
            name,
        })
    }
}

impl Name {
    fn uid(&self) -> Result<u32, Failure> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(name) => users::user(name),
        }
    }

    fn gid(&self) -> Result<u32, Failure> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(name) => users::group(name),
        }
    }
}

impl Rendered {
    fn settings(
        self,
        base: &Path,
        default_refresh: u64,
        keep: Duration,
    ) -> Result<FileSettings, Failure> {
        let path = base.join(&self.path);
        let wrong = |what: &str| Failure::file(&path, &what);
        let source = match (self.secret, self.template) {
            (Some(secret), None) => Source::Secret(secret),
            (None, Some(template)) => {
                let template = located(&template, base)?;
                let bytes = files::read(&template, MAX_FILE)?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| Failure::file(&template, &"the template is not UTF-8"))?;
                template::check(&template.display().to_string(), &text)
                    .map_err(|error| Failure::file(&template, &error))?;
                Source::Template { name: template, text }
            }
            _ => {
                return Err(wrong("it is not said what the file contains")
                    .hint("give either secret = \"NAME\" or template = \"FILE\""));
            }
        };
        let signal = self.signal.as_deref().map(signal).transpose()?;
        let notify = match (signal, self.pid_file, self.command.is_empty()) {
            (Some(signal), Some(pid_file), true) => {
                Some(Notify::Signal { signal, pid_file: base.join(pid_file) })
            }
            (None, None, false) => Some(Notify::Command(self.command)),
            (None, None, true) => None,
            _ => {
                return Err(wrong("it is not clear how to tell the program about changes")
                    .hint("give signal and pid_file, or command"));
            }
        };
        Ok(FileSettings {
            source,
            mode: self.mode.as_deref().map_or(Ok(0o400), mode)?,
            uid: self.user.as_ref().map(Name::uid).transpose()?,
            gid: self.group.as_ref().map(Name::gid).transpose()?,
            allow_disk: self.allow_disk,
            keep_when_revoked: self.keep_when_revoked,
            refresh: Duration::from_secs(self.refresh_seconds.unwrap_or(default_refresh).max(1)),
            keep,
            notify,
            path,
        })
    }
}

fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn unknown(key: &str, value: &str, known: &str) -> Failure {
    Failure::new(format!("{key} = {value:?} is not known")).hint(format!("known are {known}"))
}

fn number(
    given: Option<&Number>,
    key: &str,
    range: std::ops::RangeInclusive<u64>,
    usual: u64,
) -> Result<u64, Failure> {
    let number = match given {
        None => Some(usual),
        Some(Number::Number(number)) => Some(*number),
        Some(Number::Text(text)) => text.parse().ok(),
    };
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| Failure::new(format!("{key} must be {} to {}", range.start(), range.end())))
}

fn log(level: Option<&str>) -> Result<String, Failure> {
    let level = level.unwrap_or("info").to_lowercase();
    match level.as_str() {
        "debug" | "info" | "warn" | "error" => Ok(level),
        "none" => Ok("off".to_owned()),
        other => Err(unknown("log_level", other, "debug, info, warn, error and none")),
    }
}

fn tcp(
    is_http: bool,
    address: Option<&str>,
    port: Option<&Number>,
) -> Result<Option<SocketAddr>, Failure> {
    if !is_http {
        return Ok(None);
    }
    // 0 is for tests, which read the port that is printed.
    let port = match port {
        Some(Number::Number(0)) => 0,
        port => number(port, "http_port", 1024..=65535, 2773)?,
    };
    let wrong = |text: &str| Failure::new(format!("http_address = {text:?} is not an address"));
    let address = match address {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => text.parse().map_err(|_| wrong(text))?,
    };
    if !address.is_loopback() {
        return Err(Failure::new(format!("{address} can be reached from other machines"))
            .hint("the agent serves its own machine, without TLS: http_address = \"127.0.0.1\""));
    }
    Ok(Some(SocketAddr::new(address, u16::try_from(port).unwrap_or(2773))))
}

fn socket(
    path: Option<&Path>,
    given: Option<&str>,
    base: &Path,
) -> Result<Option<(PathBuf, u32)>, Failure> {
    let Some(path) = path else { return Ok(None) };
    // The rules decide who reads what; who may connect is for the folder and the mode to say.
    Ok(Some((base.join(path), given.map_or(Ok(0o666), mode)?)))
}

fn interface(
    is_http: bool,
    path_prefix: Option<String>,
    headers: Option<Vec<String>>,
    variables: Option<Vec<String>>,
    base: &Path,
) -> Result<Interface, Failure> {
    let path_prefix = path_prefix.unwrap_or_else(|| "/v1/".to_owned());
    if !path_prefix.starts_with('/') {
        return Err(Failure::new("path_prefix must begin with /"));
    }
    let names = |given: Option<Vec<String>>, usual: &[&str]| {
        given.unwrap_or_else(|| usual.iter().map(|name| (*name).to_owned()).collect())
    };
    let headers = names(headers, &["X-Aws-Parameters-Secrets-Token", "X-Vault-Token"]);
    let variables =
        names(variables, &["AWS_TOKEN", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN"]);
    if headers.is_empty() || variables.is_empty() {
        return Err(Failure::new("ssrf_headers and ssrf_env_variables must not be empty"));
    }
    let token_headers = headers.iter().map(|name| {
        name.parse::<HeaderName>().map_err(|_| {
            Failure::new(format!("{name:?} in ssrf_headers is not the name of a header"))
        })
    });
    Ok(Interface {
        path_prefix,
        token_headers: token_headers.collect::<Result<_, _>>()?,
        token: if is_http { token(&variables, base)? } else { Secret::new(Vec::new()) },
    })
}

/// The token: in a variable, or in the file that the variable names.
fn token(variables: &[String], base: &Path) -> Result<Secret, Failure> {
    let found = variables.iter().find_map(|name| Some((name, std::env::var(name).ok()?)));
    let Some((name, value)) = found else {
        return Err(Failure::new(format!("there is no token: {} is not set", variables.join(", "))).hint(
            "AWS_TOKEN=file:///run/awssmatoken names a file with a random text that clients show; or http = false",
        ));
    };
    let token = match value.strip_prefix("file://") {
        Some(path) => secret_line(&located(Path::new(path), base)?)?,
        None => Secret::new(value.into_bytes()),
    };
    let is_header = |byte: &u8| (0x21..=0x7e).contains(byte) || *byte == b' ';
    if token.is_empty() || token.len() > MAX_TOKEN || !token.expose().iter().all(is_header) {
        return Err(Failure::new(format!("the token of {name} is not usable"))
            .hint(format!("it has 1 to {MAX_TOKEN} printable ASCII characters")));
    }
    Ok(token)
}

fn mode(text: &str) -> Result<u32, Failure> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| Failure::new(format!("{text:?} is not a mode")).hint("such as \"0440\""))
}

fn signal(name: &str) -> Result<rustix::process::Signal, Failure> {
    use rustix::process::Signal;
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    match bare {
        "HUP" => Ok(Signal::HUP),
        "USR1" => Ok(Signal::USR1),
        "USR2" => Ok(Signal::USR2),
        "TERM" => Ok(Signal::TERM),
        "INT" => Ok(Signal::INT),
        "WINCH" => Ok(Signal::WINCH),
        _ => Err(unknown("signal", name, "HUP, USR1, USR2, TERM, INT and WINCH")),
    }
}

#[cfg(test)]
mod tests;
