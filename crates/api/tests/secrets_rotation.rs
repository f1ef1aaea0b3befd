//! The state of rotations: steps, attempts, leases, windows, and what requests do to one under way. The functions are this
//! test.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Fixture, NOW, code, text, with};
use outlast_domain::secrets::rotation::{Call, Outcome};
use serde_json::{Value, json};

const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:f";
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;
/// Lease of each call, seconds.
const LEASE: i64 = 60;

fn due(fixture: &Fixture) -> Vec<Call> {
    let now_ms = fixture.now.get() * 1000;
    fixture.service.rotation_calls(now_ms, 10, &|_| LEASE * 1000).unwrap()
}

#[track_caller]
fn one(fixture: &Fixture) -> Call {
    let mut calls = due(fixture);
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls.pop().unwrap()
}

fn ended(fixture: &Fixture, call: &Call, outcome: Outcome) {
    fixture.service.rotation_outcome(call, &outcome, fixture.now.get() * 1000).unwrap();
}

fn failed(fixture: &Fixture, call: &Call) {
    ended(fixture, call, Outcome::Failed("a test".into()));
}

/// Does what a function does in this step.
pub fn act(fixture: &Fixture, call: &Call) {
    match call.step.name() {
        "createSecret" => {
            let put = json!({
                "SecretId": call.secret_arn, "ClientRequestToken": call.version_id, "SecretString": call.version_id,
                "VersionStages": ["AWSPENDING"], "RotationToken": call.token,
            });
            fixture.secrets("PutSecretValue", put).unwrap();
        }
        "finishSecret" => {
            let described = describe(fixture);
            let stages = described["VersionIdsToStages"].as_object().unwrap();
            let current = stages.iter().find(|(_, labels)| labels[0] == "AWSCURRENT").unwrap().0;
            let moved = json!({
                "SecretId": call.secret_arn, "VersionStage": "AWSCURRENT", "RemoveFromVersionId": current,
                "MoveToVersionId": call.version_id,
            });
            fixture.secrets("UpdateSecretVersionStage", moved).unwrap();
        }
        _ => {}
    }
}

fn describe(fixture: &Fixture) -> Value {
    fixture.secrets("DescribeSecret", json!({ "SecretId": "s" })).unwrap()
}

fn rotate(fixture: &Fixture, more: Value) -> common::Answer {
    fixture.secrets(
        "RotateSecret",
        with(&json!({ "SecretId": "s", "RotationLambdaARN": FUNCTION }), more),
    )
}

/// Names of the events about rotations, oldest first.
fn events(fixture: &Fixture) -> Vec<String> {
    let names = fixture.events().into_iter().map(|event| text(&event["eventName"]).to_owned());
    names.filter(|name| name.contains("Rotation")).collect()
}

/// Carries a whole rotation out; returns the version.
fn whole(fixture: &Fixture) -> String {
    for step in ["createSecret", "setSecret", "testSecret", "finishSecret"] {
        let call = one(fixture);
        assert_eq!(call.step.name(), step);
        act(fixture, &call);
        ended(fixture, &call, Outcome::Done);
        if step == "finishSecret" {
            return call.version_id;
        }
    }
    unreachable!()
}

fn secret() -> Fixture {
    let fixture = Fixture::new();
    fixture.secret("s", "one");
    fixture
}

#[test]
fn four_steps_make_a_rotation() {
    let fixture = secret();
    let token = "t".repeat(32);
    let made = rotate(&fixture, json!({ "ClientRequestToken": token })).unwrap();
    assert_eq!(text(&made["VersionId"]), token);
    assert_eq!(whole(&fixture), token);
    let described = describe(&fixture);
    assert_eq!(described["VersionIdsToStages"][&token], json!(["AWSCURRENT"]));
    assert_eq!(described["LastRotatedDate"], json!(NOW));
    assert_eq!(described["RotationEnabled"], true);
    assert!(described.get("NextRotationDate").is_none(), "nothing schedules it");
    assert_eq!(events(&fixture), ["RotationStarted", "RotationSucceeded"]);
    assert!(due(&fixture).is_empty());
}

