//! A listener for Prometheus: `/metrics` in the OpenMetrics text format, and `/healthz`, over plain HTTP/1.1.
//!
//! Deliberately without TLS and credentials: it serves only counts, and belongs on an address that only the
//! monitoring can reach.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use tokio::net::{TcpListener, TcpStream};

use super::Metrics;
use super::table::{Head, Pairs, Readable, Samples};
use crate::limits;
use crate::metrics::Tally;
use crate::server::Activity;
use crate::slots::{Number, Of, Slots};

/// Content type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics in the OpenMetrics text format.
pub fn page(metrics: &Arc<Metrics>) -> String {
    let mut registry = Registry::with_prefix("outlast");
    for readable in metrics.readables() {
        registry.register_collector(Box::new(Page(readable)));
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

struct Page(Arc<dyn Readable>);

impl fmt::Debug for Page {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.head().name)
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Head { name, help, unit } = self.0.head();
        let unit = unit.map(|unit| match unit {
            "bytes" => Unit::Bytes,
            _ => Unit::Seconds,
        });
        let samples = self.0.samples();
        let kind = match &samples {
            Samples::Counts(_) => MetricType::Counter,
            Samples::Levels(_) => MetricType::Gauge,
            Samples::Spreads(_) => MetricType::Histogram,
        };
        let mut encoder =
            encoder.encode_descriptor(name, &format!("{help}."), unit.as_ref(), kind)?;
        match samples {
            Samples::Counts(rows) => each(&mut encoder, rows, |row, count| {
                row.encode_counter::<NoLabelSet, _, f64>(&count, None)
            }),
            Samples::Levels(rows) => {
                each(&mut encoder, rows, |row, level| row.encode_gauge(&level))
            }
            Samples::Spreads(rows) => each(&mut encoder, rows, |row, spread| {
                row.encode_histogram::<NoLabelSet>(
                    spread.sum_seconds,
                    spread.count,
                    &spread.buckets,
                    None,
                )
            }),
        }
    }
}

fn each<T>(
    encoder: &mut MetricEncoder<'_>,
    rows: Vec<(Pairs, T)>,
    write: impl Fn(&mut MetricEncoder<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (labels, value) in rows {
        if labels.is_empty() {
            write(encoder, value)?;
        } else {
            write(&mut encoder.encode_family(&labels)?, value)?;
        }
    }
    Ok(())
}

/// Serves until `stop` is ready. Open scrapes are then cut off: the next one gets everything.
pub async fn serve(metrics: Arc<Metrics>, listener: TcpListener, stop: impl Future<Output = ()>) {
    // One peer may use all connections, because only the monitoring should reach this listener.
    let number = Number::of(limits::MAX_METRIC_CONNECTIONS, Some(limits::MAX_METRIC_CONNECTIONS));
    let slots = Slots::new(Of::Connections, number, Tally::default());
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let activity = Arc::new(Activity::new());
        let Ok(mut slot) = slots.enter(None, &activity) else { continue };
        let (metrics, mut stopped) = (metrics.clone(), stopped.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = connection(metrics, stream, activity) => {}
                () = slot.evicted() => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        });
    }
    let _ = stopping.send(true);
}

async fn connection(metrics: Arc<Metrics>, stream: TcpStream, activity: Arc<Activity>) {
    let touched = activity.clone();
    let service = service_fn(move |request| {
        touched.touch();
        let response = answer(&metrics, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::PLAIN_IDLE)
        .max_buf_size(limits::MAX_METRIC_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        outcome = serving => {
            if let Err(error) = outcome {
                tracing::debug!(%error, "a connection for metrics ended with an error");
            }
        }
        // A reader that takes longer than this for a response is cut off.
        () = activity.idle(limits::PLAIN_IDLE) => {}
    }
}

fn answer(metrics: &Arc<Metrics>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, kind, text) = match (request.uri().path(), request.method()) {
        ("/metrics", &Method::GET | &Method::HEAD) => (StatusCode::OK, OPEN_METRICS, page(metrics)),
        ("/healthz", &Method::GET | &Method::HEAD) => {
            (StatusCode::OK, "text/plain", "ok\n".to_owned())
        }
        ("/metrics" | "/healthz", _) => {
            (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".to_owned())
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "only /metrics and /healthz exist\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
