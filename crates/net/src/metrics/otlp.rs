//! Pushes metrics to an OpenTelemetry collector: OTLP over HTTP, `http/protobuf`.
//!
//! OpenTelemetry's own library encodes the messages and schedules them; it reads `OTEL_RESOURCE_ATTRIBUTES`,
//! `OTEL_SERVICE_NAME` and `OTEL_EXPORTER_OTLP_HEADERS` itself. This program's client sends them, so that the
//! connection to the collector is post-quantum like any other.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry::{Key, KeyValue};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{MetricExporter, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::ssh::HANDSHAKE_SECONDS as SSH_HANDSHAKE_SECONDS;
use super::table::{BOUNDS_MICROS, Head, Pairs, Readable, Samples};
use super::{HANDSHAKE_SECONDS, Metrics, Pushed, REQUEST_SECONDS};
use crate::client::Connector;
use crate::exchange::Origin;
use crate::limits;

/// Where to push and how often.
pub struct Settings {
    /// Full URL with `/v1/metrics`: `https://host[:port]/path`, or `http://`.
    pub endpoint: String,
    /// How to connect over TLS; `None` for plain HTTP.
    pub connector: Option<Connector>,
    /// Time between two pushes.
    pub interval: Duration,
    /// How long a push may take.
    pub timeout: Duration,
}

/// Pushes metrics until it is stopped.
pub struct Push(SdkMeterProvider);

impl Push {
    /// Starts pushing. Must be called inside a runtime.
    ///
    /// # Errors
    /// Fault in the settings, for people.
    pub fn start(metrics: &Arc<Metrics>, settings: Settings) -> Result<Self, String> {
        let collector = Collector::new(&settings)?;
        let exporter = MetricExporter::builder()
            .with_temporality(Temporality::Cumulative)
            .with_http()
            .with_http_client(collector)
            .with_endpoint(&settings.endpoint)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(settings.timeout)
            .build()
            .map_err(|error| error.to_string())?;
        let reader = PeriodicReader::builder(exporter).with_interval(settings.interval).build();
        let provider =
            SdkMeterProvider::builder().with_resource(resource()).with_reader(reader).build();
        let meter = provider.meter("outlast");
        for readable in metrics.readables() {
            observe(&meter, readable);
        }
        // Pushing the same metrics twice would need other histograms, which do not exist.
        let _ = metrics.pushed.set(Pushed {
            handshake_seconds: histogram(&meter, HANDSHAKE_SECONDS.head()),
            ssh_handshake_seconds: histogram(&meter, SSH_HANDSHAKE_SECONDS.head()),
            request_seconds: histogram(&meter, REQUEST_SECONDS.head()),
        });
        Ok(Self(provider))
    }

    /// Pushes a last time and stops.
    pub async fn stop(self) {
        let (sender, receiver) = oneshot::channel();
        // On its own thread, because the runtime would wait for one of its threads however long the collector takes.
        std::thread::spawn(move || {
            let _ = self.0.shutdown();
            let _ = sender.send(());
        });
        let _ = timeout(limits::LAST_PUSH, receiver).await;
    }
}

fn resource() -> Resource {
    let builder = || {
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        Resource::builder().with_attribute(version)
    };
    let resource = builder().build();
    // The library's default if no name is set.
    let unnamed = |name: opentelemetry::Value| name.as_str().starts_with("unknown_service");
    if resource.get(&Key::from_static_str("service.name")).is_none_or(unnamed) {
        return builder().with_service_name("outlast").build();
    }
    resource
}

/// `outlast.tls.handshakes`
fn name(head: Head) -> String {
    let (area, rest) = head.name.split_once('_').unwrap_or((head.name, ""));
    let rest = rest.replace('_', ".");
    if rest.is_empty() { format!("outlast.{area}") } else { format!("outlast.{area}.{rest}") }
}

/// UCUM unit; none for counts, because `1` would make them ratios.
fn unit(head: Head) -> &'static str {
    match head.unit {
        Some("seconds") => "s",
        Some(_) => "By",
        None => "",
    }
}

