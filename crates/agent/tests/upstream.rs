//! Questions to Secrets Manager, and what its answers mean.

use outlast_agent::interface::Ask;
use outlast_agent::upstream::{Away, Caller, Problem, Scope, answer, request};
use outlast_api::wire::sigv4::{Claim, Credentials, Parts};
use outlast_crypto::Secret;
use serde_json::{Value, json};

const NOW: i64 = 1_793_491_200;

fn ask(version: Option<&str>, stage: Option<&str>) -> Ask {
    Ask {
        secret_id: "prod/db".into(),
        version_id: version.map(Into::into),
        version_stage: stage.map(Into::into),
        role_arn: None,
    }
}

#[test]
fn a_question_is_signed_and_names_the_version() {
    let secret = || Secret::new(b"a-secret".to_vec());
    let credentials =
        Credentials { access_key_id: "AKIDEXAMPLE".into(), secret: secret(), token: None };
    let caller =
        Caller { host: "localhost:8443", region: "eu-central-1", credentials: &credentials };
    let request = request(&ask(Some("v"), Some("s")), &caller, NOW).unwrap();
    assert_eq!(request.headers()["x-amz-target"], "secretsmanager.GetSecretValue");
    let body: Value = serde_json::from_slice(request.body()).unwrap();
    assert_eq!(body, json!({"SecretId": "prod/db", "VersionId": "v", "VersionStage": "s"}));
    let parts = Parts {
        method: "POST",
        path: "/",
        query: "",
        host: "localhost:8443",
        headers: request.headers(),
        body: request.body(),
    };
    let claim = Claim::parse(&parts, NOW).unwrap();
    assert_eq!((claim.service.as_str(), claim.region.as_str()), ("secretsmanager", "eu-central-1"));
    claim.verify(&parts, &secret()).unwrap();
}

#[test]
fn a_secret_is_written_as_aws_agent_writes_it() {
    let body = r#"{"CreatedDate":1569534789.046,"ARN":"arn:x","Name":"n","VersionId":"v",
        "SecretString":"{\"a\":\"\\u00e9\\n\"}","VersionStages":["AWSCURRENT"],"New":[1]}"#;
    let found = answer(200, body.as_bytes()).ok().unwrap();
    let expected = r#"{"ARN":"arn:x","Name":"n","VersionId":"v","SecretString":"{\"a\":\"\\u00e9\\n\"}","VersionStages":["AWSCURRENT"],"CreatedDate":"1569534789.046"}"#;
    assert_eq!(String::from_utf8(found.body.to_vec()).unwrap(), expected);
    assert_eq!(
        (found.name.as_str(), found.arn.as_str(), found.version_id.as_str()),
        ("n", "arn:x", "v")
    );
    let found = answer(200, br#"{"ARN":"a","Name":"n","VersionId":"v","SecretBinary":"AAE="}"#);
    let expected =
        r#"{"ARN":"a","Name":"n","VersionId":"v","SecretBinary":"AAE=","CreatedDate":null}"#;
    assert_eq!(String::from_utf8(found.ok().unwrap().body.to_vec()).unwrap(), expected);
}

#[test]
fn an_unreadable_answer_does_not_quote_the_secret() {
    let problem = answer(200, br#"{"SecretString":"hunter2","Name":["hunter3"]}"#).err().unwrap();
    let shown = format!("{problem:?} {}", problem.reason());
    assert!(matches!(problem, Problem::Away(_)));
    assert!(!shown.contains("hunter"), "{shown}");
}

fn problem(status: u16, code: &str) -> Problem {
    let body = json!({"__type": format!("com.amazonaws#{code}"), "Message": "text"}).to_string();
    answer(status, body.as_bytes()).err().unwrap()
}

fn scope(problem: &Problem) -> Option<Scope> {
    match problem {
        Problem::Refused { scope, .. } => Some(*scope),
        Problem::Away(_) => None,
    }
}

#[test]
fn refusals_end_what_is_kept_and_absences_do_not() {
    for (status, code, expected) in [
        (400, "ResourceNotFoundException", Some(Scope::Secret)),
        (400, "AccessDeniedException", Some(Scope::Secret)),
        (403, "AccessDeniedException", Some(Scope::Secret)),
        (400, "DecryptionFailure", Some(Scope::Secret)),
        (400, "InvalidRequestException", Some(Scope::Secret)),
        (400, "UnrecognizedClientException", Some(Scope::Everything)),
        (400, "InvalidSignatureException", Some(Scope::Everything)),
        (403, "ExpiredTokenException", Some(Scope::Everything)),
        (400, "ThrottlingException", None),
        (429, "", None),
        (500, "InternalServiceError", None),
        (503, "", None),
    ] {
        assert_eq!(scope(&problem(status, code)), expected, "{status} {code}");
    }
    // Not from the service.
    let problem = answer(404, b"<html>").err().unwrap();
    assert!(matches!(problem, Problem::Away(Away::Connection(_))));
}

#[test]
fn a_version_that_is_gone_leaves_the_secret() {
    let gone = || problem(400, "ResourceNotFoundException");
    assert_eq!(scope(&gone().about(&ask(None, None))), Some(Scope::Secret));
    assert_eq!(scope(&gone().about(&ask(Some("v"), None))), Some(Scope::Version));
    assert_eq!(scope(&gone().about(&ask(None, Some("s")))), Some(Scope::Version));
    let denied = problem(400, "AccessDeniedException").about(&ask(Some("v"), None));
    assert_eq!(scope(&denied), Some(Scope::Secret));
}

#[test]
fn clients_get_the_errors_of_aws_agent() {
    let shown = |problem: &Problem| {
        let answer = problem.answer();
        (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
    };
    assert_eq!(
        shown(&problem(400, "ResourceNotFoundException")),
        (400, r#"{"__type":"ResourceNotFoundException","message":"text"}"#.into())
    );
    assert_eq!(
        shown(&Problem::Away(Away::Timeout)),
        (504, r#"{"__type":"TimeoutError","message":"Timeout"}"#.into())
    );
    let (status, text) = shown(&Problem::Away(Away::Connection("secret reason".into())));
    assert!(
        status == 502 && text.contains("ConnectionError") && !text.contains("reason"),
        "{text}"
    );
    let (status, text) = shown(&problem(503, ""));
    assert!(status == 503 && text.contains("InternalFailure"), "{text}");
}
