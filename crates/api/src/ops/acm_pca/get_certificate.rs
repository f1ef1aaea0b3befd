//! `GetCertificate`: gives a certificate that was issued, and its chain.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_GetCertificate.html>

use outlast_domain::ca;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct GetCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub certificate_arn: String,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate: String,
    pub certificate_chain: Option<String>,
    /// Beyond AWS: what was issued together with it, for callers who may read that, too.
    pub paired_certificate_arn: Option<String>,
    pub paired_certificate: Option<String>,
    pub paired_certificate_chain: Option<String>,
}

impl Operation for GetCertificate {
    const NAME: &'static str = "GetCertificate";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::length("CertificateArn", input.certificate_arn.chars().count(), 5, 200)?;
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
            certificate: issued.certificate,
            certificate_chain: issued.chain,
            paired_certificate_arn: issued.paired_with.filter(|_| paired.is_some()),
            paired_certificate_chain: paired.as_mut().and_then(|found| found.chain.take()),
            paired_certificate: paired.map(|found| found.certificate),
        })
    }
}
