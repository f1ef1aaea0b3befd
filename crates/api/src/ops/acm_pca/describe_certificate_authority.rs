//! `DescribeCertificateAuthority`: describes a CA.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DescribeCertificateAuthority.html>

use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{
    DescribeCertificateAuthority, DescribeCertificateAuthorityRequest as Input,
    DescribeCertificateAuthorityResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::{CertificateAuthority, find_authority};
use crate::wire::ApiError;

impl Run for DescribeCertificateAuthority {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.authorize_authority(action::acm_pca::DescribeCertificateAuthority, &authority)?;
        Ok(Output { certificate_authority: CertificateAuthority::new(&authority, &call.settings) })
    }
}
