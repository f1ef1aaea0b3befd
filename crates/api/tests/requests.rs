//! What all operations have in common: signatures, bodies, limits, audit, durability. Each test runs over the whole
//! table of operations, so a new one is covered from the start.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Fixture, HOST, NOW, error_code};
use http::HeaderMap;
use outlast_api::ops::{SERVICES, kms};
use outlast_api::service::Route;
use outlast_api::wire::Protocol;
use outlast_store::Store;
use proptest::prelude::*;
use serde_json::json;

fn every_operation(mut check: impl FnMut(&str, String, &str)) {
    // The services that speak JSON; STS does not, and has tests of its own.
    for service in SERVICES.iter().filter(|row| row.model.protocols.contains(&Protocol::Json11)) {
        for row in service.operations {
            let target = format!("{}.{}", service.model.target_prefix, row.name);
            check(service.model.signing_name, target, row.name);
        }
    }
}

#[test]
fn the_table_has_every_operation_once() {
    let mut names: Vec<_> = SERVICES
        .iter()
        .flat_map(|s| s.operations.iter().map(|row| (s.model.signing_name, row.name)))
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(count, 56 + 23 + 40 + 24 + 2 + 30 + 43 + 14);
}

#[test]
fn unsigned_and_wrongly_signed_requests_are_refused() {
    let fixture = Fixture::new();
    every_operation(|service, target, name| {
        let good = fixture.raw(service, &target, b"{}");
        let refused = |change: &dyn Fn(&mut http::Request<Vec<u8>>), code: &str| {
            let mut request = good.clone();
            change(&mut request);
            let response = fixture.send(&request);
            assert_eq!(error_code(&response), code, "{name}");
            assert_eq!(response.status, 400, "{name}");
        };
        refused(
            &|r| {
                r.headers_mut().remove("authorization");
            },
            "MissingAuthenticationTokenException",
        );
        // Replayed with a change.
        refused(&|r| r.body_mut().push(b' '), "InvalidSignatureException");
        refused(
            &|r| {
                let text = r.headers()["authorization"].to_str().unwrap().to_owned();
                let wrong = text.replace("AKIAEXAMPLE", "AKIANOBODY");
                r.headers_mut().insert("authorization", wrong.parse().unwrap());
            },
            "UnrecognizedClientException",
        );
        refused(
            &|r| {
                let text = r.headers()["authorization"].to_str().unwrap().to_owned();
                let wrong = text.replace("Signature=", "Signature=00");
                r.headers_mut().insert("authorization", wrong.parse().unwrap());
            },
            "InvalidSignatureException",
        );
        refused(
            &|r| {
                r.headers_mut().insert("x-amz-security-token", "token".parse().unwrap());
            },
            "IncompleteSignatureException",
        );
        refused(
            &|r| {
                r.headers_mut().insert("content-type", "text/plain".parse().unwrap());
            },
            "InvalidSignatureException",
        );
        refused(
            &|r| {
                *r.uri_mut() =
                    "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00".parse().unwrap();
            },
            "IncompleteSignatureException",
        );
        refused(&|r| *r.uri_mut() = "/?a=b".parse().unwrap(), "InvalidSignatureException");
    });
    assert!(fixture.events().is_empty(), "a caller without a valid signature wrote an event");
}

#[test]
fn payloads_that_are_not_signed_are_refused_by_name() {
    let fixture = Fixture::new();
    for (value, text) in [
        ("UNSIGNED-PAYLOAD", "UNSIGNED-PAYLOAD is not supported"),
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Chunked payloads"),
        ("0000", "does not match"),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-target", "TrentService.ListKeys".parse().unwrap());
        headers.insert("x-amz-content-sha256", value.parse().unwrap());
        let response = fixture.send(&fixture.signed("kms", "/", headers, b"{}"));
        assert_eq!(response.status, 400);
        assert!(String::from_utf8_lossy(&response.body).contains(text), "{value}");
    }
}

