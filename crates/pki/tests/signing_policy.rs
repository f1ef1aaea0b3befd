//! Attacks on signing policies: a signer that a rule does not mean signs nothing for it, alone or with others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use der::asn1::OctetString;
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::Message;
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::cms::verify::{SignedMessage, VerifyError};
use outlast_pki::signing_policy::builtin;
use outlast_pki::signing_policy::file;
use outlast_pki::signing_policy::judge::{Context, Verdict};
use outlast_pki::signing_policy::names::FileName;
use outlast_pki::signing_policy::rule::Policy;
use outlast_pki::signing_policy::words::explain;
use outlast_pki::time::from_rfc3339;
use outlast_pki::validate::Revocation;

use crate::cms_dual::{World, signers, with_signers, world};
use crate::cms_revocation::DAY;
use crate::common::{Party, START, YEAR, issue};

const FILE: &[u8] = b"the file to be signed";
const SIGNED: i64 = START + 100 * DAY;
const NOW: i64 = START + 200 * DAY;

/// A policy of one rule for all files that trusts the given roots.
fn policy(rule: &str, roots: &[Vec<u8>]) -> Policy {
    let trust =
        if rule.contains("sha256:") && !rule.contains("trust") { "" } else { "trust = \"roots\"" };
    let mut policy =
        file::parse("test", &format!("[[rule]]\nfiles = \"*\"\n{trust}\n{rule}")).unwrap();
    for rule in policy.rules.iter_mut().filter(|rule| !rule.trust.is_empty()) {
        rule.roots = roots.to_vec();
    }
    policy
}

fn context<'a>() -> Context<'a> {
    Context {
        roots: &[],
        certificates: &[],
        now: NOW,
        as_of: NOW,
        trusted: None,
        revocation: None,
        ..Context::default()
    }
}

fn judged(policy: &Policy, p7s: &[u8], context: &Context<'_>) -> Result<Verdict, VerifyError> {
    let message = SignedMessage::parse(p7s)?;
    let digests: Vec<_> = message.digests()?.iter().map(|row| row.digest(FILE)).collect();
    let rule = policy.rule_for(&FileName::parse("release.bin").unwrap()).unwrap();
    rule.judge(&message, &digests, context)
}

/// Asserts the outcome; a refusal has these reasons, and names every signer.
fn check(name: &str, policy: &Policy, p7s: &[u8], reasons: &[&str]) {
    check_in(name, policy, p7s, &context(), reasons);
}

fn check_in(name: &str, policy: &Policy, p7s: &[u8], context: &Context<'_>, reasons: &[&str]) {
    let verdict = judged(policy, p7s, context).unwrap();
    let against: Vec<_> = verdict.signers.iter().flat_map(|one| one.against.clone()).collect();
    assert_eq!(verdict.is_accepted(), reasons.is_empty(), "{name}: {against:?}");
    assert_eq!(verdict.signers.len(), signers(p7s).len(), "{name}");
    for reason in reasons {
        let found = against.iter().chain(&verdict.missing).any(|text| text.contains(reason));
        assert!(found, "{name}: {against:?} {:?}", verdict.missing);
    }
}

/// A message by one signer with these certificates.
fn one(signer: &Party, certificates: &[Vec<u8>], digest: &str) -> Vec<u8> {
    let digest = Digest::by_name(digest).unwrap();
    let unsigned = Unsigned::new(&[Request {
        message_digest: &digest.digest(FILE),
        digest,
        algorithm: signer.algorithm,
        signing_time: SIGNED,
        signer: &signer.certificate,
        chain: certificates,
    }])
    .unwrap();
    let message = Message::Raw(&unsigned.to_be_signed[0]);
    let made = signer.key.sign(signer.algorithm, message).unwrap();
    unsigned.assemble(&[made]).unwrap()
}

/// One message by all signers of a world, without the attribute that binds them.
fn unbound(world: &World) -> Vec<u8> {
    let leaves = world.signers.iter().skip(1).map(|signer| signer.certificate.der().to_vec());
    let certificates: Vec<_> = world.subordinates.iter().cloned().chain(leaves).collect();
    let all: Vec<_> = world
        .signers
        .iter()
        .flat_map(|signer| signers(&one(signer, &certificates, signer.algorithm.cms_digests[0])))
        .collect();
    with_signers(&one(&world.signers[0], &certificates, "sha512"), all)
}

