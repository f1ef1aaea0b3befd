//! Connectors of Transfer Family: the secret, read as the access role, and tests of connections.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use outlast_api::outside::{ConnectionFailure, Errand, Reply};
use outlast_api::service::{Room, Step};
use outlast_domain::transfer::connector::{
    ConnectionFacts, Endpoint, Failure, FailureCode, Job, Refused,
};
use outlast_store::Store;
use serde_json::{Value, json};

use crate::common::{self, ACCOUNT, Fixture, allow, policy, with};
use crate::transfer_support::{connector_role, key, prepared, trust};

/// The job of a transfer of a new connector with this role and secret.
fn job(fixture: &Fixture, role: &str, secret: Option<&str>) -> Job {
    let id = fixture.connector(role, json!({}));
    if let Some(secret) = secret {
        let body = json!({ "ConnectorId": id, "SftpConfig": { "UserSecretId": secret } });
        fixture.transfer("UpdateConnector", body).unwrap();
    }
    fixture.send_files(&id, &["/files/a"]);
    let mut jobs =
        fixture.service.connector_jobs(&|| fixture.now.get() * 1000, &Room::of(10)).unwrap();
    assert_eq!(jobs.len(), 1);
    jobs.pop().unwrap()
}

fn open(fixture: &Fixture, job: &Job) -> Result<Endpoint, Failure> {
    let opened = fixture.service.connector_open(job, fixture.now.get() * 1000);
    opened.map(|(endpoint, _)| endpoint).map_err(|refused| match refused {
        Refused::Failure(failure) => failure,
        other => panic!("{other}"),
    })
}

#[track_caller]
fn refused(fixture: &Fixture, job: &Job) -> Failure {
    let failure = open(fixture, job).err().unwrap();
    assert!(!failure.to_string().contains("tell-tale"), "{failure}");
    failure
}

#[test]
fn the_secret_is_read_as_the_role_and_the_trail_says_so() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let job = job(&fixture, &role, None);
    let before = fixture.events().len();
    open(&fixture, &job).unwrap();
    let events = fixture.events().split_off(before);
    let names: Vec<_> = events.iter().map(|event| event["eventName"].clone()).collect();
    assert_eq!(names, ["AssumeRole", "GetSecretValue", "Decrypt"]);
    assert_eq!(events[0]["resources"][0]["ARN"], json!(role));
    for event in &events[1..] {
        let identity = &event["userIdentity"];
        assert_eq!(identity["type"], "AssumedRole");
        let arn = common::text(&identity["arn"]);
        assert!(arn.contains(&format!("assumed-role/files/{}", job.connector_id)), "{arn}");
        assert_eq!(event.get("errorCode"), None);
    }
    assert_eq!(events[1]["userIdentity"]["invokedBy"], "transfer.amazonaws.com");
    assert_eq!(events[2]["userIdentity"]["invokedBy"], "secretsmanager.amazonaws.com");
    // Each look is an event of its own.
    open(&fixture, &job).unwrap();
    assert_eq!(fixture.events().len(), before + 6);
}

#[test]
fn a_role_that_does_not_trust_the_service_is_not_assumed() {
    let fixture = Fixture::new();
    let allowed = allow(&["secretsmanager:GetSecretValue", "kms:Decrypt"]);
    let lambda = policy(json!([{
        "Effect": "Allow", "Principal": { "Service": "lambda.amazonaws.com" }, "Action": "sts:AssumeRole",
    }]));
    let source =
        |arn: &str| trust(&json!({ "Condition": { "ArnLike": { "aws:SourceArn": arn } } }));
    let account =
        |id: &str| trust(&json!({ "Condition": { "StringEquals": { "aws:SourceAccount": id } } }));
    let connectors = format!("arn:aws:transfer:eu-west-1:{ACCOUNT}:connector/*");
    let users = format!("arn:aws:transfer:eu-west-1:{ACCOUNT}:user/*");
    for (name, trust, is_good) in [
        ("lambda", lambda, false),
        ("users", source(&users), false),
        ("connectors", source(&connectors), true),
        ("ours", account(ACCOUNT), true),
        ("theirs", account("210987654321"), false),
    ] {
        let role = fixture.role(ACCOUNT, name, &trust, std::slice::from_ref(&allowed));
        let job = job(&fixture, &role, None);
        if is_good {
            open(&fixture, &job).unwrap();
        } else {
            let failure = refused(&fixture, &job);
            assert_eq!(failure.code, FailureCode::AssumeRole, "{name}");
            assert!(failure.message.contains("trust policy"), "{name}: {failure}");
        }
        let done = Err(Failure::new(FailureCode::Unknown, "over"));
        fixture.service.connector_ended(&job, &done, fixture.now.get() * 1000).unwrap();
    }
    let missing = format!("arn:aws:iam::{ACCOUNT}:role/nobody");
    let failure = refused(&fixture, &job(&fixture, &missing, None));
    assert!(failure.message.contains("no access role"), "{failure}");
}