#[test]
fn the_clock_may_be_five_minutes_off() {
    let fixture = Fixture::new();
    let request = fixture.raw("kms", "TrentService.ListKeys", b"{}");
    for (now, expected) in
        [(NOW, 200), (NOW + 300, 200), (NOW - 300, 200), (NOW + 301, 400), (NOW - 301, 400)]
    {
        fixture.now.set(now);
        let response = fixture.send(&request);
        assert_eq!(response.status, expected, "{now}");
        if expected == 400 {
            assert_eq!(error_code(&response), "InvalidSignatureException");
            let text = String::from_utf8_lossy(&response.body).into_owned();
            assert!(
                text.contains("Signature expired: ")
                    || text.contains("Signature not yet current: "),
                "{text}"
            );
        }
    }
}

#[test]
fn the_scope_must_name_the_service_that_is_called() {
    let fixture = Fixture::new();
    let response = fixture.send(&fixture.raw("acm-pca", "TrentService.ListKeys", b"{}"));
    assert_eq!(error_code(&response), "InvalidSignatureException");
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert!(text.contains("correct service: 'kms'"), "{text}");
}

#[test]
fn what_is_not_there_is_unknown() {
    let fixture = Fixture::new();
    for target in ["TrentService.Nothing", "Nothing.ListKeys", "ListKeys", "", "TrentService."] {
        let response = fixture.send(&fixture.raw("kms", target, b"{}"));
        assert_eq!(error_code(&response), "UnknownOperationException", "{target}");
        assert_eq!(response.status, 400);
    }
    let mut request = fixture.raw("kms", "TrentService.ListKeys", b"{}");
    *request.uri_mut() = "/elsewhere".parse().unwrap();
    assert_eq!(error_code(&fixture.send(&request)), "UnknownOperationException");
}

#[test]
fn malformed_bodies_change_nothing_and_are_recorded() {
    let fixture = Fixture::new();
    let mut calls = 0;
    every_operation(|service, target, name| {
        let nested = "[".repeat(2000);
        let bodies: &[&[u8]] = &[
            b"{",
            b"[]",
            b"null",
            b"\"text\"",
            b"{\"KeyId\": 5}",
            b"{\"NoSuchMember\": 1}",
            b"{} trailing",
            b"\xff\xfe",
            nested.as_bytes(),
        ];
        for body in bodies {
            calls += 1;
            let response = fixture.send(&fixture.raw(service, &target, body));
            let code = error_code(&response);
            assert_eq!(response.status, 400, "{name} {}", String::from_utf8_lossy(body));
            assert!(
                matches!(code.as_str(), "SerializationException" | "ValidationException"),
                "{name} {code}"
            );
        }
    });
    assert_eq!(fixture.events().len(), calls);
    assert!(fixture.events().iter().all(|event| event["errorCode"].is_string()));
    assert!(fixture.store.scan("kms/", "", 10).unwrap().is_empty());
    assert!(fixture.store.scan("ca/", "", 10).unwrap().is_empty());
}

#[test]
fn a_missing_member_is_named() {
    let fixture = Fixture::new();
    let response = fixture.send(&fixture.raw("kms", "TrentService.DescribeKey", b"{}"));
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert!(text.contains("Value null at 'keyId'"), "{text}");
    assert_eq!(error_code(&response), "ValidationException");
}

#[test]
fn errors_never_repeat_the_body() {
    let fixture = Fixture::new();
    let body = json!({ "KeyId": "alias/x", "Plaintext": { "secret": "hunter2" } }).to_string();
    let response = fixture.send(&fixture.raw("kms", "TrentService.Encrypt", body.as_bytes()));
    assert_eq!(error_code(&response), "SerializationException");
    let body = json!({ "KeyId": "alias/x", "Plaintext": "hunter2hunter2!" }).to_string();
    let second = fixture.send(&fixture.raw("kms", "TrentService.Encrypt", body.as_bytes()));
    let body = json!({ "KeyId": "alias/x", "Plaintext": "aGk=", "DryRun": "hunter2" }).to_string();
    let third = fixture.send(&fixture.raw("kms", "TrentService.Encrypt", body.as_bytes()));
    let body =
        json!({ "KeyId": "x", "Plaintext": "aGk=", "DryRun": "a, expected hunter2" }).to_string();
    let fourth = fixture.send(&fixture.raw("kms", "TrentService.Encrypt", body.as_bytes()));
    for text in [&response.body, &second.body, &third.body, &fourth.body] {
        assert!(!String::from_utf8_lossy(text).contains("hunter2"));
    }
    assert!(!fixture.events().iter().any(|event| event.to_string().contains("hunter2")));
}

