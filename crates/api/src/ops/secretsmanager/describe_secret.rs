//! `DescribeSecret`: returns what is known of a secret, without its value.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_DescribeSecret.html>

use outlast_domain::identity::action;

pub use crate::aws::secretsmanager::{
    DescribeSecret, DescribeSecretRequest as Input, DescribeSecretResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{
    next_rotation, secret, shown_replicas, shown_rules, shown_tags, stages,
};
use crate::wire::{ApiError, Timestamp};

impl Run for DescribeSecret {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let action = action::secretsmanager::DescribeSecret;
        let (secret, _) = secret(call, action, &input.secret_id)?;
        let rotation = secret.rotation();
        Ok(Output {
            arn: secret.arn(),
            name: secret.name().to_owned(),
            description: secret.description().map(str::to_owned),
            kms_key_id: secret.kms_key().map(str::to_owned),
            rotation_enabled: rotation.map(|rotation| rotation.enabled),
            rotation_lambda_arn: rotation.map(|rotation| rotation.function.clone()),
            rotation_rules: shown_rules(&secret),
            last_rotated_date: secret.rotated_ms().map(Timestamp::from_ms),
            last_changed_date: Some(Timestamp::from_ms(secret.changed_ms())),
            last_accessed_date: secret.accessed_ms().map(Timestamp::from_ms),
            deleted_date: secret.erase_ms().map(Timestamp::from_ms),
            next_rotation_date: next_rotation(&secret),
            tags: shown_tags(&secret),
            version_ids_to_stages: stages(&secret),
            created_date: Timestamp::from_ms(secret.created_ms()),
            primary_region: secret.primary_region().map(str::to_owned),
            replication_status: Some(shown_replicas(&secret)).filter(|list| !list.is_empty()),
        })
    }
}
