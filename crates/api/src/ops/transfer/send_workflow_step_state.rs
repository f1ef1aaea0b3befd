//! `SendWorkflowStepState`: says how the function of a custom step went.
//!
//! A token counts once, for the step that it was made for. Executions of a workflow that was deleted go on, and so do their functions.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_SendWorkflowStepState.html>

use std::collections::BTreeMap;

use outlast_domain::identity::action;
use outlast_domain::transfer::{Answered, WORKFLOW, answer, find_execution};

use crate::aws::Empty;
pub use crate::aws::transfer::{SendWorkflowStepState, SendWorkflowStepStateRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::authorize_tagged;
use crate::model::workflows::{SUCCEEDED, find_workflow};
use crate::wire::ApiError;

impl Run for SendWorkflowStepState {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        call.notes.parameter("executionId", input.execution_id.as_str());
        call.notes.parameter("status", input.status.as_str());
        let (arn, tags) = match find_workflow(call, &input.workflow_id) {
            Ok(workflow) => (workflow.arn(), workflow.tags().clone()),
            Err(error) if error.code == "ResourceNotFoundException" => {
                (WORKFLOW.arn(&call.scope, &input.workflow_id), BTreeMap::new())
            }
            Err(error) => return Err(error),
        };
        let action = action::transfer::SendWorkflowStepState;
        let _ = authorize_tagged(call, action, &arn, &tags)?;
        let (work, scope) = (&mut call.work, &call.scope);
        let found = find_execution(work, scope, &input.workflow_id, &input.execution_id)?;
        let answered =
            if input.status == SUCCEEDED { Answered::Success } else { Answered::Failure };
        answer(&mut call.work, found, &input.token, answered)?;
        Ok(Empty {})
    }
}
