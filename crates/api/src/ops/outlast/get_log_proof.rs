//! `GetLogProof`: returns the proof of an entry of the artifact log by the best head: one with cosignatures, if there
//! is one that covers the entry. Ours; described in `docs/guide/log.md`.

use outlast_domain::identity::action;

pub use crate::aws::outlast::{
    GetLogProof, GetLogProofRequest as Input, GetLogProofResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::artifact_log::{authorize, index, internal, is_cosigned, log};
use crate::wire::ApiError;

impl Run for GetLogProof {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        authorize(call, action::outlast::GetLogProof)?;
        let index = index(Some(input.index))?;
        call.notes.parameter("index", index);
        let log = log(call)?;
        let head = log.best_head(&mut call.work, index.saturating_add(1)).map_err(internal)?;
        let proof =
            log.prove(&mut call.work, &head, index).map_err(internal)?.ok_or_else(|| {
                let text = format!("The artifact log has {} entries.", log.head.size);
                ApiError::new("NotFoundException", text)
            })?;
        Ok(Output { proof: proof.to_string(), is_cosigned: is_cosigned(call, &head) })
    }
}
