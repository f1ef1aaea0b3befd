//! Timestamps by the service: authorities, refusals, rates, and what the audit trail says of each token.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, Method};
use outlast_api::ops::acm_pca::revoke_certificate;
use outlast_api::ops::kms::{
    create_alias, create_key, disable_key, enable_key, get_public_key, put_key_policy, sign,
    tag_resource, untag_resource,
};
use outlast_api::service::tsa::Settings;
use outlast_api::service::{Request, Response};
use outlast_crypto::digests::{Digest, sha256};
use outlast_domain::certified_key;
use outlast_domain::limits::Rate;
use outlast_domain::tsa::{self, Authority};
use outlast_pki::cms::verify::SignedMessage;
use outlast_pki::timestamp::{
    Accuracy, Failure, Imprint, Nonce, REQUEST_MEDIA_TYPE, Request as Query, Response as Reply,
    Token, Trust, Verified,
};
use outlast_pki::{csr, name, pem};
use serde_json::{Value, json};

use crate::approvals_support::{rule, user_arn};
use crate::common::authorities::{Issue, get, input, issue, root};
use crate::common::{ACCOUNT, Fixture, HOST, REGION};

const FILE: &[u8] = b"the file to be stamped";
const POLICY: &str = "1.3.6.1.4.1.99999.1";
const OTHER_POLICY: &str = "1.3.6.1.4.1.99999.2";

/// A service with an authority for each kind of key.
struct World {
    fixture: Fixture,
    ca: String,
    roots: Vec<Vec<u8>>,
    /// ARNs of the keys and of their certificates: ML-DSA-65 first, then P-256.
    keys: Vec<(String, String)>,
}

impl World {
    fn new() -> Self {
        let fixture = Fixture::new();
        let ca = root(&fixture, ("ML_DSA_65", "ML_DSA_65"));
        let mut world = Self { fixture, ca, roots: Vec::new(), keys: Vec::new() };
        for (alias, spec, algorithm) in [
            ("tsa", "ML_DSA_65", "ML_DSA_SHAKE_256"),
            ("tsa-classical", "ECC_NIST_P256", "ECDSA_SHA_256"),
        ] {
            let key = world.key(alias, spec, algorithm, "TimeStampingCertificate");
            world.keys.push(key);
        }
        world.set(Settings::default());
        world
    }

    /// A key with its certificate, and its tag.
    fn key(
        &mut self,
        alias: &str,
        spec: &str,
        algorithm: &str,
        template: &str,
    ) -> (String, String) {
        let fixture = &self.fixture;
        let new = json!({ "KeySpec": spec, "KeyUsage": "SIGN_VERIFY" });
        let arn = fixture.call::<create_key::CreateKey>(&input(new)).unwrap().key_metadata.arn;
        let named = json!({ "AliasName": format!("alias/{alias}"), "TargetKeyId": arn });
        fixture.call::<create_alias::CreateAlias>(&input(named)).unwrap();
        let public = fixture
            .call::<get_public_key::GetPublicKey>(&input(json!({ "KeyId": arn })))
            .unwrap()
            .public_key
            .0;
        let subject = name::common_name(alias).unwrap();
        let unsigned = csr::Unsigned::new(subject, &public, Vec::new()).unwrap();
        let order = sign::Input {
            key_id: arn.clone(),
            message: outlast_api::wire::Blob(unsigned.to_be_signed.clone()),
            message_type: None,
            grant_tokens: None,
            signing_algorithm: algorithm.into(),
            dry_run: None,
        };
        let signature = fixture.call::<sign::Sign>(&order).unwrap().signature.0;
        let spec = outlast_crypto::keys::KeySpec::by_name(spec).unwrap();
        let row = spec.signing_algorithm(algorithm).unwrap();
        let request = pem::certificate_request(&unsigned.assemble(row, &signature).unwrap());
        let what = Issue {
            authority: &self.ca,
            request: request.as_bytes(),
            algorithm: "ML_DSA_65",
            template,
            validity: json!({ "Value": 365, "Type": "DAYS" }),
        };
        let certificate = issue(fixture, &what).unwrap();
        self.tag(&arn, &certificate);
        let (_, chain) = get(fixture, &self.ca, &certificate);
        self.roots = vec![chain.last().unwrap().der().to_vec()];
        (arn, certificate)
    }

    fn tag(&self, key: &str, certificate: &str) {
        let tags = json!([{ "TagKey": certified_key::CERTIFICATE_TAG, "TagValue": certificate }]);
        let input_ = input(json!({ "KeyId": key, "Tags": tags }));
        self.fixture.call::<tag_resource::TagResource>(&input_).unwrap();
    }

