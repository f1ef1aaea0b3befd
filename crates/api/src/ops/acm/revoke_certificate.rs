//! `RevokeCertificate`: revokes a certificate at its private CA.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RevokeCertificate.html>

use outlast_domain::acm::{AcmError, revoke};
use outlast_domain::ca::{self, permission::CERTIFICATE_MANAGER};
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    RevokeCertificate, RevokeCertificateRequest as Input, RevokeCertificateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{authorize_certificate, find_certificate};
use crate::wire::ApiError;

impl Run for RevokeCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let reason = input.revocation_reason.as_str();
        let certificate = find_certificate(call, &input.certificate_arn)?;
        call.notes.parameter("revocationReason", reason);
        let allowed = authorize_certificate(call, action::acm::RevokeCertificate, &certificate)?;
        let Some(authority) = certificate.record().authority.clone() else {
            return Err(ApiError::validation(format!(
                "Certificate {} was imported; only its issuer can revoke it.",
                input.certificate_arn
            )));
        };
        let authority = ca::find(&mut call.work, &call.scope, &authority)
            .map_err(|error| AcmError::Conflict(error.to_string()))?;
        let action = action::acm_pca::RevokeCertificate;
        call.conditions.forward(CERTIFICATE_MANAGER);
        let at_authority = call.authorize_authority(action, &authority)?;
        // Certificates that were issued as a pair are revoked as a pair, which takes permission for both.
        let mut at_partner = None;
        let serial = &certificate.record().details.serial;
        if let Some((partner, serial)) = ca::paired(&mut call.work, &authority, serial)? {
            at_partner = Some(call.authorize_authority(action, &partner)?);
            call.notes.resource(partner.arn(), "AWS::ACMPCA::CertificateAuthority");
            call.notes.parameter("pairedCertificateSerial", serial);
        }
        let at = ca::RevokeAt { authority: &at_authority, partner: at_partner.as_ref() };
        let work = &mut call.work;
        revoke::revoke(work, certificate, &authority, reason, &allowed, at)?;
        Ok(Output { certificate_arn: input.certificate_arn })
    }
}