fn histogram(meter: &Meter, head: Head) -> opentelemetry::metrics::Histogram<f64> {
    let bounds = BOUNDS_MICROS.iter().map(|micros| *micros as f64 / 1e6).collect();
    meter
        .f64_histogram(name(head))
        .with_description(head.help)
        .with_unit(unit(head))
        .with_boundaries(bounds)
        .build()
}

/// Reads a table at each push.
fn observe(meter: &Meter, readable: Arc<dyn Readable>) {
    let head = readable.head();
    match readable.samples() {
        Samples::Counts(_) => {
            let counter = meter.u64_observable_counter(name(head));
            let counter = counter.with_description(head.help).with_unit(unit(head));
            counter
                .with_callback(move |observer| {
                    if let Samples::Counts(rows) = readable.samples() {
                        for (labels, count) in rows {
                            observer.observe(count, &key_values(labels));
                        }
                    }
                })
                .build();
        }
        Samples::Levels(_) => {
            let gauge = meter.i64_observable_gauge(name(head));
            let gauge = gauge.with_description(head.help).with_unit(unit(head));
            gauge
                .with_callback(move |observer| {
                    if let Samples::Levels(rows) = readable.samples() {
                        for (labels, level) in rows {
                            observer.observe(level, &key_values(labels));
                        }
                    }
                })
                .build();
        }
        // Distributions cannot be observed from outside; they have their own histograms.
        Samples::Spreads(_) => {}
    }
}

fn key_values(labels: Pairs) -> Vec<KeyValue> {
    labels.into_iter().map(|(name, value)| KeyValue::new(name, value)).collect()
}

/// Connection to the collector. The library calls it on its own thread.
struct Collector {
    origin: Origin,
    authority: HeaderValue,
    connector: Option<Connector>,
    timeout: Duration,
    handle: Handle,
    /// Whether the last push failed, so that a failure is logged once.
    failing: Arc<AtomicBool>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.origin.host, self.origin.port)
    }
}

impl Collector {
    fn new(settings: &Settings) -> Result<Self, String> {
        let uri: Uri = settings
            .endpoint
            .parse()
            .map_err(|_| "it is not a URL such as http://host:4318".to_owned())?;
        if !matches!(uri.scheme_str(), Some("https" | "http")) {
            return Err("it must begin with https:// or http://".into());
        }
        let origin = Origin::of(&uri).ok_or("it must have a host, and no user or password")?;
        if origin.is_tls && settings.connector.is_none() {
            return Err("there are no CA certificates to verify it with".into());
        }
        Ok(Self {
            authority: origin
                .authority
                .parse()
                .map_err(|_| "its host cannot be sent in a header")?,
            origin,
            connector: settings.connector.clone(),
            timeout: settings.timeout,
            handle: Handle::current(),
            failing: Arc::default(),
        })
    }
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(&'a self, mut request: Request<Bytes>) -> Sending<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            *request.uri_mut() = path.parse()?;
            request.headers_mut().insert(HOST, self.authority.clone());
            let (connector, origin) = (self.connector.clone(), self.origin.clone());
            let limit = self.timeout;
            let sending = self.handle.spawn(async move {
                // On a new connection, because there is about one a minute.
                let exchange = origin.exchange(connector.as_ref(), request, |_| limits::MAX_ANSWER);
                let outcome = timeout(limit, exchange).await.map_err(|_| "no answer in time")?;
                Ok::<_, HttpError>(outcome?)
            });
            let outcome = sending.await.unwrap_or_else(|error| Err(error.into()));
            let problem = match &outcome {
                Ok(response) if response.status().is_success() => None,
                Ok(response) => Some(format!("the answer is {}", response.status())),
                Err(error) => Some(error.to_string()),
            };
            let failed_before = self.failing.swap(problem.is_some(), Ordering::Relaxed);
            match problem {
                Some(problem) if !failed_before => {
                    tracing::warn!(%problem, collector = ?self, "metrics could not be pushed");
                }
                None if failed_before => tracing::info!("metrics are pushed again"),
                _ => {}
            }
            outcome
        })
    }
}
