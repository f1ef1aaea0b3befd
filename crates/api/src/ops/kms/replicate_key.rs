//! `ReplicateKey`: makes a replica of a multi-Region key in another Region.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_ReplicateKey.html>

use outlast_domain::arn::{Scope, is_region};
use outlast_domain::identity::action;
use outlast_domain::kms;

pub use crate::aws::kms::{
    ReplicateKey, ReplicateKeyRequest as Input, ReplicateKeyResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{KeyMetadata, Tag, check_policy, own_key, request_tags, tags};
use crate::wire::ApiError;

impl Run for ReplicateKey {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        if !is_region(&input.replica_region) {
            return Err(ApiError::validation("ReplicaRegion is not the name of a region."));
        }
        let description = input.description.unwrap_or_default();
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
        // AWS answers `Creating`; here the replica exists already.
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
