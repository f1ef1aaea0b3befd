//! `GetCertificate`: returns an issued certificate and its chain.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_GetCertificate.html>

use outlast_domain::ca;
use outlast_domain::identity::action;

pub use crate::aws::acm_pca::{
    GetCertificate, GetCertificateRequest as Input, GetCertificateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;
use crate::wire::types::pem;

impl Run for GetCertificate {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("certificateArn", input.certificate_arn.as_str());
        let action = action::acm_pca::GetCertificate;
        let allowed = call.authorize_authority(action, &authority)?;
        let arn = &input.certificate_arn;
        let issued = ca::certificate(&mut call.work, &authority, arn, &allowed)?;
        let serial = arn.rsplit('/').next().unwrap_or_default();
        let mut paired = None;
        if let Some((partner, _)) = ca::paired(&mut call.work, &authority, serial)?
            && let Some(arn) = &issued.paired_with
            && let Ok(allowed) = call.authorize_authority(action, &partner)
        {
            paired = Some(ca::certificate(&mut call.work, &partner, arn, &allowed)?);
        }
        Ok(Output {
            certificate: pem(issued.certificate),
            certificate_chain: issued.chain.map(pem),
            paired_certificate_arn: issued.paired_with.filter(|_| paired.is_some()),
            paired_certificate_chain: paired.as_mut().and_then(|found| found.chain.take()).map(pem),
            paired_certificate: paired.map(|found| pem(found.certificate)),
        })
    }
}
