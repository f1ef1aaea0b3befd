//! Deliveries of events to programs outside, and the JSON that they get: EventBridge's.
//!
//! Source: "AWS service event metadata" in the EventBridge reference. Whether and how a target is reached is up to the caller.

use outlast_domain::Fault;
use outlast_domain::arn::Scope;
use outlast_domain::events::outbox::{self, Delivery};
use outlast_domain::events::{Detail, Event, Fact, Kind, Told};
use outlast_domain::work::Done;
use outlast_pki::time::rfc3339;
use outlast_store::StoreError;
use serde_json::{Map, Value, json};

use super::Service;
use crate::audit::service_event_with;
use crate::ops::ACM;
use crate::table::ServiceRow;

/// The service of transactions that have no audit event: any.
static ROW: &ServiceRow = &ACM;

/// Deliveries that were taken on.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// To make now.
    pub now: Vec<Delivery>,
    /// Events that were given up because they are older than a day.
    pub given_up: Vec<Event>,
    /// Where the next search for newer events begins.
    pub last: Option<String>,
}

impl Service {
    /// Takes on up to `room` deliveries to a target that are due, after a record key. When `lease_ms` is over, any server may
    /// make them again.
    ///
    /// # Errors
    /// The store cannot be read. An event that is damaged does not hold up the others.
    pub fn event_deliveries(
        &self,
        target: &str,
        after: &str,
        room: usize,
        lease_ms: i64,
        now_ms: i64,
    ) -> Result<Deliveries, Fault> {
        let found = outbox::due(&self.work(now_ms), target, after, room)?;
        for record_key in &found.damaged {
            tracing::warn!(record_key, "an event cannot be read");
        }
        if found.due.is_empty() {
            return Ok(Deliveries::default());
        }
        // With a wrong clock nothing is too old.
        let may_give_up = self.may_sweep(now_ms).unwrap_or(false);
        let claimed = self
            .do_once(ROW, now_ms, |work, _| outbox::claim(work, &found.due, lease_ms, may_give_up));
        match claimed {
            Ok(did) => Ok(Deliveries {
                now: did.value.deliveries,
                given_up: did.value.given_up,
                last: found.last,
            }),
            // Another server was quicker.
            Err(Fault::Store(StoreError::Conflict)) => Ok(Deliveries::default()),
            Err(fault) => Err(fault),
        }
    }

    /// Records whether deliveries have succeeded.
    ///
    /// # Errors
    /// The store cannot be written: then they are made again.
    pub fn event_outcomes(&self, outcomes: &[(Delivery, bool)], now_ms: i64) -> Result<(), Fault> {
        self.do_at_last(ROW, now_ms, |work, _| {
            let mut each = outcomes.iter();
            each.try_for_each(|(delivery, is_delivered)| {
                outbox::complete(work, delivery, *is_delivered)
            })
        })?;
        Ok(())
    }

    /// Gives up the oldest events of a target beyond the limit; returns how many.
    pub fn trim_events(&self, target: &str, now_ms: i64) -> Result<usize, Fault> {
        let mut given_up = 0;
        loop {
            let step = self.do_at_last(ROW, now_ms, |work, _| outbox::trim(work, target))?.value;
            given_up += step;
            if step == 0 {
                return Ok(given_up);
            }
        }
    }

    /// Number of events that wait for a target.
    pub fn waiting_events(&self, target: &str, now_ms: i64) -> Result<u64, Fault> {
        outbox::count(&self.work(now_ms), target)
    }
}

/// The JSON of an event.
pub fn event_json(event: &Event) -> Value {
    let (detail, resources) = match event.kind.detail {
        Detail::Facts(members) => (facts(event, members), event.resources.as_slice()),
        // The record has them.
        Detail::Trail(name) => (trail(event, name), Default::default()),
    };
    json!({
        "version": "0",
        "id": event.id,
        "detail-type": event.kind.detail_type,
        "source": event.kind.source,
        "account": event.account,
        "time": time(event.at_ms),
        "region": event.region,
        "resources": resources,
        "detail": detail,
    })
}

