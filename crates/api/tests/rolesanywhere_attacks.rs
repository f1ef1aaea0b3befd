//! Attacks on CreateSession: each is refused, begins no session, and leaves a record only if the certificate is trusted.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;
use crate::rolesanywhere_support;

use common::{ACCOUNT, NOW, OTHER_ACCOUNT, REGION, Refused, Who, b64, policy, text, with};
use outlast_pki::certificate::Extension;
use outlast_pki::extensions::{
    self, CODE_SIGNING, KeyUsages, SERVER_AUTH, subject_alternative_names,
};
use outlast_pki::general_name::GeneralName;
use outlast_pki::name::Name;
use outlast_store::Store;
use rolesanywhere_support::{
    DAY, Holder, Made, Scene, Signed, Signing, authority, everything, id, leaf_extensions, profile,
    trust, workload,
};
use serde_json::{Value, json};

/// What stays of a refused request.
#[derive(Clone, Copy, PartialEq)]
enum Trace {
    /// Nothing: it could be anybody's.
    None,
    /// An event, and a note in the record of the subject.
    Event,
}

/// Sends a request that must be refused with these words, and checks what it has left behind.
#[track_caller]
fn refused(scene: &Scene, signed: &Signed, words: &str, trace: Trace) -> Refused {
    let sessions = || scene.fixture.store.scan("iam/session", "", 1000).unwrap().len();
    let (before, events) = (sessions(), scene.fixture.events().len());
    let Err(refused) = scene.answer(signed) else { panic!("a session has begun") };
    assert!(refused.message.contains(words), "{words}: {} {}", refused.code, refused.message);
    assert_eq!(sessions(), before, "{words}");
    let left = scene.fixture.events().len() - events;
    assert_eq!(left, usize::from(trace == Trace::Event), "{words}");
    refused
}

/// The same with AWS's usual error.
#[track_caller]
fn denied(scene: &Scene, signed: &Signed, words: &str, trace: Trace) {
    let refused = refused(scene, signed, words, trace);
    assert_eq!(
        (refused.code.as_str(), refused.status),
        ("AccessDeniedException", 403),
        "{words}: {}",
        refused.message
    );
}

const WRONG_SIGNATURE: &str = "signature is not one by the key of the certificate";

#[test]
fn changed_requests_are_refused() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let other = scene.root.issue("ECC_NIST_P256", workload("CN=bob"));
    let intermediate = scene.root.issue("ECC_NIST_P256", authority("CN=One"));
    let good = || {
        let mut signing = scene.signing(&leaf);
        signing.chain = vec![intermediate.certificate.clone()];
        signing.sign()
    };
    scene.answer(&good()).unwrap();
    type Change = fn(&mut Signed);
    let changes: &[(&str, Change)] = &[
        ("body", |signed| signed.body.push(b' ')),
        ("no body", |signed| signed.body.clear()),
        ("query", |signed| signed.query = "roleArn=x".into()),
        ("chain gone", |signed| {
            signed.headers.remove("x-amz-x509-chain");
        }),
        ("type", |signed| {
            signed.headers.insert("content-type", "text/plain".parse().unwrap());
        }),
        ("region", |signed| replace(signed, "/eu-west-1/", "/eu-west-2/")),
        ("signature", |signed| replace(signed, "Signature=30", "Signature=31")),
        ("shorter signature", |signed| {
            let text = signed.headers["authorization"].to_str().unwrap().to_owned();
            let shorter = &text[..text.len() - 2];
            signed.headers.insert("authorization", shorter.parse().unwrap());
        }),
        ("empty signature", |signed| {
            let text = signed.headers["authorization"].to_str().unwrap().to_owned();
            let at = text.find("Signature=").unwrap() + "Signature=".len();
            signed.headers.insert("authorization", text[..at].parse().unwrap());
        }),
        ("order", |signed| replace(signed, "content-type;host", "host;content-type")),
    ];
    for (what, change) in changes {
        let mut signed = good();
        change(&mut signed);
        println!("{what}");
        denied(&scene, &signed, WRONG_SIGNATURE, Trace::None);
    }
    // Another certificate of the same CA does not take over the signature.
    let mut signed = good();
    signed.headers.insert("x-amz-x509", b64(other.certificate.der()).parse().unwrap());
    denied(&scene, &signed, "serial number in Credential", Trace::None);
    let own = outlast_domain::rolesanywhere::decimal(leaf.certificate.serial());
    let theirs = outlast_domain::rolesanywhere::decimal(other.certificate.serial());
    replace(&mut signed, &own, &theirs);
    denied(&scene, &signed, WRONG_SIGNATURE, Trace::None);
    // Nor one with the same number and another key.
    let twin = Made {
        serial: Some(leaf.certificate.serial().try_into().unwrap()),
        ..workload("CN=mallory")
    };
    let twin = scene.root.issue("ECC_NIST_P256", twin);
    let mut signed = good();
    signed.headers.insert("x-amz-x509", b64(twin.certificate.der()).parse().unwrap());
    denied(&scene, &signed, WRONG_SIGNATURE, Trace::None);
}