#[test]
fn a_step_that_fails_is_tried_again_and_given_up() {
    let fixture = secret();
    rotate(&fixture, json!({})).unwrap();
    let first = one(&fixture);
    failed(&fixture, &first);
    assert!(due(&fixture).is_empty(), "not at once");
    let mut waited = 0;
    for attempt in 2..=5 {
        while due(&fixture).is_empty() && waited < HOUR {
            // `due` claims, so that what it finds must be used.
            fixture.advance(1);
            waited += 1;
            let calls = due(&fixture);
            if let Some(call) = calls.first() {
                assert_eq!(
                    (call.step, &call.version_id),
                    (first.step, &first.version_id),
                    "{attempt}"
                );
                failed(&fixture, call);
                break;
            }
        }
    }
    assert_eq!(events(&fixture), ["RotationStarted", "RotationFailed"]);
    fixture.advance(DAY);
    assert!(due(&fixture).is_empty(), "without a schedule only a request begins another one");
    // The next one makes a new version, as nothing is pending.
    rotate(&fixture, json!({})).unwrap();
    whole(&fixture);
}

#[test]
fn a_pending_version_is_tried_again_in_the_next_window() {
    let fixture = secret();
    let daily = json!({ "RotationRules": { "ScheduleExpression": "rate(1 day)" } });
    rotate(&fixture, daily).unwrap();
    let call = one(&fixture);
    act(&fixture, &call);
    ended(&fixture, &call, Outcome::Done);
    for _ in 0..5 {
        fixture.advance(600);
        let call = one(&fixture);
        assert_eq!(call.step.name(), "setSecret");
        failed(&fixture, &call);
    }
    assert_eq!(events(&fixture), ["RotationStarted", "RotationFailed"]);
    assert_eq!(describe(&fixture)["NextRotationDate"], json!(NOW + DAY));
    fixture.now.set(NOW + DAY);
    assert_eq!(whole(&fixture), call.version_id);
}

/// The pending value may be in force already at the database, so that another one would lose it.
#[test]
fn a_rotation_that_failed_is_not_followed_by_one_with_another_version() {
    let fixture = secret();
    rotate(&fixture, json!({})).unwrap();
    let call = one(&fixture);
    act(&fixture, &call);
    ended(&fixture, &call, Outcome::Done);
    for _ in 0..5 {
        fixture.advance(600);
        failed(&fixture, &one(&fixture));
    }
    assert_eq!(code(rotate(&fixture, json!({}))), "InvalidRequestException");
    rotate(&fixture, json!({ "ClientRequestToken": call.version_id })).unwrap();
    assert_eq!(whole(&fixture), call.version_id);
}

#[test]
fn a_lease_keeps_others_out_until_it_ends() {
    let fixture = secret();
    rotate(&fixture, json!({})).unwrap();
    let first = one(&fixture);
    assert!(due(&fixture).is_empty());
    fixture.advance(LEASE);
    let second = one(&fixture);
    assert_eq!((first.step, &first.version_id), (second.step, &second.version_id));
    // The first server comes back too late: what it says counts no more.
    ended(&fixture, &first, Outcome::Done);
    assert!(due(&fixture).is_empty());
    act(&fixture, &second);
    ended(&fixture, &second, Outcome::Done);
    assert_eq!(one(&fixture).step.name(), "setSecret");
}

#[test]
fn success_without_a_new_current_version_is_a_failure() {
    let fixture = secret();
    rotate(&fixture, json!({})).unwrap();
    for _ in 0..3 {
        let call = one(&fixture);
        act(&fixture, &call);
        ended(&fixture, &call, Outcome::Done);
    }
    let call = one(&fixture);
    ended(&fixture, &call, Outcome::Done);
    assert!(!events(&fixture).contains(&"RotationSucceeded".to_owned()));
    fixture.advance(10);
    let call = one(&fixture);
    assert_eq!(call.step.name(), "finishSecret");
    act(&fixture, &call);
    ended(&fixture, &call, Outcome::Done);
    assert!(events(&fixture).contains(&"RotationSucceeded".to_owned()));
}

#[test]
fn one_rotation_at_a_time() {
    let fixture = secret();
    let token = json!({ "ClientRequestToken": "t".repeat(32) });
    rotate(&fixture, token.clone()).unwrap();
    let call = one(&fixture);
    // The same request again continues it; another one is refused, even before there is a pending version.
    rotate(&fixture, token).unwrap();
    assert!(due(&fixture).is_empty());
    let refused = rotate(&fixture, json!({})).unwrap_err();
    assert_eq!(refused.code, "InvalidRequestException");
    assert_eq!(
        refused.message,
        "A previous rotation isn't complete. That rotation will be reattempted."
    );
    act(&fixture, &call);
    ended(&fixture, &call, Outcome::Done);
    // Only the rotation's own token is accepted.
    let put = json!({ "SecretId": "s", "SecretString": "x", "RotationToken": "0".repeat(36) });
    assert_eq!(code(fixture.secrets("PutSecretValue", put)), "InvalidRequestException");
}

