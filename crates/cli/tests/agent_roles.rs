//! `outlast agent` and STS: who the agent is, and secrets that are read as another role.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::request::Parts;
use outlast_net::server::system_clock;
use serde_json::{Value, json};

use crate::agent::{World, error, ok, service};
use crate::common::fail;
use crate::common::stub::{Handler, Stub};

/// AWS's STS has an endpoint of its own, and so may have another service's.
#[test]
fn credentials_are_checked_where_sts_is() {
    let world = World::new();
    let sts = Stub::new(service(&world.secrets, None));
    let both =
        [&world.stub, &sts].map(|stub| std::fs::read_to_string(stub.path("ca.pem")).unwrap());
    world.stub.write("ca.pem", both.concat());
    let configuration = format!("sts_endpoint_url = '{}'", sts.url());
    let agent = world.start(&configuration);
    assert_eq!((sts.requests(), world.stub.requests()), (1, 0));
    assert_eq!(agent.secret("/v1/a"), ok("one"));
    assert_eq!((sts.requests(), world.stub.requests()), (1, 1));
    drop(agent);
    sts.answer(Box::new(|_: &Parts, _: &[u8]| Some((403, Vec::new(), "<xml/>".into()))));
    let text = fail(&mut world.command(&configuration), 1);
    assert!(text.contains("the credentials are refused"), "{text}");
    drop(world.start(&format!("{configuration}\nvalidate_credentials = false")));
}

/// STS and Secrets Manager for roles: the role `ok` may read `a`, others are refused.
fn of_roles(assumed: &Arc<AtomicUsize>) -> Handler {
    let assumed = assumed.clone();
    Box::new(move |head, body| {
        let text = String::from_utf8(body.to_vec()).unwrap();
        if text.starts_with("Action=GetCallerIdentity") {
            return Some((200, Vec::new(), "<xml/>".into()));
        }
        if text.starts_with("Action=AssumeRole") {
            let number = assumed.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(text.contains("RoleSessionName=outlast-agent"), "{text}");
            if !text.contains("role%2Fok") {
                let xml = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>\
                           <Message>no</Message></Error></ErrorResponse>";
                return Some((403, Vec::new(), xml.into()));
            }
            let end = outlast_pki::time::rfc3339(system_clock().div_euclid(1000) + 3600);
            let xml = format!(
                "<AssumeRoleResponse xmlns=\"x\"><AssumeRoleResult><Credentials>\
                 <AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>s/+=</SecretAccessKey>\
                 <SessionToken>token{number}</SessionToken><Expiration>{end}</Expiration>\
                 </Credentials></AssumeRoleResult></AssumeRoleResponse>"
            );
            return Some((200, Vec::new(), xml));
        }
        let token = head.headers.get("x-amz-security-token").map(|value| value.to_str().unwrap());
        let input: Value = serde_json::from_str(&text).unwrap();
        match (token, input["SecretId"].as_str().unwrap()) {
            (Some("token1"), "ended") => Some(error(400, "ExpiredTokenException")),
            (Some(token), name) => {
                let value = json!({
                    "ARN": format!("arn:aws:secretsmanager:eu-central-1:123456789012:secret:{name}-AbCdEf"),
                    "Name": name, "VersionId": "v1", "SecretString": token,
                });
                Some((200, Vec::new(), value.to_string()))
            }
            (None, name) => {
                let value = json!({ "ARN": "arn:x", "Name": name, "VersionId": "v1", "SecretString": "own" });
                Some((200, Vec::new(), value.to_string()))
            }
        }
    })
}

#[test]
fn a_secret_may_be_read_as_a_role() {
    let world = World::new();
    let assumed = Arc::new(AtomicUsize::new(0));
    world.stub.answer(of_roles(&assumed));
    let agent = world.start("max_roles = 2");
    let role = |name: &str| format!("roleArn=arn:aws:iam::123456789012:role/{name}");
    // The same secret, with the agent's own rights and with the role's: each is kept for itself.
    for _ in 0..2 {
        assert_eq!(agent.secret("/v1/a"), ok("own"));
        assert_eq!(agent.secret(&format!("/v1/a?{}", role("ok"))), ok("token1"));
        assert_eq!(agent.secret(&format!("/v1/b?{}", role("ok"))), ok("token1"));
        assert_eq!(assumed.load(Ordering::SeqCst), 1);
    }
    let (status, body) = agent.get(&format!("/v1/a?{}", role("no")));
    assert!(status == 403 && body.contains("AccessDeniedException"), "{status} {body}");
    assert_eq!(agent.secret("/v1/a"), ok("own"));
    // A session that ended early is replaced once.
    let assumed_before = assumed.load(Ordering::SeqCst);
    assert_eq!(agent.secret(&format!("/v1/ended?{}", role("ok"))).0, 200);
    assert_eq!(assumed.load(Ordering::SeqCst), assumed_before + 1);
    assert_eq!(agent.get(&format!("/v1/a?{}", role("ok2"))).0, 200);
    let (status, name) = agent.secret(&format!("/v1/a?{}", role("ok3")));
    assert_eq!((status, name.as_str()), (400, "MaxRolesExceeded"));
    let log = agent.0.log();
    assert!(!log.contains("token1") && !log.contains("s/+="), "{log}");
}
