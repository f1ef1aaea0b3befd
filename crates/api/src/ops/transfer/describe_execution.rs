//! `DescribeExecution`: describes an execution of a workflow.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DescribeExecution.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::find_execution;

pub use crate::aws::transfer::{
    DescribeExecution, DescribeExecutionRequest as Input, DescribeExecutionResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::authorize_tagged;
use crate::model::workflows::{described_execution, find_workflow};
use crate::wire::ApiError;

impl Run for DescribeExecution {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("executionId", input.execution_id.as_str());
        let workflow = find_workflow(call, &input.workflow_id)?;
        let action = action::transfer::DescribeExecution;
        let _ = authorize_tagged(call, action, &workflow.arn(), workflow.tags())?;
        let (work, scope) = (&mut call.work, &call.scope);
        let found = find_execution(work, scope, workflow.id(), &input.execution_id)?;
        Ok(Output { workflow_id: input.workflow_id, execution: described_execution(call, &found)? })
    }
}
