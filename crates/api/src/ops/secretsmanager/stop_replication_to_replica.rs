//! `StopReplicationToReplica`: makes a secret of its own of a replica.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_StopReplicationToReplica.html>

use outlast_domain::identity::action;
use outlast_domain::secrets;

pub use crate::aws::secretsmanager::{
    StopReplicationToReplica, StopReplicationToReplicaRequest as Input,
    StopReplicationToReplicaResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::secret;
use crate::wire::ApiError;

impl Run for StopReplicationToReplica {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let action = action::secretsmanager::StopReplicationToReplica;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        secrets::promote(&mut call.work, &mut secret, &allowed)?;
        Ok(Output { arn: secret.arn() })
    }
}
