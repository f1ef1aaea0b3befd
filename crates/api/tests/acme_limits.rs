//! ACME under load and abuse: nobody takes another's share, and strangers leave nothing behind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::acme_support;
use crate::common;

use std::sync::Mutex;

use acme_support::world::{Account, World, challenge, json_of, problem};
use acme_support::{Signer, b64, binding};
use common::{HOST, text};
use http::Method;
use outlast_api::acme::jobs::Lane;
use outlast_api::acme::{self, header};
use outlast_domain::acme::{Job, Kind, Outcome, Queue};
use outlast_domain::settings::Settings;
use outlast_store::driver::MAX_ATTEMPTS;
use outlast_store::{Store, Transaction};
use serde_json::{Value, json};

/// Says for each authorization of an order that the client is ready, and returns the last answer.
fn respond(account: &Account<'_>, order: &Value) -> acme::Response {
    let mut last = None;
    for url in order["authorizations"].as_array().unwrap() {
        let found = account.read(text(url));
        last = Some(account.post(text(&challenge(&found, "dns-01")["url"]), "{}"));
    }
    last.unwrap()
}

fn jobs(world: &World, lane: &Mutex<Lane>) -> Vec<Job> {
    let now_ms = world.fixture.now.get() * 1000;
    world.fixture.service.acme_jobs(Queue::Challenges, now_ms, lane).unwrap()
}

fn count(world: &World, prefix: &str) -> usize {
    world.fixture.store.scan(prefix, "", 100_000).unwrap().len()
}

fn names(first: usize, count: usize) -> Vec<String> {
    (first..first + count).map(|number| format!("h{number}.example")).collect()
}

fn ordered(account: &Account<'_>, first: usize, count: usize) -> Value {
    let names = names(first, count);
    account.order(&names.iter().map(String::as_str).collect::<Vec<_>>()).1
}

#[test]
fn an_account_has_so_many_challenges_under_way() {
    let world = World::new();
    let account = world.account("ES256");
    for first in [0, 100] {
        assert_eq!(respond(&account, &ordered(&account, first, 100)).status, 200);
    }
    let one = ordered(&account, 200, 1);
    assert_eq!(problem(&respond(&account, &one)), ("rateLimited".into(), 429));
    let other = world.account("ES256");
    assert_eq!(respond(&other, &ordered(&other, 0, 1)).status, 200, "another account");
    assert_eq!(world.look(Queue::Challenges, |_| Outcome::Found), 201);
    assert_eq!(respond(&account, &one).status, 200);
}

#[test]
fn looks_are_shared_among_accounts_and_begun_in_turn() {
    let world = World::new();
    let accounts = [world.account("ES256"), world.account("ES256")];
    for account in &accounts {
        respond(account, &ordered(account, 0, 20));
    }
    let owner = |job: &Job| job.record_key.split('/').nth(3).unwrap().to_owned();
    // An eighth of 16 for each account.
    let lane = Mutex::new(Lane::new(16));
    let begun = jobs(&world, &lane);
    let mut owners: Vec<_> = begun.iter().map(owner).collect();
    owners.dedup();
    assert_eq!((begun.len(), owners.len()), (4, 2), "a quarter for the endpoint");
    assert!(jobs(&world, &lane).is_empty(), "nothing has ended");
    lane.lock().unwrap().ended(&begun[0].record_key);
    let next = jobs(&world, &lane);
    assert_eq!((next.len(), owner(&next[0])), (1, owner(&begun[0])));

    // A challenge that is tried again waits until all others had a turn.
    world.fixture.advance(61);
    let lane = Mutex::new(Lane::new(1));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let begun = jobs(&world, &lane);
        assert_eq!(begun.len(), 1);
        assert!(seen.insert(begun[0].record_key.clone()), "{} comes twice", begun[0].record_key);
        lane.lock().unwrap().ended(&begun[0].record_key);
        world.fixture.advance(61);
    }
}

#[test]
fn a_damaged_record_holds_no_other_look_up() {
    let world = World::new();
    let account = world.account("ES256");
    respond(&account, &ordered(&account, 0, 3));
    let first = world.fixture.store.scan("acme/authorization/", "", 1).unwrap().remove(0).0;
    let write = (first.clone(), Some(b"{}".to_vec()));
    let damage = Transaction { writes: vec![write], ..Transaction::default() };
    world.fixture.store.commit_and_wait(damage).unwrap();
    let begun = jobs(&world, &Mutex::new(Lane::new(64)));
    assert_eq!(begun.len(), 2, "{first} is damaged");
}