    fn set(&self, settings: Settings) {
        let alias = |name: &str| format!("arn:aws:kms:{REGION}:{ACCOUNT}:alias/{name}");
        let policies = || [POLICY, OTHER_POLICY].map(|text| text.parse().unwrap()).to_vec();
        let authority = |name, alias_| Authority::new(name, &alias(alias_), policies()).unwrap();
        let authorities = vec![authority("pq", "tsa"), authority("classical", "tsa-classical")];
        self.fixture.service.set_timestamping(Settings { authorities, ..settings }).unwrap();
    }

    fn send(&self, path: &str, body: &[u8]) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", REQUEST_MEDIA_TYPE.parse().unwrap());
        self.send_from([192, 0, 2, 1].into(), &Method::POST, path, headers, body)
    }

    fn send_from(
        &self,
        peer: IpAddr,
        method: &Method,
        path: &str,
        headers: HeaderMap,
        body: &[u8],
    ) -> Response {
        let request = Request {
            method,
            path,
            query: "",
            host: HOST,
            headers: &headers,
            body,
            source_ip: &peer.to_string(),
            tls: None,
            now_ms: self.fixture.now.get() * 1000 + 7,
            request_id: "00000000-0000-0000-0000-000000000000",
        };
        self.fixture.service.timestamp_call(&request, Some(peer))
    }

    fn ask(&self, path: &str, query: &Query) -> Reply {
        let response = self.send(path, &query.to_der().unwrap());
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        assert_eq!(response.content_type, "application/timestamp-reply");
        Reply::parse(&response.body).unwrap()
    }

    #[track_caller]
    fn failure(&self, path: &str, query: &Query) -> Failure {
        let before = self.events();
        let reply = self.ask(path, query);
        assert_eq!(self.events(), before, "a refusal leaves no event");
        reply.failure.unwrap_or_else(|| panic!("{reply:?}"))
    }

    fn verify(&self, query: &Query, reply: &Reply) -> Verified {
        let token =
            Token::parse(reply.token.as_ref().unwrap_or_else(|| panic!("{reply:?}"))).unwrap();
        token.answers(query).unwrap();
        let now = self.fixture.now.get();
        let trust = Trust { roots: &self.roots, now, ..Trust::default() };
        token.verify(&query.imprint, &trust).unwrap()
    }

    fn events(&self) -> usize {
        self.fixture.events().len()
    }

    fn last_event(&self) -> Value {
        self.fixture.events().pop().unwrap()
    }
}

fn query() -> Query {
    let sha512 = Digest::by_name("sha512").unwrap();
    Query::new(Imprint::of(sha512, FILE), Some(Nonce::new(&[7; 8]).unwrap()))
}

#[test]
fn each_token_is_in_the_trail_and_has_a_serial_number_of_its_own() {
    let world = World::new();
    world.set(Settings { accuracy: Some(Accuracy { micros: 500_000 }), ..Settings::default() });
    let mut serials = BTreeSet::new();
    for (path, name, algorithm, key) in [
        ("/tsa", "pq", "ML_DSA_SHAKE_256", 0),
        ("/tsa/", "pq", "ML_DSA_SHAKE_256", 0),
        ("/tsa/pq", "pq", "ML_DSA_SHAKE_256", 0),
        ("/tsa/classical", "classical", "ECDSA_SHA_256", 1),
    ] {
        let before = world.events();
        let reply = world.ask(path, &query());
        let found = world.verify(&query(), &reply);
        assert_eq!(found.policy.to_string(), POLICY);
        assert_eq!(found.time_ms, world.fixture.now.get() * 1000 + 7);
        assert_eq!(found.accuracy, Some(Accuracy { micros: 500_000 }));
        assert_eq!(found.chain.len(), 2);
        assert!(!found.ordering);
        assert_eq!(world.events(), before + 1);
        let event = world.last_event();
        assert_eq!(
            (&event["eventSource"], &event["eventName"]),
            (&"kms.amazonaws.com".into(), &"Sign".into())
        );
        assert_eq!(event["sourceIPAddress"], "192.0.2.1");
        assert_eq!(event["resources"][0]["ARN"], world.keys[key].0.as_str());
        assert_eq!(event["requestParameters"]["signingAlgorithm"], algorithm);
        assert!(
            event["userIdentity"]["arn"]
                .as_str()
                .unwrap()
                .contains("OutlastServiceRoleForTimestamping")
        );
        assert_eq!(event["userIdentity"]["invokedBy"], "timestamping.outlast");
        // The owner of the key finds this signature among all others.
        let message = SignedMessage::parse(&reply.token.unwrap()).unwrap();
        let digest = hex::encode(sha256(&message.claims()[0].value));
        assert_eq!(event["additionalEventData"]["signatureSha256"], digest.as_str());
        let asked = json!({ "KeyId": world.keys[key].0 });
        let listed = world.fixture.outlast("ListKeySignatures", &asked).unwrap();
        let last = listed["Signatures"].as_array().unwrap().last().unwrap();
        assert_eq!(last["SignatureSha256"], digest.as_str());
        let about = &event["additionalEventData"]["timestamp"];
        assert_eq!(about["authority"], name);
        assert_eq!(about["policy"], POLICY);
        assert_eq!(about["timeMs"], found.time_ms);
        assert_eq!(about["digest"], "sha512");
        assert_eq!(about["imprint"], hex::encode(query().imprint.value));
        let serial = about["serialNumber"].as_str().unwrap().trim_start_matches('0').to_owned();
        assert_eq!(serial, hex::encode(&found.serial).trim_start_matches('0'));
        assert!(serials.insert(serial));
    }
    let other = Query { policy: Some(OTHER_POLICY.parse().unwrap()), ..query() };
    assert_eq!(world.verify(&other, &world.ask("/tsa", &other)).policy.to_string(), OTHER_POLICY);
    let bare = Query { wants_certificates: false, nonce: None, ..query() };
    let reply = world.ask("/tsa", &bare);
    assert!(Token::parse(&reply.token.unwrap()).unwrap().certificates().is_empty());
}

