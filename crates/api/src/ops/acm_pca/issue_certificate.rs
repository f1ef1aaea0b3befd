//! `IssueCertificate`: issues a certificate for a request; beyond AWS, a pair of certificates.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_IssueCertificate.html>

use outlast_crypto::signatures::SignatureAlgorithm;
use outlast_domain::ca;
use outlast_domain::identity::action;
use outlast_pki::templates::Template;

pub use crate::aws::acm_pca::{
    IssueCertificate, IssueCertificateRequest as Input, IssueCertificateResponse as Output,
};
use crate::call::{Call, Run, input_digest};
use crate::model::acm_pca::{Validity, find_authority};
use crate::wire::ApiError;

impl Run for IssueCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, mut input: Input) -> Result<Output, ApiError> {
        let algorithm = SignatureAlgorithm::by_pca_name(&input.signing_algorithm)
            .ok_or_else(|| ApiError::validation("the signing algorithm is unknown"))?;
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
        // A repeated request is recognised in whichever form it spells the template's ARN.
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
