//! `ListExecutions`: lists the executions of a workflow.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListExecutions.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::executions;

pub use crate::aws::transfer::{
    ListExecutions, ListExecutionsRequest as Input, ListExecutionsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::transfer::{authorize_tagged, next_token, page_size};
use crate::model::workflows::{find_workflow, listed_execution};
use crate::wire::ApiError;

impl Run for ListExecutions {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        let workflow = find_workflow(call, &input.workflow_id)?;
        let action = action::transfer::ListExecutions;
        let allowed = authorize_tagged(call, action, &workflow.arn(), workflow.tags())?;
        let page = executions(&call.work, &workflow, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            next_token: page.next.as_deref().map(marker::wrap),
            workflow_id: input.workflow_id,
            executions: page.items.iter().map(listed_execution).collect(),
        })
    }
}