fn pin(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Digest::by_name("sha256").unwrap().digest(bytes)))
}

#[test]
fn requirements_of_two_signers_do_not_add_up() {
    // Signer 0 has the algorithm, signer 1 the subject.
    let world = world(&["ML_DSA_65", "ECC_NIST_P256"]);
    for (name, p7s) in
        [("bound", world.sign(&["sha512", "sha256"], SIGNED)), ("unbound", unbound(&world))]
    {
        let rule = "algorithms = \"ml-dsa-65 or better\"\nsubject = \"CN=Signer 1\"";
        check(
            name,
            &policy(rule, &world.roots),
            &p7s,
            &["its subject is none", "ecdsa-p256 is not ml-dsa-65 or better"],
        );
        let rule = "algorithms = \"ml-dsa-65 or better\"\nsubject = \"CN=Signer 0\"";
        check(name, &policy(rule, &world.roots), &p7s, &[]);
        // Root of one, algorithm of the other.
        let rule = "algorithms = \"post-quantum\"";
        check(
            name,
            &policy(rule, &world.roots[1..]),
            &p7s,
            &["no path from", "ecdsa-p256 is not post-quantum"],
        );
        check(name, &policy(rule, &world.roots[..1]), &p7s, &[]);
        // Pin of one, root of the other.
        let key = pin(&world.signers[1].certificate.public_key().unwrap());
        let rule = format!("[[rule]]\nfiles = \"*\"\ntrust = \"x\"\npublic_keys = \"{key}\"");
        let mut both = file::parse("p", &rule).unwrap();
        both.rules[0].roots = world.roots[..1].to_vec();
        check(name, &both, &p7s, &["names neither its certificate", "no path from"]);
        both.rules[0].roots = world.roots[1..].to_vec();
        check(name, &both, &p7s, &[]);
    }
}

/// Who does not count is ignored, but a signature that is wrong refuses the message.
#[test]
fn a_broken_signature_refuses_the_message() {
    let world = world(&["ML_DSA_65", "ECC_NIST_P256"]);
    let p7s = unbound(&world);
    let policy = policy("algorithms = \"ml-dsa-65\"", &world.roots);
    assert!(judged(&policy, &p7s, &context()).unwrap().is_accepted());
    for index in 0..2 {
        let mut all = signers(&p7s);
        let mut bytes = all[index].signature.as_bytes().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        all[index].signature = OctetString::new(bytes).unwrap();
        let outcome = judged(&policy, &with_signers(&p7s, all), &context());
        let outcome = outcome.map(|verdict| verdict.is_accepted());
        assert_eq!(outcome, Err(VerifyError::Signature), "{index}");
    }
}

#[test]
fn two_signers_are_two() {
    let both = "algorithms = { all_of = [\"classical\", \"ml-dsa-65 or better\"] }";
    let twice = "algorithms = { all_of = [\"ml-dsa-44 or better\", \"ml-dsa-65 or better\"] }";
    let dual = world(&["ML_DSA_65", "ECC_NIST_P256"]);
    let p7s = dual.sign(&["sha512", "sha256"], SIGNED);
    check("both", &policy(both, &dual.roots), &p7s, &[]);
    check(
        "subject",
        &policy(&format!("subject = \"CN=Signer 0\"\n{both}"), &dual.roots),
        &p7s,
        &["classical"],
    );
    check("one root", &policy(both, &dual.roots[..1]), &p7s, &["no path from", "classical"]);
    check("both weak", &policy(twice, &dual.roots), &p7s, &["ecdsa-p256 is not"]);
    let single = world(&["ML_DSA_65"]);
    let p7s = single.sign(&["sha512"], SIGNED);
    check("alone", &policy(both, &single.roots), &p7s, &["classical"]);
    check("alone for two", &policy(twice, &single.roots), &p7s, &["or better"]);
    // The same key again is no second signer.
    let key = &single.signers[0];
    let twice_signed: Vec<_> = ["sha512", "shake256"]
        .iter()
        .flat_map(|digest| signers(&one(key, &single.subordinates, digest)))
        .collect();
    let p7s = with_signers(&one(key, &single.subordinates, "sha512"), twice_signed);
    check("the same key", &policy(twice, &single.roots), &p7s, &["or better"]);
    // The weaker one can only serve one, whatever the order.
    let pair = world(&["ML_DSA_44", "ML_DSA_65"]);
    let p7s = pair.sign(&["sha512", "sha512"], SIGNED);
    check("pair", &policy(twice, &pair.roots), &p7s, &[]);
    let turned = "algorithms = { all_of = [\"ml-dsa-65 or better\", \"ml-dsa-44 or better\"] }";
    check("turned", &policy(turned, &pair.roots), &p7s, &[]);
}

