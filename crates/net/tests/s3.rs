//! Writes objects to a server that speaks S3 and verifies each signature.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use outlast_api::service::Sink;
use outlast_api::wire::sigv4::{Claim, Credentials, Parts};
use outlast_crypto::Secret;
use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::s3::{Client, S3, Settings};
use outlast_net::server::system_clock;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const SECRET: &[u8] = b"a secret access key";

/// Path, content type and body of each object.
type Objects = Arc<Mutex<Vec<(String, String, Bytes)>>>;

fn credentials(secret: &[u8]) -> Credentials {
    Credentials {
        access_key_id: "AKIDEXAMPLE".into(),
        secret: Secret::new(secret.to_vec()),
        token: None,
    }
}

fn settings(endpoint: &str) -> Settings {
    Settings {
        endpoint: endpoint.into(),
        allow_plain: false,
        region: "eu-central-1".into(),
        credentials: credentials(SECRET),
        connector: Connector::new(&Policy::default(), &[]).unwrap(),
    }
}

fn s3(settings: Settings, runtime: &Runtime) -> S3 {
    S3::new(Client::new(settings, system_clock).unwrap(), runtime.handle().clone())
}

async fn answer(
    request: http::Request<Incoming>,
    objects: Objects,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let parts = Parts {
        method: head.method.as_str(),
        path: head.uri.path(),
        query: "",
        host: head.headers["host"].to_str().unwrap(),
        headers: &head.headers,
        body: &body,
    };
    let now = system_clock().div_euclid(1000);
    let verified = Claim::parse(&parts, now).and_then(|claim| {
        assert_eq!((claim.region.as_str(), claim.service.as_str()), ("eu-central-1", "s3"));
        claim.verify(&parts, &Secret::new(SECRET.to_vec()))
    });
    let mut response = http::Response::new(Full::default());
    if verified.is_err() {
        *response.status_mut() = http::StatusCode::FORBIDDEN;
        let error = "<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error>";
        *response.body_mut() = Full::from(error);
        return Ok(response);
    }
    assert_eq!(head.method, http::Method::PUT);
    assert!(head.headers.contains_key("x-amz-content-sha256"));
    let kind = head.headers["content-type"].to_str().unwrap().to_owned();
    objects.lock().unwrap().push((head.uri.path().to_owned(), kind, body));
    Ok(response)
}

fn serve(runtime: &Runtime) -> (String, Objects) {
    let objects = Objects::default();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let kept = objects.clone();
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let objects = kept.clone();
            let service = service_fn(move |request| answer(request, objects.clone()));
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    (endpoint, objects)
}

#[test]
fn objects_are_put_by_path_and_signed() {
    let runtime = Runtime::new().unwrap();
    let (endpoint, objects) = serve(&runtime);
    let sink = s3(settings(&endpoint), &runtime);
    sink.put("reports", "audit-report/a/b.json", "application/json", b"[]").unwrap();
    sink.put("a/b", "crl/x.crl", "application/pkix-crl", &vec![7; 1 << 20]).unwrap();
    let found = objects.lock().unwrap();
    let paths: Vec<_> =
        found.iter().map(|(path, kind, body)| (path.as_str(), kind.as_str(), body.len())).collect();
    assert_eq!(
        paths,
        [
            ("/reports/audit-report/a/b.json", "application/json", 2),
            ("/a/b/crl/x.crl", "application/pkix-crl", 1 << 20),
        ]
    );
}

#[test]
fn a_refusal_names_its_code_and_not_the_secret() {
    let runtime = Runtime::new().unwrap();
    let (endpoint, objects) = serve(&runtime);
    let wrong = Settings { credentials: credentials(b"another"), ..settings(&endpoint) };
    let sink = s3(wrong, &runtime);
    let refused = sink.put("reports", "x", "text/csv", b"x").unwrap_err();
    assert!(refused.contains("403 SignatureDoesNotMatch") && !refused.contains("another"));
    assert!(objects.lock().unwrap().is_empty());
    let gone = s3(settings("http://127.0.0.1:1"), &runtime);
    assert!(gone.put("reports", "x", "text/csv", b"x").is_err());
}

#[test]
fn only_endpoints_that_make_sense_are_taken() {
    let new = |endpoint: &str, allow_plain| {
        let settings = Settings { allow_plain, ..settings(endpoint) };
        Client::new(settings, system_clock).map(|_| ())
    };
    for good in
        ["https://s3.example", "https://s3.example:9000/", "http://localhost:1", "http://[::1]:1"]
    {
        new(good, false).unwrap();
    }
    for wrong in [
        "s3.example",
        "ftp://s3.example",
        "https://",
        "https://a/b",
        "https://u@a",
        "https://a:x",
        "http://s3.example",
        "http://10.0.0.1",
    ] {
        assert!(new(wrong, false).is_err(), "{wrong}");
    }
    new("http://s3.example", true).unwrap();
}
