//! Calls of Transfer Family that ask somebody outside.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use outlast_api::outside::{Errand, Reply};
use outlast_api::provider::ProviderReply;
use outlast_api::service::Step;
use outlast_crypto::Secret;
use outlast_store::Store;
use serde_json::{Value, json};

use crate::common::{ACCOUNT, Fixture, policy, with};
use crate::transfer_support::{prepared, role};

const PASSWORD: &str = "secret-of-alice";

/// Prepares a call of `TestIdentityProvider`.
fn step(fixture: &Fixture, body: &Value, reply: Option<Reply>, use_it: impl FnOnce(Step)) {
    prepared(fixture, "TestIdentityProvider", body, reply, use_it);
}

/// What the call answers, given this reply.
fn answer(fixture: &Fixture, body: &Value, reply: Result<(u16, &str), &str>) -> Value {
    let reply = reply.map_err(str::to_owned).map(|(status, body)| ProviderReply {
        url: "https://idp.example/asked".into(),
        status,
        body: body.as_bytes().to_vec(),
    });
    let mut found = Value::Null;
    step(fixture, body, Some(Reply::Provider(reply)), |step| {
        let Step::Commit(mut prepared) = step else { panic!("it is not answered") };
        assert_eq!(prepared.response.status, 200);
        found = serde_json::from_slice(&prepared.response.body).unwrap();
        let transaction = std::mem::take(&mut prepared.transaction);
        fixture.store.commit_and_wait(transaction).unwrap();
    });
    found
}

#[test]
fn a_test_of_an_identity_provider_asks_it() {
    let fixture = Fixture::new();
    let files = role(&fixture, "sftp-users");
    let other = fixture.role(ACCOUNT, "untrusting", &policy(json!([{
        "Effect": "Allow", "Principal": { "Service": "lambda.amazonaws.com" }, "Action": "sts:AssumeRole",
    }])), &[]);
    let server = fixture.server(json!({
        "IdentityProviderType": "API_GATEWAY", "IdentityProviderDetails": { "Url": "https://idp.example" },
    }));
    let body = json!({ "ServerId": server, "UserName": "alice", "UserPassword": PASSWORD, "SourceIp": "192.0.2.1" });
    let ask = |body: &Value| {
        let mut question = None;
        step(&fixture, body, None, |step| {
            let Step::Ask(asking) = step else { panic!("nobody is asked") };
            assert_eq!(asking.otherwise.error, Some("ServiceUnavailableException"));
            let Errand::Provider { question: asked, .. } = asking.errand else {
                panic!("another errand")
            };
            question = Some(asked);
        });
        question.unwrap()
    };
    let before = fixture.events().len();
    let asked = ask(&body);
    assert_eq!(fixture.events().len(), before, "there is nothing to record yet");
    assert_eq!((asked.server.as_str(), asked.user.as_str()), (server.as_str(), "alice"));
    assert_eq!(asked.password.as_ref().map(Secret::expose), Some(PASSWORD.as_bytes()));
    assert_eq!(asked.source_ip.to_string(), "192.0.2.1");
    let asked = ask(&json!({ "ServerId": server, "UserName": "alice", "UserPassword": "" }));
    assert!(asked.password.is_none());
    assert_eq!(asked.source_ip.to_string(), "198.51.100.7");

    let known = json!({ "Role": files, "HomeDirectory": "/files/home/alice" }).to_string();
    let told = answer(&fixture, &body, Ok((200, &known)));
    let expected = json!({
        "Response": known, "StatusCode": 200, "Message": "", "Url": "https://idp.example/asked",
    });
    assert_eq!(told, expected);
    let foreign = files.replace(ACCOUNT, "210987654321");
    for (status, reply, says) in [
        (200, json!({}).to_string(), "refuses the user"),
        (403, "{\"message\":\"Forbidden\"}".to_owned(), "refuses the user"),
        (502, String::new(), "status 502"),
        (200, "no JSON".to_owned(), "not the JSON"),
        (200, json!({ "Role": other }).to_string(), "trust policy"),
        (200, json!({ "Role": foreign }).to_string(), "not one of the account"),
        (200, json!({ "Role": files, "Policy": "{" }).to_string(), "session policy"),
    ] {
        let told = answer(&fixture, &body, Ok((status, &reply)));
        assert_eq!((&told["StatusCode"], &told["Response"]), (&json!(status), &json!(reply)));
        assert!(told["Message"].as_str().unwrap().contains(says), "{told}");
    }
    let told = answer(&fixture, &body, Err("it is gone"));
    assert_eq!(told["Message"], "Unable to call identity provider: it is gone");
    assert_eq!(told["StatusCode"], 500);

    // Where nobody can ask, the call fails; what is wrong with the call is found before anybody is asked.
    let refused =
        |more: Value| fixture.transfer("TestIdentityProvider", with(&body, more)).unwrap_err();
    assert_eq!(refused(json!({})).code, "ServiceUnavailableException");
    for more in [json!({ "SourceIp": "999.0.0.1" }), json!({ "ServerProtocol": "FTP" })] {
        assert_eq!(refused(more).code, "InvalidRequestException");
    }
    let managed = fixture.server(json!({}));
    let error = refused(json!({ "ServerId": managed }));
    assert!(error.message.contains("SERVICE_MANAGED"), "{}", error.message);
    let events = serde_json::to_string(&fixture.events()).unwrap();
    assert!(events.contains("TestIdentityProvider") && !events.contains(PASSWORD));
}
