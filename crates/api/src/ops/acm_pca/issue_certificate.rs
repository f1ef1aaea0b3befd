//! `IssueCertificate`: issues a certificate for a request.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_IssueCertificate.html>

use outlast_crypto::signatures::{SIGNATURES, SignatureAlgorithm};
use outlast_domain::ca;
use outlast_pki::templates::Template;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::{Validity, check_token, find_authority};
use crate::ops::{ACM_PCA, Call, Operation, ServiceRow, input_digest};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct IssueCertificate;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub api_passthrough: Option<serde_json::Value>,
    pub certificate_authority_arn: String,
    pub csr: Blob,
    pub signing_algorithm: String,
    pub template_arn: Option<String>,
    pub validity: Validity,
    pub validity_not_before: Option<Validity>,
    pub idempotency_token: Option<String>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate_arn: String,
}

impl Operation for IssueCertificate {
    const NAME: &'static str = "IssueCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let request_digest = input_digest(&input)?;
        if input.api_passthrough.is_some() {
            return Err(ApiError::new(
                "InvalidArgsException",
                "ApiPassthrough needs a passthrough template, and this version of outlast has none",
            ));
        }
        validate::length("Csr", input.csr.0.len(), 1, 32_768)?;
        check_token(input.idempotency_token.as_deref())?;
        let signing_names: Vec<_> = SIGNATURES.iter().filter_map(|row| row.pca_name).collect();
        validate::one_of("SigningAlgorithm", &input.signing_algorithm, &signing_names)?;
        let algorithm = SignatureAlgorithm::by_pca_name(&input.signing_algorithm)
            .ok_or_else(|| ApiError::validation("the signing algorithm is not known"))?;
        let template_len = input.template_arn.as_ref().map_or(5, |arn| arn.chars().count());
        validate::length("TemplateArn", template_len, 5, 200)?;
        let template = match &input.template_arn {
            None => Template::default_row(),
            Some(arn) => Template::by_arn(arn).ok_or_else(|| {
                ApiError::new(
                    "InvalidArgsException",
                    format!("{arn} is not the ARN of a template that this service has"),
                )
            })?,
        };
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("templateName", template.name);
        call.notes.parameter("signingAlgorithm", input.signing_algorithm.as_str());
        let allowed = call.authorize_authority("acm-pca:IssueCertificate", &authority)?;
        let not_before = match &input.validity_not_before {
            Some(start) => Some(ca::Validity::try_from(start)?),
            None => None,
        };
        let new = ca::NewCertificate {
            request: &input.csr.0,
            algorithm,
            template,
            passthrough: ca::Passthrough::default(),
            validity: ca::Validity::try_from(&input.validity)?,
            not_before,
            token: input.idempotency_token.as_deref(),
            request_digest,
        };
        let arn = ca::issue(&mut call.work, call.ring, &authority, new, &allowed)?;
        call.notes.response("certificateArn", arn.as_str());
        Ok(Output { certificate_arn: arn })
    }
}
