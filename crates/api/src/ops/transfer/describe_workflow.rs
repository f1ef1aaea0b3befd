//! `DescribeWorkflow`: describes a workflow.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DescribeWorkflow.html>

use outlast_domain::identity::action;

pub use crate::aws::transfer::{
    DescribeWorkflow, DescribeWorkflowRequest as Input, DescribeWorkflowResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::transfer::authorize_tagged;
use crate::model::workflows::{described_workflow, find_workflow};
use crate::wire::ApiError;

impl Run for DescribeWorkflow {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_workflow(call, &input.workflow_id)?;
        let action = action::transfer::DescribeWorkflow;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        Ok(Output { workflow: described_workflow(&found) })
    }
}
