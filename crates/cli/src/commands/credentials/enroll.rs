//! `outlast credentials enroll`: a machine makes its ML-DSA key, gets its certificate by ACME, and renews it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_agent::acme::{Signer, renew_at};
use outlast_crypto::Secret;
use outlast_crypto::keys::{Form, KeySpec};
use outlast_net::server::system_clock;
use outlast_pki::certificate::Certificate;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::object::{Kind, Object};
use outlast_pki::{object, pem, time};

use crate::anywhere::acme::{Conversation, split};
use crate::anywhere::challenge::Solver;
use crate::anywhere::{Link, located, secret_line};
use crate::commands::proxy::Signals;
use crate::commands::server::start_log;
use crate::failure::{Failure, USAGE};
use crate::profile::Reach;
use crate::{files, output, values};

/// Largest file that is read, in bytes.
const MAX_FILE: usize = 1 << 20;
/// Types of challenges.
const HTTP: &str = "http-01";
const TLS_ALPN: &str = "tls-alpn-01";
const DNS: &str = "dns-01";
/// Type of account keys.
const ACCOUNT_KEY: &str = "ML_DSA_65";
/// Pause before the next look at the certificate, and after a failure.
const LOOK: Duration = Duration::from_secs(3600);
const AGAIN: Duration = Duration::from_secs(60);

/// Arguments of `enroll`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Directory of the ACME server.
    #[arg(long, value_name = "URL")]
    directory: String,
    /// Name of this machine in the certificate; may be repeated.
    #[arg(long = "name", required = true, value_name = "DNS-NAME")]
    names: Vec<String>,
    /// Where the certificate and its chain are written, PEM.
    #[arg(long, env = "OUTLAST_CERTIFICATE", value_name = "FILE")]
    certificate: PathBuf,
    /// Private key: made if the file does not exist.
    #[arg(long, env = "OUTLAST_PRIVATE_KEY", value_name = "FILE")]
    private_key: PathBuf,
    /// Key of the ACME account: made if the file does not exist [default: the private key's file with .account added].
    #[arg(long, value_name = "FILE")]
    account_key: Option<PathBuf>,
    /// Type of the private key.
    #[arg(long, default_value = "ML_DSA_65", value_parser = ["ML_DSA_44", "ML_DSA_65", "ML_DSA_87"])]
    key_spec: String,
    /// External account binding: its id. Needed once.
    #[arg(long, value_name = "ID", requires = "eab_key_file")]
    eab_kid: Option<String>,
    /// File with its key, base64url.
    #[arg(long, value_name = "FILE", requires = "eab_kid")]
    eab_key_file: Option<PathBuf>,
    /// How the names are validated: http-01, tls-alpn-01 or dns-01 [default: http-01, or dns-01 with --dns-hook].
    #[arg(long, value_name = "TYPE", value_parser = [HTTP, TLS_ALPN, DNS], hide_possible_values = true)]
    challenge: Option<String>,
    /// Address and port at which http-01 or tls-alpn-01 is answered while a name is validated [default: 0.0.0.0:80, for
    /// tls-alpn-01 0.0.0.0:443].
    #[arg(long, value_name = "ADDRESS", value_parser = values::address, conflicts_with = "dns_hook")]
    listen: Option<SocketAddr>,
    /// Program that answers dns-01, called as PROGRAM present|cleanup NAME VALUE: NAME is the TXT record's, VALUE its text.
    #[arg(long, value_name = "PROGRAM")]
    dns_hook: Option<PathBuf>,
    /// Get or renew the certificate if it is time, and end; otherwise stay and renew it when a third of its life is left.
    #[arg(long)]
    once: bool,
    /// Renew it even if it is not time yet.
    #[arg(long, requires = "once")]
    force: bool,
    /// Trusted CAs for the ACME server's certificate, PEM.
    #[arg(long, env = "AWS_CA_BUNDLE", value_name = "FILE")]
    ca_bundle: PathBuf,
    /// Security policy: see `outlast policy list` [default: 2026-11].
    #[arg(long, env = "OUTLAST_POLICY", value_name = "NAME", value_parser = values::tls_policies(), hide_possible_values = true)]
    policy: Option<String>,
    /// Whether the ACME server must do post-quantum key exchange: require, or prefer [default: require].
    #[arg(long, env = "OUTLAST_MODE", value_parser = ["require", "prefer"])]
    mode: Option<String>,
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast=debug [default: info].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
}

/// Gets a certificate, and renews it until SIGTERM or SIGINT.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    start_log(arguments.log.as_deref().unwrap_or("info"))?;
    let solver = arguments.solver()?;
    let mut signals = Signals::new()?;
    let mut is_first = true;
    loop {
        let due = arguments.due()?;
        let now = system_clock().div_euclid(1000);
        let is_due = arguments.force || due.is_none_or(|due| now >= due);
        let mut pause = LOOK;
        if is_due {
            match arguments.enroll(&solver).await {
                Ok(not_after) => {
                    let end = time::rfc3339(not_after);
                    let place = arguments.certificate.display();
                    output::line(&format!("wrote {place}, valid until {end}"));
                }
                // There is a certificate, and time to try again.
                Err(failure) if !is_first && !arguments.once => {
                    tracing::error!(error = failure.message(), "the certificate was not renewed");
                    pause = AGAIN;
                }
                Err(failure) => return Err(failure),
            }
        } else if is_first {
            let due = time::rfc3339(due.unwrap_or(now));
            output::line(&format!("{} is renewed at {due}", arguments.certificate.display()));
        }
        if arguments.once {
            return Ok(());
        }
        is_first = false;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            goes_on = signals.next() => if !goes_on { return Ok(()) },
        }
    }
}

