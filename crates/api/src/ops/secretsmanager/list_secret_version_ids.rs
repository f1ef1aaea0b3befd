//! `ListSecretVersionIds`: lists the versions of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_ListSecretVersionIds.html>

use outlast_domain::identity::action;
use outlast_domain::secrets;

pub use crate::aws::secretsmanager::{
    ListSecretVersionIds, ListSecretVersionIdsRequest as Input,
    ListSecretVersionIdsResponse as Output, SecretVersionsListEntry,
};
use crate::call::{Call, Run};
use crate::model::marker;
use crate::model::secretsmanager::{labels, secret, shown_key};
use crate::wire::{ApiError, Timestamp, validate};

impl Run for ListSecretVersionIds {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let limit = validate::page_of("MaxResults", input.max_results, 100, 100)?;
        let after = marker::unwrap(input.next_token.as_deref(), "InvalidNextTokenException")?;
        let action = action::secretsmanager::ListSecretVersionIds;
        let (secret, allowed) = secret(call, action, &input.secret_id)?;
        let deprecated = input.include_deprecated == Some(true);
        let page = secrets::versions(&secret, deprecated, after.as_deref(), limit, &allowed)?;
        let shown_key = shown_key(call, &secret)?;
        let entry = |listed: secrets::ListedVersion| SecretVersionsListEntry {
            version_id: listed.id,
            version_stages: labels(&listed.version),
            last_accessed_date: listed.version.accessed_ms.map(Timestamp::from_ms),
            created_date: Timestamp::from_ms(listed.version.created_ms),
            kms_key_ids: Some(shown_key(&listed.version)).filter(|keys| !keys.is_empty()),
        };
        Ok(Output {
            versions: page.items.into_iter().map(entry).collect(),
            next_token: page.next.map(|last| marker::wrap(&last)),
            arn: secret.arn(),
            name: secret.name().to_owned(),
        })
    }
}
