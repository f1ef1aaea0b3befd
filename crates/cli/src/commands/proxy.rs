//! `outlast proxy`: puts TLS in front of any other server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args as _, Id};
use outlast_ledger::{Observe, Observers};
use outlast_net::limits;
use outlast_net::proxy::{Proxy, ProxyError, Settings};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::server::start_log;
use crate::failure::Failure;
use crate::listeners::raise_open_files;
use crate::proxy_config::{Common, File, Listener, duration};
use crate::settings::{self, Located};
use crate::{dumps, ledger_options, metrics_options, output, values};

/// The options of one listener. They are refused together with a settings file, which has the same ones for each
/// listener.
fn of_one_listener() -> Vec<Id> {
    let command = Listener::augment_args(clap::Command::new(""));
    command.get_arguments().map(|argument| argument.get_id().clone()).collect()
}

/// Arguments of `proxy`.
#[derive(clap::Args)]
#[command(mut_arg("ledger", |ledger| ledger.help(
    "Folder for the ledger of connections, which the proxy does not keep without one [default: off]"
)))]
pub(crate) struct Arguments {
    /// Settings file with `[[listener]]` tables, instead of the options of one listener. SIGHUP reads it again.
    #[arg(long, env = "OUTLAST_CONFIG", conflicts_with_all = of_one_listener())]
    config: Option<PathBuf>,
    #[command(flatten)]
    listener: Listener,
    #[command(flatten)]
    ledger: settings::Ledger,
    #[command(flatten)]
    metrics: settings::Metrics,
    /// Seconds for open connections to finish after the signal to stop [default: 20].
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    grace: Option<f64>,
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast_net=debug [default: info].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
}

/// Source of the listeners' settings.
enum Source {
    File(PathBuf),
    Flags(Box<Listener>),
}

impl Source {
    /// Reads the settings and the files that they name.
    fn read(&self, common: &Common) -> Result<Vec<Settings>, Failure> {
        match self {
            Self::Flags(listener) => Ok(vec![listener.settings(Path::new(""), common)?]),
            Self::File(path) => {
                let folder = path.parent().unwrap_or_else(|| Path::new(""));
                let file = File::load(path)?;
                let several = file.listener.len() > 1;
                let settings = file.listener.into_iter().map(|mut listener| {
                    if let (true, None, Some(listen)) = (several, &listener.name, listener.listen) {
                        // Listeners are told apart by name, so one without gets a name.
                        listener.name = Some(format!("proxy-{listen}"));
                    }
                    // A wrong file is no wrong command line.
                    listener.settings(folder, common).map_err(|failure| failure.code(1))
                });
                settings.collect()
            }
        }
    }
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let (source, file) = match arguments.config {
        Some(path) => {
            let file = File::load(&path)?;
            (Source::File(path), file)
        }
        None => (Source::Flags(Box::new(arguments.listener)), File::default()),
    };
    // Before a private key is read.
    dumps::refuse();
    start_log(&arguments.log.or(file.log).unwrap_or_else(|| "info".into()))?;
    raise_open_files();
    let grace = arguments.grace.or(file.grace).map_or(Ok(limits::GRACE), duration)?;
    let from_file = settings::Metrics { metrics_listen: file.metrics_listen };
    let metrics = metrics_options::Settings::choose(arguments.metrics.or(from_file))?;
    let from_file = settings::Ledger {
        ledger: file.ledger,
        ledger_days: file.ledger_days,
        ledger_bytes: file.ledger_bytes,
    };
    let mut ledger = arguments.ledger.or(from_file);
    // Without a data folder there is no default folder for it.
    ledger.ledger.get_or_insert_with(|| Located::from(ledger_options::OFF.to_owned()));
    let ledger = ledger_options::choose(ledger, Path::new(""))?;
    let ledger_told = ledger.told();
    let ledger = ledger.open()?;
    let runtime = crate::runtime::runtime()?;
    runtime.block_on(async {
        let mut signals = Signals::new()?;
        let metrics = metrics.keep()?;
        let mut observers: Vec<Arc<dyn Observe>> =
            metrics.iter().map(|kept| kept.metrics.clone() as Arc<dyn Observe>).collect();
        observers.extend(ledger.iter().map(|ledger| ledger.clone() as Arc<dyn Observe>));
        if let (Some(kept), Some(ledger)) = (&metrics, &ledger) {
            let ledger = ledger.clone();
            kept.metrics.watch_ledger(move || ledger.lost());
        }
        let metrics_address = metrics.as_ref().and_then(|metrics| metrics.address);
        let observer =
            (!observers.is_empty()).then(|| Arc::new(Observers(observers)) as Arc<dyn Observe>);
        let counted = metrics.as_ref().map(|kept| kept.metrics.clone());
        let common = Common { observer, metrics: counted, ..Common::default() };
        let list = source.read(&common)?;
        let forwards: Vec<String> = list.iter().map(forwards).collect();
        let mut proxy = Proxy::start(list).map_err(failure)?;
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let stopping = async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let metrics = metrics.map(|metrics| metrics.go(stopping)).transpose()?;
        for (name, address) in proxy.addresses() {
            output::line(&format!("listening on {address} ({name})"));
        }
        if let Some(address) = metrics_address {
            output::line(&format!("metrics on http://{address}/metrics"));
        }
        forwards.iter().for_each(|line| output::line(line));
        output::line(&ledger_told);
        while signals.next().await {
            let read = tokio::task::block_in_place(|| source.read(&common));
            match read.and_then(|list| proxy.reload(list).map_err(failure)) {
                Ok(()) => {
                    let listeners = proxy.addresses();
                    tracing::info!(?listeners, "the settings were read again");
                }
                Err(failure) => tracing::error!(
                    error = failure.message(),
                    "the settings cannot be used: the previous ones stay in use"
                ),
            }
        }
        finish(proxy, &mut signals, grace).await;
        let _ = stop.send(true);
        if let Some(ledger) = ledger {
            tokio::task::block_in_place(|| ledger.flush());
        }
        if let Some(metrics) = metrics {
            metrics.end().await;
        }
        Ok(())
    })
}