#[test]
fn cbor_is_served_where_the_model_has_it() {
    let fixture = Fixture::new();
    let call = |operation: &str, body: &[u8]| {
        let mut headers = HeaderMap::new();
        headers.insert("smithy-protocol", "rpc-v2-cbor".parse().unwrap());
        headers.insert("content-type", "application/cbor".parse().unwrap());
        let path = format!("/service/ACMPrivateCA/operation/{operation}");
        fixture.send(&fixture.signed("acm-pca", &path, headers, body))
    };
    let response = call("ListCertificateAuthorities", &[0xa0]);
    assert_eq!((response.status, response.is_cbor), (200, true));
    assert_eq!(call("ListCertificateAuthorities", b"").status, 200);
    for bad in [
        &[0xa1][..],
        &[0xa0, 0xa0],
        &[0xff],
        &[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x9f; 3000],
        &[0xc1; 3000],
    ] {
        let response = call("DescribeCertificateAuthority", bad);
        assert_eq!(response.status, 400, "{bad:02x?}");
        assert!(response.is_cbor);
    }
    assert_eq!(call("Nothing", &[0xa0]).error, Some("UnknownOperationException"));
    let mut headers = HeaderMap::new();
    headers.insert("smithy-protocol", "rpc-v2-cbor".parse().unwrap());
    let path = "/service/TrentService/operation/ListKeys";
    let response = fixture.send(&fixture.signed("kms", path, headers, &[0xa0]));
    assert_eq!(response.error, Some("UnknownOperationException"), "kms has no CBOR");
}

#[test]
fn limits_of_bodies_are_known_from_the_head() {
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-target", "TrentService.Sign".parse().unwrap());
    let route = Route::find(&http::Method::POST, "/", &headers).ok().unwrap();
    assert_eq!(route.max_body(), 256 * 1024);
    let response = route.too_large();
    assert_eq!((response.status, response.error), (413, Some("RequestEntityTooLargeException")));
}

#[test]
fn a_write_that_fails_fails_the_call_and_leaves_nothing() {
    let fixture = Fixture::new();
    let key = fixture.call::<kms::create_key::CreateKey>(&symmetric()).unwrap().key_metadata;
    let before = fixture.events().len();
    fixture.store.fail_writes(true);
    every_operation(|service, target, name| {
        // Whatever the outcome would be, it cannot be recorded, so the call fails.
        let body = json!({ "KeyId": key.key_id }).to_string();
        let response = fixture.send(&fixture.raw(service, &target, body.as_bytes()));
        let row = SERVICES.iter().find(|row| row.model.signing_name == service).unwrap();
        let expected = row.model.internal_error;
        assert_eq!((response.status, error_code(&response).as_str()), (500, expected), "{name}");
    });
    let data_key = json!({ "KeyId": key.key_id, "KeySpec": "AES_256" }).to_string();
    let response =
        fixture.send(&fixture.raw("kms", "TrentService.GenerateDataKey", data_key.as_bytes()));
    assert_eq!(response.status, 500, "a data key without its audit event");
    assert!(!String::from_utf8_lossy(&response.body).contains("Plaintext"));
    fixture.store.fail_writes(false);
    assert_eq!(fixture.events().len(), before);
    fixture.store.fail_reads(true);
    let response = fixture.send(&fixture.raw("kms", "TrentService.ListKeys", b"{}"));
    assert_eq!(response.status, 500);
}

