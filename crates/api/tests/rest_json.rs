//! REST JSON, tested with the surface of Roles Anywhere and operations that return what the test gives them instead of what the
//! service would.
//!
//! `surface/requests.json` has what botocore sends for every operation (`surface/botocore_rest.py`).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::process::{Command, Stdio};

use http::{HeaderMap, Method};
use outlast_api::aws::rolesanywhere as model;
use outlast_api::aws::schema::{Kind, Shape};
use outlast_api::aws::{Http, Operation, ServiceModel};
use outlast_api::call::{Call, Run};
use outlast_api::client::Client;
use outlast_api::ops::ROLES_ANYWHERE;
use outlast_api::service::{Request, Response, Route, Step};
use outlast_api::table::{Row, ServiceRow};
use outlast_api::wire::ApiError;
use outlast_testing::checkout;
use serde_json::{Value, json};

use crate::common::{ACCESS_KEY, Fixture, HOST, NOW, b64};

thread_local! {
    /// The input that the operation received, and the output that it returns.
    static ASKED: RefCell<Value> = const { RefCell::new(Value::Null) };
    static ANSWER: RefCell<Value> = const { RefCell::new(Value::Null) };
}

/// A request for an operation from our client, and the function that reads its answer.
type Called = (http::Request<Vec<u8>>, fn(&Response) -> Result<Value, String>);

/// An operation of the model that returns what the test gives it.
struct Tried<O>(PhantomData<O>);

impl<O: Operation> Operation for Tried<O> {
    const NAME: &'static str = O::NAME;
    const SERVICE: &'static ServiceModel = O::SERVICE;
    const INPUT: &'static Shape = O::INPUT;
    const OUTPUT: &'static Shape = O::OUTPUT;
    const HTTP: Http = O::HTTP;
    type Input = O::Input;
    type Output = O::Output;
}

impl<O: Operation> Run for Tried<O> {
    const READ_ONLY: bool = false;

    fn run(_: &mut Call<'_>, input: Self::Input) -> Result<Self::Output, ApiError> {
        ASKED.set(serde_json::to_value(&input).unwrap());
        let answer = ANSWER.take();
        if let Some(message) = answer["refused"].as_str() {
            return Err(ApiError::new("ResourceNotFoundException", message));
        }
        Ok(serde_json::from_value(answer).unwrap())
    }
}

macro_rules! tried {
    ($($operation:ident),* $(,)?) => {
        pub static SERVICE: ServiceRow = ServiceRow {
            model: &model::SERVICE,
            operations: &[$(Row::of::<Tried<model::$operation>>()),*],
        };

        /// The client's request for an operation by its name.
        fn by_client(client: &Client, name: &str, input: Value) -> Called {
            match name {
                $(stringify!($operation) => {
                    let input = serde_json::from_value(input).unwrap();
                    let request = client.request::<model::$operation>(&input, NOW).unwrap();
                    (request, |response| {
                        let read = Client::response_as::<model::$operation>(
                            response.status,
                            response.error,
                            &response.body,
                        );
                        read.map(|read| serde_json::to_value(read).unwrap())
                            .map_err(|error| format!("{} {error}", error.status))
                    })
                })*
                _ => panic!("{name}"),
            }
        }
    };
}

tried! {
    CreateProfile, CreateTrustAnchor, DeleteAttributeMapping, DeleteCrl, DeleteProfile, DeleteTrustAnchor, DisableCrl,
    DisableProfile, DisableTrustAnchor, EnableCrl, EnableProfile, EnableTrustAnchor, GetCrl, GetProfile, GetSubject, GetTrustAnchor,
    ImportCrl, ListCrls, ListProfiles, ListSubjects, ListTagsForResource, ListTrustAnchors, PutAttributeMapping,
    PutNotificationSettings, ResetNotificationSettings, TagResource, UntagResource, UpdateCrl, UpdateProfile, UpdateTrustAnchor,
}