#[test]
fn rotation_ends_when_it_is_cancelled_or_the_secret_is_deleted() {
    let fixture = secret();
    rotate(&fixture, json!({ "RotationRules": { "AutomaticallyAfterDays": 1 } })).unwrap();
    let call = one(&fixture);
    act(&fixture, &call);
    let cancelled = fixture.secrets("CancelRotateSecret", json!({ "SecretId": "s" })).unwrap();
    assert_eq!(text(&cancelled["VersionId"]), call.version_id);
    ended(&fixture, &call, Outcome::Done);
    fixture.advance(2 * DAY);
    assert!(due(&fixture).is_empty());
    let described = describe(&fixture);
    assert_eq!(described["RotationEnabled"], false);
    assert!(described.get("NextRotationDate").is_none());

    // The label stays, as AWS documents it, and stands in the way until it is removed.
    assert_eq!(code(rotate(&fixture, json!({}))), "InvalidRequestException");
    let removed = json!({ "SecretId": "s", "VersionStage": "AWSPENDING", "RemoveFromVersionId": call.version_id });
    fixture.secrets("UpdateSecretVersionStage", removed).unwrap();
    rotate(&fixture, json!({})).unwrap();
    fixture.secrets("DeleteSecret", json!({ "SecretId": "s" })).unwrap();
    assert!(due(&fixture).is_empty());
    fixture.secrets("RestoreSecret", json!({ "SecretId": "s" })).unwrap();
    assert!(due(&fixture).is_empty());
    fixture.advance(DAY);
    assert_eq!(one(&fixture).step.name(), "createSecret");
}

#[test]
fn windows_open_and_pass() {
    let fixture = secret();
    // 2026-11-21 is a Saturday.
    let rules = json!({ "RotationRules": { "ScheduleExpression": "cron(0 8 ? * MON *)", "Duration": "2h" },
        "RotateImmediately": false });
    let made = rotate(&fixture, rules).unwrap();
    assert!(made.get("VersionId").is_none());
    // Only the function is tried.
    let call = one(&fixture);
    assert_eq!(call.step.name(), "testSecret");
    ended(&fixture, &call, Outcome::Done);
    let monday = NOW + 2 * DAY + 8 * HOUR;
    assert_eq!(describe(&fixture)["NextRotationDate"], json!(monday));
    assert_eq!(events(&fixture), ["TestRotationStarted", "TestRotationSucceeded"]);
    fixture.now.set(monday - 1);
    assert!(due(&fixture).is_empty());
    fixture.now.set(monday + HOUR);
    whole(&fixture);
    assert_eq!(describe(&fixture)["NextRotationDate"], json!(monday + 7 * DAY));
    // No server ran in the whole next window.
    fixture.now.set(monday + 7 * DAY + 2 * HOUR);
    assert!(due(&fixture).is_empty());
    assert_eq!(describe(&fixture)["NextRotationDate"], json!(monday + 14 * DAY));
}

