//! The cost of a policy: the worst patterns and the longest values. Steps are counted, not seconds.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test may fail")]

use outlast_domain::limits::{MAX_CONDITION_VALUE, MAX_POLICY_STEPS};
use outlast_domain::policy::{
    Caller, ConditionKeys, Decision, Grant, Kind, MAX_DOCUMENT_BYTES, Policy, Question, Steps,
    Stopped, decide,
};
use serde_json::{Value, json};

const ACCOUNT: &str = "111122223333";
const ALICE: &str = "arn:aws:iam::111122223333:user/Alice";
const KEY: &str = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
/// The longest `User-Agent` that is compared.
const AGENT: usize = 1024;
/// Size of a document without its pattern.
const FRAME: usize = 400;

fn question(keys: &ConditionKeys) -> Question<'_> {
    let caller = Caller {
        account: ACCOUNT,
        arn: ALICE,
        role_arn: None,
        is_root: false,
        user_id: "AIDAEXAMPLE",
        user_name: "Alice",
    };
    Question { caller, action: "kms:Decrypt", resource: KEY, keys }
}

fn key_policy(statements: &[Value]) -> Policy {
    let document = json!({"Version": "2012-10-17", "Statement": statements}).to_string();
    assert!(document.len() <= MAX_DOCUMENT_BYTES, "{}", document.len());
    Policy::parse(&document, Kind::Key).unwrap()
}

fn statement(effect: &str, condition: &Value) -> Value {
    json!({
        "Effect": effect, "Principal": {"AWS": ALICE}, "Action": "kms:*", "Resource": "*",
        "Condition": condition,
    })
}

fn plain_allow() -> Value {
    json!({"Effect": "Allow", "Principal": {"AWS": ALICE}, "Action": "kms:*", "Resource": "*"})
}

/// Evaluates a policy with one condition: the result, and the number of steps.
fn evaluate(condition: &Value, keys: &ConditionKeys) -> (Grant, u64) {
    let steps = Steps::default();
    let policy = key_policy(&[statement("Allow", condition)]);
    let grant = policy.evaluate_within(&steps, &question(keys));
    (grant, steps.taken())
}

fn agent(text: String) -> ConditionKeys {
    let mut keys = ConditionKeys::new();
    keys.set("aws:UserAgent", text);
    keys
}

/// As many of `item` as a document has room for.
fn as_many(item: &str) -> Vec<String> {
    vec![item.to_owned(); (MAX_DOCUMENT_BYTES - FRAME) / (item.len() + 3)]
}

#[test]
fn patterns_take_steps_like_the_sum_of_the_lengths() {
    let keys = agent("a".repeat(AGENT));
    for length in [100, 1000, 10_000, MAX_DOCUMENT_BYTES - FRAME] {
        // The product would be 33 million.
        let pattern = format!("*{}b*", "a".repeat(length));
        let (grant, steps) = evaluate(&json!({"StringLike": {"aws:UserAgent": pattern}}), &keys);
        println!("*a{{{length}}}b* against a{{{AGENT}}}: {steps} steps");
        assert_eq!(grant, Grant::None);
        assert!(steps >= (length + AGENT) as u64, "what is not found is counted, too: {steps}");
        assert!(steps <= 4 * (length + AGENT) as u64 + 100, "{steps}");
        let pattern = format!("*{}*", "a".repeat(length));
        let (grant, more) = evaluate(&json!({"StringLike": {"aws:UserAgent": pattern}}), &keys);
        println!("*a{{{length}}}* against a{{{AGENT}}}: {more} steps");
        assert_eq!(grant == Grant::Allow { delegated: false }, length <= AGENT);
        assert!(more <= 4 * (length + AGENT) as u64 + 100, "{more}");
    }
}

#[test]
fn worst_policies_stop_within_their_steps_and_allow_nothing() {
    let all = "a".repeat(AGENT);
    let (half, variable) = ("a".repeat(15_000), "${aws:UserAgent}");
    let mut keys = agent(all.clone());
    let names: Vec<_> = (0..128).map(|n| format!("{n:03}{}", "a".repeat(61))).collect();
    keys.set_many("kms:EncryptionContextKeys", names);
    keys.set("kms:EncryptionContext:x", "1".repeat(8192));
    let like = |patterns: Vec<String>| json!({"StringLike": {"aws:UserAgent": patterns}});
    for (what, condition) in [
        ("one ? in the middle", like(vec![format!("*{half}?{half}b*")])),
        ("many short patterns", like(as_many("*?b*"))),
        ("many plain patterns", like(as_many("*b*"))),
        ("many ?", like(vec![format!("*{}b*", "?".repeat(1000)), "*b?*".repeat(6000)])),
        ("many variables", like(vec![format!("*{}b*", variable.repeat(1800))])),
        ("variables in each pattern", like(as_many(&format!("*?{variable}b*")))),
        ("many stars", like(vec!["*a?".repeat(9000) + "b"])),
        (
            "many names",
            json!({"ForAllValues:StringLike": {"kms:EncryptionContextKeys": as_many("*?b*")}}),
        ),
        ("many numbers", json!({"NumericEquals": {"kms:EncryptionContext:x": as_many("1")}})),
        ("many dates", json!({"DateEquals": {"kms:EncryptionContext:x": as_many("1")}})),
    ] {
        let (grant, steps) = evaluate(&condition, &keys);
        println!("{what}: {steps} steps");
        assert!(steps <= MAX_POLICY_STEPS, "{what}: {steps}");
        assert!(matches!(grant, Grant::None | Grant::Stopped(Stopped::Steps)), "{what}: {grant:?}");
    }
}