#[test]
fn a_secret_that_the_role_may_not_read_is_not_read() {
    let fixture = Fixture::new();
    let none = fixture.role(ACCOUNT, "none", &trust(&json!({})), &[allow(&["s3:*"])]);
    let first = job(&fixture, &none, None);
    let before = fixture.events().len();
    let failure = refused(&fixture, &first);
    assert_eq!(failure.code, FailureCode::AssumeRole);
    assert!(failure.message.contains("secretsmanager:GetSecretValue"), "{failure}");
    // The refusal is in the trail.
    let events = fixture.events().split_off(before);
    let denied = events.iter().find(|event| event["eventName"] == "GetSecretValue").unwrap();
    assert_eq!(denied["errorCode"], "AccessDeniedException");

    // A policy of the secret denies it, and the permission for its key is missing.
    let role = connector_role(&fixture, "files");
    let second = job(&fixture, &role, None);
    let described = json!({ "ConnectorId": second.connector_id });
    let described = fixture.transfer("DescribeConnector", described).unwrap();
    let secret = described["Connector"]["SftpConfig"]["UserSecretId"].clone();
    let deny = policy(json!([{
        "Effect": "Deny", "Principal": { "AWS": role }, "Action": "secretsmanager:GetSecretValue", "Resource": "*",
    }]));
    let put = json!({ "SecretId": secret, "ResourcePolicy": deny.to_string() });
    fixture.secrets("PutResourcePolicy", put).unwrap();
    assert_eq!(refused(&fixture, &second).code, FailureCode::AssumeRole);

    let custom = fixture.key(json!({}));
    let value = json!({ "Username": "u", "Password": "tell-tale" }).to_string();
    let create = json!({ "Name": "custom", "SecretString": value, "KmsKeyId": custom });
    fixture.secrets("CreateSecret", create).unwrap();
    let reader =
        fixture.role(ACCOUNT, "reader", &trust(&json!({})), &[allow(&["secretsmanager:*"])]);
    let failure = refused(&fixture, &job(&fixture, &reader, Some("custom")));
    assert_eq!(failure.code, FailureCode::AssumeRole);
    assert!(failure.message.contains("kms"), "{failure}");
    open(&fixture, &job(&fixture, &role, Some("custom"))).unwrap();
}