/// AWS's functions refuse a `ClientRequestToken` that is not a version with the label AWSPENDING, in every step.
#[test]
fn the_pending_version_is_there_before_it_has_a_value() {
    let fixture = secret();
    let first = describe(&fixture)["VersionIdsToStages"].clone();
    rotate(&fixture, json!({})).unwrap();
    let call = one(&fixture);
    let id = call.version_id.clone();
    assert_eq!(describe(&fixture)["VersionIdsToStages"][&id], json!(["AWSPENDING"]));
    let pending = json!({ "SecretId": "s", "VersionId": id, "VersionStage": "AWSPENDING" });
    let by_label = json!({ "SecretId": "s", "VersionStage": "AWSPENDING" });
    for body in [&pending, &by_label] {
        let absent = fixture.secrets("GetSecretValue", body.clone());
        assert_eq!(code(absent), "ResourceNotFoundException", "{body}");
    }
    let listed = fixture.secrets("ListSecretVersionIds", json!({ "SecretId": "s" })).unwrap();
    assert_eq!(
        (&listed["Versions"][0]["VersionId"], listed["Versions"][0].get("KmsKeyIds")),
        (&json!(id), None)
    );
    // It cannot be the current one, and other changes leave it alone.
    let current = first.as_object().unwrap().keys().next().unwrap();
    let moved = json!({ "SecretId": "s", "VersionStage": "AWSCURRENT", "RemoveFromVersionId": current,
        "MoveToVersionId": id });
    assert_eq!(code(fixture.secrets("UpdateSecretVersionStage", moved)), "InvalidRequestException");
    let key = fixture.key(json!({}));
    fixture.secrets("UpdateSecret", json!({ "SecretId": "s", "KmsKeyId": key })).unwrap();
    let add = json!({ "SecretId": "s", "AddReplicaRegions": [{ "Region": "eu-central-1" }] });
    let replicated = fixture.secrets("ReplicateSecretToRegions", add).unwrap();
    assert_eq!(replicated["ReplicationStatus"][0]["Status"], "InSync");

    act(&fixture, &call);
    let got = fixture.secrets("GetSecretValue", pending).unwrap();
    assert_eq!(text(&got["SecretString"]), id);
    // Now it has one.
    let other = json!({ "SecretId": "s", "SecretString": "x", "ClientRequestToken": id });
    assert_eq!(code(fixture.secrets("PutSecretValue", other)), "ResourceExistsException");
    ended(&fixture, &call, Outcome::Done);
    for _ in 0..3 {
        let call = one(&fixture);
        act(&fixture, &call);
        ended(&fixture, &call, Outcome::Done);
    }
    assert_eq!(describe(&fixture)["VersionIdsToStages"][&id], json!(["AWSCURRENT"]));
}

#[test]
fn an_empty_version_without_labels_is_forgotten() {
    let fixture = secret();
    for _ in 0..3 {
        rotate(&fixture, json!({})).unwrap();
        let id = one(&fixture).version_id;
        fixture.secrets("CancelRotateSecret", json!({ "SecretId": "s" })).unwrap();
        assert_eq!(describe(&fixture)["VersionIdsToStages"][&id], json!(["AWSPENDING"]));
    }
    let list = json!({ "SecretId": "s", "IncludeDeprecated": true });
    let listed = fixture.secrets("ListSecretVersionIds", list.clone()).unwrap();
    assert_eq!(listed["Versions"].as_array().unwrap().len(), 2, "{listed}");
    let removed = json!({ "SecretId": "s", "VersionStage": "AWSPENDING",
        "RemoveFromVersionId": listed["Versions"][0]["VersionId"] });
    fixture.secrets("UpdateSecretVersionStage", removed).unwrap();
    let listed = fixture.secrets("ListSecretVersionIds", list).unwrap();
    assert_eq!(listed["Versions"].as_array().unwrap().len(), 1, "{listed}");
    let force = json!({ "SecretId": "s", "ForceDeleteWithoutRecovery": true });
    rotate(&fixture, json!({})).unwrap();
    fixture.secrets("DeleteSecret", force).unwrap();
    let left = fixture.store_without_uses();
    assert!(!left.iter().any(|(key, _)| key.starts_with("secrets/")));
}

/// "The test creates an AWSPENDING version of the secret and then removes it" (RotateSecret, `RotateImmediately`).
#[test]
fn a_test_has_a_pending_version_that_goes() {
    let fixture = secret();
    let before = describe(&fixture)["VersionIdsToStages"].clone();
    let later = json!({ "RotateImmediately": false,
        "RotationRules": { "ScheduleExpression": "rate(10 days)" } });
    let pending = |id: &str| {
        let body = json!({ "SecretId": "s", "VersionId": id, "VersionStage": "AWSPENDING" });
        fixture.secrets("GetSecretValue", body)
    };
    type End = fn(&Fixture, &Call);
    let ends: [End; 5] = [
        |fixture, call| ended(fixture, call, Outcome::Done),
        failed,
        |fixture, _| {
            fixture.secrets("CancelRotateSecret", json!({ "SecretId": "s" })).unwrap();
        },
        |fixture, _| {
            let id = json!({ "SecretId": "s" });
            fixture.secrets("DeleteSecret", id.clone()).unwrap();
            fixture.secrets("RestoreSecret", id).unwrap();
        },
        // A rotation at once takes the place of the test.
        |fixture, _| {
            rotate(fixture, json!({})).unwrap();
            let call = one(fixture);
            assert_eq!(call.step.name(), "createSecret");
            fixture.secrets("CancelRotateSecret", json!({ "SecretId": "s" })).unwrap();
            let removed = json!({ "SecretId": "s", "VersionStage": "AWSPENDING",
                "RemoveFromVersionId": call.version_id });
            fixture.secrets("UpdateSecretVersionStage", removed).unwrap();
        },
    ];
    for end in ends {
        rotate(&fixture, later.clone()).unwrap();
        let call = one(&fixture);
        assert_eq!(call.step.name(), "testSecret");
        let id = call.version_id.as_str();
        assert_eq!(describe(&fixture)["VersionIdsToStages"][id], json!(["AWSPENDING"]));
        // A function that logs in with it must succeed.
        let got = pending(id).unwrap();
        assert_eq!((text(&got["SecretString"]), text(&got["VersionId"])), ("one", id));
        // It is gone afterwards, so that nothing else can be done with it.
        let moved = json!({ "SecretId": "s", "SecretString": "x", "ClientRequestToken": id });
        assert_eq!(code(fixture.secrets("PutSecretValue", moved)), "ResourceExistsException");
        end(&fixture, &call);
        assert_eq!(describe(&fixture)["VersionIdsToStages"], before);
        assert_eq!(code(pending(id)), "ResourceNotFoundException");
    }
    assert_eq!(
        text(
            &fixture.secrets("GetSecretValue", json!({ "SecretId": "s" })).unwrap()["SecretString"]
        ),
        "one"
    );
}