#[test]
fn each_requirement_refuses_by_itself() {
    let world = world(&["ML_DSA_65"]);
    let p7s = world.sign(&["sha512"], SIGNED);
    let leaf = &world.signers[0].certificate;
    let (certificate, key) = (pin(leaf.der()), pin(&leaf.public_key().unwrap()));
    let other = pin(b"other");
    for (rule, reasons) in [
        (String::new(), &[][..]),
        ("subject = \"CN=Signer ?\"".into(), &[]),
        ("subject = [\"CN=Other\", \"CN=Signer 0\"]".into(), &[]),
        ("subject = \"CN=signer 0\"".into(), &["its subject"]),
        ("subject = \"CN=Signer\"".into(), &["its subject"]),
        ("san = \"dns:*\"".into(), &["no alternative name"]),
        ("eku = \"document-signing\"".into(), &["lacks"]),
        ("eku = \"1.3.6.1.5.5.7.3.3\"".into(), &[]),
        ("algorithms = \"ml-dsa-87\"".into(), &["ml-dsa-65 is not ml-dsa-87"]),
        ("algorithms = \"classical\"".into(), &["is not classical"]),
        ("algorithms = [\"rsa-2048\", \"ml-dsa-65\"]".into(), &[]),
        ("ca_algorithms = \"ml-dsa-87\"".into(), &["the key of its CA"]),
        ("revocation = \"required\"".into(), &["revocation status cannot be determined"]),
        ("revocation = \"off\"".into(), &[]),
        ("validity = \"now\"".into(), &[]),
        ("validity = \"trusted-time\"".into(), &["asks for a trusted time"]),
        ("not_before = 2030-01-01".into(), &["the rule begins at"]),
        ("until = 2026-12-31".into(), &["the rule ended at"]),
        ("not_before = 2026-11-01\nuntil = 2027-12-31".into(), &[]),
        (format!("certificates = \"{certificate}\""), &[]),
        (format!("public_keys = \"{key}\""), &[]),
        (format!("public_keys = \"{certificate}\""), &["names neither"]),
        (format!("certificates = \"{key}\""), &["names neither"]),
        (format!("certificates = \"{other}\"\npublic_keys = \"{key}\""), &[]),
        (format!("certificates = \"{other}\""), &["names neither"]),
    ] {
        check(&rule, &policy(&rule, &world.roots), &p7s, reasons);
    }
    check("another root", &policy("", &world_roots()), &p7s, &["chain is not valid"]);
    // The root's certificate is no signer's pin.
    let root = format!("certificates = \"{}\"", pin(&world.roots[0]));
    check("root pinned", &policy(&root, &[]), &p7s, &["names neither"]);
    // A time that the verifier knows.
    let knows = Context { trusted: Some(SIGNED), ..context() };
    check_in("trusted", &policy("validity = \"trusted-time\"", &world.roots), &p7s, &knows, &[]);
    let late = Context { as_of: START + 2 * YEAR, ..context() };
    check_in("late", &policy("validity = \"now\"", &world.roots), &p7s, &late, &["expired"]);
    let pinned = policy(&format!("validity = \"now\"\npublic_keys = \"{key}\""), &[]);
    check_in("late pin", &pinned, &p7s, &late, &["expired"]);
    // What the verifier demands is not relaxed by a rule.
    let strict = Context { revocation: Some(Revocation::Required), ..context() };
    check_in(
        "strict",
        &policy("revocation = \"off\"", &world.roots),
        &p7s,
        &strict,
        &["revocation status"],
    );
    let pinned = policy(&format!("public_keys = \"{key}\""), &[]);
    check_in("strict pin", &pinned, &p7s, &strict, &["its revocation cannot be known"]);
}

