//! ACME without sockets: accounts, orders, challenges, certificates, renewal and revocation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::acme_support;
use crate::common;

use std::sync::Mutex;

use acme_support::world::{World, challenge, json_of, problem};
use acme_support::{ALGORITHMS, Signer, b64, binding, request};
use common::text;
use http::Method;
use outlast_api::acme::header;
use outlast_api::acme::jobs::Lane;
use outlast_domain::acme::{Kind, Outcome, Queue, Target};
use outlast_pki::certificate::Certificate;
use outlast_pki::pem;
use serde_json::json;

fn not_there(again: bool) -> Outcome {
    Outcome::Missing { kind: Kind::CONNECTION, detail: "nobody answers".into(), again }
}

#[test]
fn directory_lists_everything_and_responses_have_nonces() {
    let world = World::new();
    let response = world.get(&world.directory());
    assert_eq!((response.status, response.content_type), (200, "application/json"));
    let directory = json_of(&response);
    for name in ["newNonce", "newAccount", "newOrder", "revokeCert", "keyChange", "renewalInfo"] {
        assert!(text(&directory[name]).starts_with(&world.url("")), "{name}");
    }
    assert_eq!(directory["meta"]["externalAccountRequired"], true);
    assert!(header(&response, "replay-nonce").is_some());
    let fresh = world.get(&world.url("new-nonce"));
    assert_eq!((fresh.status, fresh.body.len()), (204, 0));
    assert_ne!(world.nonce(), world.nonce());
    let index = format!("<{}>;rel=\"index\"", world.directory());
    assert_eq!(header(&fresh, "link"), Some(index.as_str()));
    for path in ["nothing", "order/a", "challenge/a/b/oob-01"] {
        assert_eq!(problem(&world.get(&world.url(path))), ("malformed".into(), 404), "{path}");
    }
    assert_eq!(problem(&world.get(&world.url("new-order"))), ("malformed".into(), 405));
    let gone =
        world.directory().replace(world.endpoint_id(), "11111111-2222-3333-4444-555555555555");
    assert_eq!(problem(&world.get(&gone)), ("malformed".into(), 404));
}

#[test]
fn certificates_are_ordered_with_each_kind_of_key() {
    let world = World::new();
    for (_, algorithm, _) in ALGORITHMS {
        let account = world.account(algorithm);
        let leaf = Signer::new("ES256");
        let name = format!("{}.example", algorithm.to_ascii_lowercase());
        let (order, chain) = account.certificate(&[&name], &leaf);
        assert_eq!(order["status"], "valid", "{algorithm}");
        let list = pem::read_certificates(chain.as_bytes()).unwrap();
        // Below a root the chain includes the root: clients such as certbot expect at least one certificate above
        // their own.
        assert_eq!(list.len(), 2);
        let certificate = Certificate::parse(&list[0]).unwrap();
        assert_eq!(certificate.public_key().unwrap(), leaf.key.public_key().unwrap());
        assert!(certificate.signed_by(&Certificate::parse(&list[1]).unwrap()));
        let listed = account.read(&format!("{}/orders", account.url));
        assert_eq!(listed["orders"].as_array().unwrap().len(), 1);
    }
    let names: Vec<_> =
        world.fixture.events().iter().map(|event| text(&event["eventName"]).to_owned()).collect();
    for name in [
        "AcmeNewAccount",
        "AcmeNewOrder",
        "AcmeRespondToChallenge",
        "AcmeChallengeSucceeded",
        "AcmeFinalizeOrder",
    ] {
        let count = names.iter().filter(|found| *found == name).count();
        assert_eq!(count, ALGORITHMS.len(), "{name}");
    }
}

#[test]
fn leaves_may_have_post_quantum_keys_and_wildcards() {
    let world = World::new();
    let account = world.account("ML-DSA-65");
    for algorithm in ["ML-DSA-44", "ML-DSA-87", "RS256"] {
        let leaf = Signer::new(algorithm);
        let (_, chain) = account.certificate(&["a.example", "*.a.example"], &leaf);
        let list = pem::read_certificates(chain.as_bytes()).unwrap();
        let certificate = Certificate::parse(&list[0]).unwrap();
        assert_eq!(certificate.public_key().unwrap(), leaf.key.public_key().unwrap());
    }
}