/// A pending value may be in force already, so that a test leaves it and its label alone.
#[test]
fn a_test_uses_the_pending_version_that_is_there() {
    let fixture = secret();
    let id = fixture.put("s", "pending", json!({ "VersionStages": ["AWSPENDING"] }));
    let before = describe(&fixture)["VersionIdsToStages"].clone();
    rotate(&fixture, json!({ "RotateImmediately": false })).unwrap();
    let call = one(&fixture);
    assert_eq!((call.step.name(), &call.version_id), ("testSecret", &id));
    ended(&fixture, &call, Outcome::Done);
    assert_eq!(describe(&fixture)["VersionIdsToStages"], before);
}

#[test]
fn the_days_of_a_schedule_are_shown() {
    let fixture = secret();
    for (rules, days) in [
        (json!({ "ScheduleExpression": "rate(10 days)" }), Some(10)),
        (json!({ "ScheduleExpression": "rate(1 day)" }), Some(1)),
        (json!({ "AutomaticallyAfterDays": 30 }), Some(30)),
        (json!({ "ScheduleExpression": "rate(12 hours)" }), None),
        (json!({ "ScheduleExpression": "cron(0 8 ? * MON *)" }), None),
    ] {
        rotate(&fixture, json!({ "RotationRules": rules, "RotateImmediately": false })).unwrap();
        ended(&fixture, &one(&fixture), Outcome::Done);
        let list = fixture.secrets("ListSecrets", json!({})).unwrap();
        for shown in [&describe(&fixture), &list["SecretList"][0]] {
            let shown = &shown["RotationRules"];
            assert_eq!(shown["AutomaticallyAfterDays"].as_i64(), days, "{rules}");
            assert_eq!(shown["ScheduleExpression"], rules["ScheduleExpression"]);
        }
    }
}

/// "You also need lambda:InvokeFunction permissions on the rotation function" (RotateSecret).
#[test]
fn rotating_needs_the_right_to_invoke_the_function() {
    let fixture = secret();
    let rights = |name: &str, function: &str| {
        let statement = json!([
            { "Effect": "Allow", "Action": "secretsmanager:*", "Resource": "*" },
            { "Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": function },
        ]);
        fixture.user(common::ACCOUNT, name, &[common::policy(statement)])
    };
    let (other, whole) = (rights("other", &format!("{FUNCTION}-other")), rights("whole", FUNCTION));
    let body = json!({ "SecretId": "s", "RotationLambdaARN": FUNCTION });
    let refused = fixture.secrets_as(&other, "RotateSecret", &body).unwrap_err();
    assert_eq!(
        (refused.code.as_str(), refused.message),
        (
            "AccessDeniedException",
            format!(
                "User: arn:aws:iam::{}:user/other is not authorized to perform: lambda:InvokeFunction on resource: \
                 {FUNCTION} because no identity-based policy allows the lambda:InvokeFunction action",
                common::ACCOUNT
            )
        )
    );
    let events = fixture.events();
    let event = events.last().unwrap();
    assert_eq!(
        (text(&event["eventName"]), text(&event["errorCode"])),
        ("RotateSecret", "AccessDeniedException")
    );
    assert_eq!(event["resources"][1]["ARN"], FUNCTION);
    assert!(due(&fixture).is_empty());
    assert!(describe(&fixture).get("RotationLambdaARN").is_none());

    fixture.secrets_as(&whole, "RotateSecret", &body).unwrap();
    whole_rotation_and_again(&fixture, &whole, &other);
}

