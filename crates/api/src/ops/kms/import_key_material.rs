//! `ImportKeyMaterial`: imports key material into a key that was made for it.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ImportKeyMaterial.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use outlast_domain::limits::MAX_IMPORT_LIFE_MS;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::own_key;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, Timestamp, validate};

/// The operation.
pub struct ImportKeyMaterial;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub import_token: Blob,
    pub encrypted_key_material: Blob,
    pub valid_to: Option<Timestamp>,
    pub expiration_model: Option<String>,
    pub import_type: Option<String>,
    pub key_material_description: Option<String>,
    pub key_material_id: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_id: String,
    pub key_material_id: Option<String>,
}

impl Operation for ImportKeyMaterial {
    const NAME: &'static str = "ImportKeyMaterial";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::length("ImportToken", input.import_token.0.len(), 1, 6144)?;
        let wrapped = &input.encrypted_key_material.0;
        validate::length("EncryptedKeyMaterial", wrapped.len(), 1, MAX_MATERIAL)?;
        let expires_ms = expiry(call, input.expiration_model.as_deref(), input.valid_to)?;
        if let Some(description) = &input.key_material_description {
            validate::length("KeyMaterialDescription", description.chars().count(), 0, 256)?;
        }
        let kinds = ["NEW_KEY_MATERIAL", "EXISTING_KEY_MATERIAL"];
        if let Some(kind) = &input.import_type {
            validate::one_of("ImportType", kind, &kinds)?;
            call.notes.parameter("importType", kind.as_str());
        }
        let is_new = input.import_type.as_deref().map(|kind| kind == kinds[0]);
        if is_new == Some(true) && input.key_material_id.is_some() {
            return Err(ApiError::validation(
                "KeyMaterialId is not valid when ImportType is NEW_KEY_MATERIAL.",
            ));
        }
        if let Some(id) = &input.key_material_id {
            validate::length("KeyMaterialId", id.chars().count(), 64, 64)?;
        }
        let key = own_key(call, action::kms::ImportKeyMaterial, &input.key_id)?;
        let for_symmetric = input.import_type.is_some()
            || input.key_material_description.is_some()
            || input.key_material_id.is_some();
        if for_symmetric && !key.is_symmetric_encryption() {
            return Err(ApiError::validation(
                "ImportType, KeyMaterialDescription and KeyMaterialId are valid for symmetric \
                 encryption keys only.",
            ));
        }
        let allowed = call.authorize_key(action::kms::ImportKeyMaterial, &key, None)?;
        let new = kms::NewMaterial {
            token: &input.import_token.0,
            wrapped,
            expires_ms,
            is_new,
            description: input.key_material_description,
            material_id: input.key_material_id.as_deref(),
        };
        let (key, id) = kms::import_material(&mut call.work, key, new, &allowed)?;
        let form = key.material(&id).and_then(|material| material.import.as_ref());
        call.notes.response("keyMaterialForm", form.map_or("", |import| import.form.as_str()));
        Ok(Output {
            key_id: key.arn(),
            key_material_id: key.is_symmetric_encryption().then_some(id),
        })
    }
}

/// AWS's limit is 6144 bytes; an ML-DSA-87 key in the "both" form has 4,970 before it is wrapped.
const MAX_MATERIAL: usize = 8192;

/// When the material expires, milliseconds since 1970, from `ExpirationModel` and `ValidTo`.
fn expiry(
    call: &mut Call<'_>,
    model: Option<&str>,
    valid_to: Option<Timestamp>,
) -> Result<Option<i64>, ApiError> {
    let models = ["KEY_MATERIAL_EXPIRES", "KEY_MATERIAL_DOES_NOT_EXPIRE"];
    let model = model.unwrap_or(models[0]);
    validate::one_of("ExpirationModel", model, &models)?;
    call.notes.parameter("expirationModel", model);
    call.conditions.set("kms:ExpirationModel", model);
    match (model == models[0], valid_to) {
        (true, Some(at)) => {
            let now_ms = call.work.now_ms();
            if at.ms <= now_ms || at.ms > now_ms + MAX_IMPORT_LIFE_MS {
                return Err(ApiError::validation(
                    "ValidTo must be in the future, and at most 365 days from now.",
                ));
            }
            let text = outlast_pki::time::rfc3339(at.ms.div_euclid(1000));
            call.conditions.set("kms:ValidTo", text);
            Ok(Some(at.ms))
        }
        (true, None) => Err(ApiError::validation(
            "ValidTo is required when ExpirationModel is KEY_MATERIAL_EXPIRES, which is the default.",
        )),
        (false, Some(_)) => Err(ApiError::validation(
            "ValidTo is not valid when ExpirationModel is KEY_MATERIAL_DOES_NOT_EXPIRE.",
        )),
        (false, None) => Ok(None),
    }
}
