//! Policies against the examples and rules of AWS's documentation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_domain::policy::{
    Caller, ConditionKeys, Decision, Grant, Kind, Policy, Question, decide,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const ACCOUNT: &str = "111122223333";
const OTHER: &str = "444455556666";
const KEY: &str = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
const ROOT: &str = "arn:aws:iam::111122223333:root";
const ALICE: &str = "arn:aws:iam::111122223333:user/Alice";
const ROLE: &str = "arn:aws:iam::111122223333:role/ops/App";
const SESSION: &str = "arn:aws:sts::111122223333:assumed-role/App/i-1";

const DIRECT: Grant = Grant::Allow { delegated: false };
const DELEGATED: Grant = Grant::Allow { delegated: true };
const NEEDS_IDENTITY: Decision = Decision::ImplicitDeny { reason: "no identity-based policy" };
const NEEDS_KEY: Decision = Decision::ImplicitDeny { reason: "no key policy" };

const fn caller<'a>(account: &'a str, arn: &'a str) -> Caller<'a> {
    let (user_id, user_name) = ("AIDAEXAMPLE", "Alice");
    Caller { account, arn, role_arn: None, is_root: false, user_id, user_name }
}

fn alice() -> Caller<'static> {
    caller(ACCOUNT, ALICE)
}

fn bob() -> Caller<'static> {
    Caller { user_name: "Bob", ..caller(ACCOUNT, "arn:aws:iam::111122223333:user/Bob") }
}

fn stranger() -> Caller<'static> {
    caller(OTHER, "arn:aws:iam::444455556666:user/Eve")
}

fn session() -> Caller<'static> {
    Caller { role_arn: Some(ROLE), user_id: "AROAEXAMPLE:i-1", ..caller(ACCOUNT, SESSION) }
}

fn root() -> Caller<'static> {
    Caller { is_root: true, ..caller(ACCOUNT, ROOT) }
}

fn keys(entries: &[(&str, &[&str])]) -> ConditionKeys {
    let mut keys = ConditionKeys::new();
    for (name, values) in entries {
        keys.set_many(name, values.iter().map(ToString::to_string).collect());
    }
    keys
}

fn ask<'a>(caller: Caller<'a>, action: &'a str, keys: &'a ConditionKeys) -> Question<'a> {
    Question { caller, action, resource: KEY, keys }
}

fn policy(kind: Kind, statements: Value) -> Policy {
    let document = json!({"Version": "2012-10-17", "Statement": statements});
    Policy::parse(&document.to_string(), kind).unwrap()
}

fn identity(action: &str) -> Policy {
    policy(Kind::Identity, json!({"Effect": "Allow", "Action": action, "Resource": "*"}))
}

/// Whether a condition holds in an identity policy's `Allow`.
fn holds(condition: &Value, keys: &ConditionKeys) -> bool {
    let statement =
        json!({"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": condition});
    policy(Kind::Identity, statement).evaluate(&ask(alice(), "kms:Decrypt", keys)) == DIRECT
}

/// KMS Developer Guide, "Default key policy", as the console writes it.
fn console_policy() -> Policy {
    let grants = ["kms:CreateGrant", "kms:ListGrants", "kms:RevokeGrant"];
    let users = json!({"AWS": ["arn:aws:iam::111122223333:user/CMKUser", ROLE, OTHER]});
    let document = json!({"Id": "key-consolepolicy", "Version": "2012-10-17", "Statement": [
        {"Sid": "Enable IAM User Permissions", "Effect": "Allow", "Principal": {"AWS": ROOT},
         "Action": "kms:*", "Resource": "*"},
        {"Sid": "Allow access for Key Administrators", "Effect": "Allow",
         "Principal": {"AWS": [ALICE]},
         "Action": ["kms:Create*", "kms:Describe*", "kms:Enable*", "kms:List*", "kms:Put*"],
         "Resource": "*"},
        {"Sid": "Allow use of the key", "Effect": "Allow", "Principal": users,
         "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"],
         "Resource": "*"},
        {"Sid": "Allow attachment of persistent resources", "Effect": "Allow", "Principal": users,
         "Action": grants, "Resource": "*",
         "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}}},
    ]});
    Policy::parse(&document.to_string(), Kind::Key).unwrap()
}