#[test]
fn requests_are_refused_with_their_reason() {
    let world = World::new();
    let unknown = Query { policy: Some("1.2.3".parse().unwrap()), ..query() };
    assert_eq!(world.failure("/tsa", &unknown), Failure::UnacceptedPolicy);
    let before = world.events();
    // `openssl ts -query -sha1`.
    let sha1 = hex::decode(
        "30300201013021300906052b0e03021a050004146fbb28dc7c5414a3bb03c6368c4119bc0723722a02087c60817ddef5ca44",
    );
    let failure = |body: &[u8]| Reply::parse(&world.send("/tsa", body).body).unwrap().failure;
    assert_eq!(failure(&sha1.unwrap()), Some(Failure::BadAlg));
    assert_eq!(failure(b"garbage"), Some(Failure::BadDataFormat));
    assert_eq!(failure(b""), Some(Failure::BadDataFormat));
    assert_eq!(failure(&vec![0x30; 5000]), Some(Failure::BadRequest));
    let good = query().to_der().unwrap();
    assert_eq!(world.send("/tsa/none", &good).status, 404);
    assert_eq!(world.send("/tsa/pq/x", &good).status, 404);
    let (peer, none) = (IpAddr::from([192, 0, 2, 9]), HeaderMap::new());
    assert_eq!(world.send_from(peer, &Method::POST, "/tsa", none.clone(), &good).status, 415);
    assert_eq!(world.send_from(peer, &Method::GET, "/tsa", none, b"").status, 405);
    assert_eq!(world.events(), before);
    world.fixture.service.set_timestamping(Settings::default()).unwrap();
    assert_eq!(world.send("/tsa", &good).status, 404);
}

/// A timestamping authority asks nobody for approvals, so a key with a rule signs no tokens.
#[test]
fn a_key_with_approvals_signs_no_tokens() {
    let world = World::new();
    let (key, _) = &world.keys[0];
    world.verify(&query(), &world.ask("/tsa", &query()));
    let rule = rule(1, &[user_arn("admin")]);
    let put = json!({ "KeyId": key, "Rule": rule });
    world.fixture.outlast("PutSigningApprovalRule", &put).unwrap();
    assert_eq!(world.failure("/tsa", &query()), Failure::SystemFailure);
}