impl Arguments {
    /// How names are validated.
    fn solver(&self) -> Result<Solver, Failure> {
        let at = |port: u16| {
            self.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
        };
        match (self.challenge.as_deref(), &self.dns_hook) {
            (None | Some(HTTP), None) => Ok(Solver::Http(at(80))),
            (Some(TLS_ALPN), None) => Ok(Solver::TlsAlpn(at(443))),
            (None | Some(DNS), Some(hook)) => Ok(Solver::Dns(hook.clone())),
            (_, None) => Err(Failure::new("dns-01 needs a program that writes the TXT record")
                .hint("give --dns-hook PROGRAM")
                .code(USAGE)),
            (Some(other), Some(_)) => Err(Failure::new(format!("--dns-hook is not for {other}"))
                .hint("leave one of the two out")
                .code(USAGE)),
        }
    }

    /// When the certificate must be renewed; `None` if there is none yet.
    fn due(&self) -> Result<Option<i64>, Failure> {
        if !files::exists(&self.certificate)? || !files::exists(&self.private_key)? {
            return Ok(None);
        }
        let wrong = |error: &dyn std::fmt::Display| Failure::file(&self.certificate, error);
        let chain = pem::read_certificates(&files::read(&self.certificate, MAX_FILE)?);
        let chain = chain.map_err(|error| wrong(&error))?;
        let first = chain.first().ok_or_else(|| wrong(&"there is no certificate in it"))?;
        let certificate = Certificate::parse(first).map_err(|error| wrong(&error))?;
        Ok(Some(renew_at(certificate.not_before(), certificate.not_after())))
    }

    /// Gets a certificate; returns its end.
    async fn enroll(&self, solver: &Solver) -> Result<i64, Failure> {
        let account_key = self.account_key.clone().unwrap_or_else(|| {
            let mut name = self.private_key.clone().into_os_string();
            name.push(".account");
            name.into()
        });
        let account = key(&account_key, ACCOUNT_KEY)?;
        let machine = key(&self.private_key, &self.key_spec)?;
        let (endpoint_url, _) = split(&self.directory)?;
        let reach = Reach {
            endpoint_url,
            // Nothing is signed for a Region.
            region: String::new(),
            ca_bundle: self.ca_bundle.clone(),
            client: None,
        };
        let link = Link::new(&reach, self.policy.as_deref(), self.mode.as_deref())?;
        let binding = match (&self.eab_kid, &self.eab_key_file) {
            (Some(id), Some(path)) => Some((id, secret_line(&located(path, Path::new(""))?)?)),
            _ => None,
        };
        let mut conversation = Conversation::open(link, &self.directory, &account).await?;
        conversation.account(binding.as_ref().map(|(id, key)| (id.as_str(), key))).await?;
        let request = machine.request(&self.names);
        let request = request.map_err(|error| Failure::new(error.to_string()))?;
        let chain = conversation.certificate(&self.names, &request, solver).await?;
        let certificates = pem::read_certificates(&chain)?;
        let first = certificates.first().map(|der| Certificate::parse(der)).transpose()?;
        let leaf = first.ok_or_else(|| Failure::new("the ACME server sent no certificate"))?;
        if leaf.public_key()? != machine.public_key() {
            return Err(Failure::new("the ACME server sent a certificate for another key"));
        }
        let text = pem::chain(certificates.iter().map(Vec::as_slice));
        files::write(&self.certificate, text.as_bytes(), 0o644)?;
        Ok(leaf.not_after())
    }
}

/// The key in a file; a new one if there is no file.
fn key(path: &Path, spec: &str) -> Result<Signer, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::file(path, error);
    if !files::exists(path)? {
        let spec = KeySpec::by_name(spec).ok_or_else(|| wrong(&"the type of key is unknown"))?;
        // AWS's helper reads ML-DSA keys in this form only.
        let der = spec.to_form(&spec.generate()?, Form::Both)?;
        let text = Object { kind: Kind::PrivateKey, der }.to_pem()?;
        files::write(path, text.expose(), 0o600)?;
    }
    let bytes = Secret::new(files::read(path, MAX_FILE)?);
    let objects = object::read(bytes.expose()).map_err(|error| wrong(&error))?;
    let object = objects.iter().find(|object| object.kind.is_bare_private_key());
    let object = object.ok_or_else(|| wrong(&"there is no unencrypted private key in it"))?;
    let key = PrivateKey::read(object).map_err(|error| wrong(&error))?;
    Signer::of(&key).map_err(|error| wrong(&error))
}
