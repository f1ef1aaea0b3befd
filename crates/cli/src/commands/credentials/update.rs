//! `outlast credentials update`: credentials in AWS's credentials file, for programs that read nothing else.

use std::path::Path;
use std::time::Duration;

use outlast_agent::session::Session;
use outlast_crypto::Secret;
use outlast_net::server::system_clock;

use super::Machine;
use crate::anywhere::{NoSession, RENEW_SECONDS};
use crate::commands::proxy::Signals;
use crate::commands::server::start_log;
use crate::credentials_file::{Written, with};
use crate::failure::Failure;
use crate::{files, output};

/// Largest credentials file that is read, in bytes.
const MAX_FILE: usize = 1 << 20;
/// Time to the next attempt when the service is away.
const AGAIN: Duration = Duration::from_secs(10);

/// Arguments of `update`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: Machine,
    /// Write them once and end.
    #[arg(long)]
    once: bool,
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast=debug [default: info].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
}

/// Writes credentials, until SIGTERM or SIGINT.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    start_log(arguments.log.as_deref().unwrap_or("info"))?;
    let mut signals = Signals::new()?;
    let (profile, path) = arguments.machine.connection.credentials_file();
    let mut sessions = arguments.machine.sessions()?;
    let mut is_first = true;
    loop {
        let pause = match sessions.current().await {
            Ok(session) => {
                write(&path, &profile, session)?;
                if is_first {
                    output::line(&format!("wrote profile {profile} in {}", path.display()));
                }
                is_first = false;
                let left = session.expiration - system_clock().div_euclid(1000) - RENEW_SECONDS;
                Duration::from_secs(u64::try_from(left).unwrap_or_default()).max(AGAIN)
            }
            Err(NoSession::Away(reason)) if !arguments.once => {
                tracing::warn!(reason, "there are no new credentials");
                AGAIN
            }
            Err(problem) => return Err(problem.into()),
        };
        if arguments.once {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // SIGHUP writes them again.
            goes_on = signals.next() => if !goes_on { return Ok(()) },
        }
    }
}

fn write(path: &Path, profile: &str, session: &Session) -> Result<(), Failure> {
    let old = match files::exists(path)? {
        true => files::read(path, MAX_FILE)?,
        false => {
            if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
                files::make_private_folder(folder)?;
            }
            Vec::new()
        }
    };
    let Session { access_key_id, secret, token, .. } = session;
    let text = with(&Secret::new(old), profile, &Written { access_key_id, secret, token });
    files::write(path, text.expose(), 0o600)
}
