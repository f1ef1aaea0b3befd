//! `RetireGrant`: ends a grant, on behalf of its grantee or retiring principal.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_RetireGrant.html>

use outlast_domain::arn::Scope;
use outlast_domain::kms;

use crate::aws::Empty;
pub use crate::aws::kms::{RetireGrant, RetireGrantRequest as Input};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, find_key, key_by_id};
use crate::wire::ApiError;

impl Run for RetireGrant {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let (key, grant) = match (&input.grant_token, &input.key_id, &input.grant_id) {
            (Some(token), None, None) => {
                let region = call.scope.region.clone();
                let grant = kms::by_token(&mut call.work, &region, token)?;
                let of = Scope { account: grant.account.clone(), region };
                (find_key(call, &of.arn("kms", &format!("key/{}", grant.key_id)))?, grant)
            }
            (None, Some(key), Some(id)) => {
                let key = key_by_id(call, key)?;
                let grant = kms::find_grant(&mut call.work, &key, id)?;
                (key, grant)
            }
            _ => {
                return Err(ApiError::validation(
                    "Specify either GrantToken, or both KeyId and GrantId.",
                ));
            }
        };
        call.notes.parameter("grantId", grant.id.as_str());
        let (work, access) = call.split();
        let allowed = kms::authorize_retire(work, access, &key, &grant)?;
        dry_run(input.dry_run)?;
        kms::delete_grant(&mut call.work, key.scope(), &grant, &allowed)?;
        Ok(Empty {})
    }
}
