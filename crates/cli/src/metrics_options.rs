//! Metrics of a server: the address for Prometheus, and the targets in OpenTelemetry's variables.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_net::client::Connector;
use outlast_net::metrics::otlp::{self, Push};
use outlast_net::metrics::{Metrics, scrape};
use outlast_net::policy::Policy;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::listeners::listen_at;
use crate::{settings, trust, values};

/// The settings and the environment, checked.
#[derive(Default)]
pub(crate) struct Settings {
    listen: Option<SocketAddr>,
    push: Option<PushSettings>,
}

#[derive(Debug, PartialEq)]
struct PushSettings {
    endpoint: String,
    certificates: Option<PathBuf>,
    interval: Duration,
    timeout: Duration,
}

/// The registry of metrics, and its outlets.
pub(crate) struct Kept {
    /// The registry.
    pub(crate) metrics: Arc<Metrics>,
    /// Address at which they can be read.
    pub(crate) address: Option<SocketAddr>,
    settings: Option<PushSettings>,
    listener: Option<tokio::net::TcpListener>,
}

/// Keeps the outlets running.
pub(crate) struct Going {
    push: Option<Push>,
    serving: Option<JoinHandle<()>>,
}

impl Settings {
    /// Checks the settings and OpenTelemetry's variables.
    pub(crate) fn choose(settings: settings::Metrics) -> Result<Self, Failure> {
        let listen = match settings.metrics_listen.as_deref() {
            None | Some("off") => None,
            Some(text) => Some(values::address(text).map_err(|error| {
                Failure::new(error)
                    .hint("give --metrics-listen an address such as 127.0.0.1:9464, or off")
                    .about("metrics_listen")
            })?),
        };
        Ok(Self { listen, push: push_settings(|name| std::env::var(name).ok())? })
    }

    /// Makes the registry, unless there is no outlet. Binds the address, so that a conflict is noticed early.
    pub(crate) fn keep(self) -> Result<Option<Kept>, Failure> {
        if self.listen.is_none() && self.push.is_none() {
            return Ok(None);
        }
        let at = self.listen.map(|at| listen_at(at, "--metrics-listen")).transpose()?;
        let address = at.as_ref().map(|(_, address)| *address);
        let listener = at.map(|(listener, _)| listener);
        Ok(Some(Kept { metrics: Arc::default(), address, settings: self.push, listener }))
    }
}

