//! `ReplicateKey`: makes a replica of a multi-Region key in another region.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ReplicateKey.html>

use outlast_domain::arn::{Scope, is_region};
use outlast_domain::identity::action;
use outlast_domain::kms;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::kms::{KeyMetadata, Tag, check_policy, own_key, request_tags, tags};
use crate::ops::{Call, KMS, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct ReplicateKey;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub key_id: String,
    pub replica_region: String,
    pub policy: Option<String>,
    pub bypass_policy_lockout_safety_check: Option<bool>,
    pub description: Option<String>,
    pub tags: Option<Vec<Tag>>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub replica_key_metadata: KeyMetadata,
    pub replica_policy: String,
    pub replica_tags: Vec<Tag>,
}

impl Operation for ReplicateKey {
    const NAME: &'static str = "ReplicateKey";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &KMS;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::length("ReplicaRegion", input.replica_region.chars().count(), 1, 32)?;
        if !is_region(&input.replica_region) {
            return Err(ApiError::validation("ReplicaRegion is not the name of a region."));
        }
        let description = input.description.unwrap_or_default();
        validate::length("Description", description.chars().count(), 0, 8192)?;
        let tags = tags(input.tags.unwrap_or_default())?;
        request_tags(call, &tags);
        let key = own_key(call, action::kms::ReplicateKey, &input.key_id)?;
        call.notes.parameter("replicaRegion", input.replica_region.as_str());
        call.conditions.set("kms:ReplicaRegion", input.replica_region.as_str());
        let allowed = call.authorize_key(action::kms::ReplicateKey, &key, None)?;
        let there =
            Scope { account: call.scope.account.clone(), region: input.replica_region.clone() };
        call.conditions.set("aws:RequestedRegion", input.replica_region.as_str());
        let bypass = input.bypass_policy_lockout_safety_check;
        let conditions = [
            ("kms:KeySpec", key.spec().name),
            ("kms:KeyUsage", key.usage().name()),
            ("kms:KeyOrigin", key.origin().name()),
            ("kms:MultiRegion", "true"),
            ("kms:MultiRegionKeyType", "REPLICA"),
            (
                "kms:BypassPolicyLockoutSafetyCheck",
                if bypass == Some(true) { "true" } else { "false" },
            ),
        ];
        for (name, value) in conditions {
            call.conditions.set(name, value);
        }
        let new_key = there.arn("kms", "key/*");
        call.authorize(action::kms::CreateKey, &new_key)?;
        if !tags.is_empty() {
            call.authorize(action::kms::TagResource, &new_key)?;
        }
        if let Some(text) = &input.policy {
            let arn = there.arn("kms", &format!("key/{}", key.id()));
            check_policy(call, text, &arn, bypass)?;
        }
        let new = kms::NewReplica {
            region: input.replica_region,
            description,
            tags,
            policy: input.policy,
        };
        let replica = kms::replicate(&mut call.work, &key, new, &allowed)?;
        call.notes.resource(replica.arn(), "AWS::KMS::Key");
        let mut metadata = KeyMetadata::from(&replica);
        // As AWS answers; the replica is there when the answer is.
        "Creating".clone_into(&mut metadata.key_state);
        metadata.enabled = false;
        Ok(Output {
            replica_key_metadata: metadata,
            replica_policy: kms::shown_policy(&mut call.work, &replica)?,
            replica_tags: replica
                .tags()
                .iter()
                .map(|(key, value)| Tag { tag_key: key.clone(), tag_value: value.clone() })
                .collect(),
        })
    }
}