#[test]
fn a_secret_that_is_wrong_is_named_without_its_value() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let failure = refused(&fixture, &job(&fixture, &role, Some("missing")));
    assert_eq!(failure.code, FailureCode::Connection);
    assert!(failure.message.contains("missing"), "{failure}");
    for (name, value, says) in [
        ("text", "tell-tale", "JSON object"),
        ("key", r#"{"Username":"u","PrivateKey":["tell-tale"]}"#, "JSON object"),
        ("user", r#"{"Password":"tell-tale"}"#, "Username"),
        ("proof", r#"{"Username":"tell-tale"}"#, "neither"),
    ] {
        fixture.secrets("CreateSecret", json!({ "Name": name, "SecretString": value })).unwrap();
        let failure = refused(&fixture, &job(&fixture, &role, Some(name)));
        assert!(failure.message.contains(says), "{name}: {failure}");
    }
    // A new value counts for the next job, without a change of the connector.
    let last = job(&fixture, &role, Some("proof"));
    let value = json!({ "Username": "new", "Password": "tell-tale-new" }).to_string();
    fixture
        .secrets("PutSecretValue", json!({ "SecretId": "proof", "SecretString": value }))
        .unwrap();
    assert_eq!(open(&fixture, &last).unwrap().user, "new");
    let trail = serde_json::to_string(&fixture.events()).unwrap();
    assert!(!trail.contains("tell-tale"));
}

/// Prepares a call of `TestConnection`.
fn step(fixture: &Fixture, id: &str, reply: Option<Reply>, use_it: impl FnOnce(Step)) {
    prepared(fixture, "TestConnection", &json!({ "ConnectorId": id }), reply, use_it);
}

/// What the call answers, given this reply.
fn answer(fixture: &Fixture, id: &str, reply: Option<Reply>) -> Value {
    let mut found = Value::Null;
    step(fixture, id, reply, |step| {
        let Step::Commit(mut prepared) = step else { panic!("it is not answered") };
        assert_eq!(prepared.response.status, 200);
        found = serde_json::from_slice(&prepared.response.body).unwrap();
        let transaction = std::mem::take(&mut prepared.transaction);
        fixture.store.commit_and_wait(transaction).unwrap();
    });
    found
}

#[test]
fn a_test_of_a_connection_reads_the_secret_first() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let before = fixture.events().len();
    step(&fixture, &id, None, |step| {
        let Step::Ask(asking) = step else { panic!("nobody is asked") };
        assert_eq!(asking.otherwise.error, Some("ServiceUnavailableException"));
        let Errand::Connection(endpoint) = asking.errand else { panic!("another errand") };
        assert_eq!(
            (endpoint.host.as_str(), endpoint.user.as_str()),
            ("sftp.example.com", "outlast")
        );
        assert_eq!(endpoint.max_connections, 1);
    });
    let names: Vec<_> =
        fixture.events()[before..].iter().map(|event| event["eventName"].clone()).collect();
    assert_eq!(names, ["AssumeRole", "GetSecretValue", "Decrypt"], "before anybody is asked");

    let facts = ConnectionFacts { host_key: key(9) };
    let told = answer(&fixture, &id, Some(Reply::Connection(Ok(facts))));
    let expected = json!({
        "ConnectorId": id, "Status": "OK", "StatusMessage": "Connection succeeded",
        "SftpConnectionDetails": { "HostKey": key(9) },
    });
    assert_eq!(told, expected);
    let failure = ConnectionFailure { message: "not trusted".into(), host_key: Some(key(8)) };
    let told = answer(&fixture, &id, Some(Reply::Connection(Err(failure))));
    assert_eq!((&told["Status"], &told["StatusMessage"]), (&json!("ERROR"), &json!("not trusted")));
    assert_eq!(told["SftpConnectionDetails"]["HostKey"], json!(key(8)));
    let failure = ConnectionFailure { message: "no answer".into(), host_key: None };
    let told = answer(&fixture, &id, Some(Reply::Connection(Err(failure))));
    assert_eq!(told["SftpConnectionDetails"], json!({}));
    assert_eq!(fixture.events().last().unwrap()["eventName"], "TestConnection");
}

/// As for all calls that have to wait: clients try again by themselves.
#[test]
fn a_test_that_finds_no_room_is_throttled() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    step(&fixture, &id, Some(Reply::Busy), |step| {
        let response = match step {
            Step::Commit(prepared) => prepared.response,
            Step::Respond(response) => response,
            _ => panic!("it is not answered"),
        };
        assert_eq!((response.status, response.error), (400, Some("ThrottlingException")));
    });
}

#[test]
fn a_test_that_needs_no_connection_asks_nobody() {
    let fixture = Fixture::new();
    let none = fixture.role(ACCOUNT, "none", &trust(&json!({})), &[]);
    let id = fixture.connector(&none, json!({}));
    let told = answer(&fixture, &id, None);
    assert_eq!(told["Status"], "ERROR");
    let says = common::text(&told["StatusMessage"]);
    assert!(says.contains("secretsmanager:GetSecretValue"), "{says}");
    let bare = json!({ "Url": "sftp://a.example", "AccessRole": none });
    let bare = fixture.transfer("CreateConnector", bare).unwrap()["ConnectorId"].clone();
    let told = answer(&fixture, common::text(&bare), None);
    assert!(common::text(&told["StatusMessage"]).contains("UserSecretId"), "{told}");
    // Who may not test reads no secret.
    let role = connector_role(&fixture, "files");
    let good = fixture.connector(&role, json!({}));
    let eve = fixture.user(ACCOUNT, "eve", &[allow(&["transfer:Describe*"])]);
    let before = fixture.events().len();
    let body = json!({ "ConnectorId": good });
    let refused = fixture.transfer_as(&eve, "TestConnection", &body).unwrap_err();
    assert_eq!(refused.code, "AccessDeniedException");
    assert_eq!(fixture.events().len(), before + 1);
    let open = with(&body, json!({ "SftpConfig": { "TrustedHostKeys": [] } }));
    fixture.transfer("UpdateConnector", open).unwrap();
    // Without a trusted key the test tells the server's.
    step(&fixture, &good, None, |step| assert!(matches!(step, Step::Ask(_))));
}
