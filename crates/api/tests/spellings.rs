//! The sweep of spellings: every operation, every member that names something, every odd spelling of the name. No
//! spelling gets past a policy that denies the call.
//!
//! Calls are prepared and not committed, so that each sees the same store; the test reads what a call would write.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;
use crate::spellings_support;

use std::collections::{BTreeMap, BTreeSet};

use common::{ACCOUNT, HOST, Who, policy, with};
use http::{HeaderMap, Method};
use outlast_api::ops::SERVICES;
use outlast_api::service::{Request, Route, Step};
use outlast_api::wire::sigv4::{Credentials, Target, sign, sign_rest};
use outlast_api::wire::{Protocol, rest};
use outlast_crypto::Secret;
use outlast_domain::arn::Arn;
use outlast_store::Transaction;
use serde_json::{Value, json};
use spellings_support::Scene;
use spellings_support::spell::spellings;
use spellings_support::table::{Case, EXEMPT, cases, is_identifier};

/// What a call would write and answer.
struct Outcome {
    status: u16,
    code: String,
    transaction: Transaction,
    body: Vec<u8>,
}

impl Outcome {
    fn is_denied(&self) -> bool {
        self.code.starts_with("AccessDenied")
    }

    /// Whether a text occurs in what would be written or answered.
    fn mentions(&self, text: &str) -> bool {
        let quoted = json!(text).to_string();
        let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&quoted);
        let writes = self.transaction.writes.iter().filter_map(|(_, value)| value.as_deref());
        writes.chain([&self.body[..]]).any(has)
    }
}

fn prepared(scene: &Scene, who: &Who, case: &Case, body: &Value) -> Outcome {
    let service = case.service;
    if service.model.protocols.contains(&Protocol::RestJson1) {
        return prepared_rest(scene, who, case, body);
    }
    let mut headers = HeaderMap::new();
    let body = if service.model.protocols.contains(&Protocol::Query) {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Version", "2011-06-15").append_pair("Action", case.operation);
        for (name, value) in body.as_object().unwrap() {
            form.append_pair(name, value.as_str().unwrap());
        }
        let kind = "application/x-www-form-urlencoded; charset=utf-8";
        headers.insert("content-type", kind.parse().unwrap());
        form.finish()
    } else {
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        let target = format!("{}.{}", service.model.target_prefix, case.operation);
        headers.insert("x-amz-target", target.parse().unwrap());
        body.to_string()
    };
    let fixture = &scene.world.fixture;
    let body = body.as_bytes();
    let target = Target {
        path: "/",
        host: HOST,
        body,
        region: &who.region,
        service: service.model.signing_name,
    };
    let credentials = Credentials {
        access_key_id: who.id.clone(),
        secret: Secret::new(who.secret.clone()),
        token: None,
    };
    sign(&mut headers, &target, &credentials, fixture.now.get()).unwrap();
    headers.insert("host", HOST.parse().unwrap());
    let request = Request {
        method: &Method::POST,
        path: "/",
        query: "",
        host: HOST,
        headers: &headers,
        body,
        source_ip: "127.0.0.1",
        tls: None,
        now_ms: fixture.now.get() * 1000,
        request_id: "00000000-0000-0000-0000-000000000000",
    };
    let route = Route::find(&Method::POST, "/", &headers).ok().unwrap();
    let route = route.resolve(body).ok().unwrap();
    outcome(fixture.service.prepare(route, &request), case)
}

