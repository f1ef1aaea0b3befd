//! `RestoreSecret`: cancels the scheduled deletion of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_RestoreSecret.html>

use outlast_domain::identity::action;
use outlast_domain::secrets;

pub use crate::aws::secretsmanager::{
    RestoreSecret, RestoreSecretRequest as Input, RestoreSecretResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::secret;
use crate::wire::ApiError;

impl Run for RestoreSecret {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let action = action::secretsmanager::RestoreSecret;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        secrets::restore(&mut call.work, &mut secret, &allowed)?;
        Ok(Output { arn: secret.arn(), name: secret.name().to_owned() })
    }
}
