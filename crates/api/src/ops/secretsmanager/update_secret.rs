//! `UpdateSecret`: changes the description, the KMS key or the value of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_UpdateSecret.html>

use std::collections::BTreeSet;

use outlast_domain::identity::action;
use outlast_domain::secrets::{self, Description, NewValue, Selected, Update};

pub use crate::aws::secretsmanager::{
    UpdateSecret, UpdateSecretRequest as Input, UpdateSecretResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{
    is_repeated, key_of, protect, reveal, secret, sync_replicas, token, value,
};
use crate::wire::ApiError;

impl Run for UpdateSecret {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let given = value(input.secret_string, input.secret_binary, true)?;
        if let Some(text) = &input.description {
            call.conditions.set("secretsmanager:Description", text.as_str());
        }
        if let Some(key) = &input.kms_key_id {
            call.conditions.set("secretsmanager:KmsKeyId", key.as_str());
            call.notes.parameter("kmsKeyId", key.as_str());
        }
        let version_id = match &given {
            Some(_) => Some(token(call, input.client_request_token)?),
            None => None,
        };
        let action = action::secretsmanager::UpdateSecret;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        let key = match input.kms_key_id {
            None => None,
            Some(name) => {
                let given = Some(name.as_str()).filter(|name| !name.is_empty());
                let key = secrets::key(&mut call.work, secret.scope(), given)?;
                let mut values = Vec::new();
                let staged: Vec<_> = secret
                    .versions()
                    .iter()
                    .filter(|(_, version)| {
                        version.has_value()
                            && !version.stages.is_empty()
                            && version.key != key.arn()
                    })
                    .map(|(id, version)| Selected { id: id.clone(), version: version.clone() })
                    .collect();
                for selected in staged {
                    let value = reveal(call, &mut secret, &selected, &allowed)?;
                    let at = (secret.arn(), selected.id.clone());
                    let protected = protect(call, &key, (&at.0, &at.1), &value)?;
                    values.push((selected, protected));
                }
                Some((name, values))
            }
        };
        let description = input.description.map_or(Description::Same, Description::New);
        secrets::update(&mut call.work, &mut secret, Update { description, key }, &allowed)?;
        if let (Some(value), Some(version_id)) = (given, &version_id)
            && !is_repeated(call, &mut secret, version_id, &value, &allowed)?
        {
            let key = key_of(call, &secret)?;
            let protected = protect(call, &key, (&secret.arn(), version_id), &value)?;
            let stages = BTreeSet::from([secrets::CURRENT.to_owned()]);
            let new = NewValue { version_id: version_id.clone(), protected, stages };
            secrets::put_value(&mut call.work, &mut secret, new, &allowed)?;
        }
        sync_replicas(call, &mut secret, &allowed, &[])?;
        Ok(Output { arn: secret.arn(), name: secret.name().to_owned(), version_id })
    }
}
