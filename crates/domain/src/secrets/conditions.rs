//! The condition keys about a secret.

use super::secret::Secret;
use crate::policy::ConditionKeys;

/// Adds the condition keys about the secret to those of the request.
pub(super) fn conditions(request: &ConditionKeys, secret: &Secret) -> ConditionKeys {
    let mut keys = request.clone();
    keys.set("aws:ResourceAccount", secret.scope().account.as_str());
    keys.set_tags("aws:ResourceTag", secret.tags());
    keys.set_tags("secretsmanager:ResourceTag", secret.tags());
    keys.set("secretsmanager:SecretId", secret.arn());
    if let Some(region) = secret.primary_region() {
        keys.set("secretsmanager:SecretPrimaryRegion", region);
    }
    if let Some(rotation) = secret.rotation() {
        keys.set("secretsmanager:resource/AllowRotationLambdaArn", rotation.function.as_str());
    }
    keys
}
