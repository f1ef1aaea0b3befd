//! Metrics: a mix of real handshakes, as Prometheus reads them and as an OpenTelemetry collector receives them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_ledger::{End, Handshake, Observe, Outcome, Served};
use outlast_negotiate::{Mode, Rules};
use outlast_net::certificate::{KINDS, ServiceCertificate, ensure};
use outlast_net::client::Connector;
use outlast_net::door::{Door, Settings};
use outlast_net::metrics::{Metrics, otlp, scrape};
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, system_clock};
use outlast_pki::pem;
use outlast_store::memory::MemoryStore;
use outlast_testing::PATIENCE;
use prost::Message;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

struct World {
    chain: ServiceCertificate,
    metrics: Arc<Metrics>,
}

fn world() -> World {
    let store = MemoryStore::new();
    let root = RootKey::generate().unwrap();
    let mut work = Work::new(&store, &root, system_clock());
    let chain =
        ensure(&mut work, &KINDS[0], &["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    World { chain, metrics: Arc::new(Metrics::new()) }
}

impl World {
    fn door(&self, listener: &str, mode: Mode) -> Door {
        let settings = Settings {
            listener: listener.into(),
            rules: Rules { mode, ..Rules::default() },
            observer: Some(self.metrics.clone()),
            ..Settings::with_protocols(PROTOCOLS)
        };
        Door::new(settings, vec![self.chain.certificate(&KINDS[0])], None).unwrap()
    }

    fn roots(&self) -> Vec<Vec<u8>> {
        pem::read_certificates(self.chain.root_pem.as_bytes()).unwrap()
    }

    /// A client with these groups does a handshake and leaves.
    async fn connect(&self, door: &Door, groups: &[&str]) {
        let mut roots = RootCertStore::empty();
        for der in self.roots() {
            roots.add(CertificateDer::from(der)).unwrap();
        }
        let provider = Policy::named(groups).unwrap().provider();
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (client, server) = tokio::io::duplex(64 * 1024);
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let client = async {
            if let Ok(mut stream) = connector.connect(name, client).await {
                // Reads until the server has closed, because it still sends tickets.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        };
        let server = async { drop(door.accept(server, None).await) };
        tokio::join!(client, server);
    }

    /// Four hybrid handshakes, one of them with HelloRetryRequest, two classical ones, three refusals and one
    /// failure.
    async fn mix(&self) {
        let api = self.door("api", Mode::Prefer);
        for _ in 0..3 {
            self.connect(&api, &["X25519MLKEM768", "x25519"]).await;
        }
        self.connect(&api, &["x25519", "X25519MLKEM768"]).await;
        for _ in 0..2 {
            self.connect(&api, &["secp256r1"]).await;
        }
        let strict = self.door("strict", Mode::Require);
        for _ in 0..3 {
            self.connect(&strict, &["x25519"]).await;
        }
        let (mut client, server) = tokio::io::duplex(1024);
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        drop(client);
        assert!(api.accept(server, None).await.is_err());
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn ask(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("{head}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Sum of a metric's rows with all of these labels.
fn sum(page: &str, name: &str, labels: &[&str]) -> f64 {
    page.lines()
        .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
        .filter(|line| labels.iter().all(|label| line.contains(label)))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_reads_what_was_negotiated() {
    let world = world();
    world.metrics.watch_ledger(|| 7);
    world.mix().await;
    let (listener, address) = listen().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(scrape::serve(world.metrics.clone(), listener, async {
        let _ = stopped.await;
    }));
    let page = ask(address, "GET /metrics HTTP/1.1").await;
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("content-type: application/openmetrics-text; version=1.0.0"), "{page}");
    let name = "outlast_tls_handshakes_total";
    let hybrid = ["outcome=\"served\"", "group=\"X25519MLKEM768\"", "post_quantum=\"true\""];
    for (labels, expected) in [
        (hybrid.to_vec(), 4.0),
        ([hybrid.as_slice(), &["hello_retry=\"true\""]].concat(), 1.0),
        (vec!["group=\"secp256r1\"", "post_quantum=\"false\"", "offered=\"classical\""], 2.0),
        (vec!["outcome=\"refused:classical\"", "listener=\"strict\"", "mode=\"require\""], 3.0),
        (vec!["outcome=\"failed\""], 1.0),
        (vec!["policy=\"2026-11\""], 10.0),
        // Must never happen: a client gets less than it could.
        (vec!["offered=\"post-quantum\"", "post_quantum=\"false\""], 0.0),
        (vec!["certificate=\"ecdsa-p256\"", "version=\"TLSv1.3\"", "transport=\"tcp\""], 6.0),
    ] {
        assert_eq!(sum(&page, name, &labels), expected, "{labels:?} in\n{page}");
    }
    let seconds = "outlast_tls_handshake_duration_seconds";
    assert_eq!(sum(&page, &format!("{seconds}_count"), &[]), 10.0);
    assert_eq!(sum(&page, &format!("{seconds}_bucket"), &["le=\"+Inf\"", "refused"]), 3.0);
    assert!(sum(&page, &format!("{seconds}_sum"), &[]) > 0.0);
    assert_eq!(sum(&page, "outlast_tls_open_connections", &[]), 0.0);
    assert!(sum(&page, "outlast_tls_sent_bytes_total", &["listener=\"api\""]) > 6.0 * 500.0);
    assert_eq!(sum(&page, "outlast_ledger_dropped_records_total", &[]), 7.0);
    assert!(page.contains("outlast_build_info{version="), "{page}");
    assert!(page.ends_with("# EOF\n"));

    assert!(ask(address, "GET /healthz HTTP/1.1").await.ends_with("ok\n"));
    assert!(
        ask(address, "POST /metrics HTTP/1.1\r\nContent-Length: 0")
            .await
            .starts_with("HTTP/1.1 405")
    );
    assert!(ask(address, "GET /other HTTP/1.1").await.starts_with("HTTP/1.1 404"));
    let long = format!("GET /metrics?{} HTTP/1.1", "x".repeat(64 * 1024));
    assert!(!ask(address, &long).await.starts_with("HTTP/1.1 200"));
    // Many silent connections do not lock out later ones after they have gone.
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    drop(silent);
    let begun = Instant::now();
    while !ask(address, "GET /healthz HTTP/1.1").await.ends_with("ok\n") {
        assert!(begun.elapsed() < PATIENCE, "those that are gone keep others out");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.send(()).unwrap();
    serving.await.unwrap();
}

/// A collector that passes on each message with its path and headers.
async fn collector()
-> (SocketAddr, mpsc::UnboundedReceiver<(http::request::Parts, ExportMetricsServiceRequest)>) {
    let (listener, address) = listen().await;
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let sender = sender.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let sender = sender.clone();
                    async move {
                        let (head, body) = request.into_parts();
                        let bytes = body.collect().await.unwrap().to_bytes();
                        let message = ExportMetricsServiceRequest::decode(bytes).unwrap();
                        let _ = sender.send((head, message));
                        Ok::<_, Infallible>(http::Response::new(Full::new(bytes::Bytes::new())))
                    }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (address, receiver)
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let value = attributes.iter().find(|pair| pair.key == key)?.value.as_ref()?.value.as_ref()?;
    match value {
        any_value::Value::StringValue(text) => Some(text.clone()),
        other => panic!("{key} is {other:?}"),
    }
}

/// Sum of a counter's points with these attributes.
fn pushed(message: &ExportMetricsServiceRequest, name: &str, wanted: &[(&str, &str)]) -> i64 {
    let fits = |attributes: &[KeyValue]| {
        wanted.iter().all(|(key, value)| text(attributes, key).as_deref() == Some(*value))
    };
    let metrics = message
        .resource_metrics
        .iter()
        .flat_map(|resource| &resource.scope_metrics)
        .flat_map(|scope| &scope.metrics)
        .filter(|metric| metric.name == name);
    let number = |value: &Option<number_data_point::Value>| match value {
        Some(number_data_point::Value::AsInt(value)) => *value,
        other => panic!("{name} is {other:?}"),
    };
    metrics
        .map(|metric| match metric.data.as_ref().unwrap() {
            metric::Data::Sum(sum) => {
                assert!(sum.is_monotonic);
                let points = sum.data_points.iter().filter(|point| fits(&point.attributes));
                points.map(|point| number(&point.value)).sum::<i64>()
            }
            metric::Data::Gauge(gauge) => {
                let points = gauge.data_points.iter().filter(|point| fits(&point.attributes));
                points.map(|point| number(&point.value)).sum()
            }
            metric::Data::Histogram(histogram) => {
                let points = histogram.data_points.iter().filter(|point| fits(&point.attributes));
                points.map(|point| i64::try_from(point.count).unwrap()).sum()
            }
            other => panic!("{name} is {other:?}"),
        })
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_the_same_numbers() {
    let world = world();
    world.metrics.watch_ledger(|| 7);
    let (address, mut messages) = collector().await;
    let push = otlp::Push::start(
        &world.metrics,
        otlp::Settings {
            endpoint: format!("http://{address}/prefix/v1/metrics"),
            connector: None,
            interval: Duration::from_millis(200),
            timeout: PATIENCE,
        },
    )
    .unwrap();
    // Without a request.
    let (head, _) = messages.recv().await.unwrap();
    assert_eq!(head.method, http::Method::POST);
    assert_eq!(head.uri.path(), "/prefix/v1/metrics");
    assert_eq!(head.headers["content-type"], "application/x-protobuf");
    assert_eq!(head.headers["host"], address.to_string());
    world.mix().await;
    // A last push at the end.
    push.stop().await;
    let mut last = None;
    while let Ok((_, message)) = messages.try_recv() {
        last = Some(message);
    }
    let message = last.unwrap();
    let name = "outlast.tls.handshakes";
    for (wanted, expected) in [
        (vec![("outcome", "served"), ("group", "X25519MLKEM768")], 4),
        (vec![("hello_retry", "true")], 1),
        (vec![("group", "secp256r1"), ("post_quantum", "false")], 2),
        (vec![("outcome", "refused:classical"), ("listener", "strict")], 3),
        (vec![("outcome", "failed")], 1),
        (vec![], 10),
    ] {
        assert_eq!(pushed(&message, name, &wanted), expected, "{wanted:?} in {message:#?}");
    }
    assert_eq!(pushed(&message, "outlast.tls.handshake.duration", &[]), 10);
    assert_eq!(pushed(&message, "outlast.tls.handshake.duration", &[("outcome", "refused")]), 3);
    assert_eq!(pushed(&message, "outlast.ledger.dropped.records", &[]), 7);
    assert_eq!(pushed(&message, "outlast.tls.open.connections", &[]), 0);
    let resource = message.resource_metrics[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name").as_deref(), Some("outlast"));
    assert!(text(&resource.attributes, "service.version").is_some());
    // The metrics page shows the same.
    let page = scrape::page(&world.metrics);
    let total = page
        .lines()
        .filter(|line| line.starts_with("outlast_tls_handshakes_total{"))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap())
        .sum::<i64>();
    assert_eq!(total, pushed(&message, name, &[]));
}

/// Over TLS with the program's own client, and so with a hybrid group.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_is_reached_by_tls() {
    let world = world();
    let (listener, address) = listen().await;
    let door = world.door("collector", Mode::Require);
    let (sender, mut receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (stream, peer) = listener.accept().await.unwrap();
        let accepted = door.accept(stream, Some(peer)).await.unwrap();
        let group = accepted.negotiated.group.clone();
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let (sender, group) = (sender.clone(), group.clone());
            async move {
                let bytes = request.into_body().collect().await.unwrap().to_bytes();
                let message = ExportMetricsServiceRequest::decode(bytes).unwrap();
                let _ = sender.send((group, message));
                Ok::<_, Infallible>(http::Response::new(Full::new(bytes::Bytes::new())))
            }
        });
        let _ = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(accepted.stream), service)
            .await;
    });
    let settings = |connector| otlp::Settings {
        endpoint: format!("https://{address}/v1/metrics"),
        connector,
        interval: Duration::from_millis(100),
        timeout: PATIENCE,
    };
    assert!(otlp::Push::start(&world.metrics, settings(None)).is_err(), "nothing to trust by");
    let connector = Connector::new(&Policy::default(), &world.roots()).unwrap();
    let push = otlp::Push::start(&world.metrics, settings(Some(connector))).unwrap();
    let (group, message) = receiver.recv().await.unwrap();
    assert_eq!(group.as_deref(), Some("X25519MLKEM768"));
    assert_eq!(pushed(&message, "outlast.build.info", &[]), 1);
    push.stop().await;
}

/// A missing collector harms nobody, and shutdown waits for it only for a limited time.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_silent_does_not_hold_up_the_end() {
    let world = world();
    let (listener, address) = listen().await;
    let push = otlp::Push::start(
        &world.metrics,
        otlp::Settings {
            endpoint: format!("http://{address}/v1/metrics"),
            connector: None,
            interval: Duration::from_millis(50),
            timeout: 10 * PATIENCE,
        },
    )
    .unwrap();
    let (_held, _) = listener.accept().await.unwrap();
    world.mix().await;
    tokio::time::timeout(PATIENCE, push.stop()).await.expect("it waits no longer than it may");
}

#[test]
fn endpoints_that_cannot_be_used() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    for endpoint in ["", "x", "ftp://host/", "http://", "http://user:secret@host/v1/metrics"] {
        let settings = otlp::Settings {
            endpoint: endpoint.into(),
            connector: None,
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(1),
        };
        let error = otlp::Push::start(&Arc::new(Metrics::new()), settings).err();
        assert!(error.is_some_and(|error| !error.contains("secret")), "{endpoint}");
    }
}

/// Prints the cost of counting, for people.
#[test]
fn counting_is_cheap() {
    let metrics = Metrics::new();
    let handshake = |connection| Handshake {
        connection,
        time_ms: 0,
        listener: "api".into(),
        peer: None,
        policy: "2026-11".into(),
        mode: "prefer".into(),
        offer: None,
        ja4: None,
        outcome: Outcome::Served(Served {
            version: "TLSv1.3".into(),
            suite: "TLS_AES_256_GCM_SHA384".into(),
            group: Some("X25519MLKEM768".into()),
            post_quantum: true,
            hello_retry: false,
            resumed: false,
            scheme: None,
            certificate: Some("ecdsa-p256".into()),
            client: None,
        }),
        micros: 900,
    };
    const ROUNDS: u64 = 20_000;
    let mut report = handshake(0);
    let begun = Instant::now();
    for connection in 0..ROUNDS {
        report.connection = connection;
        metrics.handshake(&report);
        metrics.end(&End { connection, time_ms: 0, principal: None, received: 1, sent: 1 });
    }
    let each = begun.elapsed() / u32::try_from(ROUNDS).unwrap();
    println!("a handshake and its end: {each:?}");
}
