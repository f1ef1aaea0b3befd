//! `GetSigningApprovalRule`: who must approve what a key signs. Ours; described in `docs/guide/approvals.md`.

use outlast_domain::identity::action;
use outlast_domain::kms::KmsError;
use outlast_domain::kms::approval;

pub use crate::aws::outlast::{
    GetSigningApprovalRule, GetSigningApprovalRuleRequest as Input,
    GetSigningApprovalRuleResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::own_key;
use crate::wire::ApiError;

impl Run for GetSigningApprovalRule {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::outlast::GetSigningApprovalRule, &input.key_id)?;
        let allowed =
            call.authorize(action::outlast::GetSigningApprovalRule, &approval::approval_arn(&key))?;
        let rule = approval::rule_of(&key, &allowed)?.ok_or_else(|| {
            KmsError::NotFound(format!("{} has no rule of approvals.", key.arn()))
        })?;
        Ok(Output { key_id: key.arn(), rule: rule.into() })
    }
}
