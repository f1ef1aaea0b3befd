//! `RestoreCertificateAuthority`: cancels the deletion of a CA within its restoration period.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_RestoreCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{
    RestoreCertificateAuthority, RestoreCertificateAuthorityRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;

impl Run for RestoreCertificateAuthority {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        let action = action::acm_pca::RestoreCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        ca::restore(&mut call.work, authority, &allowed)?;
        Ok(Empty {})
    }
}
