//! `outlast agent`: secrets of Secrets Manager for the programs of this machine.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use super::proxy::Signals;
use super::server::start_log;
use crate::agent::config::{File, Settings};
use crate::agent::{Listeners, Running};
use crate::failure::Failure;
use crate::listeners::{listen_at, raise_open_files};
use crate::profile::Connection;
use crate::{dumps, output, runtime};

/// Arguments of `agent`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Configuration file; the keys of AWS's Secrets Manager Agent are understood.
    #[arg(long, short, env = "OUTLAST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Whether Secrets Manager must do post-quantum key exchange: require, or prefer [default: require].
    #[arg(long, env = "OUTLAST_MODE", value_parser = ["require", "prefer"])]
    mode: Option<String>,
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast=debug [default: log_level of the
    /// file, or info].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Serves until SIGTERM or SIGINT. SIGHUP forgets all secrets and renders the files again.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = File::load(arguments.config.as_deref())?;
    let base = match arguments.config.as_deref().and_then(Path::parent) {
        Some(folder) => folder.to_path_buf(),
        None => PathBuf::new(),
    };
    // Before a secret is read: neither a debugger of the same user nor a core dump may have it.
    dumps::refuse();
    let settings = file.settings(&base, &arguments.connection, arguments.mode.as_deref())?;
    start_log(arguments.log.as_deref().unwrap_or(&settings.log))?;
    raise_open_files();
    // One thread: it answers a request in some ten microseconds, and each thread costs memory.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .build()
        .map_err(|error| runtime::cannot_start(&error))?;
    runtime.block_on(serve(settings))
}

async fn serve(mut settings: Settings) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let metrics = std::mem::take(&mut settings.metrics).keep()?;
    let tcp = settings.tcp.map(|at| listen_at(at, "http_port")).transpose()?;
    let socket = settings.socket.clone();
    let unix = socket.as_ref().map(|(path, mode)| listen_unix(path, *mode)).transpose()?;
    let mut lines = Vec::new();
    lines.extend(tcp.as_ref().map(|(_, address)| format!("listening on http://{address}")));
    lines.extend(socket.as_ref().map(|(path, _)| format!("listening on unix:{}", path.display())));
    let address = metrics.as_ref().and_then(|metrics| metrics.address);
    lines.extend(address.map(|address| format!("metrics on http://{address}/metrics")));
    let listeners = Listeners { tcp: tcp.map(|(listener, _)| listener), unix };
    let counted = metrics.as_ref().map(|kept| kept.metrics.clone());
    let running = Running::start(settings, listeners, counted.as_deref()).await?;
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let stopping = async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let metrics = metrics.map(|metrics| metrics.go(stopping)).transpose()?;
    lines.iter().for_each(|line| output::line(line));
    while signals.next().await {
        running.again();
        tracing::info!("all secrets were forgotten, and the files are rendered again");
    }
    running.stop().await;
    if let Some((path, _)) = socket {
        let _ = std::fs::remove_file(path);
    }
    let _ = stop.send(true);
    if let Some(metrics) = metrics {
        metrics.end().await;
    }
    Ok(())
}

/// Binds the socket. One that an agent left behind is replaced; one that answers is not.
fn listen_unix(path: &Path, mode: u32) -> Result<UnixListener, Failure> {
    let failed = |error: &std::io::Error| Failure::file(path, error);
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(Failure::file(path, &"there is something else that is not a socket"));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(Failure::file(path, &"another process listens at this socket"));
        }
        std::fs::remove_file(path).map_err(|error| failed(&error))?;
    }
    let listener = UnixListener::bind(path).map_err(|error| failed(&error))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|error| failed(&error))?;
    Ok(listener)
}
