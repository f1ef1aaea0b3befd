//! Every status of AWS's interface, and spellings that are not quite right.

use http::Request;
use http::request::Parts;
use outlast_agent::interface::{Answer, Ask, Door, Interface, Step};
use outlast_crypto::Secret;

const TOKEN: &str = "the token 42";

fn interface() -> Interface {
    Interface {
        path_prefix: "/v1/".into(),
        token_headers: vec![
            "x-aws-parameters-secrets-token".parse().unwrap(),
            "x-vault-token".parse().unwrap(),
        ],
        token: Secret::new(TOKEN.into()),
    }
}

fn head(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut builder = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn read(method: &str, target: &str, headers: &[(&str, &str)]) -> Step {
    interface().read(Door::Tcp, &head(method, target, headers), false)
}

/// A GET with the token.
fn get(target: &str) -> Step {
    read("GET", target, &[("X-Aws-Parameters-Secrets-Token", TOKEN)])
}

fn refused(step: &Step) -> (u16, String) {
    let Step::Answer(answer) = step else { panic!("it is served: {step:?}") };
    (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
}

fn fetch(id: &str, version: Option<&str>, stage: Option<&str>, refresh: bool) -> Step {
    let ask = Ask {
        secret_id: id.into(),
        version_id: version.map(Into::into),
        version_stage: stage.map(Into::into),
        role_arn: None,
    };
    Step::Fetch { ask, refresh }
}

#[test]
fn secrets_are_named_by_query_or_path() {
    for (target, expected) in [
        ("/secretsmanager/get?secretId=a", fetch("a", None, None, false)),
        (
            "/secretsmanager/get?secretId=a%2Fb&versionId=v&versionStage=AWSPREVIOUS",
            fetch("a/b", Some("v"), Some("AWSPREVIOUS"), false),
        ),
        ("/secretsmanager/get?secretId=a+b", fetch("a b", None, None, false)),
        ("/secretsmanager/get?secretId=a&refreshNow=true", fetch("a", None, None, true)),
        ("/secretsmanager/get?secretId=a&refreshNow=1", fetch("a", None, None, true)),
        ("/secretsmanager/get?secretId=a&refreshNow=FALSE", fetch("a", None, None, false)),
        ("/secretsmanager/get?secretId=a&refreshNow=0&", fetch("a", None, None, false)),
        ("/v1/a", fetch("a", None, None, false)),
        ("/v1/a/b/c?versionStage=s&refreshNow=True", fetch("a/b/c", None, Some("s"), true)),
        ("/v1/a%2Fb", fetch("a/b", None, None, false)),
        (
            "/v1/arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf",
            fetch(
                "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf",
                None,
                None,
                false,
            ),
        ),
    ] {
        assert_eq!(get(target), expected, "{target}");
    }
}

#[test]
fn other_requests_are_refused_as_aws_does() {
    let long = format!("/v1/{}", "a".repeat(2049));
    let stage = format!("/v1/a?versionStage={}", "a".repeat(257));
    for (target, status, text) in [
        ("/secretsmanager/get", 400, "missing parameter secretId"),
        ("/secretsmanager/get?secretId=", 400, "missing parameter secretId"),
        ("/secretsmanager/get?secretId=a&refreshNow=yes", 400, "invalid refreshNow value"),
        ("/secretsmanager/get?secretId=a&refreshNow=", 400, "invalid refreshNow value"),
        ("/secretsmanager/get?secretId=a&abc=1", 400, "unknown parameter: abc"),
        ("/secretsmanager/get?secretid=a", 400, "unknown parameter: secretid"),
        ("/v1/a?secretId=b", 400, "unknown parameter: secretId"),
        ("/v1/", 400, "missing secret ID"),
        ("/v1/%ff", 400, "invalid secret ID"),
        (&long, 400, "a parameter is too long"),
        (&stage, 400, "a parameter is too long"),
        ("/", 404, "Not found"),
        ("/v1", 404, "Not found"),
        ("/v2/a", 404, "Not found"),
        ("/secretsmanager/put?secretId=a", 404, "Not found"),
        ("/start_serving", 404, "Not found"),
    ] {
        assert_eq!(refused(&get(target)), (status, text.into()), "{target}");
    }
    let token = ("X-Aws-Parameters-Secrets-Token", TOKEN);
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        let step = read(method, "/v1/a", &[token]);
        assert_eq!(refused(&step), (405, "Not allowed".into()), "{method}");
    }
}

/// Version 2.1 of AWS's agent reads a secret with another role's rights.
#[test]
fn a_request_may_name_a_role() {
    let arn = "arn:aws:iam::123456789012:role/path/a+=,.@_-1";
    let Step::Fetch { ask, .. } = get(&format!("/v1/a?roleArn={}", arn.replace('+', "%2B"))) else {
        panic!("it is refused")
    };
    assert_eq!((ask.secret_id.as_str(), ask.role_arn.as_deref()), ("a", Some(arn)));
    let expected = "invalid roleArn format, expected arn:<partition>:iam::<account>:role/<name>";
    let long = format!("arn:aws:iam::123456789012:role/{}", "a".repeat(640));
    for wrong in [
        "",
        "a",
        "arn:aws:iam::123456789012:user/a",
        "arn:aws:iam::123456789012:role/",
        "arn:aws:iam::12345678901:role/a",
        "arn:aws:iam::12345678901a:role/a",
        "arn:aws:iam:x:123456789012:role/a",
        "arn:aws:sts::123456789012:role/a",
        "arn::iam::123456789012:role/a",
        "arn:aws:iam::123456789012:role/a%20b",
        "arn:aws:iam::123456789012:role/a:b",
        &long,
    ] {
        let target = format!("/secretsmanager/get?secretId=a&roleArn={wrong}");
        assert_eq!(refused(&get(&target)), (400, expected.into()), "{wrong}");
    }
    let parts = head("GET", &format!("/v1/a?roleArn={arn}"), &[]);
    let step = interface().read(Door::Unix, &parts, false);
    assert_eq!(refused(&step), (400, "roleArn is not served over the socket".into()));
}

#[test]
fn only_the_token_opens() {
    let target = "/v1/a";
    let served = fetch("a", None, None, false);
    for headers in [
        vec![("X-Aws-Parameters-Secrets-Token", TOKEN)],
        vec![("x-aws-parameters-secrets-token", TOKEN)],
        vec![("X-AWS-PARAMETERS-SECRETS-TOKEN", TOKEN)],
        vec![("X-Vault-Token", TOKEN)],
        vec![("X-Aws-Parameters-Secrets-Token", "wrong"), ("X-Vault-Token", TOKEN)],
    ] {
        assert_eq!(read("GET", target, &headers), served, "{headers:?}");
    }
    let upper = TOKEN.to_uppercase();
    let (short, long) = (&TOKEN[..TOKEN.len() - 1], format!("{TOKEN}x"));
    for headers in [
        vec![],
        vec![("X-Aws-Parameters-Secrets-Token", "")],
        vec![("X-Aws-Parameters-Secrets-Token", "wrong")],
        vec![("X-Aws-Parameters-Secrets-Token", upper.as_str())],
        vec![("X-Aws-Parameters-Secrets-Token", short)],
        vec![("X-Aws-Parameters-Secrets-Token", long.as_str())],
        vec![("X-Aws-Parameters-Secret-Token", TOKEN)],
        vec![("Authorization", TOKEN)],
    ] {
        let step = read("GET", target, &headers);
        assert_eq!(refused(&step), (403, "Bad Token".into()), "{headers:?}");
    }
    // Without a token, nothing is right.
    let empty = Interface { token: Secret::new(Vec::new()), ..interface() };
    let parts = head("GET", target, &[("X-Vault-Token", "")]);
    assert_eq!(refused(&empty.read(Door::Tcp, &parts, false)).0, 403);
}

#[test]
fn forwarded_requests_are_refused_on_both_doors() {
    let headers = [("X-Aws-Parameters-Secrets-Token", TOKEN), ("x-forwarded-for", "")];
    for door in [Door::Tcp, Door::Unix] {
        let step = interface().read(door, &head("GET", "/v1/a", &headers), false);
        assert_eq!(refused(&step), (400, "Forwarded".into()));
    }
}

#[test]
fn the_unix_socket_needs_no_token() {
    let step = interface().read(Door::Unix, &head("GET", "/v1/a", &[]), false);
    assert_eq!(step, fetch("a", None, None, false));
}

#[test]
fn health_checks_need_nothing_and_are_not_limited() {
    for headers in [vec![], vec![("X-Forwarded-For", "192.0.2.1")]] {
        let parts = head("GET", "/ping", &headers);
        for over in [false, true] {
            let step = interface().read(Door::Tcp, &parts, over);
            assert_eq!(step, Step::Answer(Answer::text(200, "healthy")));
        }
    }
    assert_eq!(refused(&read("POST", "/ping", &[])).0, 405);
    let parts = head("GET", "/v1/a", &[("X-Vault-Token", TOKEN)]);
    let step = interface().read(Door::Tcp, &parts, true);
    assert_eq!(refused(&step), (429, "Connection limit exceeded".into()));
}

#[test]
fn answers_do_not_show_their_body() {
    let answer = Answer::text(200, "hunter2");
    assert_eq!(format!("{answer:?}"), "Answer(200)");
}
