//! `ListWorkflows`: lists workflows.
//!
//! <https://docs.aws.amazon.com/transfer/latest/APIReference/API_ListWorkflows.html>

use outlast_domain::identity::action;
use outlast_domain::transfer::{WORKFLOW, workflows};

pub use crate::aws::transfer::{
    ListWorkflows, ListWorkflowsRequest as Input, ListWorkflowsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::transfer::{next_token, page_size};
use crate::model::workflows::listed_workflow;
use crate::wire::ApiError;

impl Run for ListWorkflows {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = page_size(input.max_results)?;
        let after = next_token(input.next_token.as_deref())?;
        let all = WORKFLOW.arn(&call.scope, "*");
        let allowed = call.authorize(action::transfer::ListWorkflows, &all)?;
        let page = workflows(&call.work, &call.scope, after.as_deref(), limit, &allowed)?;
        Ok(Output {
            next_token: page.next.as_deref().map(marker::wrap),
            workflows: page.items.iter().map(listed_workflow).collect(),
        })
    }
}
