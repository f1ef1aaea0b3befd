//! `RemoveRegionsFromReplication`: deletes replicas of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_RemoveRegionsFromReplication.html>

use outlast_domain::identity::action;
use outlast_domain::secrets;

pub use crate::aws::secretsmanager::{
    RemoveRegionsFromReplication, RemoveRegionsFromReplicationRequest as Input,
    RemoveRegionsFromReplicationResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{secret, shown_replicas};
use crate::wire::ApiError;

impl Run for RemoveRegionsFromReplication {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("removeReplicaRegions", input.remove_replica_regions.clone());
        let action = action::secretsmanager::RemoveRegionsFromReplication;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        let regions = &input.remove_replica_regions;
        secrets::remove_replicas(&mut call.work, &mut secret, regions, &allowed)?;
        Ok(Output { arn: secret.arn(), replication_status: shown_replicas(&secret) })
    }
}
