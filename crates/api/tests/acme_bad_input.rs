//! ACME requests that are wrong: each is refused with its type of problem, and changes nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::acme_support;
use crate::common;

use acme_support::world::{World, json_of, problem};
use acme_support::{Signer, b64, binding, request, request_for, request_of};
use common::{HOST, text};
use http::Method;
use outlast_api::acme::header;
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::extensions::{custom, subject_alternative_names};
use outlast_pki::general_name::{GeneralName, decode_names};
use outlast_pki::{name, pem};
use outlast_store::Store;
use proptest::prelude::*;
use serde_json::{Value, json};

/// All records, except used nonces.
fn records(world: &World) -> Vec<(String, Vec<u8>)> {
    let all = world.fixture.store.scan("", "", 100_000).unwrap();
    let kept = all.into_iter().filter(|(key, _)| !key.starts_with("acme/nonce/"));
    kept.map(|(key, record)| (key, record.value)).collect()
}

const ORDER: &str = r#"{"identifiers":[{"type":"dns","value":"a.example"}]}"#;

#[test]
fn wrongly_signed_requests_change_nothing() {
    let world = World::new();
    let account = world.account("ES256");
    let other = world.account("ES256");
    let elsewhere = world.another("CHALLENGE", json!({}));
    let elsewhere =
        format!("https://{HOST}/acme/{}/new-order", elsewhere.rsplit('/').next().unwrap());
    let (signer, kid, url) = (&account.signer, account.url.as_str(), world.url("new-order"));
    let before = records(&world);
    let refused = |jws: &Value, kind: &str, status: u16| {
        let response = world.post_jws(&url, jws);
        assert_eq!(problem(&response), (kind.to_owned(), status), "{jws}");
        assert!(header(&response, "replay-nonce").is_some(), "every answer has a nonce");
        assert_eq!(records(&world), before, "{jws}");
    };
    let good = || json!({ "nonce": world.nonce(), "url": url });
    let with = |name: &str, value: Value| {
        let mut header = good();
        header[name] = value;
        header
    };
    let without = |name: &str| {
        let mut header = good();
        header.as_object_mut().unwrap().remove(name);
        header
    };
    let sign = |header: Value| signer.jws(Some(kid), header, ORDER);

    // Nonces.
    refused(&sign(without("nonce")), "badNonce", 400);
    refused(&sign(with("nonce", "".into())), "badNonce", 400);
    refused(&sign(with("nonce", "AAAA".into())), "badNonce", 400);
    refused(&sign(with("nonce", b64([0; 40]).into())), "badNonce", 400);
    let of_other = world.get(&elsewhere.replace("new-order", "new-nonce"));
    let of_other = header(&of_other, "replay-nonce").unwrap().to_owned();
    refused(&sign(with("nonce", of_other.into())), "badNonce", 400);
    let old = sign(good());
    world.fixture.advance(3601);
    refused(&old, "badNonce", 400);
    // URLs.
    refused(&sign(without("url")), "malformed", 400);
    for wrong in [
        &world.url("new-account"),
        &elsewhere,
        &url.replace("https", "http"),
        &format!("{url}?a=b"),
        "new-order",
    ] {
        refused(&sign(with("url", wrong.into())), "unauthorized", 403);
    }
    // Keys and accounts.
    refused(&other.signer.jws(Some(kid), good(), ORDER), "unauthorized", 403);
    refused(&Signer::new("ES256").jws(None, good(), ORDER), "malformed", 400);
    for wrong in [
        "".to_owned(),
        world.url("account/11111111-2222-3333-4444-555555555555"),
        world.url("account/x"),
        format!("{kid}/"),
        kid.replace(world.endpoint_id(), "11111111-2222-3333-4444-555555555555"),
        "https://evil.example/acme/account/1".to_owned(),
    ] {
        refused(&signer.jws(Some(&wrong), good(), ORDER), "accountDoesNotExist", 400);
    }
    let both = signer.jws(Some(kid), with("jwk", signer.jwk.clone()), ORDER);
    refused(&both, "malformed", 400);
    refused(&signer.jws_with(&with("alg", "ES256".into()), ORDER), "malformed", 400);
    // Algorithms.
    for wrong in ["none", "HS256", "ES256K", "RS1", ""] {
        let mut header = with("kid", kid.into());
        header["alg"] = wrong.into();
        refused(&signer.jws_with(&header, ORDER), "badSignatureAlgorithm", 400);
    }
    let mut header = with("kid", kid.into());
    header["alg"] = "RS256".into();
    refused(&signer.jws_with(&header, ORDER), "unauthorized", 403);
    refused(&sign(with("crit", json!(["exp"]))), "malformed", 400);
    refused(&sign(with("b64", false.into())), "malformed", 400);
    // The JWS itself.
    let change = |name: &str, value: Value| {
        let mut jws = sign(good());
        jws[name] = value;
        jws
    };
    refused(&change("payload", b64("{}").into()), "unauthorized", 403);
    refused(&change("signature", "".into()), "unauthorized", 403);
    refused(&change("signature", b64([1; 64]).into()), "unauthorized", 403);
    refused(&change("signature", b64([1; 63]).into()), "unauthorized", 403);
    refused(&change("signature", "=".into()), "malformed", 400);
    refused(&change("protected", "e30".into()), "malformed", 400);
    refused(&change("header", json!({ "kid": kid })), "malformed", 400);
    refused(&change("signatures", json!([])), "malformed", 400);
    refused(&json!([]), "malformed", 400);
    refused(&json!({}), "malformed", 400);
    // The same request without a fault succeeds.
    assert_eq!(world.post_jws(&url, &sign(good())).status, 201);
    assert_ne!(records(&world), before);
}