/// The function that the secret has already counts, too.
fn whole_rotation_and_again(fixture: &Fixture, may: &common::Who, may_not: &common::Who) {
    whole(fixture);
    let body = json!({ "SecretId": "s" });
    let refused = fixture.secrets_as(may_not, "RotateSecret", &body);
    assert_eq!(code(refused), "AccessDeniedException");
    fixture.secrets_as(may, "RotateSecret", &body).unwrap();
    whole(fixture);
}

/// AWS's words, and a hint for the operator in the log: callers who may not invoke a function do not learn whether the
/// server calls it.
#[test]
fn only_configured_functions_are_called() {
    let fixture = secret();
    fixture.service.set_settings(outlast_domain::settings::Settings {
        rotation_functions: Some([FUNCTION.to_owned()].into()),
        ..outlast_domain::settings::Settings::default()
    });
    let names = [
        format!("{FUNCTION}-none"),
        FUNCTION.replace(common::ACCOUNT, common::OTHER_ACCOUNT),
        "f".into(),
    ];
    for function in &names {
        let body = json!({ "SecretId": "s", "RotationLambdaARN": function });
        assert_eq!(
            code(fixture.secrets("RotateSecret", body)),
            "AccessDeniedException",
            "{function}"
        );
    }
    let body = json!({ "SecretId": "s", "RotationLambdaARN": names[0] });
    let refused = fixture.secrets("RotateSecret", body).unwrap_err();
    assert!(
        refused.message.starts_with("Secrets Manager cannot invoke the specified Lambda function.")
    );
    rotate(&fixture, json!({})).unwrap();
    whole(&fixture);
}

#[test]
fn replicas_get_the_rotated_value() {
    let fixture = secret();
    let add = json!({ "SecretId": "s", "AddReplicaRegions": [{ "Region": "eu-central-1" }] });
    fixture.secrets("ReplicateSecretToRegions", add).unwrap();
    rotate(&fixture, json!({})).unwrap();
    let version = whole(&fixture);
    let there = common::Who::admin().at("eu-central-1");
    let got = fixture.secrets_as(&there, "GetSecretValue", &json!({ "SecretId": "s" })).unwrap();
    assert_eq!((text(&got["VersionId"]), text(&got["SecretString"])), (&*version, &*version));
    assert_eq!(got["VersionStages"], json!(["AWSCURRENT"]));
    let id = json!({ "SecretId": "s" });
    let here = fixture.secrets("DescribeSecret", id.clone()).unwrap();
    let described = fixture.secrets_as(&there, "DescribeSecret", &id).unwrap();
    for member in ["VersionIdsToStages", "LastRotatedDate"] {
        assert_eq!(described[member], here[member], "{member}");
    }
    let rotate = json!({ "SecretId": "s", "RotationLambdaARN": FUNCTION });
    assert_eq!(
        code(fixture.secrets_as(&there, "RotateSecret", &rotate)),
        "InvalidRequestException"
    );
}

#[test]
fn credentials_are_for_roles_that_trust_functions() {
    let fixture = secret();
    rotate(&fixture, json!({})).unwrap();
    let call = one(&fixture);
    let trust = |principal: Value| {
        common::policy(
            json!([{ "Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal }]),
        )
    };
    let lambda = json!({ "Service": "lambda.amazonaws.com" });
    let good = fixture.role(common::ACCOUNT, "good", &trust(lambda.clone()), &[]);
    let bad = fixture.role(common::ACCOUNT, "bad", &trust(json!({ "AWS": common::ACCOUNT })), &[]);
    let theirs = fixture.role(common::OTHER_ACCOUNT, "theirs", &trust(lambda), &[]);
    let issue =
        |role: &str| fixture.service.function_credentials(role, &call, fixture.now.get() * 1000);
    let issued = issue(&good).unwrap();
    assert!(issued.access_key_id.starts_with("ASIA"));
    assert_eq!(issued.expires_ms, (NOW + 900) * 1000);
    for role in [bad.as_str(), theirs.as_str(), "arn:aws:iam::123456789012:role/none", "good"] {
        assert!(issue(role).is_err(), "{role}");
    }
}
