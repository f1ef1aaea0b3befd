//! `PutSigningApprovalRule`: says who must approve what a key signs. Ours; described in `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::approval;

pub use crate::aws::outlast::{
    PutSigningApprovalRule, PutSigningApprovalRuleRequest as Input,
    PutSigningApprovalRuleResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::{RuleChange, note_rule, own_key};
use crate::wire::ApiError;

impl Run for PutSigningApprovalRule {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::outlast::PutSigningApprovalRule, &input.key_id)?;
        note_rule(call, &input.rule);
        let allowed =
            call.authorize(action::outlast::PutSigningApprovalRule, &approval::approval_arn(&key))?;
        // A rule limits what the key's policy allows, so a caller who may write the one may write the other.
        let of_key = call.authorize_key(action::kms::PutKeyPolicy, &key, None)?;
        let (arn, scope) = (key.arn(), key.scope().clone());
        let (new, reason) = (Some(input.rule.into()), input.reason.unwrap_or_default());
        let (work, access) = call.split();
        let changed =
            approval::change_rule(work, key, access.caller, new, reason, &allowed, &of_key)?;
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
