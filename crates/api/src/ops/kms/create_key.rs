//! `CreateKey`: makes a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html>

use outlast_crypto::keys::{KEY_SPECS, KeySpec, KeyUsage};
use outlast_domain::kms;
use serde::{Deserialize, Serialize};

use crate::model::kms::{KeyMetadata, Tag, refuse, tags};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct CreateKey;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_usage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_master_key_spec: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_spec: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_key_store_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypass_policy_lockout_safety_check: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<Tag>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_region: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xks_key_id: Option<String>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub key_metadata: KeyMetadata,
}

impl Operation for CreateKey {
    const NAME: &'static str = "CreateKey";
    const READ_ONLY: bool = false;
    const SLOW: bool = true;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        refuse("Policy", input.policy.as_ref())?;
        refuse("CustomKeyStoreId", input.custom_key_store_id.as_ref())?;
        refuse("XksKeyId", input.xks_key_id.as_ref())?;
        refuse("MultiRegion", input.multi_region.filter(|wanted| *wanted).as_ref())?;
        refuse("Origin", input.origin.filter(|origin| origin != "AWS_KMS").as_ref())?;
        let description = input.description.unwrap_or_default();
        validate::length("Description", description.chars().count(), 0, 8192)?;
        let spec = spec(input.key_spec, input.customer_master_key_spec)?;
        let usage = usage(spec, input.key_usage.as_deref())?;
        call.notes.parameter("keySpec", spec.name);
        call.notes.parameter("keyUsage", usage.name());
        let allowed = call.authorize("kms:CreateKey", &call.scope.arn("kms", "key/*"))?;
        let new =
            kms::NewKey { spec, usage, description, tags: tags(input.tags.unwrap_or_default())? };
        let key = kms::create(&mut call.work, &call.scope, new, &allowed)?;
        call.notes.resource(key.arn(), "AWS::KMS::Key");
        call.notes.response("keyId", key.id());
        Ok(Output { key_metadata: KeyMetadata::from(&key) })
    }
}

fn spec(key_spec: Option<String>, old_name: Option<String>) -> Result<&'static KeySpec, ApiError> {
    let name = match (key_spec, old_name) {
        (Some(_), Some(_)) => {
            return Err(ApiError::validation(
                "You cannot specify KeySpec and CustomerMasterKeySpec in the same request. \
                 CustomerMasterKeySpec is deprecated.",
            ));
        }
        (Some(name), None) | (None, Some(name)) => name,
        (None, None) => "SYMMETRIC_DEFAULT".into(),
    };
    let known: Vec<_> = KEY_SPECS.iter().map(|row| row.name).collect();
    validate::one_of("KeySpec", &name, &known)?;
    KeySpec::by_name(&name).ok_or_else(|| ApiError::validation("KeySpec is not known"))
}

fn usage(spec: &KeySpec, given: Option<&str>) -> Result<KeyUsage, ApiError> {
    let Some(name) = given else {
        return match spec.name {
            "SYMMETRIC_DEFAULT" => Ok(spec.usages[0]),
            _ => Err(ApiError::validation(
                "You must specify a KeyUsage value for all KMS keys except for symmetric \
                 encryption keys.",
            )),
        };
    };
    let known: Vec<_> = KeyUsage::ALL.iter().map(|usage| usage.name()).collect();
    validate::one_of("KeyUsage", name, &known)?;
    KeyUsage::by_name(name).filter(|usage| spec.usages.contains(usage)).ok_or_else(|| {
        ApiError::validation(format!(
            "KeyUsage {name} is not compatible with KeySpec {}",
            spec.name
        ))
    })
}
