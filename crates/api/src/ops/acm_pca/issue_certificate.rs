//! `IssueCertificate`: issues a certificate for a request; beyond AWS, a pair of certificates.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_IssueCertificate.html>

use outlast_crypto::signatures::{SIGNATURES, SignatureAlgorithm};
use outlast_domain::ca;
use outlast_domain::identity::action;
use outlast_domain::limits::MAX_CSR;
use outlast_pki::templates::Template;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::{ApiPassthrough, Validity, check_token, find_authority};
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
    pub api_passthrough: Option<ApiPassthrough>,
    pub certificate_authority_arn: String,
    pub csr: Blob,
    pub signing_algorithm: String,
    pub template_arn: Option<String>,
    pub validity: Validity,
    pub validity_not_before: Option<Validity>,
    pub idempotency_token: Option<String>,
    /// Beyond AWS: a second request for the same names, for the CA's partner.
    pub paired_csr: Option<Blob>,
}

/// Response body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate_arn: String,
    /// Beyond AWS: what the CA's partner has issued.
    pub paired_certificate_arn: Option<String>,
}

impl Operation for IssueCertificate {
    const NAME: &'static str = "IssueCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, mut input: Input) -> Result<Output, ApiError> {
        validate::length("Csr", input.csr.0.len(), 1, MAX_CSR)?;
        let paired_len = input.paired_csr.as_ref().map_or(1, |csr| csr.0.len());
        validate::length("PairedCsr", paired_len, 1, MAX_CSR)?;
        check_token(input.idempotency_token.as_deref())?;
        let signing_names: Vec<_> = SIGNATURES.iter().filter_map(|row| row.pca_name).collect();
        validate::one_of("SigningAlgorithm", &input.signing_algorithm, &signing_names)?;
        let algorithm = SignatureAlgorithm::by_pca_name(&input.signing_algorithm)
            .ok_or_else(|| ApiError::validation("the signing algorithm is not known"))?;
        let template_len = input.template_arn.as_ref().map_or(5, |arn| arn.chars().count());
        validate::length("TemplateArn", template_len, 5, 200)?;
        let template = match &input.template_arn {
            None => Template::default_row(),
            Some(arn) => ca::template_of(arn).ok_or_else(|| {
                ApiError::new(
                    "InvalidArgsException",
                    format!("{arn} is not the ARN of a template that this service has"),
                )
            })?,
        };
        let template_arn = ca::template_arn(template);
        // A repeated request is recognised however it spells the template.
        input.template_arn = input.template_arn.is_some().then(|| template_arn.clone());
        let request_digest = match &input.idempotency_token {
            Some(_) => input_digest(&input)?,
            None => String::new(),
        };
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("templateName", template.name);
        call.notes.parameter("signingAlgorithm", input.signing_algorithm.as_str());
        let action = action::acm_pca::IssueCertificate;
        call.conditions.set("acm-pca:TemplateArn", template_arn);
        let allowed = call.authorize_authority(action, &authority)?;
        let new = ca::NewCertificate {
            request: &input.csr.0,
            algorithm,
            template,
            passthrough: match input.api_passthrough {
                None => ca::Passthrough::default(),
                Some(given) => given.read()?,
            },
            named: None,
            validity: ca::Validity::try_from(&input.validity)?,
            not_before: input.validity_not_before.as_ref().map(start).transpose()?,
            token: input.idempotency_token.as_deref(),
            request_digest,
        };
        let account = call.scope.account.clone();
        let other = (account != authority.scope().account).then_some(account);
        let requester = ca::Requester { account: other.as_deref(), service: None };
        let (certificate_arn, paired_certificate_arn) = match &input.paired_csr {
            None => {
                let (work, ring) = (&mut call.work, call.ring);
                (ca::issue_for(work, ring, &authority, new, requester, &allowed)?, None)
            }
            Some(csr) => {
                let partner = ca::partner(&mut call.work, &authority)?;
                call.notes.resource(partner.arn(), "AWS::ACMPCA::CertificateAuthority");
                let both = (&allowed, &call.authorize_authority(action, &partner)?);
                let (work, ring, of) = (&mut call.work, call.ring, (&authority, &partner));
                let pair = ca::issue_pair(work, ring, of, new, &csr.0, requester, both)?;
                call.notes.response("pairedCertificateArn", pair.paired.as_str());
                (pair.certificate, Some(pair.paired))
            }
        };
        call.notes.response("certificateArn", certificate_arn.as_str());
        Ok(Output { certificate_arn, paired_certificate_arn })
    }
}

/// "expressed as an explicit date and time"
fn start(validity: &Validity) -> Result<ca::Validity, ApiError> {
    let start = ca::Validity::try_from(validity)?;
    match start.kind {
        ca::ValidityType::Absolute | ca::ValidityType::EndDate => Ok(start),
        _ => Err(ApiError::new(
            "InvalidArgsException",
            "ValidityNotBefore must be a point in time, with the type ABSOLUTE.",
        )),
    }
}
