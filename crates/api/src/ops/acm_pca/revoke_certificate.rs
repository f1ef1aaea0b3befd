//! `RevokeCertificate`: revokes a certificate by its serial number.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_RevokeCertificate.html>

use outlast_domain::acm::certificate;
use outlast_domain::ca;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::{ApiError, validate};

/// The operation.
pub struct RevokeCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub certificate_serial: String,
    pub revocation_reason: String,
}

impl Operation for RevokeCertificate {
    const NAME: &'static str = "RevokeCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        validate::length("CertificateSerial", input.certificate_serial.chars().count(), 0, 128)?;
        validate::one_of("RevocationReason", &input.revocation_reason, ca::REVOCATION_REASONS)?;
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("certificateSerial", input.certificate_serial.as_str());
        call.notes.parameter("revocationReason", input.revocation_reason.as_str());
        let action = action::acm_pca::RevokeCertificate;
        let allowed = call.authorize_authority(action, &authority)?;
        let mut at_partner = None;
        // What was issued together is revoked together: that takes permission for both.
        if let Some((partner, serial)) =
            ca::paired(&mut call.work, &authority, &input.certificate_serial)?
        {
            at_partner = Some(call.authorize_authority(action, &partner)?);
            call.notes.resource(partner.arn(), "AWS::ACMPCA::CertificateAuthority");
            call.notes.parameter("pairedCertificateSerial", serial);
        }
        let (serial, reason) = (&input.certificate_serial, &input.revocation_reason);
        let at = ca::RevokeAt { authority: &allowed, partner: at_partner.as_ref() };
        ca::revoke(&mut call.work, &authority, serial, reason, at)?;
        // Certificate Manager may have the certificate, and says so of it, too.
        if let Some(serial) = ca::canonical_serial(serial) {
            certificate::note_revocation(&mut call.work, &authority, &serial, reason)?;
        }
        Ok(Empty {})
    }
}