#[test]
fn a_deny_that_cannot_be_evaluated_denies() {
    let worst = json!({"StringLike": {"aws:UserAgent": as_many("*?b*")}});
    let keys = agent("a".repeat(AGENT));
    let deny = statement("Deny", &worst);
    let identity = Policy::parse(
        &json!({"Version": "2012-10-17", "Statement":
            {"Effect": "Allow", "Action": "*", "Resource": "*"}})
        .to_string(),
        Kind::Identity,
    )
    .unwrap();
    // Before and after an Allow, with and without a grant.
    for statements in [[deny.clone(), plain_allow()], [plain_allow(), deny.clone()]] {
        let policy = key_policy(&statements);
        for granted in [false, true] {
            let decision = decide(Some(&policy), ACCOUNT, &[&identity], granted, &question(&keys));
            let expected = Decision::Undecided { source: "a key policy", why: Stopped::Steps };
            assert_eq!(decision, expected);
        }
        // The same policy is evaluated with a usual value.
        let usual = agent("aws-sdk-rust/1.3".into());
        let decision = decide(Some(&policy), ACCOUNT, &[&identity], false, &question(&usual));
        assert_eq!(decision, Decision::Allow);
    }
    // All documents together share the steps, whichever uses them up.
    let worst_identity = Policy::parse(
        &json!({"Version": "2012-10-17", "Statement":
            {"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": worst}})
        .to_string(),
        Kind::Identity,
    )
    .unwrap();
    let open = key_policy(&[plain_allow()]);
    let decision = decide(Some(&open), ACCOUNT, &[&worst_identity], true, &question(&keys));
    let source = "an identity-based policy";
    assert_eq!(decision, Decision::Undecided { source, why: Stopped::Steps });
    let message = Stopped::Steps.to_string();
    assert!(message.contains(&MAX_POLICY_STEPS.to_string()), "{message}");
}

#[test]
fn too_long_values_deny_where_a_policy_tests_them() {
    let long = agent("a".repeat(60_000));
    let asks = [
        statement("Deny", &json!({"StringEquals": {"aws:UserAgent": "b"}})),
        statement("Deny", &json!({"StringNotLike": {"aws:UserAgent": "a*"}})),
        statement("Deny", &json!({"StringEquals": {"aws:PrincipalAccount": "${aws:UserAgent}"}})),
    ];
    for deny in asks {
        let policy = key_policy(&[plain_allow(), deny]);
        let decision = decide(Some(&policy), ACCOUNT, &[] as &[Policy], false, &question(&long));
        let Decision::Undecided { why: why @ Stopped::LongValue("aws:useragent"), .. } = decision
        else {
            panic!("{decision:?}");
        };
        assert!(why.to_string().contains("1024"), "{why}");
    }
    // A policy that does not use the key is not affected.
    let policy = key_policy(&[plain_allow()]);
    let decision = decide(Some(&policy), ACCOUNT, &[] as &[Policy], false, &question(&long));
    assert_eq!(decision, Decision::Allow);
    for (name, length, fits) in [
        ("aws:UserAgent", AGENT, true),
        ("aws:UserAgent", AGENT + 1, false),
        ("aws:Referer", 2048, true),
        ("aws:Referer", 2049, false),
        ("kms:EncryptionContext:x", MAX_CONDITION_VALUE, true),
        ("kms:EncryptionContext:x", MAX_CONDITION_VALUE + 1, false),
    ] {
        let mut keys = ConditionKeys::new();
        keys.set(name, "a".repeat(length));
        let (grant, _) = evaluate(&json!({"StringLike": {name: "*"}}), &keys);
        let allowed = grant == Grant::Allow { delegated: false };
        assert_eq!(allowed, fits, "{name} {length}: {grant:?}");
    }
}

#[test]
fn usual_policies_are_far_from_the_limit() {
    // As large as a document may be, with a statement for each of many keys.
    let name = |n: usize| format!("arn:aws:kms:us-west-2:111122223333:key/1234abcd-{n:04}");
    let resources: Vec<_> = (0..550).map(name).collect();
    let large = json!({"Effect": "Allow", "Principal": {"AWS": ALICE}, "Action": "kms:Decrypt",
        "Resource": resources});
    let keys = agent("aws-sdk-rust/1.3 os/linux lang/rust/1.90".into());
    let steps = Steps::default();
    let policy = key_policy(&[large]);
    assert_eq!(policy.evaluate_within(&steps, &question(&keys)), Grant::None);
    println!("550 ARNs: {} steps of {MAX_POLICY_STEPS}", steps.taken());
    assert!(steps.taken() < MAX_POLICY_STEPS / 10, "{}", steps.taken());
}