/// The destination of a listener's connections, and their policy.
fn forwards(settings: &Settings) -> String {
    let to: Vec<String> = settings
        .backends
        .iter()
        .map(|behind| match behind.tls {
            Some(_) => format!("{} over TLS", behind.address),
            None => behind.address.to_string(),
        })
        .collect();
    let policy = settings.door.as_ref().map_or_else(
        || "without TLS".to_owned(),
        |door| format!("under policy {} in mode {}", door.rules().policy.name, door.rules().mode),
    );
    format!("{} forwards to {} {policy}", settings.name, to.join(", "))
}

/// Lets open connections finish, until a second signal.
pub(crate) async fn finish(proxy: Proxy, signals: &mut Signals, grace: Duration) {
    tracing::info!("stopping: open connections may finish");
    tokio::select! {
        () = proxy.stop(grace) => {}
        () = signals.end() => {}
    }
}

/// Signals to this process.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Starts to receive signals.
    pub(crate) fn new() -> Result<Self, Failure> {
        let receive = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("signals cannot be received: {error}")))
        };
        Ok(Self {
            terminate: receive(SignalKind::terminate())?,
            interrupt: receive(SignalKind::interrupt())?,
            hang_up: receive(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal: true to read the settings again, false to stop.
    pub(crate) async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => false,
            _ = self.interrupt.recv() => false,
            _ = self.hang_up.recv() => true,
        }
    }

    async fn end(&mut self) {
        while self.next().await {}
    }
}

/// Errors of opening listeners, with hints.
pub(crate) fn failure(error: ProxyError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        ProxyError::Listen { .. } => failure.hint("choose another address with --listen"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No option is ignored.
    #[test]
    fn flags_of_a_listener_are_not_given_beside_a_file() {
        let listener = Listener::augment_args(clap::Command::new("proxy"));
        for argument in listener.get_arguments() {
            let flag = format!("--{}", argument.get_long().unwrap());
            let mut given = vec!["proxy", "--config", "x", &flag];
            if argument.get_action().takes_values() {
                given.push("1");
            }
            let whole = Arguments::augment_args(clap::Command::new("proxy"));
            let error = whole.try_get_matches_from(given).unwrap_err();
            // A value of the wrong kind is reported first.
            let kinds = [
                clap::error::ErrorKind::ArgumentConflict,
                clap::error::ErrorKind::ValueValidation,
                clap::error::ErrorKind::InvalidValue,
            ];
            assert!(kinds.contains(&error.kind()), "{flag}: {error}");
        }
    }
}