#[test]
fn wildcards_are_proved_by_dns_only() {
    let world = World::new();
    let account = world.account("ES256");
    let (_, order) = account.order(&["*.a.example", "a.example"]);
    let mut seen = Vec::new();
    for url in order["authorizations"].as_array().unwrap() {
        let found = account.read(text(url));
        assert_eq!(found["identifier"], json!({ "type": "dns", "value": "a.example" }));
        let mut kinds: Vec<_> = found["challenges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(&one["type"]).to_owned())
            .collect();
        kinds.sort();
        seen.push((found["wildcard"] == true, kinds.join(" ")));
    }
    seen.sort();
    assert_eq!(
        seen,
        [(false, "dns-01 http-01 tls-alpn-01".to_owned()), (true, "dns-01".to_owned())]
    );
}

#[test]
fn what_must_be_found_follows_from_token_and_key() {
    let world = World::new();
    let account = world.account("ES384");
    for kind in ["http-01", "dns-01", "tls-alpn-01"] {
        let (_, order) = account.order(&["host.example"]);
        let found = account.read(text(&order["authorizations"][0]));
        let one = challenge(&found, kind);
        let token = text(&one["token"]);
        assert!(acme_support::unb64(token).len() >= 16);
        let expected = format!("{token}.{}", account.signer.thumbprint());
        let digest = outlast_crypto::digests::sha256(expected.as_bytes());
        let response = account.post(text(&one["url"]), "{}");
        let up = format!("<{}>;rel=\"up\"", text(&order["authorizations"][0]));
        assert!(response.headers.iter().any(|(name, value)| *name == "link" && *value == up));
        assert!(header(&response, "retry-after").is_some());
        let looked = world.look(Queue::Challenges, |job| {
            let wanted = match kind {
                "http-01" => Target::Http {
                    host: "host.example".into(),
                    token: token.into(),
                    content: expected.clone(),
                },
                "dns-01" => {
                    Target::Txt { name: "_acme-challenge.host.example".into(), value: b64(digest) }
                }
                _ => Target::TlsAlpn { host: "host.example".into(), digest },
            };
            assert_eq!(job.target, wanted);
            Outcome::Found
        });
        assert_eq!(looked, 1);
        assert_eq!(account.read(text(&order["authorizations"][0]))["status"], "valid");
    }
}

#[test]
fn a_target_that_never_answers_fails_the_order_in_the_end() {
    let world = World::new();
    let account = world.account("ES256");
    let (url, order) = account.order(&["silent.example"]);
    let found = account.read(text(&order["authorizations"][0]));
    account.post(text(&challenge(&found, "http-01")["url"]), "{}");
    assert_eq!(world.look(Queue::Challenges, |_| not_there(true)), 1);
    // The next attempt is not due yet.
    assert_eq!(world.look(Queue::Challenges, |_| Outcome::Found), 0);
    let waiting = account.read(text(&challenge(&found, "http-01")["url"]));
    assert_eq!(waiting["status"], "processing");
    assert_eq!(waiting["error"]["type"], "urn:ietf:params:acme:error:connection");
    for _ in 0..2 {
        world.fixture.advance(60);
        assert_eq!(world.look(Queue::Challenges, |_| not_there(true)), 1);
    }
    let order = account.read(&url);
    assert_eq!(order["status"], "invalid");
    assert_eq!(order["error"]["type"], "urn:ietf:params:acme:error:connection");
    let response =
        account.finalize(&order, &request(&Signer::new("ES256"), &["silent.example"], None));
    assert_eq!(problem(&response).0, "orderNotReady");
    world.fixture.advance(60);
    assert_eq!(world.look(Queue::Challenges, |_| Outcome::Found), 0);
}

#[test]
fn server_killed_during_validation_is_replaced() {
    let world = World::new();
    let account = world.account("ES256");
    let (url, order) = account.order(&["host.example"]);
    let found = account.read(text(&order["authorizations"][0]));
    account.post(text(&challenge(&found, "dns-01")["url"]), "{}");
    let now_ms = world.fixture.now.get() * 1000;
    let service = &world.fixture.service;
    let lane = Mutex::new(Lane::new(64));
    let lost = service.acme_jobs(Queue::Challenges, now_ms, &lane).unwrap();
    assert_eq!(lost.len(), 1);
    assert!(service.acme_jobs(Queue::Challenges, now_ms, &lane).unwrap().is_empty(), "it is taken");
    world.fixture.advance(61);
    assert_eq!(world.look(Queue::Challenges, |_| Outcome::Found), 1);
    service.acme_outcome(&lost[0], &not_there(false), now_ms + 62_000).unwrap();
    assert_eq!(account.read(&url)["status"], "ready");
}

#[test]
fn pre_approved_names_need_a_domain_validation() {
    let world = World::with("PRE_APPROVED", json!({}));
    let account = world.account("ES256");
    let refused = account.try_order(&["a.corp.example", "other.example"], json!({}));
    assert_eq!(problem(&refused), ("rejectedIdentifier".into(), 403));
    let subproblems = json_of(&refused)["subproblems"].clone();
    assert_eq!(subproblems.as_array().unwrap().len(), 2);
    assert_eq!(subproblems[0]["identifier"], json!({ "type": "dns", "value": "a.corp.example" }));

    let scope =
        json!({ "ExactDomain": "ENABLED", "Subdomains": "ENABLED", "Wildcards": "DISABLED" });
    let made = world.acm(
        "CreateAcmeDomainValidation",
        json!({
            "AcmeEndpointArn": world.endpoint, "DomainName": "corp.example",
            "PrevalidationOptions": { "DnsPrevalidation": { "DomainScope": scope } },
        }),
    );
    let named = json!({ "AcmeDomainValidationArn": made["AcmeDomainValidationArn"] });
    let describe =
        || world.acm("DescribeAcmeDomainValidation", named.clone())["AcmeDomainValidation"].clone();
    let found = describe();
    assert_eq!(found["Status"], "VALIDATING");
    let record = found["PrevalidationDetails"]["DnsPrevalidation"]["ResourceRecord"].clone();
    assert_eq!(record["Type"], "CNAME");
    assert!(text(&record["Name"]).ends_with(".corp.example."));
    let looked = world.look(Queue::Domains, |job| {
        let Target::Cname { name, value } = &job.target else { panic!("{:?}", job.target) };
        assert_eq!(
            (format!("{name}."), format!("{value}.")),
            (text(&record["Name"]).into(), text(&record["Value"]).into())
        );
        Outcome::Found
    });
    assert_eq!(looked, 1);
    assert_eq!(describe()["Status"], "VALID");

    let (_, order) = account.order(&["a.corp.example", "corp.example"]);
    assert_eq!(order["status"], "ready");
    assert_eq!(problem(&account.try_order(&["*.corp.example"], json!({}))).0, "rejectedIdentifier");
    assert_eq!(problem(&account.try_order(&["xcorp.example"], json!({}))).0, "rejectedIdentifier");
    let authorization = account.read(text(&order["authorizations"][0]));
    assert_eq!(authorization["status"], "valid");
    let (_, chain) = account.certificate(&["a.corp.example"], &Signer::new("ES256"));
    assert!(chain.starts_with("-----BEGIN CERTIFICATE"));

    // A deleted validation approves nothing, not even orders made before.
    world.acm("DeleteAcmeDomainValidation", named.clone());
    let csr = request(&Signer::new("ES256"), &["a.corp.example", "corp.example"], None);
    assert_eq!(problem(&account.finalize(&order, &csr)).0, "unauthorized");
}

#[test]
fn domain_validation_ends_after_72_hours() {
    let world = World::with("PRE_APPROVED", json!({}));
    let made = world.acm(
        "CreateAcmeDomainValidation",
        json!({
            "AcmeEndpointArn": world.endpoint, "DomainName": "corp.example",
            "PrevalidationOptions": { "DnsPrevalidation": {} },
        }),
    );
    let named = json!({ "AcmeDomainValidationArn": made["AcmeDomainValidationArn"] });
    let status = || {
        let found = world.acm("DescribeAcmeDomainValidation", named.clone());
        let found = found["AcmeDomainValidation"].clone();
        (text(&found["Status"]).to_owned(), found["FailureDetails"]["Reason"].clone())
    };
    for _ in 0..12 {
        world.look(Queue::Domains, |_| not_there(true));
        assert_eq!(status().0, "VALIDATING");
        world.fixture.advance(6 * 3600);
    }
    world.look(Queue::Domains, |_| not_there(true));
    assert_eq!(status(), ("INVALID".into(), json!("TIMED_OUT")));
    world.fixture.advance(86_400);
    assert_eq!(world.look(Queue::Domains, |_| Outcome::Found), 0);
    world.acm("UpdateAcmeDomainValidation", named.clone());
    assert_eq!(world.look(Queue::Domains, |_| Outcome::Found), 1);
    assert_eq!(status().0, "VALID");
    // The server validates the domain again each day.
    world.fixture.advance(86_400);
    assert_eq!(world.look(Queue::Domains, |_| not_there(true)), 1);
    assert_eq!(status().0, "VALID", "DNS may be out of order for a while");
}

#[test]
fn renewal_information_follows_validity_and_revocation() {
    let world = World::new();
    let account = world.account("ES256");
    let leaf = Signer::new("ES256");
    let (order, chain) = account.certificate(&["a.example"], &leaf);
    let id = text(&order["certificate"]).rsplit('/').next().unwrap().to_owned();
    let der = pem::read_certificates(chain.as_bytes()).unwrap().remove(0);
    let certificate = Certificate::parse(&der).unwrap();
    // RFC 9773, section 4.1.
    let (_, serial) = id.split_once('.').unwrap();
    assert_eq!(serial, b64(certificate.serial_number().as_bytes()));
    let info = || world.get(&world.url(&format!("renewal-info/{id}")));
    assert_eq!(header(&info(), "retry-after"), Some("21600"));
    let window = json_of(&info())["suggestedWindow"].clone();
    let at = |seconds: i64| outlast_pki::time::rfc3339(seconds);
    assert!(text(&window["start"]) > at(certificate.not_before()).as_str());
    assert!(text(&window["start"]) < text(&window["end"]));
    assert!(text(&window["end"]) < at(certificate.not_after()).as_str());
    assert_eq!(
        problem(&world.get(&world.url("renewal-info/AAAA.AAAA"))),
        ("malformed".into(), 404)
    );

    // An order may replace the certificate, once.
    let replace = json!({ "replaces": id });
    let response = account.try_order(&["a.example"], replace.clone());
    assert_eq!((response.status, json_of(&response)["replaces"].clone()), (201, json!(id)));
    assert_eq!(
        problem(&account.try_order(&["a.example"], replace.clone())),
        ("alreadyReplaced".into(), 409)
    );
    assert_eq!(problem(&account.try_order(&["b.example"], replace.clone())).0, "malformed");
    let stranger = world.account("ES256");
    assert_eq!(problem(&stranger.try_order(&["a.example"], replace)).0, "malformed");

    let revoke = json!({ "certificate": b64(&der), "reason": 4 }).to_string();
    assert_eq!(account.post(&world.url("revoke-cert"), &revoke).status, 200);
    let window = json_of(&info())["suggestedWindow"].clone();
    assert!(text(&window["end"]) < at(world.fixture.now.get()).as_str(), "at once");
    assert_eq!(problem(&account.post(&world.url("revoke-cert"), &revoke)).0, "alreadyRevoked");
    let kept = text(&order["certificate"]);
    assert!(!kept.is_empty());
}

#[test]
fn certificates_are_revoked_by_account_key_or_authorization() {
    let world = World::new();
    let account = world.account("ES256");
    let stranger = world.account("ES256");
    let url = world.url("revoke-cert");
    let made = || {
        let leaf = Signer::new("ML-DSA-65");
        let (_, chain) = account.certificate(&["a.example"], &leaf);
        let der = pem::read_certificates(chain.as_bytes()).unwrap().remove(0);
        (leaf, json!({ "certificate": b64(der) }).to_string())
    };
    let (leaf, payload) = made();
    assert_eq!(problem(&stranger.post(&url, &payload)), ("unauthorized".into(), 403));
    let other = Signer::new("ES256");
    assert_eq!(problem(&world.post(&other, None, &url, &payload)).0, "unauthorized");
    // RFC 8555, section 7.6: by the certificate's own key.
    assert_eq!(world.post(&leaf, None, &url, &payload).status, 200);
    assert_eq!(problem(&account.post(&url, &payload)).0, "alreadyRevoked");
    let event = world
        .fixture
        .events()
        .into_iter()
        .rfind(|event| {
            event["eventName"] == "AcmeRevokeCertificate" && event["errorCode"].is_null()
        })
        .unwrap();
    assert_eq!(event["requestParameters"]["signedBy"], "certificate key");
    let (_, payload) = made();
    let (_, order) = stranger.order(&["a.example"]);
    stranger.prove(&order, "dns-01");
    assert_eq!(stranger.post(&url, &payload).status, 200, "it holds the name, too");
    let (_, payload) = made();
    for reason in [6, 7, 8, 11, 1000] {
        let mut bad: serde_json::Value = serde_json::from_str(&payload).unwrap();
        bad["reason"] = reason.into();
        assert_eq!(problem(&account.post(&url, &bad.to_string())).0, "badRevocationReason");
    }
    assert_eq!(account.post(&url, &payload).status, 200);
    let unknown = json!({ "certificate": b64([0x30, 0]) }).to_string();
    assert_eq!(problem(&account.post(&url, &unknown)), ("unauthorized".into(), 404));
}

#[test]
fn keys_change_and_accounts_end() {
    let world = World::new();
    let mut account = world.account("ES256");
    let other = world.account("EdDSA");
    let url = world.url("key-change");
    let change = |new: &Signer, old: &Signer, account: &str, inner_url: &str| {
        let payload = json!({ "account": account, "oldKey": old.jwk }).to_string();
        new.jws(None, json!({ "url": inner_url }), &payload).to_string()
    };
    let new = Signer::new("ML-DSA-87");
    for (payload, kind) in [
        (change(&new, &new, &account.url, &url), "malformed"),
        (change(&new, &account.signer, &other.url, &url), "malformed"),
        (change(&new, &account.signer, &account.url, &world.url("new-order")), "malformed"),
        ("{}".to_owned(), "malformed"),
    ] {
        assert_eq!(problem(&account.post(&url, &payload)).0, kind, "{payload}");
    }
    let taken = account.post(&url, &change(&other.signer, &account.signer, &account.url, &url));
    assert_eq!((taken.status, header(&taken, "location")), (409, Some(other.url.as_str())));
    let changed = account.post(&url, &change(&new, &account.signer, &account.url, &url));
    assert_eq!(changed.status, 200);
    assert_eq!(
        problem(&account.post(&account.url, "")),
        ("unauthorized".into(), 403),
        "the old key"
    );
    account.signer = new;
    assert_eq!(account.read(&account.url)["status"], "valid");

    let contact = json!({ "contact": ["mailto:ops@example.com"] }).to_string();
    let response = account.post(&account.url, &contact);
    assert_eq!(json_of(&response)["contact"], json!(["mailto:ops@example.com"]));
    for (contact, kind) in [
        ("tel:+123", "unsupportedContact"),
        ("mailto:a@b?subject=x", "invalidContact"),
        ("mailto:a@b,c@d", "invalidContact"),
        ("mailto:nobody", "invalidContact"),
    ] {
        let body = json!({ "contact": [contact] }).to_string();
        assert_eq!(problem(&account.post(&account.url, &body)).0, kind, "{contact}");
    }
    let gone = account.post(&account.url, &json!({ "status": "deactivated" }).to_string());
    assert_eq!(json_of(&gone)["status"], "deactivated");
    assert_eq!(problem(&account.post(&account.url, "")), ("unauthorized".into(), 403));
    let again = world.post(&account.signer, None, &world.url("new-account"), "{}");
    assert_eq!(problem(&again), ("unauthorized".into(), 403));

    let named = json!({ "AcmeEndpointArn": world.endpoint, "AccountUrl": other.url });
    let found = world.acm("DescribeAcmeAccount", named.clone());
    assert_eq!(found["AcmeAccount"]["Status"], "VALID");
    assert_eq!(found["AcmeAccount"]["PublicKeyThumbprint"], other.signer.thumbprint());
    world.acm("RevokeAcmeAccount", named.clone());
    assert_eq!(problem(&other.post(&other.url, "")), ("unauthorized".into(), 403));
    let listed = world.acm("ListAcmeAccounts", json!({ "AcmeEndpointArn": world.endpoint }));
    let mut states: Vec<_> =
        listed["AcmeAccounts"].as_array().unwrap().iter().map(|one| text(&one["Status"])).collect();
    states.sort_unstable();
    assert_eq!(states, ["DEACTIVATED", "REVOKED"]);
}

#[test]
fn the_role_decides_what_an_account_may_do() {
    let mut world = World::new();
    world.role = acme_support::world::role(&world.fixture, "reader", &["acm:DescribeCertificate"]);
    let weak = world.account("ES256");
    let leaf = Signer::new("ES256");
    let (_, order) = weak.order(&["a.example"]);
    weak.prove(&order, "dns-01");
    let refused = weak.finalize(&order, &request(&leaf, &["a.example"], None));
    assert_eq!(problem(&refused), ("unauthorized".into(), 403));
    assert!(text(&json_of(&refused)["detail"]).contains("acm:RequestCertificate"));
    let event = world.fixture.events().pop().unwrap();
    assert_eq!(
        (&event["eventName"], &event["errorCode"]),
        (&json!("AcmeFinalizeOrder"), &json!("unauthorized"))
    );
    assert_eq!(event["userIdentity"]["sessionContext"]["sessionIssuer"]["userName"], "reader");
    // Only some names, as AWS's condition keys allow it.
    let policy = common::policy(json!([
        { "Effect": "Allow", "Action": "acm-pca:IssueCertificate", "Resource": world.authority },
        { "Effect": "Allow", "Action": "acm:RequestCertificate", "Resource": "*",
          "Condition": { "ForAllValues:StringLike": { "acm:DomainNames": "*.team.example" } } },
    ]));
    let trust = common::policy(json!([{ "Effect": "Allow", "Action": "sts:*",
        "Principal": { "Service": "acm-acme.amazonaws.com" } }]));
    world.role = world.fixture.role(common::ACCOUNT, "team", &trust, &[policy]);
    let team = world.account("ES256");
    team.certificate(&["a.team.example"], &leaf);
    let (_, order) = team.order(&["a.other.example"]);
    team.prove(&order, "dns-01");
    let refused = team.finalize(&order, &request(&leaf, &["a.other.example"], None));
    assert_eq!(problem(&refused).0, "unauthorized");
}

#[test]
fn bindings_can_be_used_until_they_are_revoked_or_expire() {
    let world = World::new();
    let url = world.url("new-account");
    let make = |kid: &str, mac: &[u8]| {
        let signer = Signer::new("ES256");
        let payload = json!({ "externalAccountBinding": binding(kid, mac, &signer, &url) });
        world.post(&signer, None, &url, &payload.to_string())
    };
    let (arn, made) = world.binding(json!({ "Expiration": { "Value": 2, "Type": "HOURS" } }));
    let expires = made["ExpiresAt"].as_f64().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "a date")]
    let expected = (common::NOW + 7200) as f64;
    assert!((expires - expected).abs() < 1.0);
    let (kid, mac) = world.credentials_of(&arn);
    assert!(mac.len() >= 32);
    // As at AWS, one binding serves several clients.
    assert_eq!((make(&kid, &mac).status, make(&kid, &mac).status), (201, 201));
    let describe = json!({ "AcmeExternalAccountBindingArn": arn });
    let found = world.acm("DescribeAcmeExternalAccountBinding", describe);
    assert!(found["ExternalAccountBinding"]["LastUsedAt"].is_number());
    world.fixture.advance(7200);
    assert_eq!(problem(&make(&kid, &mac)), ("unauthorized".into(), 403));

    let (arn, _) = world.binding(json!({}));
    let (kid, mac) = world.credentials_of(&arn);
    let kept = world.account("ES256");
    world.acm("RevokeAcmeExternalAccountBinding", json!({ "AcmeExternalAccountBindingArn": arn }));
    assert_eq!(problem(&make(&kid, &mac)), ("unauthorized".into(), 403));
    world.acm("DeleteAcmeExternalAccountBinding", json!({ "AcmeExternalAccountBindingArn": arn }));
    assert_eq!(problem(&make(&kid, &mac)), ("unauthorized".into(), 403));
    assert_eq!(kept.read(&kept.url)["status"], "valid", "accounts stay");
    let secrets = world.fixture.events().iter().any(|event| event.to_string().contains(&b64(&mac)));
    assert!(!secrets, "the key is in the audit trail");
}

