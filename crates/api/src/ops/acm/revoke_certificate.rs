//! `RevokeCertificate`: revokes a certificate at its private CA.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RevokeCertificate.html>

use outlast_domain::acm::{AcmError, certificate};
use outlast_domain::ca::{self, permission::CERTIFICATE_MANAGER};
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{authorize_certificate, find_certificate};
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct RevokeCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
    pub revocation_reason: String,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate_arn: String,
}

impl Operation for RevokeCertificate {
    const NAME: &'static str = "RevokeCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let reason = input.revocation_reason.as_str();
        validate::one_of("RevocationReason", reason, REASONS)?;
        let certificate = find_certificate(call, &input.certificate_arn)?;
        call.notes.parameter("revocationReason", reason);
        let allowed = authorize_certificate(call, action::acm::RevokeCertificate, &certificate)?;
        let Some(authority) = certificate.record().authority.clone() else {
            return Err(ApiError::validation(format!(
                "Certificate {} was imported; who issued it revokes it.",
                input.certificate_arn
            )));
        };
        let authority = ca::find(&mut call.work, &call.scope, &authority)
            .map_err(|error| AcmError::Conflict(error.to_string()))?;
        let action = action::acm_pca::RevokeCertificate;
        call.conditions.forward(CERTIFICATE_MANAGER);
        let at_authority = call.authorize_authority(action, &authority)?;
        // What was issued together is revoked together: that takes permission for both.
        let mut at_partner = None;
        let serial = &certificate.record().details.serial;
        if let Some((partner, serial)) = ca::paired(&mut call.work, &authority, serial)? {
            at_partner = Some(call.authorize_authority(action, &partner)?);
            call.notes.resource(partner.arn(), "AWS::ACMPCA::CertificateAuthority");
            call.notes.parameter("pairedCertificateSerial", serial);
        }
        let at = ca::RevokeAt { authority: &at_authority, partner: at_partner.as_ref() };
        let work = &mut call.work;
        certificate::revoke(work, certificate, &authority, reason, &allowed, at)?;
        Ok(Output { certificate_arn: input.certificate_arn })
    }
}

/// `RevocationReason`; a private CA knows all but the last two.
const REASONS: &[&str] = &[
    "UNSPECIFIED",
    "KEY_COMPROMISE",
    "CA_COMPROMISE",
    "AFFILIATION_CHANGED",
    "SUPERCEDED",
    "SUPERSEDED",
    "CESSATION_OF_OPERATION",
    "PRIVILEGE_WITHDRAWN",
    "A_A_COMPROMISE",
    "CERTIFICATE_HOLD",
    "REMOVE_FROM_CRL",
];
