//! `UntagResource`: removes tags of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_UntagResource.html>

use outlast_domain::identity::action;
use outlast_domain::secrets;

use crate::aws::Empty;
pub use crate::aws::secretsmanager::{UntagResource, UntagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{secret, sync_replicas};
use crate::wire::ApiError;

impl Run for UntagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        call.notes.parameter("tagKeys", input.tag_keys.clone());
        call.conditions.set_many("aws:TagKeys", input.tag_keys.clone());
        let action = action::secretsmanager::UntagResource;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        secrets::remove_tags(&mut call.work, &mut secret, &input.tag_keys, &allowed)?;
        sync_replicas(call, &mut secret, &allowed, &[])?;
        Ok(Empty {})
    }
}