#[test]
fn nothing_is_looked_at_for_an_account_that_was_ended() {
    let world = World::new();
    let account = world.account("ES256");
    respond(&account, &ordered(&account, 0, 2));
    let named = json!({ "AcmeEndpointArn": world.endpoint, "AccountUrl": account.url });
    world.acm("RevokeAcmeAccount", named);
    assert!(jobs(&world, &Mutex::new(Lane::new(64))).is_empty());
    assert_eq!(count(&world, "acme/challenge-task/"), 0);
}

#[test]
fn who_has_no_account_writes_nothing() {
    let world = World::new();
    let account = world.account("ES256");
    let (_, chain) = account.certificate(&["a.example"], &Signer::new("ES256"));
    let der = outlast_pki::pem::read_certificates(chain.as_bytes()).unwrap().remove(0);
    let (signer, url) = (Signer::new("ES256"), world.url("new-account"));
    let wrong = binding(&world.credentials().0, &[7; 32], &signer, &url);
    let everything = || world.fixture.store.scan("", "", 100_000).unwrap();
    let (before, events) = (everything(), world.fixture.events().len());
    for (url, payload, kind) in [
        (&url, json!({}), "externalAccountRequired"),
        (&url, json!({ "onlyReturnExisting": true }), "accountDoesNotExist"),
        (&url, json!({ "externalAccountBinding": wrong }), "unauthorized"),
        (&url, json!([]), "malformed"),
        (&world.url("revoke-cert"), json!({ "certificate": b64(&der) }), "unauthorized"),
        (&world.url("revoke-cert"), json!({ "certificate": "AAAA" }), "unauthorized"),
    ] {
        let response = world.post(&signer, None, url, &payload.to_string());
        assert_eq!(problem(&response).0, kind, "{payload}");
        assert!(header(&response, "replay-nonce").is_some());
        assert_eq!(
            (everything() == before, world.fixture.events().len()),
            (true, events),
            "{kind}"
        );
    }
    // With an account, the refused request uses its nonce up.
    assert_eq!(problem(&account.post(&world.url("new-order"), "{}")).0, "malformed");
    assert_eq!(everything().len(), before.len() + 1);
}

#[test]
fn a_binding_makes_so_many_accounts() {
    let world = World::new();
    let (kid, mac) = world.credentials();
    let url = world.url("new-account");
    let make = || {
        let signer = Signer::new("ES256");
        let payload = json!({ "externalAccountBinding": binding(&kid, &mac, &signer, &url) });
        world.post(&signer, None, &url, &payload.to_string())
    };
    let first = make();
    assert_eq!(first.status, 201);
    let record_key = format!("acme/binding-accounts/{}/{kid}", world.endpoint_id());
    let set = |count: u64| world.fixture.put_record(&record_key, &count.into());
    let read = || {
        let record = world.fixture.store.read(&record_key).unwrap();
        record.map(|record| common::says(&record.value))
    };
    assert_eq!(read(), Some(1.into()));
    set(1000);
    assert_eq!(problem(&make()), ("rateLimited".into(), 429));
    world.account("ES256");
    let revoked = header(&first, "location").unwrap();
    let named = json!({ "AcmeEndpointArn": world.endpoint, "AccountUrl": revoked });
    world.acm("RevokeAcmeAccount", named.clone());
    world.acm("RevokeAcmeAccount", named);
    assert_eq!(read(), Some(999.into()), "it counts once");
    assert_eq!(make().status, 201);
    let arn = format!("{}/acme-external-account-binding/{kid}", world.endpoint);
    world.acm("DeleteAcmeExternalAccountBinding", json!({ "AcmeExternalAccountBindingArn": arn }));
    assert_eq!(read(), None);
}

