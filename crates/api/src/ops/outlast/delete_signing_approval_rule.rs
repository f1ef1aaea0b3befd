//! `DeleteSigningApprovalRule`: lets a key sign without approvals, once its approvers have approved that. Ours; described in
//! `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::approval;

pub use crate::aws::outlast::{
    DeleteSigningApprovalRule, DeleteSigningApprovalRuleRequest as Input,
    DeleteSigningApprovalRuleResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::{RuleChange, own_key};
use crate::wire::ApiError;

impl Run for DeleteSigningApprovalRule {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::outlast::DeleteSigningApprovalRule, &input.key_id)?;
        let allowed = call
            .authorize(action::outlast::DeleteSigningApprovalRule, &approval::approval_arn(&key))?;
        let of_key = call.authorize_key(action::kms::PutKeyPolicy, &key, None)?;
        let (arn, scope) = (key.arn(), key.scope().clone());
        let reason = input.reason.unwrap_or_default();
        let (work, access) = call.split();
        let changed =
            approval::change_rule(work, key, access.caller, None, reason, &allowed, &of_key)?;
        let change = RuleChange::new(call, &scope, changed);
        Ok(Output {
            key_id: arn,
            status: change.status,
            request_id: change.request_id,
            request_digest: change.request_digest,
            expires_at: change.expires_at,
        })
    }
}