#[test]
fn default_key_policy() {
    let policy = console_policy();
    let plain = ConditionKeys::new();
    let for_service = keys(&[("kms:GrantIsForAWSResource", &["true"])]);
    for (caller, action, keys, expected) in [
        (alice(), "kms:PutKeyPolicy", &plain, DIRECT),
        (alice(), "KMS:putkeypolicy", &plain, DIRECT),
        (alice(), "kms:Decrypt", &plain, DELEGATED),
        (bob(), "kms:Decrypt", &plain, DELEGATED),
        (bob(), "s3:GetObject", &plain, Grant::None),
        (root(), "kms:ScheduleKeyDeletion", &plain, DIRECT),
        (session(), "kms:GenerateDataKeyPair", &plain, DIRECT),
        (session(), "kms:CreateGrant", &plain, DELEGATED),
        (session(), "kms:CreateGrant", &for_service, DIRECT),
        (stranger(), "kms:Decrypt", &plain, DELEGATED),
        (stranger(), "kms:CreateGrant", &plain, Grant::None),
    ] {
        let question = ask(caller, action, keys);
        assert_eq!(policy.evaluate(&question), expected, "{} {action}", caller.arn);
    }
}

/// Caller, policy of the key, policies of the caller, whether a grant allows, and the decision.
type Row<'a> = (Caller<'a>, Option<&'a Policy>, &'a [Policy], bool, Decision);

#[test]
fn decisions() {
    let key = |principal: Value| json!({"Effect": "Allow", "Principal": principal, "Action": "kms:*", "Resource": "*"});
    let default = policy(Kind::Key, key(json!({"AWS": ROOT})));
    let everyone = policy(Kind::Key, key(json!({"AWS": "*"})));
    let console = console_policy();
    let deny = json!({"Effect": "Deny", "Principal": {"AWS": ACCOUNT}, "Action": "kms:Decrypt", "Resource": KEY});
    let denying = policy(Kind::Key, json!([key(json!("*")), deny]));
    let none = [];
    let allows = [identity("s3:*"), identity("kms:Decrypt")];
    let forbids = [
        identity("*"),
        policy(Kind::Identity, json!({"Effect": "Deny", "Action": "kms:*", "Resource": KEY})),
    ];
    let key_denies = Decision::ExplicitDeny { source: "a key policy" };
    let identity_denies = Decision::ExplicitDeny { source: "an identity-based policy" };
    let no_policy = Decision::ImplicitDeny { reason: "no resource-based policy" };
    let plain = ConditionKeys::new();
    let eve_root = Caller { is_root: true, ..caller(OTHER, "arn:aws:iam::444455556666:root") };
    #[rustfmt::skip]
    let table: &[Row<'_>] = &[
        (alice(), Some(&default), &none, false, NEEDS_IDENTITY),
        (alice(), Some(&default), &allows, false, Decision::Allow),
        (root(), Some(&default), &none, false, Decision::Allow),
        (alice(), Some(&default), &none, true, Decision::Allow),
        (alice(), Some(&default), &forbids, true, identity_denies),
        (session(), Some(&console), &none, false, Decision::Allow),
        (session(), Some(&console), &forbids, false, identity_denies),
        (alice(), Some(&denying), &allows, true, key_denies),
        (root(), Some(&denying), &allows, false, key_denies),
        (alice(), Some(&everyone), &none, false, Decision::Allow),
        (stranger(), Some(&everyone), &none, false, NEEDS_IDENTITY),
        (stranger(), Some(&everyone), &allows, false, Decision::Allow),
        (stranger(), Some(&denying), &allows, false, Decision::Allow),
        (stranger(), Some(&default), &allows, false, NEEDS_KEY),
        (stranger(), Some(&default), &allows, true, Decision::Allow),
        (stranger(), Some(&console), &allows, false, Decision::Allow),
        (stranger(), Some(&console), &none, false, NEEDS_IDENTITY),
        (eve_root, Some(&console), &none, false, Decision::Allow),
        (eve_root, Some(&default), &none, false, NEEDS_KEY),
        (alice(), None, &allows, false, Decision::Allow),
        (alice(), None, &none, false, NEEDS_IDENTITY),
        (alice(), None, &forbids, false, identity_denies),
        (root(), None, &none, false, Decision::Allow),
        (stranger(), None, &allows, false, no_policy),
    ];
    for (index, (caller, resource, identity, granted, expected)) in table.iter().enumerate() {
        let question = ask(*caller, "kms:Decrypt", &plain);
        let decision = decide(*resource, ACCOUNT, identity, *granted, &question);
        assert_eq!(decision, *expected, "row {index}");
    }
    let trust = policy(
        Kind::Trust,
        json!({"Sid": "", "Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole"}),
    );
    for (action, expected) in [
        ("sts:AssumeRole", Decision::ExplicitDeny { source: "a role trust policy" }),
        ("sts:TagSession", Decision::ImplicitDeny { reason: "no role trust policy" }),
    ] {
        let question = ask(alice(), action, &plain);
        assert_eq!(decide(Some(&trust), ACCOUNT, &[] as &[Policy], false, &question), expected);
    }
}

