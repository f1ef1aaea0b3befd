//! Calls signed for services that Outlast does not have get an answer that their clients can read and that says what
//! to use instead.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use http::{HeaderMap, Method};
use outlast_api::service::{Response, Route};

fn answer(method: &Method, path: &str, scope: &str) -> Response {
    let mut headers = HeaderMap::new();
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261122/us-east-1/{scope}/aws4_request, SignedHeaders=host, Signature=00"
    );
    headers.insert("authorization", authorization.parse().unwrap());
    Route::find(method, path, &headers).err().unwrap()
}

fn text(response: &Response) -> String {
    String::from_utf8(response.body.clone()).unwrap()
}

#[test]
fn iam_is_answered_as_iam_answers() {
    let response = answer(&Method::POST, "/", "iam");
    assert_eq!((response.status, response.content_type), (400, "text/xml"));
    let text = text(&response);
    // The elements that botocore's query parser and the SDKs' read.
    let head = "<ErrorResponse xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\"><Error><Type>Sender</Type><Code>InvalidAction</Code><Message>";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains("outlast principal"), "{text}");
}

#[test]
fn s3_is_answered_as_s3_answers() {
    for (method, path, shown) in [
        (Method::GET, "/", "/"),
        (Method::PUT, "/bucket/crl/a.crl", "/bucket/crl/a.crl"),
        (Method::GET, "/b/<&>\"", "/b/&lt;&amp;&gt;&quot;"),
    ] {
        let response = answer(&method, path, "s3");
        assert_eq!((response.status, response.content_type), (501, "text/xml"));
        let text = text(&response);
        assert!(text.contains("<Error><Code>NotImplemented</Code><Message>"), "{text}");
        assert!(text.contains(&format!("<Resource>{shown}</Resource>")), "{text}");
        assert!(text.contains("outlast.toml"), "{text}");
    }
}

#[test]
fn other_services_are_unknown_as_before() {
    let response = answer(&Method::POST, "/", "sqs");
    assert_eq!(response.error, Some("UnknownOperationException"));
    // The name of an operation of ours decides the route, whatever the method.
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-target", "TrentService.ListKeys".parse().unwrap());
    assert!(Route::find(&Method::POST, "/", &headers).is_ok());
}
