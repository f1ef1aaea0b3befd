//! `BatchGetSecretValue`: returns the values of up to 20 secrets, named or found by filters.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_BatchGetSecretValue.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::{self, Order, Selector};

use crate::aws::Operation;
use crate::aws::secretsmanager::GetSecretValue;
pub use crate::aws::secretsmanager::{
    APIErrorType, BatchGetSecretValue, BatchGetSecretValueRequest as Input,
    BatchGetSecretValueResponse as Output, SecretValueEntry,
};
use crate::call::{Call, Forwarded, Run};
use crate::model::marker;
use crate::model::secretsmanager::{filters, reveal, secret, shown};
use crate::wire::{ApiError, Timestamp};

impl Run for BatchGetSecretValue {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let by_filters = input.filters.is_some();
        if input.secret_id_list.is_some() == by_filters {
            return Err(invalid(
                "Either 'SecretIdList' or 'Filters' must be provided, but not both.",
            ));
        }
        if !by_filters && (input.max_results.is_some() || input.next_token.is_some()) {
            return Err(invalid(
                "'Filters' not specified. 'Filters' must also be specified when 'MaxResults' is provided.",
            ));
        }
        let all = call.scope.arn("secretsmanager", "secret:*");
        call.authorize(action::secretsmanager::BatchGetSecretValue, &all)?;
        let mut next_token = None;
        let ids = match input.secret_id_list {
            Some(ids) => {
                call.notes.parameter("secretIdList", ids.as_slice());
                ids
            }
            None => {
                // "If you use filters, you must also have secretsmanager:ListSecrets."
                let allowed = call.authorize(action::secretsmanager::ListSecrets, &all)?;
                let filters = filters(input.filters)?;
                let after =
                    marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
                let limit = usize::try_from(input.max_results.unwrap_or(MAX)).unwrap_or(1);
                let place = (after.as_deref(), limit);
                let order = Order::default();
                let page = secrets::secrets(
                    &call.work,
                    &call.scope,
                    &filters,
                    order,
                    place,
                    false,
                    &allowed,
                )?;
                next_token = page.next.map(|last| marker::wrap(&last));
                page.items.iter().map(secrets::Secret::arn).collect()
            }
        };
        let mut output = Output { secret_values: Vec::new(), next_token, errors: Vec::new() };
        for id in ids {
            match one(call, &id) {
                Ok(entry) => output.secret_values.push(entry),
                Err(error) if error.fault.is_some() => return Err(error),
                Err(error) => output.errors.push(APIErrorType {
                    secret_id: id,
                    error_code: error.code.to_owned(),
                    message: error.message,
                }),
            }
        }
        Ok(output)
    }
}

const MAX: i64 = 20;

/// A value of the batch, whose retrieval has an event of its own: "Secrets Manager generates a CloudTrail GetSecretValue log
/// entry for each secret you request" (API reference).
fn one(call: &mut Call<'_>, id: &str) -> Result<SecretValueEntry, ApiError> {
    let at = call.forwarded.len();
    let of_batch = std::mem::take(&mut call.notes);
    let outcome = entry(call, id);
    let mut event =
        Forwarded::new(&crate::aws::secretsmanager::SERVICE, GetSecretValue::NAME, None);
    event.notes = std::mem::replace(&mut call.notes, of_batch);
    event.region.clone_from(&call.scope.region);
    event.error = outcome.as_ref().err().cloned();
    // Before the call of KMS that it has caused.
    call.forwarded.insert(at, event);
    outcome
}

fn entry(call: &mut Call<'_>, id: &str) -> Result<SecretValueEntry, ApiError> {
    call.conditions.set("secretsmanager:VersionStage", secrets::CURRENT);
    call.notes.parameter("versionStage", secrets::CURRENT);
    let action = action::secretsmanager::GetSecretValue;
    let (mut secret, allowed) = secret(call, action, id)?;
    let selected = secrets::select(&secret, Selector::default())?;
    let value = reveal(call, &mut secret, &selected, &allowed)?;
    let (secret_string, secret_binary) = shown(&value)?;
    Ok(SecretValueEntry {
        arn: secret.arn(),
        name: secret.name().to_owned(),
        version_stages: selected.version.labels(),
        created_date: Timestamp::from_ms(selected.version.created_ms),
        version_id: selected.id,
        secret_string,
        secret_binary,
    })
}

fn invalid(text: &str) -> ApiError {
    ApiError::new("InvalidParameterException", text)
}