#[test]
fn principals() {
    let plain = ConditionKeys::new();
    for (principal, caller, expected) in [
        (json!("*"), stranger(), DIRECT),
        (json!({"AWS": "*"}), session(), DIRECT),
        (json!({"AWS": ACCOUNT}), alice(), DELEGATED),
        (json!({"AWS": [ACCOUNT, ALICE]}), alice(), DIRECT),
        (json!({"AWS": ACCOUNT}), stranger(), Grant::None),
        (json!({"AWS": ALICE}), bob(), Grant::None),
        (json!({"AWS": "arn:aws:iam::111122223333:user/alice"}), alice(), Grant::None),
        (json!({"AWS": ROLE}), session(), DIRECT),
        (json!({"AWS": SESSION}), session(), DIRECT),
        (json!({"AWS": SESSION.replace("i-1", "i-2")}), session(), Grant::None),
        (json!({"AWS": "arn:aws:sts::111122223333:federated-user/Alice"}), alice(), Grant::None),
        (json!({"Service": "ec2.amazonaws.com"}), alice(), Grant::None),
        (json!({"Federated": "cognito-identity.amazonaws.com"}), alice(), Grant::None),
        (json!({"CanonicalUser": ["79a59d"], "AWS": ALICE}), alice(), DIRECT),
    ] {
        let document = json!({"Statement": {"Effect": "Allow", "Principal": principal,
            "Action": "sts:AssumeRole"}});
        let policy = Policy::parse(&document.to_string(), Kind::Trust).unwrap();
        let grant = policy.evaluate(&ask(caller, "sts:AssumeRole", &plain));
        assert_eq!(grant, expected, "{principal}");
    }
    // "AWS JSON policy elements: NotPrincipal": the account, the role and the session must be listed.
    for (spared, caller, denied) in [
        (json!([ALICE, ROOT]), alice(), false),
        (json!([ALICE, ROOT]), bob(), true),
        (json!([ALICE]), alice(), true),
        (json!([ROOT]), root(), false),
        (json!([ROOT, ROLE, SESSION]), session(), false),
        (json!([ROOT, ROLE]), session(), true),
        (json!([ROOT, SESSION]), session(), true),
        (json!("*"), session(), false),
    ] {
        let statements = json!([
            {"Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*"},
            {"Effect": "Deny", "NotPrincipal": {"AWS": spared}, "Action": "kms:*", "Resource": "*"}
        ]);
        let expected = if denied { Grant::Deny } else { DIRECT };
        let grant = policy(Kind::Key, statements).evaluate(&ask(caller, "kms:Sign", &plain));
        assert_eq!(grant, expected, "{spared} {}", caller.arn);
    }
}

