//! `ListKeyRotations`: lists the key materials of a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListKeyRotations.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self, Key, Material};

pub use crate::aws::kms::{
    ListKeyRotations, ListKeyRotationsRequest as Input, ListKeyRotationsResponse as Output,
    RotationsListEntry,
};
use crate::call::{Call, Run};
use crate::model::kms::{expiration_model, own_key};
use crate::model::marker;
use crate::wire::{ApiError, Timestamp, validate};

impl Run for ListKeyRotations {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("Limit", input.limit)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let include = input.include_key_material.as_deref().unwrap_or("ROTATIONS_ONLY");
        let listed = match include {
            "ALL_KEY_MATERIAL" => kms::Listed::All,
            _ => kms::Listed::Rotations,
        };
        let key = own_key(call, action::kms::ListKeyRotations, &input.key_id)?;
        let allowed = call.authorize_key(action::kms::ListKeyRotations, &key, None)?;
        let page = kms::rotations(&call.work, &key, listed, after.as_deref(), limit, &allowed)?;
        let mut rotations = Vec::with_capacity(page.items.len());
        for material in page.items {
            let waits = kms::awaits_import(&mut call.work, &key, &material, &allowed)?;
            rotations.push(entry(&key, material, waits));
        }
        Ok(Output {
            rotations,
            truncated: page.next.is_some(),
            next_marker: page.next.as_deref().map(marker::wrap),
        })
    }
}

fn entry(key: &Key, material: Material, waits: bool) -> RotationsListEntry {
    let state = match () {
        () if waits => "PENDING_MULTI_REGION_IMPORT_AND_ROTATION",
        () if material.pending => "PENDING_ROTATION",
        () if material.id == key.material_id() => "CURRENT",
        () => "NON_CURRENT",
    };
    let import = material.import;
    let here = import.as_ref().filter(|import| import.present);
    RotationsListEntry {
        key_id: key.arn(),
        key_material_id: Some(material.id),
        key_material_description: import
            .as_ref()
            .map(|import| import.description.clone())
            .filter(|text| !text.is_empty()),
        import_state: import
            .as_ref()
            .map(|import| if import.present { "IMPORTED" } else { "PENDING_IMPORT" }.to_owned()),
        key_material_state: state.to_owned(),
        expiration_model: here.map(|import| expiration_model(import.expires_ms).to_owned()),
        valid_to: here.and_then(|import| import.expires_ms).map(Timestamp::from_ms),
        rotation_date: material.rotated_ms.map(Timestamp::from_ms),
        rotation_type: material.rotation_type,
    }
}
