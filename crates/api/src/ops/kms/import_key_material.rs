//! `ImportKeyMaterial`: imports key material into a key that was created for it.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ImportKeyMaterial.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use outlast_domain::limits::MAX_IMPORT_LIFE_MS;

pub use crate::aws::kms::{
    ImportKeyMaterial, ImportKeyMaterialRequest as Input, ImportKeyMaterialResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::{ApiError, Timestamp};

impl Run for ImportKeyMaterial {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let wrapped = &input.encrypted_key_material.0;
        let expires_ms = expiry(call, input.expiration_model.as_deref(), input.valid_to)?;
        let kinds = ["NEW_KEY_MATERIAL", "EXISTING_KEY_MATERIAL"];
        if let Some(kind) = &input.import_type {
            call.notes.parameter("importType", kind.as_str());
        }
        let is_new = input.import_type.as_deref().map(|kind| kind == kinds[0]);
        if is_new == Some(true) && input.key_material_id.is_some() {
            return Err(ApiError::validation(
                "KeyMaterialId is not valid when ImportType is NEW_KEY_MATERIAL.",
            ));
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

/// When the material expires, milliseconds since 1970, from `ExpirationModel` and `ValidTo`.
fn expiry(
    call: &mut Call<'_>,
    model: Option<&str>,
    valid_to: Option<Timestamp>,
) -> Result<Option<i64>, ApiError> {
    let models = ["KEY_MATERIAL_EXPIRES", "KEY_MATERIAL_DOES_NOT_EXPIRE"];
    let model = model.unwrap_or(models[0]);
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