impl Kept {
    /// Runs the outlets until `stop` is ready. All metrics must be registered by now.
    pub(crate) fn go(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Going, Failure> {
        let push = self.settings.map(|settings| settings.start(&self.metrics)).transpose()?;
        let serving =
            self.listener.map(|listener| tokio::spawn(scrape::serve(self.metrics, listener, stop)));
        Ok(Going { push, serving })
    }
}

impl Going {
    /// Waits for the listener's end, and pushes a last time.
    pub(crate) async fn end(self) {
        if let Some(serving) = self.serving {
            let _ = serving.await;
        }
        if let Some(push) = self.push {
            push.stop().await;
        }
    }
}

impl PushSettings {
    fn start(self, metrics: &Arc<Metrics>) -> Result<Push, Failure> {
        let unusable = |reason: String| {
            Failure::new(format!("metrics cannot be pushed to {}: {reason}", place(&self.endpoint)))
        };
        let connector = match &self.certificates {
            Some(path) => Some(
                Connector::new(&Policy::default(), &trust::load(path)?)
                    .map_err(|error| unusable(error.to_string()))?,
            ),
            None if self.endpoint.starts_with("https://") => {
                return Err(unusable("no certificates to trust are configured".into())
                    .hint("set OTEL_EXPORTER_OTLP_CERTIFICATE to a PEM file"));
            }
            None => None,
        };
        let settings = otlp::Settings {
            endpoint: self.endpoint.clone(),
            connector,
            interval: self.interval,
            timeout: self.timeout,
        };
        Push::start(metrics, settings).map_err(unusable)
    }
}

/// Scheme, host and port of a URL: the rest may have a password.
fn place(endpoint: &str) -> String {
    let (scheme, rest) = endpoint.split_once("://").unwrap_or(("", endpoint));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => host,
        // Perhaps a password with a slash in it: better to show too little than too much.
        None if rest.contains('@') => "?",
        None => authority,
    };
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

/// Reads OpenTelemetry's variables: the specification's "SDK environment variables" and "OTLP exporter". Unlike
/// there, metrics are pushed only if a variable asks for it.
fn push_settings(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<PushSettings>, Failure> {
    // By the specification an empty value counts as unset.
    let variable = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    // Variables for metrics take precedence over those for all signals.
    let exporter = |name: &str| {
        [format!("OTEL_EXPORTER_OTLP_METRICS_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")]
            .into_iter()
            .find_map(|name| variable(&name).map(|value| (name, value)))
    };
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let is_wanted = match variable("OTEL_METRICS_EXPORTER").as_deref() {
        Some("none") => return Ok(None),
        Some("otlp") => true,
        Some(other) => {
            return Err(Failure::new(format!("OTEL_METRICS_EXPORTER is {other}"))
                .hint("use otlp or none; for Prometheus, use --metrics-listen"));
        }
        None => false,
    };
    let endpoint = match exporter("ENDPOINT") {
        Some((name, value)) if name.contains("_METRICS_") => value,
        Some((_, value)) => format!("{}/v1/metrics", value.trim_end_matches('/')),
        None if is_wanted => "http://localhost:4318/v1/metrics".into(),
        None => return Ok(None),
    };
    if let Some((name, value)) = exporter("PROTOCOL").filter(|(_, value)| value != "http/protobuf")
    {
        return Err(Failure::new(format!("{name} is {value}, which is not supported")).hint(
            "set it to http/protobuf, and the endpoint to the collector's port for HTTP, 4318",
        ));
    }
    let milliseconds = |name: String, value: String| match value.parse() {
        Ok(number @ 1..=86_400_000) => Ok(Duration::from_millis(number)),
        _ => Err(Failure::new(format!("{name} is {value}, which is not a number of milliseconds"))),
    };
    let interval = variable("OTEL_METRIC_EXPORT_INTERVAL")
        .map(|value| milliseconds("OTEL_METRIC_EXPORT_INTERVAL".into(), value));
    let timeout = exporter("TIMEOUT").map(|(name, value)| milliseconds(name, value));
    Ok(Some(PushSettings {
        endpoint,
        certificates: exporter("CERTIFICATE").map(|(_, value)| value.into()),
        interval: interval.transpose()?.unwrap_or(Duration::from_secs(60)),
        timeout: timeout.transpose()?.unwrap_or(Duration::from_secs(10)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<PushSettings>, String> {
        let value = |name: &str| variables.iter().find(|row| row.0 == name).map(|row| row.1.into());
        push_settings(value).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn errors_do_not_show_passwords() {
        for (endpoint, shown) in [
            ("https://user:secret@collector:4318/v1/metrics?key=secret", "https://collector:4318"),
            ("http://collector/secret", "http://collector"),
            ("http://user:sec/ret@collector", "http://?"),
            ("user:secret@collector", "collector"),
        ] {
            assert_eq!(place(endpoint), shown);
        }
    }

    #[test]
    fn the_environment_says_where_metrics_go() {
        let endpoint = |variables: &[(&str, &str)]| {
            read(variables).unwrap().map_or_else(|| "-".into(), |found| found.endpoint)
        };
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://m/x");
        assert_eq!(endpoint(&[]), "-");
        assert_eq!(endpoint(&[all]), "http://c:4318/v1/metrics");
        assert_eq!(endpoint(&[all, own]), "https://m/x");
        assert_eq!(endpoint(&[all, ("OTEL_SDK_DISABLED", "True")]), "-");
        assert_eq!(endpoint(&[all, ("OTEL_SDK_DISABLED", "no")]), "http://c:4318/v1/metrics");
        assert_eq!(endpoint(&[all, ("OTEL_METRICS_EXPORTER", "none")]), "-");
        let exporter = ("OTEL_METRICS_EXPORTER", "otlp");
        assert_eq!(endpoint(&[exporter]), "http://localhost:4318/v1/metrics");
        assert_eq!(endpoint(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), "-");
        let found = read(&[
            all,
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
            ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ]);
        assert_eq!(
            found.unwrap().unwrap(),
            PushSettings {
                endpoint: "http://c:4318/v1/metrics".into(),
                certificates: Some("/ca.pem".into()),
                interval: Duration::from_millis(1_500),
                timeout: Duration::from_millis(2_500),
            }
        );
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "-1"),
            ("OTEL_METRICS_EXPORTER", "prometheus"),
        ] {
            let message = read(&[all, (name, value)]).unwrap_err();
            assert!(message.contains(name) && message.contains(value), "{message}");
        }
    }
}
