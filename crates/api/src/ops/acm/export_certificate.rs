//! `ExportCertificate`: gives a certificate with its private key under a passphrase.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ExportCertificate.html>

use outlast_crypto::Secret;
use outlast_domain::acm::export;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm::{authorize_certificate, find_certificate};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct ExportCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
    pub passphrase: Blob,
}

/// Response body.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate: String,
    pub certificate_chain: Option<String>,
    pub private_key: String,
    /// Beyond AWS: the certificate from the partner of the CA.
    pub paired_certificate: Option<String>,
    /// Beyond AWS: its chain.
    pub paired_certificate_chain: Option<String>,
    /// Beyond AWS: its private key.
    pub paired_private_key: Option<String>,
}

impl Operation for ExportCertificate {
    const NAME: &'static str = "ExportCertificate";
    const READ_ONLY: bool = false;
    // A key is derived from the passphrase by many rounds.
    const SLOW: bool = true;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::length("Passphrase", input.passphrase.0.len(), 4, 128)?;
        let passphrase = Secret::new(input.passphrase.0);
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::ExportCertificate, &certificate)?;
        let exported = export::export(&mut call.work, certificate, &passphrase, &allowed)?;
        let paired = exported.text.paired.map(|paired| *paired);
        let (paired_certificate, paired_certificate_chain) =
            paired.map_or((None, None), |text| (Some(text.certificate), text.chain));
        Ok(Output {
            certificate: exported.text.certificate,
            certificate_chain: exported.text.chain,
            private_key: exported.private_key,
            paired_certificate,
            paired_certificate_chain,
            paired_private_key: exported.paired_private_key,
        })
    }
}
