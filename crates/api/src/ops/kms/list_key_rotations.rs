//! `ListKeyRotations`: lists the key materials that rotations brought.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ListKeyRotations.html>

use outlast_domain::identity::action;
use outlast_domain::kms::{self, Key, Material};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{expiration_model, own_key};
use crate::model::marker;
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, Timestamp, validate};

/// The operation.
pub struct ListKeyRotations;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub include_key_material: Option<String>,
    pub limit: Option<i64>,
    pub marker: Option<String>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub rotations: Vec<RotationsListEntry>,
    pub next_marker: Option<String>,
    pub truncated: bool,
}

/// `RotationsListEntry`
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct RotationsListEntry {
    pub key_id: String,
    pub key_material_id: Option<String>,
    pub key_material_description: Option<String>,
    pub import_state: Option<String>,
    pub key_material_state: String,
    pub expiration_model: Option<String>,
    pub valid_to: Option<Timestamp>,
    pub rotation_date: Option<Timestamp>,
    pub rotation_type: Option<String>,
}

impl Operation for ListKeyRotations {
    const NAME: &'static str = "ListKeyRotations";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_limit("Limit", input.limit)?;
        let after = marker::unwrap(input.marker.as_deref(), "InvalidMarkerException")?;
        let include = input.include_key_material.as_deref().unwrap_or("ROTATIONS_ONLY");
        validate::one_of("IncludeKeyMaterial", include, &["ALL_KEY_MATERIAL", "ROTATIONS_ONLY"])?;
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
