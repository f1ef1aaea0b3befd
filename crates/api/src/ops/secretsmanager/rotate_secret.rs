//! `RotateSecret`: turns rotation on, changes it, and begins one.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_RotateSecret.html>

use outlast_domain::arn::Arn;
use outlast_domain::identity::action;
use outlast_domain::secrets::Secret;
use outlast_domain::secrets::rotation::{self, Start};

pub use crate::aws::secretsmanager::{
    RotateSecret, RotateSecretRequest as Input, RotateSecretResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{may_invoke, rules, secret, token};
use crate::wire::ApiError;
use crate::wire::validate::shorten;

/// Notes a function for the audit trail, and asks whether the caller may invoke it. Only then does the caller learn whether
/// this server calls it.
fn authorize_function(
    call: &mut Call<'_>,
    function: &str,
    secret: &Secret,
) -> Result<(), ApiError> {
    if Arn::parse(function).is_some() {
        call.notes.resource(function.to_owned(), FUNCTION);
        may_invoke(call, function)?;
    }
    check_function(call, function, secret)
}

/// CloudTrail's type of a function.
const FUNCTION: &str = "AWS::Lambda::Function";

/// Refuses a function that this server does not call, and one of another account: functions run with the rights of
/// their own account's roles.
fn check_function(call: &Call<'_>, function: &str, secret: &Secret) -> Result<(), ApiError> {
    let Some(known) = &call.settings.rotation_functions else { return Ok(()) };
    let account = Arn::parse(function).map(|arn| arn.account().to_owned());
    if known.contains(function) && account.as_deref() == Some(&secret.scope().account) {
        return Ok(());
    }
    tracing::warn!(
        function = shorten(function),
        secret = secret.arn(),
        hint = "the file that functions names in section [rotation] of outlast.toml says which functions there are, in the \
                secret's account; the server reads it when it starts (docs/guide/secrets.md)",
        "RotateSecret names a function that this server does not call"
    );
    // AWS's text.
    Err(ApiError::new(
        "AccessDeniedException",
        "Secrets Manager cannot invoke the specified Lambda function. Ensure that the function policy grants access to \
         the principal secretsmanager.amazonaws.com.",
    ))
}

impl Run for RotateSecret {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let version_id = token(call, input.client_request_token)?;
        let immediately = input.rotate_immediately.unwrap_or(true);
        if let Some(function) = &input.rotation_lambda_arn {
            call.notes.parameter("rotationLambdaARN", function.as_str());
            call.conditions.set("secretsmanager:RotationLambdaARN", function.as_str());
        }
        let text = |is: bool| if is { "true" } else { "false" };
        call.conditions.set("secretsmanager:RotateImmediately", text(immediately));
        call.conditions
            .set("secretsmanager:ModifyRotationRules", text(input.rotation_rules.is_some()));
        let rules = input.rotation_rules.map(rules).transpose()?;
        let action = action::secretsmanager::RotateSecret;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        let function = input.rotation_lambda_arn.filter(|function| !function.is_empty());
        let kept = || secret.rotation().map(|rotation| rotation.function.clone());
        if let Some(function) = function.clone().or_else(kept) {
            authorize_function(call, &function, &secret)?;
        }
        let start = Start { function, rules, version_id: version_id.clone(), immediately };
        rotation::start(&mut call.work, &mut secret, start, &allowed)?;
        let name = secret.name().to_owned();
        Ok(Output { arn: secret.arn(), name, version_id: immediately.then_some(version_id) })
    }
}