#[test]
fn a_nonce_is_good_once_whatever_comes_of_it() {
    let world = World::new();
    let account = world.account("ES256");
    let url = world.url("new-order");
    let header = json!({ "nonce": world.nonce(), "url": url });
    let jws = account.signer.jws(Some(&account.url), header.clone(), ORDER);
    assert_eq!(world.post_jws(&url, &jws).status, 201);
    assert_eq!(problem(&world.post_jws(&url, &jws)).0, "badNonce", "replayed");
    let other = account.signer.jws(Some(&account.url), header, "{\"identifiers\":[]}");
    assert_eq!(problem(&world.post_jws(&url, &other)).0, "badNonce");
    // A request that is refused for its contents uses its nonce up, too, and is recorded.
    let header = json!({ "nonce": world.nonce(), "url": url });
    let wrong = account.signer.jws(Some(&account.url), header, "{\"identifiers\":[]}");
    assert_eq!(problem(&world.post_jws(&url, &wrong)).0, "malformed");
    let event = world.fixture.events().pop().unwrap();
    assert_eq!(
        (&event["eventName"], &event["errorCode"]),
        (&json!("AcmeNewOrder"), &json!("malformed"))
    );
    assert_eq!(problem(&world.post_jws(&url, &wrong)).0, "badNonce");
}

#[test]
fn media_types_methods_and_payloads_are_held_to() {
    let world = World::new();
    let account = world.account("ES256");
    let url = world.url("new-order");
    let jws = account.signer.jws(
        Some(&account.url),
        json!({ "nonce": world.nonce(), "url": url }),
        ORDER,
    );
    for media in ["", "application/json", "text/plain", "application/jose"] {
        let response = world.send(&Method::POST, &url, media, jws.to_string().as_bytes());
        assert_eq!(problem(&response), ("malformed".into(), 415), "{media}");
    }
    for payload in
        ["", "{", "[]", "null", "{\"identifiers\":{}}", "{\"identifiers\":[{\"type\":\"dns\"}]}"]
    {
        assert_eq!(problem(&account.post(&url, payload)).0, "malformed", "{payload}");
    }
    // POST-as-GET takes no payload.
    let (order, _) = account.order(&["a.example"]);
    assert_eq!(problem(&account.post(&order, "{}")).0, "malformed");
}