/// What botocore sends for each operation.
fn sent() -> Vec<Value> {
    let path = checkout().join("crates/api/tests/surface/requests.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Sends a request through the service, without a commit.
fn answered(
    fixture: &Fixture,
    method: &str,
    uri: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> (Option<&'static str>, Response) {
    let method: Method = method.parse().unwrap();
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let route = match Route::find_among(&[&SERVICE], &method, path, headers) {
        Ok(route) => route.resolve(body).ok().unwrap(),
        Err(response) => return (None, response),
    };
    let request = Request {
        method: &method,
        path,
        query,
        host: HOST,
        headers,
        body,
        source_ip: "127.0.0.1",
        tls: None,
        now_ms: NOW * 1000,
        request_id: "00000000-0000-0000-0000-000000000000",
    };
    let response = match fixture.service.prepare(route, &request) {
        Step::Respond(response) => response,
        Step::Commit(prepared) => prepared.response,
        Step::Again | Step::TakesLong(_) | Step::Ask(_) => panic!("once is enough"),
    };
    (Some(route.names().1), response)
}

fn headers_of(sent: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in sent.as_object().unwrap() {
        let name: http::HeaderName = name.parse().unwrap();
        headers.insert(name, text(value).parse().unwrap());
    }
    headers
}

/// Whether an answer contains a time that JSON writes as text.
fn written(value: &mut Value, shape: &Shape) {
    outlast_api::wire::read::with_written_times(value, shape, false);
}

fn row(name: &str) -> &'static Row {
    SERVICE.operations.iter().find(|row| row.name == name).unwrap()
}

#[test]
fn every_operation_is_read_as_botocore_sends_it() {
    let fixture = Fixture::new();
    let mut seen = BTreeSet::new();
    for sent in sent() {
        let name = text(&sent["operation"]);
        ANSWER.set(sent["output"].clone());
        let headers = headers_of(&sent["headers"]);
        let body = text(&sent["body"]).as_bytes();
        let (found, response) =
            answered(&fixture, text(&sent["method"]), text(&sent["uri"]), &headers, body);
        assert_eq!(found, Some(name));
        let told = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, row(name).http.status, "{name}: {told}");
        assert_eq!(ASKED.take(), sent["input"], "{name}");
        let mut expected = sent["output"].clone();
        written(&mut expected, row(name).output);
        assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), expected, "{name}");
        assert_eq!(response.content_type, "application/json");
        seen.insert(name.to_owned());
    }
    let all: BTreeSet<_> = SERVICE.operations.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(seen, all);
    let created = SERVICE.operations.iter().filter(|row| row.http.status == 201).count();
    assert!(created > 3, "{created}");
    // Otherwise the test would compare nothing.
    let dated = sent().iter().filter(|one| one["output"].to_string().contains("createdAt")).count();
    assert!(dated > 20, "{dated}");
}

#[test]
fn our_client_sends_what_botocore_sends_and_reads_the_answer() {
    let fixture = Fixture::new();
    for sent in sent() {
        let name = text(&sent["operation"]);
        ANSWER.set(sent["output"].clone());
        let (request, read) = by_client(&fixture.client, name, sent["input"].clone());
        let (path, query) = {
            let uri = request.uri();
            (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned())
        };
        let (wanted_path, wanted_query) =
            text(&sent["uri"]).split_once('?').unwrap_or((text(&sent["uri"]), ""));
        assert_eq!(path, wanted_path, "{name}");
        let pairs =
            |query: &str| -> BTreeSet<String> { query.split('&').map(str::to_owned).collect() };
        assert_eq!(pairs(&query), pairs(wanted_query), "{name}");
        let uri = request.uri().to_string();
        let (_, response) =
            answered(&fixture, request.method().as_str(), &uri, request.headers(), request.body());
        assert_eq!(read(&response).as_ref(), Ok(&sent["output"]), "{name}");
        assert_eq!(ASKED.take(), sent["input"], "{name}");
    }
}

/// Sends a signed request with this method, URI and body, and returns the outcome.
fn tried(
    fixture: &Fixture,
    method: &str,
    uri: &str,
    body: &str,
) -> (u16, String, Option<&'static str>) {
    use outlast_api::wire::sigv4::{Target, sign_rest};
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let mut headers = HeaderMap::new();
    let target = Target {
        path,
        host: HOST,
        body: body.as_bytes(),
        region: "eu-west-1",
        service: "rolesanywhere",
    };
    sign_rest(&mut headers, method, query, &target, &fixture.client.credentials, NOW).unwrap();
    headers.insert("host", HOST.parse().unwrap());
    ASKED.set(Value::Null);
    ANSWER.set(json!({}));
    let (_, response) = answered(fixture, method, uri, &headers, body.as_bytes());
    (response.status, String::from_utf8(response.body).unwrap(), response.error)
}

const ID: &str = "01234567-89ab-cdef-0123-456789abcdef";

