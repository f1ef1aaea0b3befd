//! Who may read what over the unix socket.

use std::path::Path;

use outlast_agent::callers::{Caller, FileId, Granted, Pattern, Rule, granted};

const APP: FileId = FileId { device: 1, inode: 100 };
const OTHER: FileId = FileId { device: 1, inode: 200 };

fn identify(path: &Path) -> Option<FileId> {
    (path == Path::new("/usr/bin/app")).then_some(APP)
}

fn rule(uid: Option<u32>, gid: Option<u32>, executable: Option<&str>, secrets: &[&str]) -> Rule {
    Rule {
        name: "rule".into(),
        uid,
        gid,
        executable: executable.map(Into::into),
        secrets: secrets.iter().map(|text| Pattern::new(*text)).collect(),
    }
}

fn caller(uid: u32, gid: u32, executable: Option<FileId>) -> Caller {
    Caller { uid, gid, pid: 1, executable }
}

fn may(rules: &[Rule], caller: &Caller, name: &str) -> bool {
    let arn = format!("arn:aws:secretsmanager:eu-central-1:123456789012:secret:{name}-AbCdEf");
    let granted = granted(rules, caller, identify);
    assert_eq!(granted.may_ask(name), granted.covers(name, &arn), "{name}");
    granted.covers(name, &arn)
}

#[test]
fn every_condition_of_a_rule_must_hold() {
    let rules = [rule(Some(7), Some(8), Some("/usr/bin/app"), &["a"])];
    assert!(may(&rules, &caller(7, 8, Some(APP)), "a"));
    assert!(!may(&rules, &caller(7, 8, Some(APP)), "b"));
    for (uid, gid, executable) in
        [(0, 8, Some(APP)), (7, 0, Some(APP)), (7, 8, Some(OTHER)), (7, 8, None)]
    {
        assert!(!may(&rules, &caller(uid, gid, executable), "a"), "{uid} {gid} {executable:?}");
    }
}

#[test]
fn an_executable_that_is_not_there_describes_nobody() {
    let rules = [rule(None, None, Some("/usr/bin/gone"), &["*"])];
    assert!(!may(&rules, &caller(7, 8, None), "a"));
    assert!(!may(&rules, &caller(7, 8, Some(APP)), "a"));
}

#[test]
fn rules_add_up() {
    let rules = [rule(Some(7), None, None, &["a", "web/*"]), rule(None, Some(8), None, &["b"])];
    let both = caller(7, 8, None);
    assert!(may(&rules, &both, "a") && may(&rules, &both, "b") && may(&rules, &both, "web/x"));
    let one = caller(7, 9, None);
    assert!(may(&rules, &one, "a") && !may(&rules, &one, "b"));
    assert!(!may(&[], &both, "a"));
}

/// `...:secret:a-AbCdEf` is the ARN of `a`, or the abbreviated one of a secret with the name `a-AbCdEf`: both may be asked
/// for, and the answer decides.
#[test]
fn an_abbreviated_arn_does_not_get_around_a_rule() {
    let granted = granted(&[rule(Some(7), None, None, &["a"])], &caller(7, 8, None), identify);
    let arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf";
    assert!(granted.may_ask(arn));
    assert!(granted.covers("a", arn));
    assert!(!granted.covers("a-AbCdEf", &format!("{arn}-GhIjKl")));
    assert!(!granted.may_ask("arn:aws:secretsmanager:eu-central-1:123456789012:secret:b-AbCdEf"));
}

#[test]
fn a_rule_may_name_an_arn() {
    let arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf";
    let granted = granted(&[rule(Some(7), None, None, &[arn])], &caller(7, 8, None), identify);
    assert!(granted.may_ask(arn) && granted.covers("a", arn));
    assert!(!granted.may_ask("a"));
}

#[test]
fn the_token_opens_everything() {
    assert!(Granted::everything().may_ask("a") && Granted::everything().covers("a", "b"));
}
