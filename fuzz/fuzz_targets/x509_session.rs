//! Requests for sessions by certificate: one line each for Authorization, date, certificate, chain and query string, then the body.
#![no_main]

use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use outlast_api::model::create_session::Request;
use outlast_api::wire::sigv4::Parts;
use outlast_api::wire::x509::Claim;

const NAMES: [&str; 4] = ["authorization", "x-amz-date", "x-amz-x509", "x-amz-x509-chain"];

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.splitn(6, |byte| *byte == b'\n');
    let mut headers = HeaderMap::new();
    for name in NAMES {
        let line = lines.next().unwrap_or_default();
        if let Ok(value) = HeaderValue::from_bytes(line)
            && !line.is_empty()
        {
            headers.insert(name, value);
        }
    }
    let query = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let body = lines.next().unwrap_or_default();
    let parts = Parts {
        method: "POST",
        path: "/sessions",
        query: &query,
        host: "localhost",
        headers: &headers,
        body,
    };
    if let Ok(claim) = Claim::parse(&parts, 1_795_219_200) {
        let _ = claim.verify(&parts);
    }
    let _ = Request::read(&query, body);
});
