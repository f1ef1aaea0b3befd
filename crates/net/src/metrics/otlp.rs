//! Pushes the numbers to a collector of OpenTelemetry: OTLP over HTTP, `http/protobuf`.
//!
//! OpenTelemetry's own library makes the messages and keeps the time; it reads `OTEL_RESOURCE_ATTRIBUTES`,
//! `OTEL_SERVICE_NAME` and `OTEL_EXPORTER_OTLP_HEADERS` itself. Its messages go out through this program's client, so that
//! the way to the collector is post-quantum like any other.

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

use super::table::{BOUNDS_MICROS, Head, Pairs, Readable, Samples};
use super::{HANDSHAKE_SECONDS, Metrics, Pushed, REQUEST_SECONDS};
use crate::client::Connector;
use crate::exchange::Origin;
use crate::limits;

/// Where to push, and how often.
pub struct Settings {
    /// `https://host[:port]/path`, or `http://`: all of it, with `/v1/metrics`.
    pub endpoint: String,
    /// How to connect by TLS; none where the endpoint is plain HTTP.
    pub connector: Option<Connector>,
    /// From one push to the next.
    pub interval: Duration,
    /// How long a push may take.
    pub timeout: Duration,
}

/// Pushes until it is stopped.
pub struct Push(SdkMeterProvider);

impl Push {
    /// Starts. Must be called where futures run.
    ///
    /// # Errors
    /// What is wrong with the settings, for people.
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
        // A second push of the same numbers would need other histograms; there is none.
        let _ = metrics.pushed.set(Pushed {
            handshake_seconds: histogram(&meter, HANDSHAKE_SECONDS.head()),
            request_seconds: histogram(&meter, REQUEST_SECONDS.head()),
        });
        Ok(Self(provider))
    }

    /// Pushes a last time, and stops.
    pub async fn stop(self) {
        let (sender, receiver) = oneshot::channel();
        // A thread of its own: the runtime would wait for one of its own, however long the collector takes.
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
    // What the library says where nobody gave a name.
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

/// UCUM; none for counts: those who write `1` get ratios.
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

/// Has a table read at each push.
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
        // Distributions cannot be observed from outside: they have histograms of their own.
        Samples::Spreads(_) => {}
    }
}

fn key_values(labels: Pairs) -> Vec<KeyValue> {
    labels.into_iter().map(|(name, value)| KeyValue::new(name, value)).collect()
}

/// The way to the collector. The library calls it on a thread of its own.
struct Collector {
    origin: Origin,
    authority: HeaderValue,
    connector: Option<Connector>,
    timeout: Duration,
    handle: Handle,
    /// Whether the last push failed: it is said once.
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
            .map_err(|_| "it is no URL such as http://host:4318".to_owned())?;
        if !matches!(uri.scheme_str(), Some("https" | "http")) {
            return Err("it must begin with https:// or http://".into());
        }
        let origin = Origin::of(&uri).ok_or("it must have a host, and no user or password")?;
        if origin.is_tls && settings.connector.is_none() {
            return Err("there is nothing to trust it by".into());
        }
        Ok(Self {
            authority: origin.authority.parse().map_err(|_| "its host cannot be sent")?,
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
                // On a connection of its own: there is one a minute.
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