#[test]
fn an_endpoint_that_is_deleted_takes_everything_along() {
    use outlast_store::Store;
    let world = World::new();
    let account = world.account("ES256");
    account.certificate(&["a.example"], &Signer::new("ES256"));
    world.acm("DeleteAcmeEndpoint", json!({ "AcmeEndpointArn": world.endpoint }));
    world.acm("DeleteAcmeEndpoint", json!({ "AcmeEndpointArn": world.endpoint }));
    let response = world.send(&Method::HEAD, &world.directory(), "", &[]);
    assert_eq!(response.status, 404);
    let error = world.try_acm("DescribeAcmeEndpoint", json!({ "AcmeEndpointArn": world.endpoint }));
    assert_eq!(common::code(error), "ResourceNotFoundException");
    world.fixture.advance(2 * 86_400);
    world.fixture.run_housekeeping();
    let left = world.fixture.store.scan("acme/", "", 100).unwrap();
    let left: Vec<_> = left.into_iter().map(|(key, _)| key).collect();
    assert_eq!(left, ["acme/nonce-key"]);
}

#[test]
fn orders_expire() {
    let world = World::new();
    let account = world.account("ES256");
    let (url, order) = account.order(&["a.example"]);
    world.fixture.advance(7 * 86_400);
    assert_eq!(account.read(&url)["status"], "invalid");
    assert_eq!(account.read(text(&order["authorizations"][0]))["status"], "expired");
    world.fixture.run_housekeeping();
    use outlast_store::Store;
    assert!(world.fixture.store.scan("acme/open-order/", "", 10).unwrap().is_empty());
}

#[test]
fn what_has_long_ended_is_forgotten() {
    use outlast_store::Store;
    let world = World::new();
    let account = world.account("ES256");
    account.certificate(&["a.example"], &Signer::new("ES256"));
    let kept =
        |kind: &str| world.fixture.store.scan(&format!("acme/{kind}/"), "", 10).unwrap().len();
    let all =
        || ["order", "authorization", "certificate", "certificate-digest", "account"].map(kept);
    world.fixture.advance(90 * 86_400);
    world.fixture.run_housekeeping();
    assert_eq!(all(), [1, 1, 1, 1, 1]);
    world.fixture.advance(8 * 86_400);
    world.fixture.run_housekeeping();
    assert_eq!(all(), [0, 0, 1, 1, 1]);
    // 13 months, and a year.
    world.fixture.advance(762 * 86_400);
    world.fixture.run_housekeeping();
    assert_eq!(all(), [0, 0, 0, 0, 1], "accounts stay");
}