#[test]
fn a_key_signs_only_if_its_owner_and_its_certificate_allow_it() {
    let mut world = World::new();
    let (key, certificate) = world.keys[0].clone();
    let by_id = json!({ "KeyId": key });
    world.fixture.call::<disable_key::DisableKey>(&input(by_id.clone())).unwrap();
    assert_eq!(world.failure("/tsa", &query()), Failure::SystemFailure);
    world.fixture.call::<enable_key::EnableKey>(&input(by_id.clone())).unwrap();
    world.verify(&query(), &world.ask("/tsa", &query()));
    // Another key's certificate, and that of a code signer.
    world.tag(&key, &world.keys[1].1);
    assert_eq!(world.failure("/tsa", &query()), Failure::SystemFailure);
    let (other, _) = world.key("code", "ML_DSA_65", "ML_DSA_SHAKE_256", "CodeSigningCertificate");
    let alias = format!("arn:aws:kms:{REGION}:{ACCOUNT}:alias/code");
    let policies = vec![POLICY.parse().unwrap()];
    let authorities = vec![Authority::new("code", &alias, policies).unwrap()];
    let settings = Settings { authorities, ..Settings::default() };
    world.fixture.service.set_timestamping(settings).unwrap();
    assert_eq!(world.failure("/tsa", &query()), Failure::SystemFailure);
    let untag = json!({ "KeyId": other, "TagKeys": [certified_key::CERTIFICATE_TAG] });
    world.fixture.call::<untag_resource::UntagResource>(&input(untag)).unwrap();
    assert_eq!(world.failure("/tsa", &query()), Failure::SystemFailure);
    world.set(Settings::default());
    world.tag(&key, &certificate);
    world.verify(&query(), &world.ask("/tsa", &query()));
    // The key's policy objects.
    let put = |effect: &str| {
        let statement = |sid: &str, effect: &str, principal: Value, action: &str| json!({ "Sid": sid, "Effect": effect, "Principal": principal, "Action": action, "Resource": "*" });
        let root = json!({ "AWS": format!("arn:aws:iam::{ACCOUNT}:root") });
        let role = json!({ "AWS": format!("arn:aws:iam::{ACCOUNT}:role/{}", tsa::ROLE) });
        let statements =
            [statement("all", "Allow", root, "kms:*"), statement("tsa", effect, role, "kms:Sign")];
        let policy = json!({ "Version": "2012-10-17", "Statement": statements }).to_string();
        let put = json!({ "KeyId": key, "Policy": policy, "PolicyName": "default" });
        world.fixture.call::<put_key_policy::PutKeyPolicy>(&input(put)).unwrap();
    };
    put("Deny");
    assert_eq!(world.failure("/tsa", &query()), Failure::SystemFailure);
    put("Allow");
    world.verify(&query(), &world.ask("/tsa", &query()));
    // A revoked certificate, and an expired one.
    let serial = certificate.rsplit('/').next().unwrap();
    let pairs: Vec<_> =
        serial.as_bytes().chunks(2).map(|two| String::from_utf8_lossy(two)).collect();
    let revoke = json!({
        "CertificateAuthorityArn": world.ca, "CertificateSerial": pairs.join(":"),
        "RevocationReason": "SUPERSEDED",
    });
    world.fixture.call::<revoke_certificate::RevokeCertificate>(&input(revoke)).unwrap();
    assert_eq!(world.failure("/tsa", &query()), Failure::SystemFailure);
    world.verify(&query(), &world.ask("/tsa/classical", &query()));
    world.fixture.now.set(world.fixture.now.get() + 366 * 86_400);
    assert_eq!(world.failure("/tsa/classical", &query()), Failure::SystemFailure);
}

#[test]
fn no_token_leaves_without_its_event() {
    let world = World::new();
    world.verify(&query(), &world.ask("/tsa", &query()));
    world.fixture.store.fail_writes(true);
    assert_eq!(world.failure("/tsa", &query()), Failure::SystemFailure);
    world.fixture.store.fail_writes(false);
    world.fixture.store.conflict_next(3);
    let before = world.events();
    world.verify(&query(), &world.ask("/tsa", &query()));
    assert_eq!(world.events(), before + 1);
}

#[test]
fn strangers_have_a_rate() {
    let world = World::new();
    let rate = |at_once, per_second| Rate { at_once, per_second };
    world.set(Settings { rate: rate(8, 2), rate_of_peer: rate(5, 1), ..Settings::default() });
    let body = query().to_der().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("content-type", REQUEST_MEDIA_TYPE.parse().unwrap());
    let granted = |peer: u8| {
        let peer = IpAddr::from([192, 0, 2, peer]);
        let reply = |_: &i32| {
            let response = world.send_from(peer, &Method::POST, "/tsa", headers.clone(), &body);
            Reply::parse(&response.body).unwrap().token.is_some()
        };
        (0..10).filter(reply).count()
    };
    let before = world.events();
    assert_eq!((granted(1), granted(2), granted(3)), (5, 3, 0));
    assert_eq!(world.events(), before + 8, "what is refused writes nothing");
    world.fixture.now.set(world.fixture.now.get() + 1);
    assert_eq!((granted(1), granted(2)), (1, 1));
}

