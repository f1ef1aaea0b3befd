//! Roles Anywhere as a client: a machine's certificate and key, and the sessions that it gets with them.

pub(crate) mod acme;
pub(crate) mod challenge;
mod link;
mod token;

use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_agent::session::{self, Session, SessionError, Wanted};
use outlast_agent::signer::Identity;
use outlast_crypto::{Secret, encrypted};
use outlast_net::client::ClientError;
use outlast_net::server::system_clock;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::object::Kind;
use outlast_pki::{object, pem};
use serde::Deserialize;

use crate::failure::Failure;
use crate::files;

pub(crate) use link::{Link, LinkError};

/// Longest wait for a session.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// A session is renewed when this much of it is left, in seconds: SDKs want new credentials then.
pub(crate) const RENEW_SECONDS: i64 = 300;
/// Least time between two attempts to renew one that is still valid, in seconds.
const RETRY_SECONDS: i64 = 10;
/// Largest file with a certificate, key or passphrase that is read, in bytes.
const MAX_FILE: usize = 1 << 20;
/// Before a path: the file is a credential that systemd passes to the service.
const CREDENTIAL: &str = "credential:";

/// Certificate, key and role, by options or in the agent's configuration file.
#[derive(clap::Args, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[group(id = "anywhere")]
pub(crate) struct Options {
    /// This machine's certificate, PEM or DER; certificates between it and the trust anchor may follow in the file.
    #[arg(long, env = "OUTLAST_CERTIFICATE", value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// Its private key: a file (PKCS #8 with or without passphrase, SEC 1 or PKCS #1), or a token's pkcs11: URI.
    #[arg(long, env = "OUTLAST_PRIVATE_KEY", value_name = "FILE|URI")]
    pub(crate) private_key: Option<String>,
    /// File with the passphrase of the private key.
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// Certificates between this machine's and the trust anchor, PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) intermediates: Option<PathBuf>,
    /// Trust anchor.
    #[arg(long, value_name = "ARN")]
    pub(crate) trust_anchor_arn: Option<String>,
    /// Profile.
    #[arg(long, value_name = "ARN")]
    pub(crate) profile_arn: Option<String>,
    /// Role.
    #[arg(long, value_name = "ARN")]
    pub(crate) role_arn: Option<String>,
    /// Length of the session in seconds, 900 to 43200 [default: the profile's].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(900..=43200))]
    pub(crate) session_duration: Option<u32>,
    /// Name of the session, for profiles that accept one.
    #[arg(long, value_name = "NAME")]
    pub(crate) role_session_name: Option<String>,
}

/// Why there is no session.
pub(crate) enum NoSession {
    /// The service is away.
    Away(String),
    /// It refused, or something on this machine is wrong.
    Failed(Failure),
}

impl From<NoSession> for Failure {
    fn from(problem: NoSession) -> Self {
        match problem {
            NoSession::Away(reason) => {
                Self::new(format!("Roles Anywhere cannot be reached: {reason}"))
            }
            NoSession::Failed(failure) => failure,
        }
    }
}

impl Options {
    /// What session is wanted.
    pub(crate) fn wanted(&self) -> Result<Wanted, Failure> {
        let need = |value: &Option<String>, flag: &str| {
            value.clone().ok_or_else(|| {
                Failure::new(format!("{flag} is missing"))
                    .hint("a session needs --trust-anchor-arn, --profile-arn and --role-arn")
            })
        };
        // In the agent's file nothing else checks it.
        if self.session_duration.is_some_and(|seconds| !(900..=43_200).contains(&seconds)) {
            return Err(Failure::new("a session lasts 900 to 43200 seconds"));
        }
        Ok(Wanted {
            trust_anchor_arn: need(&self.trust_anchor_arn, "--trust-anchor-arn")?,
            profile_arn: need(&self.profile_arn, "--profile-arn")?,
            role_arn: need(&self.role_arn, "--role-arn")?,
            duration_seconds: self.session_duration,
            role_session_name: self.role_session_name.clone(),
        })
    }

    /// Reads the certificate and the key, which may have been renewed since the last time. Paths are relative to `base`.
    pub(crate) fn identity(&self, base: &Path) -> Result<Identity, Failure> {
        let missing = |flag: &str| {
            Failure::new(format!("{flag} is missing"))
                .hint("a machine shows who it is with --certificate FILE and --private-key FILE")
        };
        let path = self.certificate.as_deref().ok_or_else(|| missing("--certificate"))?;
        let path = located(path, base)?;
        let mut certificates = certificates(&path)?;
        if let Some(more) = &self.intermediates {
            certificates.extend(self::certificates(&located(more, base)?)?);
        }
        let key = self.private_key.as_deref().ok_or_else(|| missing("--private-key"))?;
        if key.starts_with(token::SCHEME) {
            return token::identity(key, base, &certificates);
        }
        let key_path = located(Path::new(key), base)?;
        let key = self.key(&key_path, base)?;
        Identity::of_key(&certificates, &key).map_err(|error| {
            Failure::file(&path, &error)
                .hint("this machine's own certificate comes first in its file, and belongs to the private key")
        })
    }

    fn key(&self, path: &Path, base: &Path) -> Result<PrivateKey, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::file(path, error);
        let bytes = Secret::new(files::read(path, MAX_FILE)?);
        let objects = object::read(bytes.expose()).map_err(|error| wrong(&error))?;
        if let Some(object) = objects.iter().find(|object| object.kind.is_bare_private_key()) {
            return PrivateKey::read(object).map_err(|error| wrong(&error));
        }
        let sealed = objects.iter().find(|object| object.kind == Kind::EncryptedPrivateKey);
        let sealed = sealed.ok_or_else(|| wrong(&"there is no private key in it"))?;
        let passphrase = self.passphrase_file.as_deref().ok_or_else(|| {
            wrong(&"the private key has a passphrase").hint("give --passphrase-file FILE")
        })?;
        let passphrase = secret_line(&located(passphrase, base)?)?;
        let opened = encrypted::decrypt(sealed.der.expose(), &passphrase);
        let opened = opened.map_err(|error| wrong(&error))?;
        PrivateKey::parse(opened.expose()).map_err(|error| wrong(&error))
    }
}