#[test]
fn names_that_no_certificate_is_issued_for() {
    let world = World::new();
    let account = world.account("ES256");
    for name in
        ["", "*", "*.*.a", "a..b", "ü.example", "127.0.0.1", "a_b.example", "a.example.", "a b"]
    {
        assert_eq!(
            problem(&account.try_order(&[name], json!({}))).0,
            "rejectedIdentifier",
            "{name}"
        );
    }
    let body = json!({ "identifiers": [{ "type": "ip", "value": "192.0.2.1" }] }).to_string();
    assert_eq!(problem(&account.post(&world.url("new-order"), &body)).0, "unsupportedIdentifier");
    let many: Vec<_> = (0..101).map(|index| format!("h{index}.example")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert_eq!(problem(&account.try_order(&many, json!({}))).0, "malformed");
    assert_eq!(account.try_order(&many[..100], json!({})).status, 201);
    for times in [
        json!({ "notAfter": "yesterday" }),
        json!({ "notAfter": "2020-01-01T00:00:00Z" }),
        json!({ "notBefore": "2027-01-02T00:00:00Z", "notAfter": "2027-01-01T00:00:00Z" }),
    ] {
        assert_eq!(problem(&account.try_order(&["a.example"], times)).0, "malformed");
    }
}

#[test]
fn certificate_requests_that_do_not_fit_the_order() {
    let world =
        World::with("CHALLENGE", json!({ "AllowedKeyAlgorithms": ["EC_prime256v1", "ML_DSA_65"] }));
    let account = world.account("ES256");
    let (_, order) = account.order(&["a.example", "b.example"]);
    let leaf = Signer::new("ES256");
    let names = ["a.example", "b.example"];
    assert_eq!(
        problem(&account.finalize(&order, &request(&leaf, &names, None))).0,
        "orderNotReady"
    );
    account.prove(&order, "http-01");
    let before = records(&world);
    let dns = |name: &str| GeneralName::DnsName(name.into());
    let mut broken = request(&leaf, &names, None);
    let last = broken.len() - 1;
    broken[last] ^= 1;
    for (what, csr) in [
        ("nothing", Vec::new()),
        ("no DER", b"hello".to_vec()),
        ("a broken signature", broken),
        ("one name too few", request(&leaf, &["a.example"], None)),
        ("one too many", request(&leaf, &["a.example", "b.example", "c.example"], None)),
        ("others", request(&leaf, &["a.example", "*.b.example"], None)),
        ("another common name", request(&leaf, &names, Some("c.example"))),
        ("no names", request(&leaf, &[], Some("a.example"))),
        (
            "a mail address",
            request_for(
                &leaf,
                &[
                    dns("a.example"),
                    dns("b.example"),
                    GeneralName::Rfc822Name("a@b.example".into()),
                ],
                None,
            ),
        ),
        ("the account's key", request(&account.signer, &names, None)),
        ("a key of a type that is not allowed", request(&Signer::new("ML-DSA-44"), &names, None)),
        (
            "a megabyte of names",
            request(&leaf, &vec!["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example"; 1000], None),
        ),
    ] {
        let response = account.finalize(&order, &csr);
        let expected = if response.status == 413 { "malformed" } else { "badCSR" };
        assert_eq!(problem(&response).0, expected, "{what}");
        assert_eq!(records(&world), before, "{what}");
    }
    let mixed = request(&Signer::new("ML-DSA-65"), &["B.example", "a.EXAMPLE"], Some("A.example"));
    assert_eq!(account.finalize(&order, &mixed).status, 200);
    let again = account.finalize(&order, &mixed);
    assert_eq!(problem(&again).0, "orderNotReady", "an order is for one certificate");
}

#[test]
fn a_certificate_says_nothing_that_was_not_proven() {
    let world = World::new();
    let account = world.account("ES256");
    let names = ["a.example", "b.example"];
    let dns = |name: &str| GeneralName::DnsName(name.into());
    let alternative = || subject_alternative_names(&names.map(dns), false).unwrap();
    let usage = custom(ObjectIdentifier::new_unwrap("2.5.29.37"), false, &[0x30, 0]).unwrap();
    let other = custom(ObjectIdentifier::new_unwrap("1.2.3.4"), true, &[5, 0]).unwrap();
    let (cn, o, ou) = ("2.5.4.3", "2.5.4.10", "2.5.4.11");
    let finalize = |csr: &dyn Fn(&Signer) -> Vec<u8>| {
        let leaf = Signer::new("ES256");
        let (_, order) = account.order(&names);
        account.prove(&order, "dns-01");
        let response = account.finalize(&order, &csr(&leaf));
        if response.status != 200 {
            return Err(problem(&response).0);
        }
        let chain = account.post(text(&json_of(&response)["certificate"]), "").body;
        Ok(Certificate::parse(&pem::read_certificates(&chain).unwrap()[0]).unwrap())
    };
    for (subject, expected) in [
        (&[][..], &[][..]),
        (&[(cn, "b.example")], &["b.example"]),
        (&[(cn, "B.Example"), (cn, "a.example")], &["b.example"]),
        (&[(o, "Bank"), (ou, "Board"), (cn, "a.example")], &["a.example"]),
        (&[(o, "Bank")], &[]),
    ] {
        let extensions = vec![alternative(), usage.clone(), other.clone()];
        let issued = finalize(&|leaf| request_of(leaf, subject, extensions.clone())).unwrap();
        let found = name::attributes(issued.subject());
        assert!(found.iter().all(|(oid, _)| oid.to_string() == cn), "{subject:?}");
        let found: Vec<_> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(found, expected, "{subject:?}");
        let of = |oid: &str| {
            issued.extensions().iter().find(|found| found.extn_id.to_string() == oid).cloned()
        };
        let alternative = of("2.5.29.17").unwrap();
        // RFC 5280, section 4.2.1.6.
        assert_eq!(alternative.critical, expected.is_empty());
        let found = decode_names(alternative.extn_value.as_bytes()).unwrap();
        assert_eq!(found, names.map(dns), "{subject:?}");
        assert_eq!(of("1.2.3.4"), None);
        assert_ne!(of("2.5.29.37").unwrap().extn_value.as_bytes(), [0x30, 0]);
    }
    // Names that the order does not contain.
    let second = [(cn, "a.example"), (cn, "bank.example")];
    let refused = finalize(&|leaf| request_of(leaf, &second, vec![alternative()]));
    assert_eq!(refused.err().unwrap(), "badCSR");
    for foreign in [
        GeneralName::IpAddress("10.0.0.1".parse().unwrap()),
        GeneralName::UniformResourceIdentifier("https://bank.example".into()),
        GeneralName::Rfc822Name("a@bank.example".into()),
        GeneralName::DirectoryName(name::common_name("bank.example").unwrap()),
    ] {
        let all = [dns(names[0]), dns(names[1]), foreign];
        let refused = finalize(&|leaf| request_for(leaf, &all, None));
        assert_eq!(refused.err().unwrap(), "badCSR", "{all:?}");
    }
    // A name that is too long for a common name does not become one.
    let long = format!("{}.example", ["abcdefghi"; 7].join("."));
    let (_, order) = account.order(&[&long]);
    account.prove(&order, "dns-01");
    let csr = request(&Signer::new("ES256"), &[&long], None);
    assert_eq!(account.finalize(&order, &csr).status, 200);
}

#[test]
fn bindings_that_do_not_fit() {
    let world = World::new();
    let url = world.url("new-account");
    let (kid, mac) = world.credentials();
    let signer = Signer::new("ES256");
    let before = records(&world);
    let good = binding(&kid, &mac, &signer, &url);
    let make = |value: Value| {
        world.post(&signer, None, &url, &json!({ "externalAccountBinding": value }).to_string())
    };
    let change = |name: &str, value: Value| {
        let mut changed = good.clone();
        changed[name] = value;
        changed
    };
    let inner = |alg: &str, nonce: bool, url: &str| {
        let mut header = json!({ "alg": alg, "kid": kid, "url": url });
        if nonce {
            header["nonce"] = "x".into();
        }
        change("protected", b64(header.to_string()).into())
    };
    for (what, value, kind) in [
        (
            "of another account's key",
            binding(&kid, &mac, &Signer::new("ES256"), &url),
            "unauthorized",
        ),
        ("by another MAC key", binding(&kid, &[7; 32], &signer, &url), "unauthorized"),
        ("of nobody", binding("nobody", &mac, &signer, &url), "unauthorized"),
        ("for another URL", binding(&kid, &mac, &signer, &world.url("new-order")), "malformed"),
        ("with another MAC", change("signature", b64([0; 32]).into()), "unauthorized"),
        ("with a nonce", inner("HS256", true, &url), "malformed"),
        ("by another algorithm", inner("ES256", false, &url), "badSignatureAlgorithm"),
        ("that is none", json!("x"), "malformed"),
        ("with no key", change("payload", b64("{}").into()), "badPublicKey"),
    ] {
        assert_eq!(problem(&make(value)).0, kind, "a binding {what}");
        assert_eq!(records(&world), before, "a binding {what}");
    }
    assert_eq!(
        problem(&world.post(&signer, None, &url, "{}")),
        ("externalAccountRequired".into(), 403)
    );
    let only = json!({ "onlyReturnExisting": true }).to_string();
    assert_eq!(problem(&world.post(&signer, None, &url, &only)).0, "accountDoesNotExist");
    assert_eq!(make(good.clone()).status, 201);
    let again = make(good);
    assert_eq!((again.status, world.post(&signer, None, &url, &only).status), (200, 200));
    assert!(header(&again, "location").is_some());
    // A binding of one endpoint is refused at another.
    let elsewhere = world.another("CHALLENGE", json!({}));
    let other =
        format!("https://{HOST}/acme/{}/new-account", elsewhere.rsplit('/').next().unwrap());
    let signer = Signer::new("ES256");
    let nonce = world.get(&other.replace("new-account", "new-nonce"));
    let header = json!({ "nonce": header(&nonce, "replay-nonce").unwrap(), "url": other });
    let payload =
        json!({ "externalAccountBinding": binding(&kid, &mac, &signer, &other) }).to_string();
    let refused = world.post_jws(&other, &signer.jws(None, header, &payload));
    assert_eq!(problem(&refused).0, "unauthorized");
}

#[test]
fn nobody_sees_or_uses_what_others_have() {
    let world = World::new();
    let account = world.account("ES256");
    let stranger = world.account("ES256");
    let (url, order) = account.order(&["a.example"]);
    let authorization = text(&order["authorizations"][0]).to_owned();
    let found = account.read(&authorization);
    let (done, _) = account.certificate(&["b.example"], &Signer::new("ES256"));
    let before = records(&world);
    let csr =
        json!({ "csr": b64(request(&Signer::new("ES256"), &["a.example"], None)) }).to_string();
    for (url, payload) in [
        (url.as_str(), ""),
        (authorization.as_str(), ""),
        (authorization.as_str(), "{\"status\":\"deactivated\"}"),
        (text(&found["challenges"][0]["url"]), "{}"),
        (text(&order["finalize"]), csr.as_str()),
        (text(&done["certificate"]), ""),
        (account.url.as_str(), "{\"status\":\"deactivated\"}"),
        (&format!("{}/orders", account.url), ""),
    ] {
        assert_eq!(problem(&stranger.post(url, payload)), ("unauthorized".into(), 403), "{url}");
        // Nor under one's own account.
        let own = url.replace(
            account.url.rsplit('/').next().unwrap(),
            stranger.url.rsplit('/').next().unwrap(),
        );
        if own != *url && !own.contains("/account/") {
            assert_eq!(problem(&stranger.post(&own, payload)), ("malformed".into(), 404), "{own}");
        }
    }
    assert_eq!(records(&world), before);
}

#[test]
fn endpoints_are_made_with_a_ca_that_may_be_used() {
    let world = World::new();
    let body = |more: Value| {
        let least = json!({ "AuthorizationBehavior": "CHALLENGE", "CertificateAuthority": { "PublicCertificateAuthority": {} } });
        common::with(&least, more)
    };
    let code = |more: Value| common::code(world.try_acm("CreateAcmeEndpoint", body(more)));
    let refused = world.try_acm("CreateAcmeEndpoint", body(json!({}))).unwrap_err();
    assert_eq!(refused.code, "ValidationException");
    assert!(refused.message.contains("outlast:certificate-authority-arn"), "{}", refused.message);
    let missing = world.authority.replace(&world.authority[world.authority.len() - 4..], "0000");
    for wrong in [missing.as_str(), "x", &world.endpoint] {
        let tags =
            json!({ "Tags": [{ "Key": "outlast:certificate-authority-arn", "Value": wrong }] });
        assert_eq!(code(tags), "ValidationException", "{wrong}");
    }
    let private = |arn: &str| json!({ "CertificateAuthority": { "PrivateCertificateAuthority": { "CertificateAuthorityArn": arn } } });
    assert!(world.try_acm("CreateAcmeEndpoint", body(private(&world.authority))).is_ok());
    assert_eq!(code(json!({ "CertificateAuthority": {} })), "ValidationException");
    assert_eq!(code(json!({ "AuthorizationBehavior": "NONE" })), "ValidationException");
    let keys = json!({ "PublicCertificateAuthority": { "AllowedKeyAlgorithms": ["DSA"] } });
    assert_eq!(code(json!({ "CertificateAuthority": keys })), "ValidationException");
    // A user who may not issue from the CA cannot let others do so.
    let weak = world.fixture.user(common::ACCOUNT, "weak", &[common::allow(&["acm:*"])]);
    let made = acme_support::world::call(
        &world.fixture,
        &weak,
        "acm",
        "CreateAcmeEndpoint",
        &body(private(&world.authority)),
    );
    assert_eq!(common::code(made), "AccessDeniedException");
    let bound = json!({ "AcmeEndpointArn": world.endpoint, "RoleArn": world.role });
    let made = acme_support::world::call(
        &world.fixture,
        &weak,
        "acm",
        "CreateAcmeExternalAccountBinding",
        &bound,
    );
    let refused = made.unwrap_err();
    assert!(refused.message.contains("iam:PassRole"), "{}", refused.message);
    let gone = common::with(&bound, json!({ "RoleArn": "arn:aws:iam::123456789012:role/nobody" }));
    assert_eq!(
        common::code(world.try_acm("CreateAcmeExternalAccountBinding", gone)),
        "ValidationException"
    );
    let trust = common::policy(json!([{ "Effect": "Allow", "Action": "sts:*",
        "Principal": { "Service": "ec2.amazonaws.com" } }]));
    let of_others = world.fixture.role(common::ACCOUNT, "others", &trust, &[]);
    let untrusting = common::with(&bound, json!({ "RoleArn": of_others }));
    let refused = world.try_acm("CreateAcmeExternalAccountBinding", untrusting).unwrap_err();
    assert!(refused.message.contains("acm-acme.amazonaws.com"), "{}", refused.message);
    let zone = json!({ "AcmeEndpointArn": world.endpoint, "DomainName": "a.example",
        "PrevalidationOptions": { "DnsPrevalidation": { "HostedZoneId": "Z123" } } });
    let refused = world.try_acm("CreateAcmeDomainValidation", zone).unwrap_err();
    assert!(refused.message.contains("Route 53"), "{}", refused.message);
    let tag = json!({ "ResourceArn": world.endpoint, "Tags": [{ "Key": "outlast:certificate-authority-arn", "Value": "x" }] });
    assert_eq!(common::code(world.try_acm("TagResource", tag)), "ValidationException");
    let tag = json!({ "ResourceArn": world.endpoint, "Tags": [{ "Key": "team", "Value": "x" }] });
    world.acm("TagResource", tag);
    let tags = world.acm("ListTagsForResource", json!({ "ResourceArn": world.endpoint }));
    assert_eq!(tags["Tags"].as_array().unwrap().len(), 2);
    // The same token makes the same endpoint; with other parameters it is refused.
    let token = |behavior: &str| {
        body(common::with(
            &private(&world.authority),
            json!({ "IdempotencyToken": "t", "AuthorizationBehavior": behavior }),
        ))
    };
    let first = world.acm("CreateAcmeEndpoint", token("CHALLENGE"));
    assert_eq!(world.acm("CreateAcmeEndpoint", token("CHALLENGE")), first);
    assert_eq!(
        common::code(world.try_acm("CreateAcmeEndpoint", token("PRE_APPROVED"))),
        "ConflictException"
    );
}

#[test]
fn a_ca_that_cannot_issue_is_said_so_and_the_order_stays() {
    let world = World::new();
    let account = world.account("ES256");
    let (url, order) = account.order(&["a.example"]);
    account.prove(&order, "dns-01");
    let switch = |status: &str| {
        let body = json!({ "CertificateAuthorityArn": world.authority, "Status": status });
        let who = common::Who::admin();
        acme_support::world::call(
            &world.fixture,
            &who,
            "acm-pca",
            "UpdateCertificateAuthority",
            &body,
        )
        .unwrap();
    };
    switch("DISABLED");
    let csr = request(&Signer::new("ES256"), &["a.example"], None);
    let response = account.finalize(&order, &csr);
    assert!(response.status >= 400, "{}", json_of(&response));
    assert_eq!(account.read(&url)["status"], "ready");
    switch("ACTIVE");
    assert_eq!(account.finalize(&order, &csr).status, 200);
}

#[test]
fn a_write_that_fails_fails_the_request_and_leaves_nothing() {
    let world = World::new();
    let account = world.account("ES256");
    let before = records(&world);
    let nonce = world.nonce();
    world.fixture.store.fail_writes(true);
    let url = world.url("new-order");
    let jws = account.signer.jws(Some(&account.url), json!({ "nonce": nonce, "url": url }), ORDER);
    assert_eq!(problem(&world.post_jws(&url, &jws)), ("serverInternal".into(), 500));
    world.fixture.store.fail_writes(false);
    assert_eq!(records(&world), before);
    world.fixture.store.conflict_next(3);
    assert_eq!(world.post_jws(&url, &jws).status, 201, "the nonce was not used");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any body is answered with a problem, if it is no valid JWS.
    #[test]
    fn no_body_makes_the_service_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        WORLD.with(|world| {
            let response = world.send(&Method::POST, &world.url("new-account"), "application/jose+json", &bytes);
            assert_eq!(problem(&response).1, 400);
        });
    }

    /// The same with a header and a payload of any JSON.
    #[test]
    fn no_header_makes_the_service_panic(
        alg in "(ES256|RS256|EdDSA|ML-DSA-65|HS256|none)",
        kty in "(EC|RSA|OKP|AKP|oct|)",
        crv in "(P-256|P-521|Ed25519|X25519)",
        x in proptest::collection::vec(any::<u8>(), 0..70),
        payload in "\\PC{0,40}",
        signature in proptest::collection::vec(any::<u8>(), 0..140),
    ) {
        WORLD.with(|world| {
            let url = world.url("new-account");
            let jwk = json!({ "kty": kty, "crv": crv, "x": b64(&x), "y": b64(&x), "n": b64(&x), "e": b64(&x), "pub": b64(&x), "alg": alg });
            let header = json!({ "alg": alg, "jwk": jwk, "nonce": "x", "url": url });
            let jws = json!({ "protected": b64(header.to_string()), "payload": b64(payload), "signature": b64(signature) });
            let (_, status) = problem(&world.post_jws(&url, &jws));
            assert!((400..500).contains(&status));
        });
    }
}

thread_local! {
    static WORLD: World = World::new();
}