#[test]
fn actions_and_resources() {
    for (element, value, matched) in [
        ("Action", json!("*"), true),
        ("Action", json!("*:*"), true),
        ("Action", json!(["s3:*", "kms:De?rypt"]), true),
        ("Action", json!("kms:decrypt"), true),
        ("Action", json!("kms:Decrypt?"), false),
        ("NotAction", json!("kms:*"), false),
        ("NotAction", json!(["s3:*", "iam:*"]), true),
        ("Resource", json!("arn:aws:kms:*:111122223333:key/*"), true),
        ("Resource", json!("arn:aws:kms:us-west-?:111122223333:key/1234*ab"), true),
        // A wildcard may cover colons.
        ("Resource", json!("arn:aws:kms:*key/*"), true),
        ("Resource", json!("arn:aws:kms:*"), true),
        ("Resource", json!("arn:aws:KMS:*:111122223333:key/*"), false),
        ("Resource", json!(["arn:aws:s3:::bucket", "arn:aws:kms:*:444455556666:key/*"]), false),
        ("NotResource", json!(KEY), false),
        ("NotResource", json!("arn:aws:s3:::*"), true),
    ] {
        let mut statement = json!({"Effect": "Allow"});
        let other = if element.ends_with("Resource") { "Action" } else { "Resource" };
        statement[other] = json!("*");
        statement[element] = value.clone();
        let plain = ConditionKeys::new();
        let policy = policy(Kind::Identity, statement);
        let grant = policy.evaluate(&ask(alice(), "kms:Decrypt", &plain));
        assert_eq!(grant == DIRECT, matched, "{element} {value}");
    }
}

#[test]
fn variables() {
    let known = keys(&[
        ("aws:PrincipalTag/team", &["blue"]),
        ("aws:PrincipalTag/star", &["*"]),
        ("aws:TagKeys", &["a", "b"]),
        ("aws:username", &["Mallory"]),
    ]);
    for (version, pattern, caller, resource, matched) in [
        ("2012-10-17", "${aws:username}/*", alice(), "Alice/x", true),
        ("2012-10-17", "${aws:username}/*", bob(), "Alice/x", false),
        ("2012-10-17", "${aws:username}", session(), "Alice", false),
        ("2012-10-17", "${aws:username, 'nobody'}", session(), "nobody", true),
        ("2012-10-17", "${AWS:UserId}", session(), "AROAEXAMPLE:i-1", true),
        ("2012-10-17", "${aws:PrincipalAccount}", alice(), ACCOUNT, true),
        ("2012-10-17", "${aws:PrincipalTag/Team}-*", alice(), "blue-1", true),
        ("2012-10-17", "${aws:PrincipalTag/none}", alice(), "", false),
        ("2012-10-17", "${aws:PrincipalTag/star}", alice(), "anything", false),
        ("2012-10-17", "${aws:PrincipalTag/star}", alice(), "*", true),
        ("2012-10-17", "${aws:TagKeys}", alice(), "a", false),
        ("2012-10-17", "${*}${?}${$}", alice(), "*?$", true),
        ("2012-10-17", "${*}", alice(), "x", false),
        ("2008-10-17", "${aws:username}", alice(), "Alice", false),
        ("2008-10-17", "${aws:username}", alice(), "${aws:username}", true),
    ] {
        let document = json!({"Version": version, "Statement": {"Effect": "Allow", "Action": "*",
            "Resource": format!("arn:aws:s3:::home/{pattern}")}});
        let policy = Policy::parse(&document.to_string(), Kind::Identity).unwrap();
        let resource = format!("arn:aws:s3:::home/{resource}");
        let question = Question { resource: &resource, ..ask(caller, "s3:GetObject", &known) };
        assert_eq!(policy.evaluate(&question) == DIRECT, matched, "{pattern} {resource}");
    }
    let tagged = keys(&[("aws:ResourceTag/team", &["blue"]), ("aws:PrincipalTag/team", &["blue"])]);
    let untagged = keys(&[("aws:ResourceTag/team", &["blue"])]);
    let equals = json!({"StringEquals": {"aws:ResourceTag/team": "${aws:PrincipalTag/team}"}});
    let differs = json!({"StringNotEquals": {"aws:ResourceTag/team": "${aws:PrincipalTag/team}"}});
    assert!(holds(&equals, &tagged) && !holds(&equals, &untagged));
    // In an Allow, an absent value does not count as different from anything; in a Deny it does.
    assert!(!holds(&differs, &tagged) && !holds(&differs, &untagged));
    let deny = json!({"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": differs});
    let deny = policy(Kind::Identity, deny);
    assert_eq!(deny.evaluate(&ask(alice(), "kms:Decrypt", &tagged)), Grant::None);
    assert_eq!(deny.evaluate(&ask(alice(), "kms:Decrypt", &untagged)), Grant::Deny);
}