#[test]
fn an_order_reads_validations_that_are_there_and_no_others() {
    let world = World::new();
    let account = world.account("ES256");
    let labels = vec!["a"; 100].join(".");
    let names: Vec<_> = (0..100).map(|number| format!("h{number}.{labels}.example")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let nonce = world.nonce();
    let identifiers: Vec<_> =
        names.iter().map(|name| json!({ "type": "dns", "value": name })).collect();
    let url = world.url("new-order");
    let payload = json!({ "identifiers": identifiers }).to_string();
    let jws =
        account.signer.jws(Some(&account.url), json!({ "nonce": nonce, "url": url }), &payload);
    let body = jws.to_string().into_bytes();
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", "application/jose+json".parse().unwrap());
    let step = world.fixture.service.acme(&outlast_api::service::Request {
        method: &Method::POST,
        path: url.strip_prefix(&format!("https://{HOST}")).unwrap(),
        query: "",
        host: HOST,
        headers: &headers,
        body: &body,
        source_ip: "127.0.0.1",
        tls: None,
        now_ms: world.fixture.now.get() * 1000,
        request_id: "00000000-0000-0000-0000-000000000000",
    });
    let acme::Step::Commit(prepared) = step else { panic!("it is refused") };
    assert_eq!(prepared.response.status, 201);
    let read = prepared.transaction.expectations.len();
    assert!(read < 20, "{read} records are verified");
}

#[test]
fn periods_are_what_the_ca_can_give() {
    let world = World::new();
    let account = world.account("ES256");
    let now = world.fixture.now.get();
    let time = |at: i64| {
        let at = time::OffsetDateTime::from_unix_timestamp(now + at).unwrap();
        at.format(&time::format_description::well_known::Rfc3339).unwrap()
    };
    let day = 86_400;
    for (period, status) in [
        (json!({ "notBefore": time(-3600), "notAfter": time(day) }), 201),
        (json!({ "notBefore": time(-3601) }), 400),
        (json!({ "notBefore": time(-30 * day), "notAfter": time(day) }), 400),
        (json!({ "notBefore": time(396 * day) }), 400),
        (json!({ "notAfter": time(395 * day) }), 201),
        (json!({ "notAfter": time(395 * day + 1) }), 400),
        (json!({ "notAfter": time(0) }), 400),
    ] {
        let response = account.try_order(&["a.example"], period.clone());
        assert_eq!(response.status, status, "{period}");
        if status == 400 {
            assert_eq!(problem(&response).0, "malformed", "{period}");
        }
    }
    // The CA ends in ten years; now in less than a year.
    world.fixture.advance(3650 * day - 300 * day);
    let end = |at: i64| {
        let end = time(3650 * day - 300 * day + at);
        account.try_order(&["a.example"], json!({ "notAfter": end })).status
    };
    assert_eq!((end(290 * day), end(310 * day)), (201, 400));
}

#[test]
fn only_the_url_that_the_operator_has_given_counts() {
    let world = World::new();
    let set = |url: &str, given: bool| {
        let service_url = url.to_owned();
        let settings = Settings { service_url, service_url_is_given: given, ..Settings::default() };
        world.fixture.service.set_settings(settings);
        text(&json_of(&world.get(&world.directory()))["newNonce"]).to_owned()
    };
    let seen = format!("https://{HOST}/");
    let account = world.account("ES256");
    assert!(set("https://0.0.0.0:8443", false).starts_with(&seen), "a guess comes second");
    assert_eq!(account.post(&account.url, "").status, 200);
    assert!(set("https://acme.example", true).starts_with("https://acme.example/"));
    assert_eq!(problem(&account.post(&account.url, "")), ("unauthorized".into(), 403));
    let there = |url: &str| url.replace(&seen, "https://acme.example/");
    let header = json!({ "nonce": world.nonce(), "url": there(&account.url) });
    let jws = account.signer.jws(Some(&there(&account.url)), header, "");
    assert_eq!(world.post_jws(&account.url, &jws).status, 200);
}

#[test]
fn directory_and_nonce_can_be_read_by_post() {
    let world = World::new();
    let account = world.account("ES256");
    let read = account.post(&world.directory(), "");
    assert_eq!((read.status, json_of(&read)), (200, json_of(&world.get(&world.directory()))));
    let nonce = account.post(&world.url("new-nonce"), "");
    assert_eq!((nonce.status, nonce.body.len()), (204, 0));
    assert!(header(&nonce, "replay-nonce").is_some());
    assert_eq!(problem(&account.post(&world.directory(), "{}")).0, "malformed");
    let bare = world.send(&Method::POST, &world.directory(), "", &[]);
    assert_eq!(bare.status, 415);
}

#[test]
fn contention_is_said_to_pass() {
    let response = acme::contended();
    assert_eq!(problem(&response), (Kind::SERVER_INTERNAL.name.to_owned(), 503));
    assert_eq!(header(&response, "retry-after"), Some("3"));
    // The same if the store reports a conflict at every attempt; with one conflict less the request succeeds.
    let world = World::new();
    let account = world.account("ES256");
    for (conflicts, status) in [(MAX_ATTEMPTS, 503), (MAX_ATTEMPTS - 1, 201)] {
        let order = json!({ "identifiers": [{ "type": "dns", "value": "a.example.com" }] });
        world.fixture.store.conflict_next(u64::from(conflicts));
        let response = account.post(&world.url("new-order"), &order.to_string());
        assert_eq!(response.status, status);
        let later = (status == 503).then_some("3");
        assert_eq!(header(&response, "retry-after").filter(|_| status == 503), later);
    }
    assert!(acme::is_slow("/acme/x/revoke-cert") && !acme::is_slow("/acme/x/new-order"));
    assert_eq!(acme::principal("/acme/x/order/a/b/finalize"), "acme/x");
    let response = acme::throttled();
    assert_eq!(problem(&response), (Kind::SERVER_INTERNAL.name.to_owned(), 503));
    assert_eq!(header(&response, "retry-after"), Some("3"));
}
