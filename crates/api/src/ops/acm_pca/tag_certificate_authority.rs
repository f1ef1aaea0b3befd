//! `TagCertificateAuthority`: adds or replaces tags of a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_TagCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{TagCertificateAuthority, TagCertificateAuthorityRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_pca::{find_authority, request_tags, tags};
use crate::wire::ApiError;

impl Run for TagCertificateAuthority {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let tags = tags(input.tags)?;
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("tags", serde_json::json!(tags));
        request_tags(call, &tags);
        let action = action::acm_pca::TagCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        ca::add_tags(&mut call.work, authority, tags, &allowed)?;
        Ok(Empty {})
    }
}