#[test]
fn what_is_no_request_of_the_model_is_refused() {
    let fixture = Fixture::new();
    let mapping = format!("/profiles/{ID}/mappings");
    let serialization = Some("SerializationException");
    for (method, uri, body, part) in [
        ("GET", "/crls?pageSize=x".to_owned(), "", "wrong type"),
        ("GET", "/crls?pageSize=1&pageSize=2".to_owned(), "", "'pageSize' occurs twice"),
        ("GET", "/crls?PageSize=1".to_owned(), "", "'pageSize' is not known"),
        ("GET", "/crls?other=1".to_owned(), "", "'other' is not known"),
        ("GET", format!("/crl/{ID}"), r#"{"crlId":"x"}"#, "'crlId' is not known"),
        ("GET", "/crls".to_owned(), r#"{"pageSize":1}"#, "'pageSize' is not known"),
        ("GET", "/crl/%FF".to_owned(), "", "not UTF-8"),
        (
            "PUT",
            mapping.clone(),
            r#"{"profileId":"x","certificateField":"x509SAN"}"#,
            "'profileId' is not known",
        ),
        ("PUT", mapping.clone(), r#"[{"certificateField":"x509SAN"}]"#, "structure"),
        ("PUT", mapping.clone(), r#"{"certificateField":1}"#, "wrong type"),
        (
            "PUT",
            mapping.clone(),
            r#"{"certificateField":"x509SAN","certificateField":"x509SAN"}"#,
            "twice",
        ),
        ("PUT", mapping.clone(), "{", "cannot be read"),
    ] {
        let (status, told, error) = tried(&fixture, method, &uri, body);
        assert!(status == 400 && told.contains(part), "{method} {uri} {body}: {status} {told}");
        assert_eq!(error, serialization, "{uri} {told}");
        // An error's name is in the header only.
        let body: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["message"], "{told}");
        assert_eq!(ASKED.take(), Value::Null);
    }
    for (method, uri, part) in [
        (
            "GET",
            "/crl/x".to_owned(),
            "Value 'x' at 'crlId' failed to satisfy constraint: Member must satisfy regular expression",
        ),
        (
            "DELETE",
            mapping.clone(),
            "Value null at 'certificateField' failed to satisfy constraint: Member must not be null",
        ),
        (
            "DELETE",
            format!("{mapping}?certificateField=x"),
            "enum value set: [x509Subject, x509Issuer, x509SAN]",
        ),
        (
            "GET",
            format!("/crls?nextToken={}", "x".repeat(10_001)),
            "length less than or equal to 10000",
        ),
    ] {
        let (status, told, error) = tried(&fixture, method, &uri, "");
        assert!(status == 400 && told.contains(part), "{method} {uri}: {status} {told}");
        assert_eq!(error, Some("ValidationException"));
    }
    let many = format!("/crls?{}", "pageSize=1&".repeat(2000));
    assert_eq!(tried(&fixture, "GET", &many, "").2, serialization);
}

/// A value of the right type that breaks one constraint of a shape, for each constraint.
fn broken(shape: &Shape) -> Vec<Value> {
    let above = shape.max.map(|max| max + 1);
    let below = shape.min.filter(|min| *min > 0).map(|min| min - 1);
    let sizes = above.into_iter().chain(below);
    let mut values: Vec<Value> = match shape.kind {
        Kind::Integer => sizes.map(Value::from).collect(),
        Kind::String => sizes.map(|len| "x".repeat(usize::try_from(len).unwrap()).into()).collect(),
        Kind::Blob => {
            sizes.map(|len| b64(&vec![0; usize::try_from(len).unwrap()]).into()).collect()
        }
        Kind::List(of) if matches!(of.kind, Kind::String) => {
            sizes.map(|len| vec!["x"; usize::try_from(len).unwrap()].into()).collect()
        }
        _ => Vec::new(),
    };
    if !shape.values.is_empty() {
        values.push("\u{1}".into());
    }
    values
}

#[test]
fn every_constraint_of_every_member_holds() {
    let fixture = Fixture::new();
    let mut swept = 0;
    for sent in sent() {
        let name = text(&sent["operation"]);
        let row = ROLES_ANYWHERE.operations.iter().find(|row| row.name == name).unwrap();
        let Kind::Structure(_, members) = row.input.kind else { panic!("{name}") };
        for member in members {
            let Some(shape) = member.shape else { continue };
            let in_path = row.http.uri.contains(&format!("{{{}}}", member.name));
            let missing = (member.is_required && !in_path).then_some(Value::Null);
            // A path without a label is another path.
            let values = broken(shape).into_iter().filter(|value| !in_path || value != "");
            for value in values.chain(missing) {
                let mut body = sent["input"].clone();
                body[member.name] = value.clone();
                if value.is_null() {
                    body.as_object_mut().unwrap().remove(member.name);
                }
                let refused = fixture.ra(name, body).unwrap_err();
                assert_eq!(refused.code, "ValidationException", "{name}: {}", refused.message);
                let at = format!("'{}' failed to satisfy constraint", member.name);
                assert!(refused.message.contains(&at), "{name}: {}", refused.message);
                swept += 1;
            }
        }
    }
    println!("{swept} constraints of Roles Anywhere hold");
    assert!(swept > 60, "{swept}");
}

#[test]
fn only_paths_of_operations_are_known() {
    let fixture = Fixture::new();
    for (method, uri) in [
        ("GET", "/crl".to_owned()),
        ("GET", "/crl/".to_owned()),
        ("GET", format!("/crl/{ID}/")),
        ("GET", format!("/crl//{ID}")),
        ("GET", format!("/crl/{ID}/enable")),
        ("POST", format!("/crl/{ID}")),
        ("POST", "/".to_owned()),
        ("get", "/crls".to_owned()),
    ] {
        let (_, _, error) = tried(&fixture, method, &uri, "");
        assert_eq!(error, Some("UnknownOperationException"), "{method} {uri}");
    }
}

#[test]
fn a_signature_covers_method_path_and_query() {
    let fixture = Fixture::new();
    let list = sent().into_iter().find(|one| one["operation"] == "ListCrls").unwrap();
    let (uri, headers) = (text(&list["uri"]), headers_of(&list["headers"]));
    for other in [
        uri.replace("pageSize=7", "pageSize=8"),
        uri.split('?').next().unwrap().to_owned(),
        uri.replace("/crls", "/profiles"),
    ] {
        assert_ne!(other, uri);
        let (_, response) = answered(&fixture, "GET", &other, &headers, b"");
        assert_eq!(response.error, Some("InvalidSignatureException"), "{other}");
    }
    let (_, response) = answered(&fixture, "GET", uri, &HeaderMap::new(), b"");
    assert_eq!(response.error, Some("MissingAuthenticationTokenException"));
    // Nor for another service.
    let text = text(&list["headers"]["authorization"]).replace("/rolesanywhere/", "/kms/");
    let mut headers = headers;
    headers.insert("authorization", text.parse().unwrap());
    let (_, response) = answered(&fixture, "GET", uri, &headers, b"");
    assert_eq!(response.error, Some("UnknownOperationException"));
    assert!(list["headers"]["authorization"].to_string().contains(ACCESS_KEY));
}

#[test]
fn client_rejects_missing_labels() {
    let fixture = Fixture::new();
    let input = model::ScalarCrlRequest { crl_id: String::new() };
    let error = fixture.client.request::<model::GetCrl>(&input, NOW).unwrap_err();
    assert_eq!(error.code, "ValidationException");
}

#[test]
fn botocore_reads_our_answers_and_errors() {
    let Some(python) = outlast_testing::peer("python") else { return };
    let script = checkout().join("crates/api/tests/surface/botocore_rest.py");
    let run = |mode: &str, input: String| -> String {
        use std::io::Write as _;
        let mut child = Command::new(python.join("bin/python"))
            .arg(&script)
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let kept = std::fs::read_to_string(checkout().join("crates/api/tests/surface/requests.json"));
    assert!(run("requests", String::new()) == kept.unwrap(), "requests.json is stale");

    let fixture = Fixture::new();
    let (mut answers, mut expected) = (Vec::new(), Vec::new());
    for sent in sent() {
        for refused in [false, true] {
            let output = &sent["output"];
            ANSWER.set(if refused {
                json!({ "refused": "Not here: ü." })
            } else {
                output.clone()
            });
            let headers = headers_of(&sent["headers"]);
            let body = text(&sent["body"]).as_bytes();
            let (_, response) =
                answered(&fixture, text(&sent["method"]), text(&sent["uri"]), &headers, body);
            let mut headers = json!({ "content-type": response.content_type });
            if let Some(error) = response.error {
                headers["x-amzn-errortype"] = error.into();
            }
            answers.push(json!({
                "operation": sent["operation"], "status": response.status, "headers": headers,
                "body": String::from_utf8(response.body).unwrap(),
            }));
            let error = json!({ "error": "ResourceNotFoundException", "message": "Not here: ü." });
            expected.push(if refused { error } else { output.clone() });
        }
    }
    let read: Vec<Value> =
        serde_json::from_str(&run("answers", json!(answers).to_string())).unwrap();
    assert_eq!(read.len(), expected.len());
    for (index, (read, expected)) in read.iter().zip(&expected).enumerate() {
        assert_eq!(read, expected, "{}", answers[index]);
    }
}
