//! `CancelRotateSecret`: turns rotation off, and ends the one under way.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CancelRotateSecret.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::rotation;

pub use crate::aws::secretsmanager::{
    CancelRotateSecret, CancelRotateSecretRequest as Input, CancelRotateSecretResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::secret;
use crate::wire::ApiError;

impl Run for CancelRotateSecret {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let action = action::secretsmanager::CancelRotateSecret;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        let version_id = rotation::cancel(&mut call.work, &mut secret, &allowed)?;
        Ok(Output { arn: secret.arn(), name: secret.name().to_owned(), version_id })
    }
}
