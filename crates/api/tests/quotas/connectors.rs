//! Connectors and their jobs.

use outlast_api::service::Room;
use outlast_domain::transfer::connector::Finish;
use serde_json::{Value, json};

use super::Thing;
use crate::common::{Fixture, Who};
use crate::transfer_support::{connector_role, key};

pub(super) fn connectors(fixture: &Fixture) -> Thing {
    let role = connector_role(fixture, "connectors");
    let body = json!({ "Url": "sftp://a.example", "AccessRole": role });
    let there = body.clone();
    Thing {
        refusal: "InvalidRequestException",
        make: Box::new(move |fixture, _| fixture.transfer("CreateConnector", body.clone())),
        neighbour: Box::new(move |fixture| {
            fixture.transfer_as(&Who::admin().at("us-west-2"), "CreateConnector", &there)
        }),
        remove: Some(Box::new(|fixture, made| {
            fixture.transfer("DeleteConnector", made.clone()).unwrap();
        })),
    }
}

fn transfer_of(connector: &str) -> Value {
    json!({ "ConnectorId": connector, "SendFilePaths": ["/files/a"] })
}

/// Ends the next job of each connector.
fn end_jobs(fixture: &Fixture, _: &Value) {
    let now_ms = fixture.now.get() * 1000;
    for job in fixture.service.connector_jobs(&|| now_ms, &Room::of(10)).unwrap() {
        let done = Ok(Finish::Done);
        assert!(fixture.service.connector_ended(&job, &done, now_ms).unwrap());
    }
}

pub(super) fn jobs_of_a_connector(fixture: &Fixture) -> Thing {
    let role = connector_role(fixture, "connectors");
    let [one, two] = [0, 1].map(|_| fixture.connector(&role, json!({})));
    Thing {
        refusal: "InvalidRequestException",
        make: Box::new(move |fixture, _| fixture.transfer("StartFileTransfer", transfer_of(&one))),
        neighbour: Box::new(move |fixture| {
            fixture.transfer("StartFileTransfer", transfer_of(&two))
        }),
        remove: Some(Box::new(end_jobs)),
    }
}

pub(super) fn connector_jobs(fixture: &Fixture) -> Thing {
    let role = connector_role(fixture, "connectors");
    let one = fixture.connector(&role, json!({}));
    Thing {
        refusal: "InvalidRequestException",
        make: Box::new(move |fixture, _| fixture.transfer("StartFileTransfer", transfer_of(&one))),
        // Another Region has its own.
        neighbour: Box::new(move |fixture| {
            let there = Who::admin().at("us-west-2");
            let body = json!({
                "Url": "sftp://a.example", "AccessRole": role,
                "SftpConfig": { "UserSecretId": "s", "TrustedHostKeys": [key(1)] },
            });
            let made = fixture.transfer_as(&there, "CreateConnector", &body)?;
            let id = made["ConnectorId"].as_str().unwrap_or_default();
            fixture.transfer_as(&there, "StartFileTransfer", &transfer_of(id))
        }),
        // They go with time.
        remove: None,
    }
}