fn replace(signed: &mut Signed, old: &str, new: &str) {
    let text = signed.headers["authorization"].to_str().unwrap().to_owned();
    let changed = text.replace(old, new);
    assert!(changed != text, "{old} is not in {text}");
    signed.headers.insert("authorization", changed.parse().unwrap());
}

#[test]
fn malformed_headers_are_refused() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let good = || scene.signing(&leaf).sign();
    let with_header = |name: &'static str, value: &str| {
        let mut signed = good();
        signed.headers.insert(name, value.parse().unwrap());
        signed
    };
    let without = |name: &'static str| {
        let mut signed = good();
        signed.headers.remove(name);
        signed
    };
    let changed = |old: &str, new: &str| {
        let mut signed = good();
        replace(&mut signed, old, new);
        signed
    };
    let twice = |name: &'static str| {
        let mut signed = good();
        let value = signed.headers[name].clone();
        signed.headers.append(name, value);
        signed
    };
    let unsigned = |names: &'static [&'static str]| {
        let mut signing = scene.signing(&leaf);
        signing.unsigned = names;
        signing.sign()
    };
    let der = leaf.certificate.der();
    for (signed, words) in [
        (without("authorization"), "one Authorization header"),
        (twice("authorization"), "one Authorization header"),
        (with_header("authorization", "AWS4-X509-ECDSA-SHA256"), "no parameters"),
        (changed("AWS4-X509-ECDSA-SHA256", "AWS4-X509-ECDSA-SHA1"), "must begin with one of"),
        (changed("AWS4-X509-ECDSA-SHA256", "AWS4-HMAC-SHA256"), "must begin with one of"),
        (changed("AWS4-X509-ECDSA-SHA256", "AWS4-X509-RSA-SHA256"), "is not one for"),
        (changed("AWS4-X509-ECDSA-SHA256", "AWS4-X509-MLDSA"), "is not one for"),
        (changed("aws4_request", "aws5_request"), "Credential must be"),
        (changed("/20261121/", "/20261120/"), "does not match the date"),
        (changed("/eu-west-1/", "/EU-west-1/"), "region of the credential scope"),
        (changed("Credential=", "Credential=0"), "serial number in Credential"),
        (changed("Signature=", "Signature=x"), "must be hexadecimal"),
        (changed("Signature=", "Signature=00, Signature="), "one 'Signature'"),
        (changed("SignedHeaders=", "signedheaders="), "one 'SignedHeaders'"),
        (without("x-amz-date"), "one X-Amz-Date"),
        (twice("x-amz-date"), "one X-Amz-Date"),
        (with_header("x-amz-date", "2026-11-21T00:00:00Z"), "ISO-8601"),
        (without("x-amz-x509"), "one X-Amz-X509"),
        (twice("x-amz-x509"), "one X-Amz-X509"),
        (with_header("x-amz-x509", "%%%"), "base64 of their DER"),
        (with_header("x-amz-x509", &b64(&der[..der.len() - 1])), "base64 of their DER"),
        (with_header("x-amz-x509", &b64(&[der, &[0]].concat())), "base64 of their DER"),
        (unsigned(&["host"]), "host must be signed"),
        (unsigned(&["x-amz-x509"]), "x-amz-x509 must be signed"),
        (unsigned(&["x-amz-date"]), "x-amz-date must be signed"),
        (with_header("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), "UNSIGNED-PAYLOAD"),
        (with_header("x-amz-x509-chain", ""), "x-amz-x509-chain must be signed"),
    ] {
        denied(&scene, &signed, words, Trace::None);
    }
    // A chain that is not signed could be anybody's.
    let one = scene.root.issue("ECC_NIST_P256", authority("CN=One"));
    let mut signing = scene.signing(&leaf);
    signing.chain = vec![one.certificate];
    signing.unsigned = &["x-amz-x509-chain"];
    denied(&scene, &signing.sign(), "x-amz-x509-chain must be signed", Trace::None);
    // The service's own form of the call is not one for access keys.
    let body = scene.body(json!({})).to_string();
    let response =
        scene.fixture.rest(&Who::admin(), &http::Method::POST, "/sessions", body.as_bytes());
    assert_eq!((response.status, response.error), (403, Some("AccessDeniedException")));
}

#[test]
fn signature_is_good_for_five_minutes() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let signed = scene.signing(&leaf).sign();
    for (now, words) in [
        (NOW + 301, "Signature expired"),
        (NOW - 301, "Signature not yet current"),
        (NOW + DAY, "Signature expired"),
    ] {
        scene.fixture.now.set(now);
        denied(&scene, &signed, words, Trace::None);
    }
    for now in [NOW - 300, NOW, NOW + 300] {
        scene.fixture.now.set(now);
        scene.answer(&signed).unwrap();
    }
}

