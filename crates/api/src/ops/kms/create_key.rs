//! `CreateKey`: creates a key.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html>

use outlast_crypto::keys::{KeySpec, KeyUsage};
use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{CreateKey, CreateKeyRequest as Input, CreateKeyResponse as Output};
use crate::call::{Call, Run};
use crate::model::kms::{KeyMetadata, check_policy, no_custom_key_store, request_tags, tags};
use crate::wire::ApiError;

impl Run for CreateKey {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        if let Some(id) = &input.custom_key_store_id {
            return Err(no_custom_key_store(id));
        }
        let origin = origin(input.origin.as_deref())?;
        let description = input.description.unwrap_or_default();
        let spec = spec(input.key_spec, input.customer_master_key_spec)?;
        let usage = usage(spec, input.key_usage.as_deref())?;
        call.notes.parameter("keySpec", spec.name);
        call.notes.parameter("keyUsage", usage.name());
        let multi_region = input.multi_region.unwrap_or(false);
        let tags = tags(input.tags.unwrap_or_default())?;
        request_tags(call, &tags);
        let bypass = input.bypass_policy_lockout_safety_check;
        let conditions = [
            ("kms:KeySpec", spec.name),
            ("kms:KeyUsage", usage.name()),
            ("kms:KeyOrigin", origin.name()),
            ("kms:MultiRegion", if multi_region { "true" } else { "false" }),
            (
                "kms:BypassPolicyLockoutSafetyCheck",
                if bypass == Some(true) { "true" } else { "false" },
            ),
        ];
        for (name, value) in conditions {
            call.conditions.set(name, value);
        }
        if multi_region {
            call.conditions.set("kms:MultiRegionKeyType", "PRIMARY");
        }
        let new_key = call.scope.arn("kms", "key/*");
        let allowed = call.authorize(action::kms::CreateKey, &new_key)?;
        if !tags.is_empty() {
            call.authorize(action::kms::TagResource, &new_key)?;
        }
        if let Some(text) = &input.policy {
            // The key has no id yet, so a policy that names the key cannot lock anybody out of it.
            let arn = call.scope.arn("kms", "key/00000000-0000-0000-0000-000000000000");
            check_policy(call, text, &arn, bypass)?;
        }
        let policy = input.policy;
        let new = kms::NewKey { spec, usage, description, tags, origin, multi_region, policy };
        let key = kms::create(&mut call.work, &call.scope, new, &allowed)?;
        call.notes.resource(key.arn(), "AWS::KMS::Key");
        call.notes.response("keyId", key.id());
        Ok(Output { key_metadata: KeyMetadata::from(&key) })
    }
}

fn origin(name: Option<&str>) -> Result<kms::Origin, ApiError> {
    let name = name.unwrap_or("AWS_KMS");
    match name {
        "AWS_KMS" => Ok(kms::Origin::Own),
        "EXTERNAL" => Ok(kms::Origin::External),
        _ => Err(ApiError::validation(
            "CustomKeyStoreId is required for a key in a custom key store, and outlast has no custom key stores.",
        )),
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
    // SM2 is in AWS's model, but AWS offers it in the China Regions only.
    KeySpec::by_name(&name).ok_or_else(|| {
        ApiError::new("UnsupportedOperationException", format!("KeySpec {name} is not supported."))
    })
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
    KeyUsage::by_name(name).filter(|usage| spec.usages.contains(usage)).ok_or_else(|| {
        ApiError::validation(format!(
            "KeyUsage {name} is not compatible with KeySpec {}",
            spec.name
        ))
    })
}
