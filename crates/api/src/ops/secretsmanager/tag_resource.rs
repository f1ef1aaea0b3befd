//! `TagResource`: adds or replaces tags of a secret.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_TagResource.html>

use outlast_domain::identity::action;
use outlast_domain::secrets;

use crate::aws::Empty;
pub use crate::aws::secretsmanager::{TagResource, TagResourceRequest as Input};
use crate::call::{Call, Run};
use crate::model::secretsmanager::{secret, sync_replicas, tags};
use crate::wire::ApiError;

impl Run for TagResource {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let tags = tags(call, Some(input.tags))?;
        call.notes.parameter("tags", serde_json::json!(tags));
        let action = action::secretsmanager::TagResource;
        let (mut secret, allowed) = secret(call, action, &input.secret_id)?;
        secrets::add_tags(&mut call.work, &mut secret, tags, &allowed)?;
        sync_replicas(call, &mut secret, &allowed, &[])?;
        Ok(Empty {})
    }
}