/// A post-quantum signer below a classical CA is as weak as the CA.
#[test]
fn an_algorithm_counts_with_its_authorities() {
    let root = issue("ECC_NIST_P384", "Root", "RootCACertificate", 10, None);
    let sub = issue("ML_DSA_87", "Sub", "SubordinateCACertificate_PathLen0", 5, Some(&root));
    let leaf = issue("ML_DSA_87", "Signer 0", "CodeSigningCertificate", 1, Some(&sub));
    let mixed = World {
        roots: vec![root.certificate.der().to_vec()],
        subordinates: vec![sub.certificate.der().to_vec()],
        signers: vec![leaf],
        authorities: Vec::new(),
    };
    let p7s = mixed.sign(&["sha512"], SIGNED);
    check(
        "floor",
        &policy("algorithms = \"ml-dsa-87\"", &mixed.roots),
        &p7s,
        &["the key of its CA \"CN=Root\""],
    );
    let relaxed = "algorithms = \"ml-dsa-87\"\nca_algorithms = \"any\"";
    check("relaxed", &policy(relaxed, &mixed.roots), &p7s, &[]);
    check("any", &policy("", &mixed.roots), &p7s, &[]);
}

#[test]
fn files_get_the_first_rule_of_their_name() {
    let text = "[[rule]]\nname = \"docs\"\nfiles = \"docs/**\"\ntrust = \"a\"\n\
                [[rule]]\nname = \"apps\"\nfiles = [\"*.bin\", \"bin/*\"]\ntrust = \"a\"\n";
    let policy = file::parse("p", text).unwrap();
    let found = |name: &str| {
        let name = FileName::parse(name).ok()?;
        policy.rule_for(&name).map(|rule| rule.name.clone())
    };
    for (name, expected) in [
        ("docs/a.bin", Some("docs")),
        ("./docs//a", Some("docs")),
        ("a.bin", Some("apps")),
        ("x/y/a.bin", Some("apps")),
        ("bin/x", Some("apps")),
        // Not below docs, whatever the text begins with.
        ("docs/../app.bin", None),
        ("../docs/a", None),
        ("/docs/a", None),
        ("x/docs/a", None),
        ("docs", None),
        ("Docs/a", None),
        ("a.BIN", None),
        ("a.bin.exe", None),
        ("bin/x/y", None),
        ("bin\\x", None),
        ("", None),
    ] {
        assert_eq!(found(name).as_deref(), expected, "{name}");
    }
    let said = explain(&policy);
    assert!(
        said.contains("rule \"docs\", for files docs/**")
            && said.contains("every other file is refused"),
        "{said}"
    );
}

fn world_roots() -> Vec<Vec<u8>> {
    world(&["ML_DSA_65"]).roots
}

#[test]
fn built_in_policies_warn_of_what_is_ending() {
    let world = world(&["ECC_NIST_P384"]);
    let p7s = world.sign(&["sha384"], SIGNED);
    let policy = builtin::find("cnsa-2.0").unwrap();
    for (date, accepted, warned) in
        [("2029-12-31T23:59:59Z", true, true), ("2030-01-01T00:00:00Z", false, false)]
    {
        let as_of = from_rfc3339(date).unwrap();
        let context = Context { roots: &world.roots, as_of, ..context() };
        let verdict = judged(&policy, &p7s, &context).unwrap();
        assert_eq!(verdict.is_accepted(), accepted, "{date}: {verdict:?}");
        let warnings = &verdict.signers[0].warnings;
        assert_eq!(
            warnings.iter().any(|text| text.contains("prefers ML-DSA-87")),
            warned,
            "{date}"
        );
    }
    // Without the roots of the verifier nobody is trusted.
    let verdict = judged(&policy, &p7s, &context()).unwrap();
    assert!(!verdict.is_accepted());
}