#[test]
fn only_certificates_for_this_purpose_authenticate() {
    let scene = Scene::new();
    let basic = |ca: bool| extensions::basic_constraints(ca, None, true).unwrap();
    let usage = |bits: &[KeyUsages]| extensions::key_usage(bits).unwrap();
    let purposes = |list: &[_]| extensions::extended_key_usage(list, true).unwrap();
    let digital = KeyUsages::DigitalSignature;
    let with_extensions = |extensions: Vec<Extension>| Made { extensions, ..workload("CN=alice") };
    let insufficient = "Untrusted certificate. Insufficient certificate";
    for (made, words) in [
        (
            with_extensions(vec![basic(true), usage(&[digital, KeyUsages::KeyCertSign])]),
            insufficient,
        ),
        (with_extensions(vec![basic(true), usage(&[digital])]), insufficient),
        (with_extensions(vec![basic(false)]), insufficient),
        (with_extensions(vec![basic(false), usage(&[KeyUsages::KeyAgreement])]), insufficient),
        (with_extensions(vec![basic(false), usage(&[KeyUsages::NonRepudiation])]), insufficient),
        (with_extensions(vec![usage(&[digital]), purposes(&[SERVER_AUTH])]), "extended key usage"),
        (with_extensions(vec![usage(&[digital]), purposes(&[CODE_SIGNING])]), "extended key usage"),
        (
            with_extensions(vec![
                usage(&[digital]),
                extensions::custom("1.3.6.1.4.1.99999.1".parse().unwrap(), true, &[5, 0]).unwrap(),
            ]),
            "unknown critical extension",
        ),
        (Made { not_after: NOW - 1, ..workload("CN=alice") }, "it expired at"),
        (Made { not_before: NOW + 1, ..workload("CN=alice") }, "it is not valid before"),
    ] {
        let leaf = scene.root.issue("ECC_NIST_P256", made);
        denied(&scene, &scene.signing(&leaf).sign(), words, Trace::None);
    }
    let mut nameless = leaf_extensions();
    let names = [GeneralName::DnsName("a.example".into())];
    nameless.push(subject_alternative_names(&names, true).unwrap());
    let nameless = Made { subject: Name::default(), extensions: nameless, ..workload("CN=x") };
    let leaf = scene.root.issue("ECC_NIST_P256", nameless);
    denied(&scene, &scene.signing(&leaf).sign(), insufficient, Trace::None);
    // Without basic constraints and purposes it is one for any.
    let plain = scene.root.issue("ECC_NIST_P256", with_extensions(vec![usage(&[digital])]));
    scene.session(&plain).unwrap();
    let any = "2.5.29.37.0".parse().unwrap();
    let any = with_extensions(vec![usage(&[digital]), purposes(&[any])]);
    scene.session(&scene.root.issue("ECC_NIST_P256", any)).unwrap();
    // The root itself is no workload.
    denied(&scene, &scene.signing(&scene.root).sign(), insufficient, Trace::None);
}