#[test]
fn a_conflict_is_met_by_running_the_operation_again() {
    let fixture = Fixture::new();
    fixture.store.conflict_next(5);
    fixture.call::<kms::create_key::CreateKey>(&symmetric()).unwrap();
    assert_eq!(fixture.events().len(), 1);
    assert_eq!(fixture.store.scan("kms/key/", "", 10).unwrap().len(), 1);
}

#[test]
fn every_call_leaves_a_cloudtrail_record() {
    let fixture = Fixture::new();
    let key = fixture.call::<kms::create_key::CreateKey>(&symmetric()).unwrap().key_metadata;
    let describe = kms::describe_key::Input { key_id: key.key_id.clone(), grant_tokens: None };
    fixture.call::<kms::describe_key::DescribeKey>(&describe).unwrap();
    let events = fixture.events();
    assert_eq!(events.len(), 2);
    let event = &events[1];
    assert_eq!(event["eventSource"], "kms.amazonaws.com");
    assert_eq!(event["eventName"], "DescribeKey");
    assert_eq!(event["awsRegion"], "eu-west-1");
    assert_eq!(event["readOnly"], true);
    assert_eq!(event["resources"][0]["ARN"], key.arn.as_str());
    assert_eq!(event["userIdentity"]["accountId"], common::ACCOUNT);
    assert_eq!(event["requestParameters"]["keyId"], key.key_id.as_str());
    assert_eq!(event["eventTime"], "2026-11-21T00:00:00Z");
}

#[test]
fn an_account_does_not_see_anothers_keys() {
    let fixture = Fixture::new();
    let key = fixture.call::<kms::create_key::CreateKey>(&symmetric()).unwrap().key_metadata;
    let stranger = common::client("AKIAOTHER", "eu-west-1");
    let nowhere = key.arn.replace(&key.key_id, "11111111-2222-3333-4444-555555555555");
    // A caller who knows the whole ARN learns from AWS that the key exists, and nothing else.
    for (name, code) in [
        (key.arn.clone(), "AccessDeniedException"),
        (key.key_id.clone(), "NotFoundException"),
        (nowhere, "NotFoundException"),
    ] {
        let describe = kms::describe_key::Input { key_id: name, grant_tokens: None };
        let error =
            fixture.call_as::<kms::describe_key::DescribeKey>(&stranger, &describe).err().unwrap();
        assert_eq!(error.code, code);
        assert!(!error.message.contains("SYMMETRIC_DEFAULT"));
    }
    let elsewhere = common::client(common::ACCESS_KEY, "us-east-1");
    let list = kms::list_keys::Input { limit: None, marker: None, resource_owners: None };
    let found = fixture.call_as::<kms::list_keys::ListKeys>(&elsewhere, &list).unwrap();
    assert!(found.keys.is_empty(), "regions have their own keys");
}

fn symmetric() -> kms::create_key::Input {
    serde_json::from_value(json!({})).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No head and no body makes the service panic, and none is let in.
    #[test]
    fn arbitrary_requests_never_panic(
        authorization in "(AWS4-HMAC-SHA256 )?[ -~]{0,200}",
        date in "[0-9]{0,9}T?[0-9]{0,7}Z?",
        body in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let fixture = Fixture::new();
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-target", "TrentService.Sign".parse().unwrap());
        headers.insert("host", HOST.parse().unwrap());
        headers.insert("authorization", authorization.parse().unwrap());
        headers.insert("x-amz-date", date.parse().unwrap());
        let mut request = http::Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.headers_mut() = headers;
        prop_assert_ne!(fixture.send(&request).status, 200);
    }

    /// Nor does any body of a correctly signed request.
    #[test]
    fn arbitrary_bodies_never_panic(
        row in 0usize..200,
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let fixture = Fixture::new();
        let all: Vec<_> = SERVICES
            .iter()
            .flat_map(|s| s.operations.iter().map(move |row| (s, row)))
            .collect();
        let (service, row) = all[row % all.len()];
        let target = format!("{}.{}", service.model.target_prefix, row.name);
        let status = fixture.send(&fixture.raw(service.model.signing_name, &target, &body)).status;
        prop_assert!(status == 200 || status == 400);
    }
}