#[test]
fn callers_can_be_named() {
    let world = World::new();
    let callers = vec![format!("arn:aws:iam::{ACCOUNT}:user/admin")];
    world.set(Settings { callers, ..Settings::default() });
    let body = query().to_der().unwrap();
    let unsigned = world.send("/tsa", &body);
    assert_eq!(unsigned.status, 403, "{}", String::from_utf8_lossy(&unsigned.body));
    let signed = |service: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", REQUEST_MEDIA_TYPE.parse().unwrap());
        let request = world.fixture.signed(service, "/tsa", headers, &body);
        let peer = IpAddr::from([192, 0, 2, 1]);
        world.send_from(peer, &Method::POST, "/tsa", request.headers().clone(), &body)
    };
    assert_eq!(signed("kms").status, 403);
    let response = signed("outlast");
    assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
    world.verify(&query(), &Reply::parse(&response.body).unwrap());
    let by = &world.last_event()["additionalEventData"]["requestedBy"];
    assert_eq!(by, &format!("arn:aws:iam::{ACCOUNT}:user/admin"));
    world.set(Settings { callers: vec!["arn:aws:iam::1:user/x".into()], ..Settings::default() });
    assert_eq!(signed("outlast").status, 403);
}

#[test]
fn a_clock_that_is_not_synchronised_gives_no_time() {
    let world = World::new();
    let is_good = Arc::new(AtomicBool::new(true));
    let seen = is_good.clone();
    let clock: outlast_api::service::tsa::ClockCheck = Arc::new(move || {
        if seen.load(Ordering::Relaxed) { Ok(()) } else { Err("the file is missing".into()) }
    });
    world.set(Settings { clock: Some(clock), ..Settings::default() });
    world.verify(&query(), &world.ask("/tsa", &query()));
    is_good.store(false, Ordering::Relaxed);
    assert_eq!(world.failure("/tsa", &query()), Failure::TimeNotAvailable);
    is_good.store(true, Ordering::Relaxed);
    world.verify(&query(), &world.ask("/tsa", &query()));
}

#[test]
fn tokens_in_strict_order_have_times_that_ascend() {
    let world = World::new();
    let rate = Rate { at_once: 10_000, per_second: 1 };
    world.set(Settings { ordering: true, rate, rate_of_peer: rate, ..Settings::default() });
    let mut last = 0;
    for _ in 0..20 {
        let found = world.verify(&query(), &world.ask("/tsa/classical", &query()));
        assert!(found.ordering && found.time_ms > last);
        last = found.time_ms;
    }
    // A clock that is set back by more than a second is not followed, and not believed.
    world.fixture.now.set(world.fixture.now.get() - 2);
    assert_eq!(world.failure("/tsa/classical", &query()), Failure::TimeNotAvailable);
}

#[test]
fn the_order_of_tokens_outlives_a_restart_and_is_that_of_the_key() {
    let world = World::new();
    let rate = Rate { at_once: 10_000, per_second: 1 };
    let alias = |name: &str| format!("arn:aws:kms:{REGION}:{ACCOUNT}:alias/{name}");
    // What a restart leaves: nothing that was in memory. Two names are of one key, and one of another key.
    let restart = || {
        let authority =
            |name, key: &str| Authority::new(name, key, vec![POLICY.parse().unwrap()]).unwrap();
        let authorities = vec![
            authority("one", &alias("tsa-classical")),
            authority("two", &world.keys[1].0),
            authority("pq", &alias("tsa")),
        ];
        let settings = Settings {
            authorities,
            ordering: true,
            rate,
            rate_of_peer: rate,
            ..Settings::default()
        };
        world.fixture.service.set_timestamping(settings).unwrap();
    };
    restart();
    let mut last = 0;
    let ascends = |last: &mut i64, path: &str| {
        let found = world.verify(&query(), &world.ask(path, &query()));
        assert!(found.ordering && found.time_ms > *last, "{} after {last}", found.time_ms);
        *last = found.time_ms;
    };
    for _ in 0..5 {
        ascends(&mut last, "/tsa/one");
        ascends(&mut last, "/tsa/two");
    }
    restart();
    // Within the same moment nobody knows better, and the other key has no order yet.
    for path in ["/tsa/one", "/tsa/two"] {
        assert_eq!(world.failure(path, &query()), Failure::TimeNotAvailable, "{path}");
    }
    ascends(&mut 0, "/tsa/pq");
    let now = world.fixture.now.get();
    world.fixture.now.set(now + 2);
    ascends(&mut last, "/tsa/two");
    ascends(&mut last, "/tsa/one");
    // The clock is set back while the server does not run.
    world.fixture.now.set(now);
    restart();
    assert_eq!(world.failure("/tsa/one", &query()), Failure::TimeNotAvailable);
    world.fixture.now.set(now + 4);
    ascends(&mut last, "/tsa/one");
}