#[test]
fn path_holds_in_every_part() {
    let scene = Scene::new();
    let attempt = |leaf: &Holder, chain: &[&Holder], words: &str| {
        let mut signing = scene.signing(leaf);
        signing.chain = chain.iter().map(|one| one.certificate.clone()).collect();
        denied(&scene, &signing.sign(), words, Trace::None);
    };
    let untrusted = "Untrusted signing certificate";
    // A CA with the anchor's name and another key; and with the key identifier of the anchor.
    let stranger = Holder::root("ECC_NIST_P256", "CN=Root,O=Example");
    let leaf = stranger.issue("ECC_NIST_P256", workload("CN=alice"));
    attempt(&leaf, &[], untrusted);
    attempt(&leaf, &[&stranger], untrusted);
    // A workload that acts as a CA.
    let workload_ca = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let forged = workload_ca.issue("ECC_NIST_P256", workload("CN=admin"));
    attempt(&forged, &[&workload_ca], "not a CA's certificate");
    // A CA that may not sign certificates, that has expired, and below one that allows no CA.
    let one = |made: Made| scene.root.issue("ECC_NIST_P256", made);
    let no_sign = one(Made {
        extensions: vec![
            extensions::basic_constraints(true, None, true).unwrap(),
            extensions::key_usage(&[KeyUsages::DigitalSignature]).unwrap(),
        ],
        ..authority("CN=One")
    });
    attempt(&no_sign.issue("ECC_NIST_P256", workload("CN=a")), &[&no_sign], "key usage");
    let expired = one(Made { not_after: NOW - 1, ..authority("CN=One") });
    attempt(&expired.issue("ECC_NIST_P256", workload("CN=a")), &[&expired], "it expired at");
    let mut extensions_of = rolesanywhere_support::ca_extensions(Some(0));
    let last = one(Made { extensions: extensions_of.clone(), ..authority("CN=Last") });
    let below = last.issue("ECC_NIST_P256", authority("CN=Below"));
    let leaf = below.issue("ECC_NIST_P256", workload("CN=a"));
    attempt(&leaf, &[&below, &last], "path length");
    // Name constraints: only names below O=Team.
    let permitted = GeneralName::DirectoryName(outlast_pki::name::parse("O=Team").unwrap());
    // NameConstraints ::= SEQUENCE { permittedSubtrees [0] SEQUENCE OF SEQUENCE { base GeneralName } }
    let wrap = |tag: u8, content: &[u8]| {
        let mut out = vec![tag, u8::try_from(content.len()).unwrap()];
        out.extend_from_slice(content);
        out
    };
    let subtree = wrap(0x30, &permitted.to_der().unwrap());
    let value = wrap(0x30, &wrap(0xa0, &subtree));
    extensions_of = rolesanywhere_support::ca_extensions(None);
    extensions_of.push(extensions::custom("2.5.29.30".parse().unwrap(), true, &value).unwrap());
    let team = one(Made { extensions: extensions_of, ..authority("CN=Team CA") });
    let outside = team.issue("ECC_NIST_P256", workload("CN=alice,O=Other"));
    attempt(&outside, &[&team], "name constraints");
    let inside = team.issue("ECC_NIST_P256", workload("CN=alice,O=Team"));
    let mut signing = scene.signing(&inside);
    signing.chain = vec![team.certificate.clone()];
    scene.answer(&signing.sign()).unwrap();
    // A certificate that signs itself, and one whose signature was changed.
    let own = Holder::root("ECC_NIST_P256", "CN=alice");
    let own = own.issue("ECC_NIST_P256", workload("CN=alice"));
    attempt(&own, &[], untrusted);
}

