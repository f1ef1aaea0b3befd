//! Policy documents of every kind, and questions to them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_domain::policy::{
    Caller, ConditionKeys, Decision, Grant, Kind, Policy, Question, decide,
};

fuzz_target!(|text: &str| {
    let mut keys = ConditionKeys::new();
    keys.set("aws:SourceIp", "192.0.2.7");
    keys.set("aws:CurrentTime", "2030-01-01T00:00:00Z");
    keys.set("kms:EncryptionContext:AppName", text.chars().take(100).collect::<String>());
    keys.set_many("kms:EncryptionContextKeys", vec!["AppName".into(), "Other".into()]);
    let question = Question {
        caller: Caller {
            account: "111122223333",
            arn: "arn:aws:iam::111122223333:user/ada",
            role_arn: None,
            is_root: false,
            user_id: "AIDAEXAMPLE",
            user_name: "ada",
        },
        action: "kms:Decrypt",
        resource: "arn:aws:kms:eu-west-1:111122223333:key/1",
        keys: &keys,
    };
    for kind in [Kind::Key, Kind::Identity, Kind::Trust] {
        match Policy::parse(text, kind) {
            Ok(policy) => {
                let grant = policy.evaluate(&question);
                let decision =
                    decide(Some(&policy), "111122223333", &[] as &[Policy], false, &question);
                if grant != (Grant::Allow { delegated: false }) {
                    assert_ne!(decision, Decision::Allow);
                }
            }
            Err(malformed) => assert!(malformed.to_string().len() < 1024),
        }
    }
});
