//! `UntagCertificateAuthority`: removes tags from a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_UntagCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{
    UntagCertificateAuthority, UntagCertificateAuthorityRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;

impl Run for UntagCertificateAuthority {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let keys: Vec<_> = input.tags.iter().map(|tag| tag.key.clone()).collect();
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("tags", serde_json::json!(keys));
        call.conditions.set_many("aws:TagKeys", keys);
        let action = action::acm_pca::UntagCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        let tags: Vec<_> = input.tags.into_iter().map(|tag| (tag.key, tag.value)).collect();
        ca::remove_tags(&mut call.work, authority, &tags, &allowed)?;
        Ok(Empty {})
    }
}