fn facts(event: &Event, members: &[(&'static str, Fact)]) -> Value {
    let member = |(name, fact): &(&'static str, Fact)| {
        Some(((*name).to_owned(), told(event.facts.get(fact)?)))
    };
    Value::Object(members.iter().filter_map(member).collect())
}

/// The JSON of a fact.
pub(super) fn told(fact: &Told) -> Value {
    match fact {
        Told::Flag(value) => json!(value),
        Told::Number(value) => json!(value),
        Told::Text(value) => json!(value),
        Told::Time(ms) => json!(time(*ms)),
        Told::Object { bucket, key } => json!({ "domain": "S3", "bucket": bucket, "key": key }),
    }
}

/// The CloudTrail record of a service's own action ("AWS service events delivered via AWS CloudTrail").
fn trail(event: &Event, name: &'static str) -> Value {
    let text = |fact| match event.facts.get(&fact) {
        Some(Told::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let service = event.kind.source.trim_start_matches("aws.");
    let done = Done {
        scope: Scope { account: event.account.clone(), region: event.region.clone() },
        arn: event.resources.first().cloned().unwrap_or_default(),
        event: name,
    };
    let additional = text(Fact::Secret).map(|arn| json!({ "SecretId": arn }));
    let source = format!("{service}.amazonaws.com");
    let record = service_event_with(event.at_ms, &event.id, &source, &done, additional);
    let mut record = serde_json::from_slice::<Map<String, Value>>(&record).unwrap_or_default();
    // As Secrets Manager's records are.
    record.remove("resources");
    for member in ["sourceIPAddress", "userAgent"] {
        record.insert(member.to_owned(), source.as_str().into());
    }
    let identity = json!({ "accountId": event.account, "invokedBy": source });
    record.insert("userIdentity".to_owned(), identity);
    if let Some(error) = text(Fact::Error) {
        record.insert("errorMessage".to_owned(), error.into());
    }
    Value::Object(record)
}

/// An event of a kind that nothing has caused, to try a target with: of account 000000000000, about resources that do not exist.
///
/// # Errors
/// There are no random numbers for its id.
pub fn sample_event(kind: &'static Kind, now_ms: i64) -> Result<Event, Fault> {
    let scope = Scope { account: "000000000000".to_owned(), region: "us-east-1".to_owned() };
    let id = "00000000-0000-0000-0000-000000000000";
    let service = kind.source.trim_start_matches("aws.");
    let resource = match service {
        "acm" => format!("certificate/{id}"),
        "kms" => format!("key/{id}"),
        "acm-pca" => format!("certificate-authority/{id}"),
        "secretsmanager" => "secret:a-test-000000".to_owned(),
        "transfer" if kind.detail_type.starts_with("SFTP Connector") => {
            "connector/c-00000000000000000".to_owned()
        }
        "transfer" => "server/s-00000000000000000".to_owned(),
        _ => format!("trust-anchor/{id}"),
    };
    let arn = scope.arn(service, &resource);
    let object = || Told::Object { bucket: "bucket".to_owned(), key: "file".to_owned() };
    let facts = [
        (Fact::Action, Told::from("ISSUANCE")),
        (Fact::Begun, Told::Time(now_ms)),
        (Fact::Bytes, 0.into()),
        (Fact::ClientIp, "192.0.2.1".into()),
        (Fact::Connector, "c-00000000000000000".into()),
        (Fact::DeleteId, id.into()),
        (Fact::Directory, "/bucket/directory".into()),
        (Fact::Ended, Told::Time(now_ms)),
        (Fact::FailureCode, "UNKNOWN_ERROR".into()),
        (Fact::FailureMessage, "This is a test".into()),
        (Fact::File, "/bucket/file".into()),
        (Fact::FileTransfer, id.into()),
        (Fact::IsTruncated, false.into()),
        (Fact::Items, 0.into()),
        (Fact::Listing, id.into()),
        (Fact::LocalDirectory, "/bucket/directory".into()),
        (Fact::LocalFile, object()),
        (Fact::MaxItems, 1000.into()),
        (Fact::MoveId, id.into()),
        (Fact::Operation, "SEND".into()),
        (Fact::OutputDirectory, "/bucket/directory".into()),
        (Fact::OutputFile, object()),
        (Fact::RemoteDirectory, "/directory".into()),
        (Fact::Transfer, id.into()),
        (Fact::Url, "sftp://sftp.example.com".into()),
        (Fact::NewFile, "/bucket/new".into()),
        (Fact::OldFile, "/bucket/old".into()),
        (Fact::Protocol, "SFTP".into()),
        (Fact::Server, "s-00000000000000000".into()),
        (Fact::Session, "0".into()),
        (Fact::Status, "COMPLETED".into()),
        (Fact::User, "test".into()),
        (Fact::CertificateType, "PRIVATE".into()),
        (Fact::CommonName, "test.example.com".into()),
        (Fact::Created, Told::Time(now_ms)),
        (Fact::DaysLeft, 30.into()),
        (Fact::Ends, Told::Time(now_ms + 30 * 86_400_000)),
        (Fact::Error, "This is a test".into()),
        (Fact::Exportable, false.into()),
        (Fact::Exported, false.into()),
        (Fact::InUse, false.into()),
        (Fact::Issuer, "CN=test.example.com".into()),
        (Fact::KeyId, id.into()),
        (Fact::Reason, "OTHER".into()),
        (Fact::Result, "success".into()),
        (Fact::Secret, arn.as_str().into()),
        (Fact::SerialNumber, "00".into()),
        (Fact::ValidationMethod, "DNS".into()),
    ];
    Event::new(now_ms, kind, &scope, vec![arn], facts)
}

fn time(ms: i64) -> String {
    rfc3339(ms.div_euclid(1000))
}
