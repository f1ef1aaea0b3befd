//! `GetCertificate`: gives a certificate and its chain.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_GetCertificate.html>

use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm::{authorize_certificate, find_certificate};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct GetCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
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
    /// Beyond AWS: the certificate from the partner of the CA.
    pub paired_certificate: Option<String>,
    /// Beyond AWS: its chain.
    pub paired_certificate_chain: Option<String>,
}

impl Operation for GetCertificate {
    const NAME: &'static str = "GetCertificate";
    const READ_ONLY: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::GetCertificate, &certificate)?;
        let text = certificate.text(&mut call.work, &allowed)?;
        let paired = text.paired.map(|paired| *paired);
        let (paired_certificate, paired_certificate_chain) =
            paired.map_or((None, None), |text| (Some(text.certificate), text.chain));
        Ok(Output {
            certificate: text.certificate,
            certificate_chain: text.chain,
            paired_certificate,
            paired_certificate_chain,
        })
    }
}