/// The same in REST JSON, where names are in the path.
fn prepared_rest(scene: &Scene, who: &Who, case: &Case, body: &Value) -> Outcome {
    let row = case.service.operations.iter().find(|row| row.name == case.operation).unwrap();
    let members = body.as_object().unwrap().clone();
    let Ok(written) = rest::write(&row.http, row.input, members) else {
        // Without a label the path would be another one.
        let (code, body) = ("ValidationException".to_owned(), Vec::new());
        return Outcome { status: 400, code, transaction: Transaction::default(), body };
    };
    let fixture = &scene.world.fixture;
    let body = Value::Object(written.body).to_string();
    let (path, query, body) = (written.path.as_str(), written.query.as_str(), body.as_bytes());
    let service = case.service.model.signing_name;
    let target = Target { path, host: HOST, body, region: &who.region, service };
    let credentials = Credentials {
        access_key_id: who.id.clone(),
        secret: Secret::new(who.secret.clone()),
        token: None,
    };
    let mut headers = HeaderMap::new();
    let now = fixture.now.get();
    sign_rest(&mut headers, row.http.method, query, &target, &credentials, now).unwrap();
    headers.insert("host", HOST.parse().unwrap());
    let method: Method = row.http.method.parse().unwrap();
    let request = Request {
        method: &method,
        path,
        query,
        host: HOST,
        headers: &headers,
        body,
        source_ip: "127.0.0.1",
        tls: None,
        now_ms: now * 1000,
        request_id: "00000000-0000-0000-0000-000000000000",
    };
    let route = Route::find(&method, path, &headers).ok().unwrap();
    let mut outcome = outcome(fixture.service.prepare(route, &request), case);
    if outcome.status == row.http.status {
        outcome.status = 200;
    }
    outcome
}

fn outcome(step: Step, case: &Case) -> Outcome {
    match step {
        Step::Commit(prepared) => Outcome {
            status: prepared.response.status,
            code: prepared.response.error.unwrap_or_default().to_owned(),
            body: prepared.response.body.clone(),
            transaction: prepared.transaction,
        },
        Step::Respond(response) => {
            panic!("{}: {}", case.operation, String::from_utf8_lossy(&response.body))
        }
        Step::Again => panic!("{}: a conflict", case.operation),
        Step::Ask(_) => panic!("{}: it asks outside", case.operation),
        Step::TakesLong(_) => panic!("{}: nobody is in haste", case.operation),
    }
}

fn body(case: &Case, name: &str) -> Value {
    let mut body = case.body.clone();
    *body.pointer_mut(case.member).unwrap() = json!(name);
    body
}

/// No event names a resource in a caller's own spelling.
fn check_events(case: &Case, outcome: &Outcome, spelling: &str) {
    for event in &outcome.transaction.events {
        let event: Value = serde_json::from_slice(event.body()).unwrap();
        for resource in event["resources"].as_array().unwrap() {
            let arn = resource["ARN"].as_str().unwrap();
            assert!(arn != spelling, "{} records {arn}", case.operation);
            assert_eq!(Arn::parse(arn).unwrap().to_string(), arn, "{}", case.operation);
        }
    }
}

#[derive(Default)]
struct Counts {
    operations: BTreeSet<(&'static str, &'static str)>,
    members: BTreeSet<(&'static str, &'static str, &'static str)>,
    spellings: BTreeSet<String>,
    cases: usize,
    others: usize,
    codes: BTreeMap<String, usize>,
    carried_out: Vec<String>,
}

impl Counts {
    fn of(&mut self, case: &Case) {
        self.operations.insert((case.service.model.signing_name, case.operation));
        self.members.insert((case.service.model.signing_name, case.operation, case.member));
    }

    /// Checks a call that must be refused.
    fn check(&mut self, case: &Case, outcome: &Outcome, spelling: &str, right: &str) {
        self.cases += 1;
        self.spellings.insert(spelling.to_owned());
        assert!(outcome.status < 500, "{} {spelling:?}", case.operation);
        let writes = !outcome.transaction.writes.is_empty();
        if outcome.status == 200 && case.names_others && !outcome.mentions(right) {
            self.others += 1;
        } else if outcome.status == 200 || writes {
            self.carried_out.push(format!("{} {} {spelling:?}", case.operation, case.member));
        } else {
            *self.codes.entry(outcome.code.clone()).or_default() += 1;
        }
    }

