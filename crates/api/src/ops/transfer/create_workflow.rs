//! `CreateWorkflow`: creates a workflow, which servers can name.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_CreateWorkflow.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{NewWorkflow, WORKFLOW, create_workflow};

pub use crate::aws::transfer::{
    CreateWorkflow, CreateWorkflowRequest as Input, CreateWorkflowResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::{may_tag, new_tags};
use crate::model::workflows::read_steps;
use crate::wire::ApiError;

impl Run for CreateWorkflow {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let tags = new_tags(call, input.tags)?;
        let resource = WORKFLOW.arn(&call.scope, "*");
        let allowed = call.authorize(action::transfer::CreateWorkflow, &resource)?;
        may_tag(call, &tags, &resource)?;
        let new = NewWorkflow {
            description: input.description,
            steps: read_steps(call, input.steps)?,
            on_exception: read_steps(call, input.on_exception_steps.unwrap_or_default())?,
            log_destinations: input.structured_log_destinations.unwrap_or_default(),
            tags,
        };
        let made = create_workflow(&mut call.work, &call.scope, new, &allowed)?;
        call.notes.resource(made.arn(), WORKFLOW.cloudtrail);
        call.notes.response("workflowId", made.id());
        Ok(Output { workflow_id: made.id().to_owned() })
    }
}
