//! Workflows.

use super::Thing;
use crate::common::{Fixture, Who};

pub(super) fn workflows(_: &Fixture) -> Thing {
    let new = crate::transfer_support::a_workflow;
    Thing {
        refusal: "InvalidRequestException",
        make: Box::new(move |fixture, _| fixture.transfer("CreateWorkflow", new())),
        neighbour: Box::new(move |fixture| {
            let there = Who::admin().at("us-west-2");
            fixture.transfer_as(&there, "CreateWorkflow", &new())?;
            fixture.transfer_as(&Who::stranger(), "CreateWorkflow", &new())
        }),
        remove: Some(Box::new(|fixture, made| {
            fixture.transfer("DeleteWorkflow", made.clone()).unwrap();
        })),
    }
}