/// Operator, value in the document, a value that matches, one that does not.
#[rustfmt::skip]
const OPERATORS: &[(&str, &str, &str, &str)] = &[
    ("StringEquals", "a*", "a*", "ab"),
    ("StringEquals", "Blue", "Blue", "blue"),
    ("StringNotEquals", "Blue", "blue", "Blue"),
    ("StringEqualsIgnoreCase", "Blue", "bLUE", "blu"),
    ("StringNotEqualsIgnoreCase", "Blue", "green", "bLUE"),
    ("StringLike", "a?c*", "abcdef", "Abcdef"),
    ("StringLike", "*.*", "a.b.c", "abc"),
    ("StringNotLike", "a*", "ba", "ab"),
    ("NumericEquals", "10", "10.0", "11"),
    ("NumericNotEquals", "10", "11", "10"),
    ("NumericLessThan", "10", "-9.5", "10"),
    ("NumericLessThanEquals", "10", "10", "10.1"),
    ("NumericGreaterThan", "10", "100", "10"),
    ("NumericGreaterThan", "10", "11", "NaN"),
    ("NumericGreaterThanEquals", "10", "10", "9"),
    ("DateEquals", "2030-01-01T00:00:00Z", "2030-01-01T01:00:00+01:00", "2030-01-01T00:00:01Z"),
    ("DateEquals", "2030-01-01", "1893456000", "1893456001"),
    ("DateEquals", "2030-01", "2030-01-01T00:00Z", "2030-01-01T00:01Z"),
    ("DateNotEquals", "2030-01-01", "2030-01-02", "2030-01-01"),
    ("DateLessThan", "2030-01-01", "2029-12-31T23:59:59.9Z", "2030-01-01"),
    ("DateLessThanEquals", "1893456000", "2030-01-01", "2030-01-02"),
    ("DateGreaterThan", "2030-01-01", "2030-01-02", "2030-01-01"),
    ("DateGreaterThanEquals", "2030-01-01", "2030-01-01", "2029-12-31"),
    ("Bool", "true", "true", "false"),
    ("Bool", "${aws:PrincipalIsAWSService}", "false", "true"),
    ("BinaryEquals", "QmluYXJ5", "QmluYXJ5", "QmluYXJ6"),
    ("IpAddress", "203.0.113.0/24", "203.0.113.255", "203.0.114.0"),
    ("IpAddress", "203.0.113.7", "::ffff:203.0.113.7", "203.0.113.8"),
    ("IpAddress", "::ffff:203.0.113.0/120", "203.0.113.8", "203.0.114.8"),
    ("IpAddress", "2001:DB8:1234:5678::/64", "2001:db8:1234:5678::1", "2001:db8:1234:5679::1"),
    ("NotIpAddress", "203.0.113.0/24", "198.51.100.1", "203.0.113.1"),
    ("NotIpAddress", "203.0.113.0/24", "not an address", "203.0.113.1"),
    ("ArnEquals", "arn:aws:sns:*:1:t*", "arn:aws:sns:eu:1:t:1", "arn:aws:sns:eu:2:1:t"),
    ("ArnLike", "arn:aws:some:*:111122223333:finance/*", "arn:aws:some:us-east-2:111122223333:finance/d",
     "arn:aws:some:us-east-2:999999999999:store/abc:111122223333:finance/document.txt"),
    ("ArnNotEquals", "arn:aws:s3:::a", "arn:aws:s3:::b", "arn:aws:s3:::a"),
    ("ArnNotLike", "arn:aws:s3:::a*", "arn:aws:s3", "arn:aws:s3:::ab"),
];