#[test]
fn resources_of_others_are_of_no_use() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let unknown = "00000000-0000-0000-0000-000000000000";
    let send = |more: Value| Signing::new(&leaf, &scene.body(more), fixture.now.get()).sign();
    // Another account trusts the same CA: its anchor opens nothing here, and its profile nothing for ours.
    let stranger = Who::stranger();
    let pem = scene.root.pem();
    let source = json!({
        "name": "theirs", "enabled": true,
        "source": { "sourceType": "CERTIFICATE_BUNDLE", "sourceData": { "x509CertificateData": pem } },
    });
    let theirs = fixture.ra_as(&stranger, "CreateTrustAnchor", source).unwrap();
    let their_anchor = text(&theirs["trustAnchor"]["trustAnchorArn"]).to_owned();
    let their_role = fixture.role(OTHER_ACCOUNT, "workload", &trust(&json!({})), &[everything()]);
    let new = json!({ "name": "p", "enabled": true, "roleArns": [their_role] });
    let theirs = fixture.ra_as(&stranger, "CreateProfile", new).unwrap();
    let their_profile = text(&theirs["profile"]["profileArn"]).to_owned();
    let not_found = |more: Value, trace: Trace| {
        let refused = refused(&scene, &send(more), "not found", trace);
        assert_eq!((refused.code.as_str(), refused.status), ("ResourceNotFoundException", 404));
    };
    not_found(json!({ "trustAnchorArn": their_anchor }), Trace::Event);
    not_found(json!({ "profileArn": their_profile }), Trace::Event);
    not_found(json!({ "profileArn": their_profile, "roleArn": their_role }), Trace::Event);
    denied(
        &scene,
        &send(json!({ "roleArn": their_role })),
        "does not allow the role",
        Trace::Event,
    );
    // All of theirs is theirs.
    let all = json!({
        "trustAnchorArn": their_anchor, "profileArn": their_profile, "roleArn": their_role,
    });
    scene.answer(&send(all)).unwrap();
    // What does not exist, and odd spellings of what does.
    let upper = scene.anchor.replace(id(&scene.anchor), &id(&scene.anchor).to_ascii_uppercase());
    for anchor in [
        scene.anchor.replace(id(&scene.anchor), unknown),
        scene.anchor.replace(REGION, "us-east-1"),
        scene.anchor.replace("arn:aws:", "arn:aws-cn:"),
        scene.anchor.replace("trust-anchor", "profile"),
        scene.anchor.replace("trust-anchor/", "trust-anchor//"),
        scene.anchor.replace(ACCOUNT, ""),
        format!("{} ", scene.anchor),
        format!("{}/", scene.anchor),
        upper,
        id(&scene.anchor).to_owned(),
        "x".to_owned(),
    ] {
        not_found(json!({ "trustAnchorArn": anchor }), Trace::None);
    }
    let upper = scene.profile.replace(id(&scene.profile), &id(&scene.profile).to_ascii_uppercase());
    for profile in [
        scene.profile.replace(id(&scene.profile), unknown),
        scene.profile.replace(REGION, "us-east-1"),
        scene.profile.replace(":profile/", ":profile//"),
        id(&scene.profile).to_owned(),
        scene.anchor.clone(),
        upper,
    ] {
        not_found(json!({ "profileArn": profile }), Trace::Event);
    }
    for role in [
        format!("{}x", scene.role),
        scene.role.to_ascii_uppercase(),
        scene.role.replace("role/", "role//"),
        format!("arn:aws:iam::{ACCOUNT}:role/*"),
        format!("arn:aws:sts::{ACCOUNT}:assumed-role/workload/x"),
        "workload".to_owned(),
    ] {
        denied(&scene, &send(json!({ "roleArn": role })), "does not allow the role", Trace::Event);
    }
    // The role in another partition is the same role: it has no Region.
    let china = scene.role.replace("arn:aws:", "arn:aws-cn:");
    scene.answer(&send(json!({ "roleArn": china }))).unwrap();
}

