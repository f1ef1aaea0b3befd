//! The server's metrics, as Prometheus and an OpenTelemetry collector see them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use crate::common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use common::{Folder, Server, fail, outlast};
use outlast_api::ops::kms;
use outlast_testing::{PATIENCE, free_port};
use serde_json::json;

fn scrape(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    page
}

/// Receives one message, and returns its head and its body.
fn collect(listener: &TcpListener) -> (String, Vec<u8>) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..read]);
        assert_ne!(read, 0, "the message ends early");
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let len: usize = len.unwrap().parse().unwrap();
        if bytes.len() >= end + 4 + len {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            return (head, bytes.split_off(end + 4));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_tells_what_it_did() {
    let folder = Folder::new();
    let port = free_port();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = outlast();
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.local_addr().unwrap()))
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc,x-tenant=one")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "600000")
        .env("OTEL_SERVICE_NAME", "trust")
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=tests");
    let listen = format!("127.0.0.1:{port}");
    let mut server = Server::start_by(command, &folder.data, &["--metrics-listen", &listen]);
    let mut session = server.session().await.unwrap();
    session.call::<kms::create_key::CreateKey>(json!({})).await.unwrap().unwrap();
    let unknown = json!({ "KeyId": "00000000-0000-4000-8000-000000000000" });
    session.call::<kms::describe_key::DescribeKey>(unknown).await.unwrap().unwrap_err();
    assert_eq!(session.get("/nothing/that/there/is").await.0, 400);

    let page = scrape(port);
    for line in [
        "outlast_tls_handshakes_total{listener=\"api\",transport=\"tcp\",policy=\"2026-11\",mode=\"prefer\",\
         outcome=\"served\",offered=\"post-quantum\",version=\"TLSv1.3\",group=\"X25519MLKEM768\",\
         post_quantum=\"true\",hello_retry=\"false\",resumed=\"false\",certificate=\"ecdsa-p256\"} 1\n",
        "outlast_tls_open_connections{listener=\"api\",transport=\"tcp\"} 1\n",
        "outlast_api_requests_total{service=\"kms\",operation=\"CreateKey\",status=\"2xx\"} 1\n",
        "outlast_api_requests_total{service=\"kms\",operation=\"DescribeKey\",status=\"4xx\"} 1\n",
        "outlast_api_requests_total{service=\"none\",operation=\"none\",status=\"4xx\"} 1\n",
        "outlast_api_request_duration_seconds_count{service=\"kms\",operation=\"CreateKey\"} 1\n",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    // Nothing about callers is there.
    for word in ["TESTKEY01", "nothing", "127.0.0.1", "00000000-0000"] {
        assert!(!page.contains(word), "{word} is in\n{page}");
    }
    drop(session);
    let pushed = std::thread::spawn(move || collect(&collector));
    assert_eq!(server.terminate(), Some(0));
    // When it stops it pushes once more.
    let (head, message) = pushed.join().unwrap();
    assert!(head.starts_with("post /v1/metrics http/1.1"), "{head}");
    assert!(head.contains("authorization: bearer abc"), "{head}");
    assert!(head.contains("x-tenant: one"), "{head}");
    let text = String::from_utf8_lossy(&message);
    for word in [
        "outlast.tls.handshakes",
        "outlast.api.request.duration",
        "X25519MLKEM768",
        "CreateKey",
        "trust",
        "deployment.environment",
    ] {
        assert!(text.contains(word), "{word} is not in the message");
    }
}

/// By default the server neither listens for nor pushes metrics.
#[test]
fn metrics_are_off_by_default() {
    let folder = Folder::new();
    std::fs::write(folder.data.join("outlast.toml"), "metrics_listen = 'off'\n").unwrap();
    let mut server = folder.serve();
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn what_cannot_be_done_is_said_at_the_start() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (name, value, listen, said) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "off", "http/protobuf"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "https://localhost:1",
            "off",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
        ),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "off", "http://"),
        ("OTEL_SDK_DISABLED", "true", "nowhere", "127.0.0.1:9464"),
        ("OTEL_SDK_DISABLED", "true", taken.as_str(), "--metrics-listen"),
    ] {
        let mut command = outlast();
        command
            .args(["server", "--listen", "127.0.0.1:0", "--metrics-listen", listen, "--data"])
            .arg(&folder.data)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
            .env(name, value);
        let code = if listen == "nowhere" { 2 } else { 1 };
        let text = fail(&mut command, code);
        assert!(text.contains(said), "{name}={value}: {text}");
    }
}