/// Gets a session.
pub(crate) async fn create_session(
    link: &mut Link,
    wanted: &Wanted,
    identity: &Identity,
) -> Result<Session, NoSession> {
    let now = system_clock().div_euclid(1000);
    let not_after = identity.certificate().not_after();
    if now > not_after {
        let end = outlast_pki::time::rfc3339(not_after);
        return Err(NoSession::Failed(
            Failure::new(format!("this machine's certificate ended at {end}"))
                .hint("outlast credentials enroll gets a new one"),
        ));
    }
    let request = session::request(wanted, identity, link.authority(), link.region(), now)
        .map_err(|error| NoSession::Failed(Failure::new(error.to_string())))?;
    let response = link.send(request, TIMEOUT).await.map_err(|error| match error {
        LinkError::Client(error @ (ClientError::Connect { .. } | ClientError::Http(_))) => {
            NoSession::Away(link.failure(error).message().to_owned())
        }
        LinkError::Client(error) => NoSession::Failed(link.failure(error)),
        LinkError::Timeout => NoSession::Away("no answer in time".to_owned()),
    })?;
    let kind = response.headers().get("x-amzn-errortype").and_then(|value| value.to_str().ok());
    session::answer(response.status().as_u16(), kind, response.body()).map_err(|error| match error {
        SessionError::Away(_) => NoSession::Away(error.to_string()),
        SessionError::Refused { ref code, .. } => {
            let hint = match code.as_str() {
                "AccessDeniedException" => Some(
                    "check that the trust anchor, the profile and the role are enabled and know this certificate",
                ),
                "ValidationException" => Some("check the ARNs and this machine's clock"),
                _ => None,
            };
            let failure = Failure::new(error.to_string());
            NoSession::Failed(match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            })
        }
        error => NoSession::Failed(Failure::new(error.to_string())),
    })
}

/// Sessions, one after the other: each is renewed before it ends, from the files as they are then.
pub(crate) struct Sessions {
    options: Options,
    base: PathBuf,
    link: Link,
    session: Option<Session>,
    retry_at: i64,
}

impl Sessions {
    /// Gets a session when one is asked for. Paths are relative to `base`.
    pub(crate) fn new(options: Options, base: PathBuf, link: Link) -> Self {
        Self { options, base, link, session: None, retry_at: 0 }
    }

    /// A session that is valid now. If it cannot be renewed because the service is away, it is given until it ends; a
    /// refusal ends it at once.
    pub(crate) async fn current(&mut self) -> Result<&Session, NoSession> {
        let now = system_clock().div_euclid(1000);
        let left = self.session.as_ref().map_or(0, |session| session.expiration - now);
        if left <= RENEW_SECONDS && (left <= 0 || now >= self.retry_at) {
            self.retry_at = now + RETRY_SECONDS;
            match self.renew().await {
                Ok(()) => {}
                Err(NoSession::Away(reason)) if left > 0 => {
                    tracing::warn!(reason, "the session could not be renewed");
                }
                Err(problem) => {
                    self.session = None;
                    return Err(problem);
                }
            }
        }
        self.session.as_ref().ok_or_else(|| NoSession::Away("there is no session".to_owned()))
    }

    /// Forgets the session; returns whether there was one.
    pub(crate) fn forget(&mut self) -> bool {
        self.session.take().is_some()
    }

    async fn renew(&mut self) -> Result<(), NoSession> {
        let identity = self.options.identity(&self.base).map_err(NoSession::Failed)?;
        let wanted = self.options.wanted().map_err(NoSession::Failed)?;
        let session = create_session(&mut self.link, &wanted, &identity).await?;
        let end = outlast_pki::time::rfc3339(session.expiration);
        tracing::info!(access_key_id = session.access_key_id, end, "Roles Anywhere gave a session");
        self.session = Some(session);
        Ok(())
    }
}

/// Where a file is: a credential of the service manager, or a path relative to `base`.
pub(crate) fn located(path: &Path, base: &Path) -> Result<PathBuf, Failure> {
    let Some(name) = path.to_str().and_then(|text| text.strip_prefix(CREDENTIAL)) else {
        return Ok(base.join(path));
    };
    if name.is_empty() || name.contains('/') {
        return Err(Failure::new(format!("{CREDENTIAL}{name} does not name a credential")));
    }
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY").ok_or_else(|| {
        Failure::new(format!("{CREDENTIAL}{name}: no credentials were passed to this process"))
            .hint(format!(
                "the unit needs LoadCredential={name}:FILE or LoadCredentialEncrypted={name}:FILE"
            ))
    })?;
    Ok(PathBuf::from(folder).join(name))
}

/// The contents of a file without the line's end.
pub(crate) fn secret_line(path: &Path) -> Result<Secret, Failure> {
    let bytes = Secret::new(files::read(path, MAX_FILE)?);
    let text = bytes.expose();
    let end = text.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(end);
    let line = text.get(start..end).unwrap_or_default();
    if line.is_empty() {
        return Err(Failure::file(path, &"the file is empty"));
    }
    Ok(Secret::new(line.to_vec()))
}

fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    pem::read_certificates(&files::read(path, MAX_FILE)?)
        .map_err(|error| Failure::file(path, &error))
}
