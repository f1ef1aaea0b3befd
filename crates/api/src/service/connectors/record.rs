//! Audit events of connectors: what came of files and jobs, with the members of Transfer Family's structured log.
//!
//! Source: Transfer Family User Guide, "Amazon CloudWatch log structure for Transfer Family", entries of connectors. They are
//! data events of the service, since nobody's call is under way.

use outlast_domain::events::Detail;
use outlast_domain::transfer::CONNECTOR;
use outlast_pki::time::rfc3339;
use serde_json::{Map, json};

use super::super::events::told;
use super::Report;
use crate::ops::TRANSFER;

/// The event of a report.
pub(super) fn event(report: &Report, event_id: &str, now_ms: i64) -> Vec<u8> {
    let source = TRANSFER.model.event_source;
    let account = &report.scope.account;
    let mut more = Map::new();
    if let Detail::Facts(members) = report.kind.detail {
        for (name, fact) in members {
            if let Some((_, value)) = report.facts.iter().find(|(known, _)| known == fact) {
                more.insert((*name).to_owned(), told(value));
            }
        }
    }
    for (name, path) in &report.paths {
        more.insert((*name).to_owned(), path.as_str().into());
    }
    more.insert("access-role".to_owned(), report.access_role.as_str().into());
    json!({
        "eventVersion": "1.11",
        "userIdentity": { "type": "AWSService", "accountId": account, "invokedBy": source },
        "eventTime": rfc3339(now_ms.div_euclid(1000)),
        "eventSource": source,
        "eventName": report.activity,
        "awsRegion": report.scope.region,
        "sourceIPAddress": source,
        "userAgent": source,
        "requestParameters": null,
        "responseElements": null,
        "eventID": event_id,
        "readOnly": report.read_only,
        "resources": [
            { "accountId": account, "type": CONNECTOR.cloudtrail, "ARN": report.connector_arn },
        ],
        "eventType": "AwsServiceEvent",
        "managementEvent": false,
        "recipientAccountId": account,
        "eventCategory": "Data",
        "additionalEventData": more,
    })
    .to_string()
    .into_bytes()
}
