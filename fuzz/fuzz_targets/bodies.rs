//! Authorization headers, and JSON, CBOR and query bodies.
#![no_main]

use http::HeaderMap;
use libfuzzer_sys::fuzz_target;
use outlast_api::ops::{acm_pca, kms, sts};
use outlast_api::wire::Protocol;
use outlast_api::wire::sigv4::{Claim, Parts};

fuzz_target!(|bytes: &[u8]| {
    for protocol in [Protocol::Json11, Protocol::RpcV2Cbor] {
        let _ = protocol.decode::<kms::sign::Sign>(bytes);
        let _ = protocol.decode::<kms::create_key::CreateKey>(bytes);
        let _ = protocol.decode::<kms::encrypt::Encrypt>(bytes);
        let _ = protocol.decode::<acm_pca::issue_certificate::IssueCertificate>(bytes);
        let _ = protocol
            .decode::<acm_pca::create_certificate_authority::CreateCertificateAuthority>(bytes);
    }
    let _ = outlast_api::wire::query::action(bytes);
    let _ = Protocol::Query.decode::<sts::assume_role::AssumeRole>(bytes);
    let text = String::from_utf8_lossy(bytes);
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
