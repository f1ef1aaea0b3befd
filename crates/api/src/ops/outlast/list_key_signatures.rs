//! `ListKeySignatures`: returns the signatures that a KMS key has made, from the audit trail, so that its owner can
//! compare them with the artifact log. Ours; described in `docs/guide/log.md`.

use outlast_domain::artifacts;
use outlast_domain::identity::action;

pub use crate::aws::outlast::{
    ListKeySignatures, ListKeySignaturesRequest as Input, ListKeySignaturesResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::artifact_log::{index, number, signatures};
use crate::model::outlast::own_key;
use crate::wire::ApiError;

/// Signatures of an answer, at most and by default.
const MOST: i64 = 1000;

impl Run for ListKeySignatures {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::outlast::ListKeySignatures, &input.key_id)?;
        let arn = key.arn();
        // Who may not even describe the key learns nothing about it.
        call.authorize_key(action::kms::DescribeKey, &key, None)?;
        let permit =
            call.authorize(action::outlast::ListKeySignatures, &artifacts::signatures_arn(&key))?;
        let from = index(input.start_index)?;
        let most = usize::try_from(input.max_results.unwrap_or(MOST)).unwrap_or(0);
        let found = signatures(call, &key, from, most, &permit)?;
        Ok(Output {
            key_id: arn,
            signatures: found.signatures,
            first_index: number(found.first),
            next_index: number(found.next),
            end_index: number(found.end),
        })
    }
}
