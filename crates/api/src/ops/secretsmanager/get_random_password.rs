//! `GetRandomPassword`: makes a random password.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetRandomPassword.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::SecretError;
use outlast_domain::secrets::password::{self, Rules};

pub use crate::aws::secretsmanager::{
    GetRandomPassword, GetRandomPasswordRequest as Input, GetRandomPasswordResponse as Output,
};
use crate::call::{Call, Run};
use crate::wire::ApiError;

impl Run for GetRandomPassword {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.authorize(
            action::secretsmanager::GetRandomPassword,
            &call.scope.arn("secretsmanager", "*"),
        )?;
        let unless = |excluded: Option<bool>| excluded != Some(true);
        let rules = Rules {
            length: usize::try_from(input.password_length.unwrap_or(32)).unwrap_or_default(),
            exclude: input.exclude_characters.unwrap_or_default(),
            uppercase: unless(input.exclude_uppercase),
            lowercase: unless(input.exclude_lowercase),
            numbers: unless(input.exclude_numbers),
            punctuation: unless(input.exclude_punctuation),
            space: input.include_space == Some(true),
            each_type: input.require_each_included_type.unwrap_or(true),
        };
        let password = password::generate(&rules)?;
        let random_password = String::from_utf8(password.expose().to_vec()).map_err(|_| {
            SecretError::Fault(outlast_domain::Fault::Encoding("a password".into()))
        })?;
        Ok(Output { random_password })
    }
}
