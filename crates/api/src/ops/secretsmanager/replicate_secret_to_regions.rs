//! `ReplicateSecretToRegions`: makes replicas of a secret, or repairs those that failed.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_ReplicateSecretToRegions.html>

use outlast_domain::identity::action;
use outlast_domain::secrets;

pub use crate::aws::secretsmanager::{
    ReplicateSecretToRegions, ReplicateSecretToRegionsRequest as Input,
    ReplicateSecretToRegionsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{
    new_replicas, overwritten, secret, shown_replicas, sync_replicas,
};
use crate::wire::ApiError;

impl Run for ReplicateSecretToRegions {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let overwrite = input.force_overwrite_replica_secret;
        let replicas = new_replicas(call, input.add_replica_regions, overwrite)?;
        let action = action::secretsmanager::ReplicateSecretToRegions;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        secrets::add_replicas(&mut call.work, &mut secret, &replicas, &allowed)?;
        sync_replicas(call, &mut secret, &allowed, &overwritten(&replicas, overwrite))?;
        Ok(Output { arn: secret.arn(), replication_status: shown_replicas(&secret) })
    }
}
