//! `GetLogCheckpoint`: returns the last head of the artifact log, and the policy to verify its proofs with. Ours;
//! described in `docs/guide/log.md`.

use outlast_domain::identity::action;

pub use crate::aws::Empty as Input;
pub use crate::aws::outlast::{GetLogCheckpoint, GetLogCheckpointResponse as Output};
use crate::call::{Call, Run};
use crate::model::artifact_log::{authorize, log, policy_text};
use crate::wire::ApiError;

impl Run for GetLogCheckpoint {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, _: Input) -> Result<Output, ApiError> {
        authorize(call, action::outlast::GetLogCheckpoint)?;
        let log = log(call)?;
        Ok(Output {
            checkpoint: log.signed.to_string(),
            verifier_keys: log.key.verifiers().iter().map(ToString::to_string).collect(),
            policy: policy_text(call, &log.key),
        })
    }
}