    fn print(&self, what: &str) {
        println!(
            "{what}: {} operations, {} members, {} spellings, {} cases, {} of them of other things, carried out: {}",
            self.operations.len(),
            self.members.len(),
            self.spellings.len(),
            self.cases,
            self.others,
            self.carried_out.len()
        );
        println!("answers: {:?}", self.codes);
    }
}

/// A user who may do everything except this.
fn denied(scene: &Scene, number: usize, statement: &Value) -> Who {
    let statement = with(statement, json!({ "Effect": "Deny" }));
    let all = json!({ "Effect": "Allow", "Action": "*", "Resource": "*" });
    scene.world.fixture.user(ACCOUNT, &format!("eve{number}"), &[policy(json!([all, statement]))])
}

/// The right names for which the request is carried out, unless it is denied.
fn taken<'a>(scene: &Scene, case: &'a Case) -> Vec<&'a str> {
    let names = case.names.iter().map(|(name, _)| name.as_str());
    let mut all: Vec<_> =
        names.map(|name| (name, prepared(scene, &scene.eve, case, &body(case, name)))).collect();
    for (name, outcome) in &all {
        check_events(case, outcome, if name.starts_with("arn:aws-cn:") { name } else { "" });
    }
    let (name, first) = &all[0];
    let text = String::from_utf8_lossy(&first.body);
    let good =
        if case.fails { first.status != 200 && !first.is_denied() } else { first.status == 200 };
    assert!(good, "{} {} {name}: {text}", case.operation, case.member);
    all.retain(|(_, outcome)| case.fails || outcome.status == 200);
    all.into_iter().map(|(name, _)| name).collect()
}

/// All spellings of all names, for each principal that the case denies.
fn sweep(scene: &Scene, what: &str, cases: &[Case], who: impl Fn(usize, &Case) -> Who) {
    let mut counts = Counts::default();
    for (number, case) in cases.iter().enumerate() {
        let taken = taken(scene, case);
        let who = &who(number, case);
        counts.of(case);
        for (name, form) in &case.names {
            let outcome = prepared(scene, who, case, &body(case, name));
            counts.check(case, &outcome, name, name);
            if taken.contains(&name.as_str()) {
                let text = String::from_utf8_lossy(&outcome.body);
                assert!(outcome.is_denied(), "{} {} {name}: {text}", case.operation, case.member);
            }
            for spelling in spellings(name, *form) {
                // A spelling may be another of the right names.
                if case.names.iter().any(|(known, _)| *known == spelling) {
                    continue;
                }
                let outcome = prepared(scene, who, case, &body(case, &spelling));
                check_events(case, &outcome, &spelling);
                counts.check(case, &outcome, &spelling, &case.names[0].0);
            }
        }
    }
    counts.print(what);
    assert!(counts.carried_out.is_empty(), "{what}: {:#?}", counts.carried_out);
}

#[test]
fn a_deny_of_the_caller_holds_for_every_spelling() {
    let scene = Scene::new();
    sweep(&scene, "identity policies", &cases(&scene), |number, case| {
        denied(&scene, number, &case.deny)
    });
}

#[test]
fn a_deny_of_the_resource_holds_for_every_spelling() {
    let scene = Scene::new();
    let mut cases = cases(&scene);
    cases.retain(|case| case.has_policy);
    sweep(&scene, "resource policies", &cases, |_, _| scene.mallory.clone());
}

#[test]
fn every_member_that_names_something_is_swept() {
    let cases = cases(&Scene::new());
    let mut missing = Vec::new();
    for service in SERVICES {
        for row in service.operations {
            for member in row.input.names().iter().filter(|member| is_identifier(member)) {
                let swept = cases.iter().any(|case| {
                    case.service.model.signing_name == service.model.signing_name
                        && case.operation == row.name
                        && case.member.split('/').nth(1) == Some(member)
                });
                let exempt = EXEMPT
                    .iter()
                    .any(|(of, name, _)| name == member && (*of == "*" || *of == row.name));
                if !swept && !exempt {
                    missing.push(format!("{} {}.{member}", service.model.signing_name, row.name));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    for case in &cases {
        let row = case.service.operations.iter().find(|row| row.name == case.operation);
        let members = row.expect(case.operation).input.names();
        assert!(members.contains(&case.member.split('/').nth(1).unwrap()), "{}", case.member);
    }
}