#[test]
fn what_is_disabled_or_gone_opens_nothing() {
    let scene = Scene::new();
    let fixture = &scene.fixture;
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let anchor = json!({ "trustAnchorId": id(&scene.anchor) });
    let of = json!({ "profileId": id(&scene.profile) });
    let signed = || scene.signing(&leaf).sign();
    fixture.ra("DisableTrustAnchor", anchor.clone()).unwrap();
    denied(&scene, &signed(), "Trust anchor is disabled", Trace::None);
    fixture.ra("EnableTrustAnchor", anchor.clone()).unwrap();
    fixture.ra("DisableProfile", of.clone()).unwrap();
    denied(&scene, &signed(), "Profile is disabled", Trace::Event);
    fixture.ra("EnableProfile", of.clone()).unwrap();
    // The role leaves the profile; it does not trust the service any more; it is deleted.
    fixture.ra("UpdateProfile", with(&of, json!({ "roleArns": [] }))).unwrap();
    denied(&scene, &signed(), "does not allow the role", Trace::Event);
    fixture.ra("UpdateProfile", with(&of, json!({ "roleArns": [scene.role] }))).unwrap();
    scene.session(&leaf).unwrap();
    let none = policy(json!([{ "Effect": "Deny", "Principal": "*", "Action": "sts:*" }]));
    let name = scene.role.rsplit('/').next().unwrap();
    fixture.directory(|work| {
        use outlast_domain::identity::{Entry, Role};
        let role = Role::find(work, ACCOUNT, name).unwrap();
        role.put_trust(work, &none.to_string()).unwrap();
    });
    denied(&scene, &signed(), "Unable to assume role for", Trace::Event);
    let missing = format!("arn:aws:iam::{ACCOUNT}:role/missing");
    let of_missing = profile(fixture, &[&missing], json!({}));
    let body = scene.body(json!({ "roleArn": missing, "profileArn": of_missing }));
    let signed_for = Signing::new(&leaf, &body, fixture.now.get()).sign();
    denied(&scene, &signed_for, "Unable to assume role for", Trace::Event);
    // Another CA takes the anchor over.
    let other = Holder::root("ECC_NIST_P256", "CN=Root,O=Example");
    let source = json!({
        "sourceType": "CERTIFICATE_BUNDLE", "sourceData": { "x509CertificateData": other.pem() },
    });
    fixture.ra("UpdateTrustAnchor", with(&anchor, json!({ "source": source }))).unwrap();
    denied(&scene, &signed(), "Untrusted signing certificate", Trace::None);
    // The profile wants instance properties.
    let new = json!({ "requireInstanceProperties": true });
    let scene = Scene::new();
    let demanding = profile(&scene.fixture, &[&scene.role], new);
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let body = scene.body(json!({ "profileArn": demanding }));
    let signed = Signing::new(&leaf, &body, scene.fixture.now.get()).sign();
    denied(&scene, &signed, "requires instance properties", Trace::Event);
    let body = with(&body, json!({ "instanceProperties": { "host": "a" } }));
    scene.answer(&Signing::new(&leaf, &body, scene.fixture.now.get()).sign()).unwrap();
}

#[test]
fn session_ends_with_its_role() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    let answer = scene.session(&leaf).unwrap();
    let mut who = rolesanywhere_support::who(&answer);
    assert!(rolesanywhere_support::may_call(&scene.fixture, &who));
    let token = who.token.take();
    let refused = scene.fixture.kms_as(&who, "ListKeys", json!({})).unwrap_err();
    assert_eq!(refused.code, "UnrecognizedClientException", "without its token");
    who.token = token;
    scene.fixture.directory(|work| {
        use outlast_domain::identity::{Entry, Role};
        Role::find(work, ACCOUNT, "workload").unwrap().delete(work);
    });
    scene.fixture.role(ACCOUNT, "workload", &trust(&json!({})), &[everything()]);
    let refused = scene.fixture.kms_as(&who, "ListKeys", json!({})).unwrap_err();
    assert_eq!(refused.code, "UnrecognizedClientException");
    // The role with the old name trusts the service, and the profile names it.
    scene.session(&leaf).unwrap();
}

#[test]
fn failing_store_begins_no_session() {
    let scene = Scene::new();
    let leaf = scene.root.issue("ECC_NIST_P256", workload("CN=alice"));
    scene.fixture.store.fail_writes_after(Some(0));
    let refused = scene.session(&leaf).unwrap_err();
    assert_eq!((refused.code.as_str(), refused.status), ("ServiceUnavailableException", 503));
    scene.fixture.store.fail_writes_after(None);
    assert!(scene.fixture.store.scan("iam/session", "", 10).unwrap().is_empty());
    assert!(scene.fixture.store.scan("rolesanywhere/subject", "", 10).unwrap().is_empty());
    scene.session(&leaf).unwrap();
}
