//! Attacks on the dates of rules, and on signers whose format has no time: the present is no proof of a beginning, and no
//! trusted time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_crypto::digests::Digest;
use outlast_pki::cms::verify::{Authentic, SignedMessage, TimeSource};
use outlast_pki::crl::Reason;
use outlast_pki::signing_policy::file;
use outlast_pki::signing_policy::judge::{Context, Verdict};
use outlast_pki::signing_policy::rule::Rule;

use crate::cms_dual::{World, world};
use crate::cms_revocation::{DAY, crl};
use crate::common::START;
use crate::trusted_time::{FILE, Stamper};

/// 2027-02-09
const SIGNED: i64 = START + 100 * DAY;
/// 2027-05-20
const NOW: i64 = START + 200 * DAY;

fn rule(world: &World, text: &str) -> Rule {
    let text = format!("[[rule]]\nfiles = \"*\"\ntrust = \"roots\"\n{text}\n");
    let mut rule = file::parse("test", &text).unwrap().rules.remove(0);
    rule.roots.clone_from(&world.roots);
    rule
}

fn reasons(verdict: &Verdict) -> String {
    let all = verdict.signers.iter().flat_map(|one| one.against.clone());
    all.collect::<Vec<_>>().join("; ")
}

#[test]
fn the_dates_of_a_rule_are_compared_with_the_signature() {
    let world = world(&["ML_DSA_44"]);
    let stamper = Stamper::new("ML_DSA_44", "A", 3);
    let roots = stamper.roots();
    let plain = world.sign(&["sha512"], SIGNED);
    let stamped = stamper.stamp(&plain, SIGNED + 60);
    // Somebody else got a timestamp long after the signature was made.
    let stamped_late = stamper.stamp(&plain, SIGNED + 50 * DAY);
    let begins = "the rule begins at 2027-03-01";
    let ended = "the rule ended at 2027-03-01";
    for (dates, validity, p7s, trusted, reason) in [
        // Whatever else is asked, the signature is older than the rule.
        ("not_before = 2027-03-01", "signing-time", &plain, None, begins),
        ("not_before = 2027-03-01", "now", &plain, None, begins),
        ("not_before = 2027-03-01", "now", &stamped, None, begins),
        ("not_before = 2027-03-01", "signing-time", &plain, Some(NOW), begins),
        ("not_before = 2027-03-01", "trusted-time", &plain, Some(NOW), begins),
        ("not_before = 2027-03-01", "trusted-time", &stamped, None, begins),
        ("not_before = 2027-03-01", "trusted-time", &stamped_late, None, begins),
        ("not_before = 2027-02-01", "signing-time", &plain, None, ""),
        ("not_before = 2027-02-01", "now", &plain, None, ""),
        ("not_before = 2027-02-01", "trusted-time", &plain, Some(NOW), ""),
        ("not_before = 2027-02-01", "trusted-time", &stamped_late, None, ""),
        // Who knows only that it is here today knows not that it was there before the end.
        ("until = 2027-03-01", "signing-time", &plain, None, ""),
        ("until = 2027-03-01", "now", &plain, None, ended),
        ("until = 2027-03-01", "signing-time", &plain, Some(NOW), ended),
        ("until = 2027-03-01", "trusted-time", &stamped_late, None, ended),
        ("until = 2027-03-01", "trusted-time", &stamped, None, ""),
        ("until = 2027-03-01", "now", &stamped, None, ""),
        ("until = 2027-03-01", "signing-time", &stamped, Some(NOW), ""),
    ] {
        let name = format!("{dates}, {validity}, {trusted:?}");
        let rule = rule(&world, &format!("{dates}\nvalidity = \"{validity}\""));
        let context = Context {
            now: NOW,
            as_of: NOW,
            trusted,
            timestamp_roots: &roots,
            ..Context::default()
        };
        let message = SignedMessage::parse(p7s).unwrap();
        let digests: Vec<_> =
            message.digests().unwrap().iter().map(|row| row.digest(FILE)).collect();
        let verdict = rule.judge(&message, &digests, &context).unwrap();
        let said = reasons(&verdict);
        assert_eq!(verdict.is_accepted(), reason.is_empty(), "{name}: {said}");
        assert!(said.contains(reason), "{name}: {said}");
    }
}

/// A signer whose signature is right, of a format that may have no time.
fn authentic(world: &World, index: usize, signing_time: Option<i64>) -> Authentic {
    let signer = &world.signers[index];
    Authentic {
        certificate: signer.certificate.clone(),
        algorithm: signer.algorithm,
        digest: Digest::by_name("sha512").unwrap(),
        signing_time,
        signature: vec![1],
        tokens: Vec::new(),
    }
}

#[test]
fn the_present_is_no_trusted_time() {
    let world = world(&["ML_DSA_44", "ML_DSA_44"]);
    let message = SignedMessage::of_certificates(world.subordinates.clone());
    let theft = (SIGNED, Reason::by_code(1).unwrap());
    let stolen = [crl(&world.authorities[0], NOW - DAY, Some(theft))];
    let known = Some(SIGNED);
    let nobody = "only the signer says when it was made";
    for (text, trusted, is_stolen, reason) in [
        ("", None, false, ""),
        ("validity = \"now\"", None, false, ""),
        ("validity = \"trusted-time\"", None, false, nobody),
        ("validity = \"trusted-time\"", known, false, ""),
        ("timestamp = \"required\"", None, false, "it has no timestamp"),
        // However early the rule begins, nothing says that the signature is not older.
        ("not_before = 2020-01-01", None, false, "nothing says when it signed"),
        ("not_before = 2020-01-01", known, false, "nothing says when it signed"),
        ("not_before = 2020-01-01\nvalidity = \"now\"", None, false, "nothing says when it signed"),
        ("until = 2027-03-01", None, false, "the rule ended at"),
        ("until = 2027-03-01", known, false, ""),
        // It existed now, and that is after the theft.
        ("", None, true, "nothing shows that the signature is older than 2027-05-20"),
    ] {
        let name = format!("{text} {trusted:?}");
        let rule = rule(&world, text);
        let context = Context {
            now: NOW,
            as_of: NOW,
            trusted,
            without_times: true,
            crls: if is_stolen { &stolen[..] } else { &[] },
            ..Context::default()
        };
        let signers = vec![authentic(&world, 0, None)];
        let verdict = rule.judge_authentic(&message, signers, &context).unwrap();
        let said = reasons(&verdict);
        assert_eq!(verdict.is_accepted(), reason.is_empty(), "{name}: {said}");
        assert!(said.contains(reason), "{name}: {said}");
    }
    // A signer without a time changes nothing for the others.
    let context = Context { now: NOW, as_of: NOW, without_times: true, ..Context::default() };
    let signers = vec![authentic(&world, 0, None), authentic(&world, 1, Some(SIGNED))];
    let verdict = rule(&world, "").judge_authentic(&message, signers, &context).unwrap();
    let times: Vec<_> = verdict
        .signers
        .iter()
        .map(|one| one.verified.as_ref().unwrap().time.clone())
        .map(|time| (time.at, time.source.is_trusted(), time.source))
        .collect();
    let expected = [(NOW, false, TimeSource::Present), (SIGNED, false, TimeSource::Signer)];
    assert_eq!(times, expected);
    // Where the format has times, a signer without one is refused.
    let context = Context { without_times: false, ..context };
    let signers = vec![authentic(&world, 0, None)];
    let verdict = rule(&world, "").judge_authentic(&message, signers, &context).unwrap();
    assert!(reasons(&verdict).contains("has no signing time"), "{}", reasons(&verdict));
}
