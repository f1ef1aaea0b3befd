//! The metadata service: tokens, and what is answered without one.

use http::Request;
use outlast_agent::imds::{Imds, Step, document, process_document};
use outlast_agent::session::Session;
use outlast_crypto::Secret;
use serde_json::Value;

const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";
const TOKEN: &str = "x-aws-ec2-metadata-token";
const ROLE: &str = "/latest/meta-data/iam/security-credentials/";

fn imds() -> Imds {
    Imds::new("arn:aws:iam::123456789012:role/path/machines", "eu-central-1")
}

fn read(imds: &mut Imds, method: &str, path: &str, headers: &[(&str, &str)], now: u64) -> Step {
    let mut builder = Request::builder().method(method).uri(path).header("host", "127.0.0.1:9911");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    imds.read(&builder.body(()).unwrap().into_parts().0, now)
}

fn token(imds: &mut Imds, seconds: &str, now: u64) -> String {
    match read(imds, "PUT", "/latest/api/token", &[(TTL, seconds)], now) {
        Step::Token(token, _) => token,
        step => panic!("{step:?}"),
    }
}

fn status(step: &Step) -> u16 {
    match step {
        Step::Text(status, _) => *status,
        _ => 200,
    }
}

#[test]
fn credentials_need_a_token_that_is_still_valid() {
    let mut imds = imds();
    let token = token(&mut imds, "60", 1_000);
    let shown = [(TOKEN, token.as_str())];
    let get = |imds: &mut Imds, path: &str, now| read(imds, "GET", path, &shown, now);
    assert_eq!(get(&mut imds, ROLE, 2_000), Step::Text(200, "machines".into()));
    assert_eq!(
        get(&mut imds, ROLE.trim_end_matches('/'), 2_000),
        Step::Text(200, "machines".into())
    );
    assert_eq!(get(&mut imds, &format!("{ROLE}machines"), 60_999), Step::Credentials);
    assert_eq!(
        get(&mut imds, "/latest/meta-data/placement/region", 2_000),
        Step::Text(200, "eu-central-1".into())
    );
    assert_eq!(status(&get(&mut imds, &format!("{ROLE}others"), 2_000)), 404);
    assert_eq!(status(&get(&mut imds, "/latest/user-data", 2_000)), 404);
    assert_eq!(status(&get(&mut imds, &format!("{ROLE}machines"), 61_000)), 401);
    assert_eq!(status(&read(&mut imds, "GET", ROLE, &[], 2_000)), 401);
    assert_eq!(status(&read(&mut imds, "GET", ROLE, &[(TOKEN, "x")], 2_000)), 401);
    assert_eq!(status(&read(&mut imds, "POST", ROLE, &shown, 2_000)), 405);
}

#[test]
fn tokens_are_given_by_a_put_from_this_machine_only() {
    let mut imds = imds();
    let path = "/latest/api/token";
    let put =
        |imds: &mut Imds, headers: &[(&str, &str)]| status(&read(imds, "PUT", path, headers, 0));
    assert_eq!(put(&mut imds, &[(TTL, "21600")]), 200);
    for wrong in ["0", "21601", "-1", "soon", ""] {
        assert_eq!(put(&mut imds, &[(TTL, wrong)]), 400, "{wrong}");
    }
    assert_eq!(put(&mut imds, &[]), 400);
    assert_eq!(put(&mut imds, &[(TTL, "60"), ("X-Forwarded-For", "192.0.2.1")]), 403);
    assert_eq!(status(&read(&mut imds, "GET", path, &[(TTL, "60")], 0)), 405);
    for (host, expected) in [
        ("localhost", 200),
        ("127.0.0.1:9911", 200),
        ("[::1]:9911", 200),
        ("169.254.169.254", 200),
        ("evil.example:9911", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
    ] {
        let request =
            Request::builder().method("PUT").uri(path).header("host", host).header(TTL, "1");
        let step = imds.read(&request.body(()).unwrap().into_parts().0, 0);
        assert_eq!(status(&step), expected, "{host}");
    }
}

/// A program that asks for ever more tokens does not fill the memory, and does not lock out the next one.
#[test]
fn tokens_are_limited() {
    let mut imds = imds();
    let first = token(&mut imds, "10", 0);
    for _ in 0..1024 {
        token(&mut imds, "60", 0);
    }
    assert_eq!(status(&read(&mut imds, "GET", ROLE, &[(TOKEN, &first)], 1)), 401);
    let last = token(&mut imds, "60", 0);
    assert_eq!(status(&read(&mut imds, "GET", ROLE, &[(TOKEN, &last)], 1)), 200);
}

#[test]
fn documents_have_the_members_that_sdks_read() {
    let session = Session {
        access_key_id: "ASIA1".into(),
        secret: Secret::new(b"s".to_vec()),
        token: Secret::new(b"t".to_vec()),
        expiration: 1_793_494_800,
    };
    let value: Value = serde_json::from_str(&document(&session, 1_793_491_200)).unwrap();
    assert_eq!(value["Code"], "Success");
    assert_eq!(value["Token"], "t");
    assert_eq!(value["Expiration"], "2026-11-01T01:00:00Z");
    let value: Value = serde_json::from_str(&process_document(&session)).unwrap();
    assert_eq!(value["Version"], 1);
    assert_eq!(value["SessionToken"], "t");
    assert_eq!(value["SecretAccessKey"], "s");
}
