//! `DeleteImportedKeyMaterial`: deletes imported key material; the same can be imported again.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DeleteImportedKeyMaterial.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::own_key;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct DeleteImportedKeyMaterial;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
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

impl Operation for DeleteImportedKeyMaterial {
    const NAME: &'static str = "DeleteImportedKeyMaterial";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        if let Some(id) = &input.key_material_id {
            validate::length("KeyMaterialId", id.chars().count(), 64, 64)?;
        }
        let key = own_key(call, action::kms::DeleteImportedKeyMaterial, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::DeleteImportedKeyMaterial, &key, None)?;
        let id = input.key_material_id.as_deref();
        let (key, deleted) = kms::delete_material(&mut call.work, call.ring, key, id, &allowed)?;
        Ok(Output { key_id: key.arn(), key_material_id: deleted })
    }
}
