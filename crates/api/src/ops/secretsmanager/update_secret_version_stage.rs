//! `UpdateSecretVersionStage`: moves a staging label between versions.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_UpdateSecretVersionStage.html>

use outlast_domain::identity::action;
use outlast_domain::secrets;

pub use crate::aws::secretsmanager::{
    UpdateSecretVersionStage, UpdateSecretVersionStageRequest as Input,
    UpdateSecretVersionStageResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{secret, sync_replicas};
use crate::wire::ApiError;

impl Run for UpdateSecretVersionStage {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("versionStage", input.version_stage.as_str());
        call.conditions.set("secretsmanager:VersionStage", input.version_stage.as_str());
        let (from, to) =
            (input.remove_from_version_id.as_deref(), input.move_to_version_id.as_deref());
        for (name, id) in [("removeFromVersionId", from), ("moveToVersionId", to)] {
            if let Some(id) = id {
                call.notes.parameter(name, id);
            }
        }
        let action = action::secretsmanager::UpdateSecretVersionStage;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        let stage = input.version_stage.as_str();
        secrets::move_stage(&mut call.work, &mut secret, stage, (from, to), &allowed)?;
        sync_replicas(call, &mut secret, &allowed, &[])?;
        Ok(Output { arn: secret.arn(), name: secret.name().to_owned() })
    }
}
