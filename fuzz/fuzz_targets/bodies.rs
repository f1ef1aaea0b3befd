//! Authorization headers, JSON, CBOR and query bodies, and REST paths and query strings.
#![no_main]

use http::HeaderMap;
use libfuzzer_sys::fuzz_target;
use outlast_api::aws::Http;
use outlast_api::aws::schema::{Member, Shape};
use outlast_api::ops::{acm_pca, kms, sts};
use outlast_api::wire::sigv4::{Claim, Parts};
use outlast_api::wire::{Payload, Protocol, rest};

static TEXT: Shape = Shape::string();
static NUMBER: Shape = Shape::integer();
static LIST: Shape = Shape::list(&TEXT);
static REST: Shape = Shape::structure(
    "Fuzzed",
    &[
        Member::optional("a", &TEXT).in_path("a"),
        Member::optional("n", &NUMBER).in_query("n"),
        Member::optional("l", &LIST).in_query("l"),
    ],
);
const HTTP: Http = Http { method: "GET", uri: "/x/{a}/y", status: 200 };

fuzz_target!(|bytes: &[u8]| {
    let body = Payload::from(bytes);
    for protocol in [Protocol::Json11, Protocol::RpcV2Cbor] {
        let _ = protocol.decode::<kms::sign::Sign>(body);
        let _ = protocol.decode::<kms::create_key::CreateKey>(body);
        let _ = protocol.decode::<kms::encrypt::Encrypt>(body);
        let _ = protocol.decode::<acm_pca::issue_certificate::IssueCertificate>(body);
        let _ = protocol
            .decode::<acm_pca::create_certificate_authority::CreateCertificateAuthority>(body);
    }
    let _ = outlast_api::wire::query::action(bytes);
    let _ = Protocol::Query.decode::<sts::assume_role::AssumeRole>(body);
    let text = String::from_utf8_lossy(bytes);
    let (path, query) = text.split_once('?').unwrap_or((&text, ""));
    let _ = rest::bound(&HTTP, &REST, Payload { path, query, body: bytes });
    let (authorization, date) = text.split_once('\n').unwrap_or((&text, "20261121T000000Z"));
    let mut headers = HeaderMap::new();
    if let (Ok(authorization), Ok(date)) = (authorization.parse(), date.parse()) {
        headers.insert("authorization", authorization);
        headers.insert("x-amz-date", date);
    }
    let parts = Parts {
        method: "POST",
        path: "/",
        query: "",
        host: "localhost",
        headers: &headers,
        body: bytes,
    };
    let _ = Claim::parse(&parts, 1_795_219_200);
});
