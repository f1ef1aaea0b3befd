//! `DeleteWorkflow`: deletes a workflow that no server names.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_DeleteWorkflow.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::delete_workflow;

use crate::aws::Empty;
pub use crate::aws::transfer::{DeleteWorkflow, DeleteWorkflowRequest as Input};
use crate::call::{Call, Run};
use crate::model::transfer::authorize_tagged;
use crate::model::workflows::find_workflow;
use crate::wire::ApiError;

impl Run for DeleteWorkflow {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let found = find_workflow(call, &input.workflow_id)?;
        let action = action::transfer::DeleteWorkflow;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        delete_workflow(&mut call.work, &found, &allowed)?;
        Ok(Empty {})
    }
}
