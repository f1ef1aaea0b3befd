//! `DeleteImportedKeyMaterial`: deletes imported key material; the same can be imported again.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_DeleteImportedKeyMaterial.html>

use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    DeleteImportedKeyMaterial, DeleteImportedKeyMaterialRequest as Input,
    DeleteImportedKeyMaterialResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::own_key;
use crate::wire::ApiError;

impl Run for DeleteImportedKeyMaterial {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::kms::DeleteImportedKeyMaterial, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::DeleteImportedKeyMaterial, &key, None)?;
        let id = input.key_material_id.as_deref();
        let (key, deleted) = kms::delete_material(&mut call.work, call.ring, key, id, &allowed)?;
        Ok(Output { key_id: key.arn(), key_material_id: deleted })
    }
}