#[test]
fn operators() {
    for (operator, wanted, hit, miss) in OPERATORS {
        let negated = operator.contains("Not");
        let check = |prefix: &str, suffix: &str, values: &[&str], expected: bool| {
            let name = format!("{prefix}{operator}{suffix}");
            let condition = json!({&name: {"test:Key": wanted}});
            let known = keys(&[("TEST:key", values)]);
            assert_eq!(holds(&condition, &known), expected, "{name} {wanted} {values:?}");
        };
        for suffix in ["", "IfExists"] {
            check("", suffix, &[hit], true);
            check("", suffix, &[miss], false);
            check("", suffix, &[], negated || !suffix.is_empty());
            // Without a prefix one value must match; for negated operators none may.
            check("", suffix, &[hit, miss], !negated);
            check("ForAllValues:", suffix, &[hit, hit], true);
            check("ForAllValues:", suffix, &[hit, miss], false);
            check("ForAllValues:", suffix, &[], true);
            check("ForAnyValue:", suffix, &[miss, hit], true);
            check("ForAnyValue:", suffix, &[miss, miss], false);
            check("ForAnyValue:", suffix, &[], !suffix.is_empty());
        }
    }
    let (present, absent) = (keys(&[("a:b", &["x"])]), ConditionKeys::new());
    for (value, if_present, if_absent) in [
        (json!("true"), false, true),
        (json!(false), true, false),
        (json!([true, false]), true, true),
    ] {
        let condition = json!({"Null": {"a:b": value}});
        assert_eq!(holds(&condition, &present), if_present, "{value}");
        assert_eq!(holds(&condition, &absent), if_absent, "{value}");
    }
}

#[test]
fn conditions_together() {
    let context = keys(&[
        ("kms:ViaService", &["s3.us-west-2.amazonaws.com"]),
        ("kms:EncryptionContext:AppName", &["ExampleApp"]),
        ("kms:EncryptionContextKeys", &["AppName", "Extra"]),
        ("aws:SourceIp", &["203.0.113.9"]),
        ("outlast:KeyExchange", &["X25519MLKEM768"]),
    ]);
    #[rustfmt::skip]
    let table = [
        (json!({}), true),
        (json!({"StringEquals": {"kms:ViaService": ["ec2.us-west-2.amazonaws.com", "s3.us-west-2.amazonaws.com"]}}), true),
        (json!({"StringLike": {"kms:ViaService": "s3.*.amazonaws.com"}}), true),
        (json!({"StringEquals": {"kms:EncryptionContext:appname": "ExampleApp"}}), true),
        (json!({"StringEquals": {"kms:EncryptionContext:AppName": "Other"}}), false),
        (json!({"ForAnyValue:StringEquals": {"kms:EncryptionContextKeys": "AppName"}}), true),
        (json!({"ForAllValues:StringEquals": {"kms:EncryptionContextKeys": "AppName"}}), false),
        (json!({"ForAllValues:StringEquals": {"kms:EncryptionContextKeys": ["AppName", "Extra"]}}), true),
        // All operators and keys must hold.
        (json!({"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}, "Null": {"kms:ViaService": "true"}}), false),
        (json!({"StringEquals": {"kms:EncryptionContext:AppName": "ExampleApp", "kms:ViaService": "x"}}), false),
        (json!({"StringNotEquals": {"outlast:KeyExchange": ["X25519MLKEM768", "SecP256r1MLKEM768"]}}), false),
        (json!({"StringNotLike": {"outlast:KeyExchange": ["*MLKEM*"]}}), false),
        // Keys about the caller follow from the caller.
        (json!({"ArnEquals": {"aws:PrincipalArn": ALICE}, "Bool": {"aws:PrincipalIsAWSService": false}}), true),
        (json!({"StringEquals": {"aws:PrincipalType": "User", "aws:PrincipalAccount": ACCOUNT}}), true),
        (json!({"NumericLessThan": {"aws:PrincipalAccount": [1, 111_122_223_334_u64]}}), true),
    ];
    for (condition, expected) in table {
        assert_eq!(holds(&condition, &context), expected, "{condition}");
    }
    let hybrid =
        json!({"StringNotEquals": {"outlast:KeyExchange": ["X25519MLKEM768", "MLKEM1024"]}});
    let statements = json!([
        {"Effect": "Allow", "Principal": {"AWS": ALICE}, "Action": "kms:*", "Resource": "*"},
        {"Effect": "Deny", "Principal": "*", "Action": "kms:*", "Resource": "*", "Condition": hybrid}
    ]);
    let require_hybrid = policy(Kind::Key, statements);
    for (groups, expected) in
        [(&["X25519MLKEM768"][..], DIRECT), (&["x25519"], Grant::Deny), (&[], Grant::Deny)]
    {
        let known = keys(&[("outlast:keyexchange", groups)]);
        assert_eq!(require_hybrid.evaluate(&ask(alice(), "kms:Sign", &known)), expected);
    }
}

/// The meaning of `*` and `?`, implemented in the plainest way.
fn naive(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|taken| naive(rest, &text[taken..])),
        Some((first, rest)) => text
            .split_first()
            .is_some_and(|(next, after)| (*first == '?' || first == next) && naive(rest, after)),
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "Version",
        "2012-10-17",
        "Statement",
        "Effect",
        "Allow",
        "Deny",
        "Principal",
        "AWS",
        "*",
        ACCOUNT,
        "Action",
        "kms:*",
        "Resource",
        KEY,
        "Condition",
        "StringLike",
        "Bool",
        "aws:a",
        "${aws:b}",
        "true",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|entries| entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

/// A statement of a key policy, built from few words, so that some statements match the question.
fn any_statement(effect: &'static str) -> impl Strategy<Value = Value> {
    let principal = prop::sample::select(vec![
        json!("*"),
        json!({"AWS": ACCOUNT}),
        json!({"AWS": ALICE}),
        json!({"AWS": OTHER}),
    ]);
    let action = prop::sample::select(vec!["*", "kms:*", "kms:Decrypt", "kms:Sign"]);
    let group = prop::sample::select(vec!["X25519MLKEM768", "*MLKEM*", "x25519"]);
    let operator = prop::sample::select(vec![
        "StringLike",
        "StringNotLike",
        "ForAnyValue:StringLike",
        "StringLikeIfExists",
    ]);
    (principal, action, group, operator).prop_map(move |(principal, action, group, operator)| {
        json!({"Effect": effect, "Principal": principal, "Action": action, "Resource": "*",
            "Condition": {operator: {"outlast:KeyExchange": group}}})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn wildcards_mean_what_they_say(pattern in "[ab*?é]{0,8}", text in "[abé]{0,8}") {
        let known = keys(&[("test:key", &[text.as_str()])]);
        let (p, t): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
        prop_assert_eq!(holds(&json!({"StringLike": {"test:key": pattern}}), &known), naive(&p, &t));
    }

    #[test]
    fn no_text_panics(text in ".{0,200}", json in any_json(), statement in any_json()) {
        let document = json!({"Version": "2012-10-17", "Statement": statement}).to_string();
        for text in [text, json.to_string(), document] {
            for kind in [Kind::Key, Kind::Identity, Kind::Trust] {
                let _ = Policy::parse(&text, kind);
            }
        }
    }

    #[test]
    fn a_deny_never_allows(
        allows in prop::collection::vec(any_statement("Allow"), 1..4),
        deny in any_statement("Deny"),
        at in 0usize..4,
        hybrid in any::<bool>(),
        with_identity in any::<bool>(),
    ) {
        let known = keys(&[("outlast:KeyExchange", &[if hybrid { "X25519MLKEM768" } else { "x25519" }])]);
        let question = ask(alice(), "kms:Decrypt", &known);
        let identities = if with_identity { vec![identity("kms:*")] } else { vec![] };
        let asked = |statements: Vec<Value>| {
            decide(Some(&policy(Kind::Key, json!(statements))), ACCOUNT, &identities, false, &question)
        };
        let before = asked(allows.clone());
        let mut more = allows;
        more.insert(at.min(more.len()), deny);
        let after = asked(more);
        let denied = matches!(after, Decision::ExplicitDeny { .. });
        prop_assert!(denied || after == before);
    }
}
