//! `RevokeCertificate`: revokes a certificate by its serial number.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_RevokeCertificate.html>

use outlast_domain::acm::revoke;
use outlast_domain::ca;
use outlast_domain::identity::action;

use crate::aws::Empty;
pub use crate::aws::acm_pca::{RevokeCertificate, RevokeCertificateRequest as Input};
use crate::call::{Call, Run};
use crate::model::acm_pca::find_authority;
use crate::wire::ApiError;

impl Run for RevokeCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("certificateSerial", input.certificate_serial.as_str());
        call.notes.parameter("revocationReason", input.revocation_reason.as_str());
        let action = action::acm_pca::RevokeCertificate;
        let allowed = call.authorize_authority(action, &authority)?;
        let mut at_partner = None;
        // Certificates that were issued as a pair are revoked as a pair, which takes permission for both.
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
        // If Certificate Manager manages the certificate, its record must say so, too.
        if let Some(serial) = ca::canonical_serial(serial) {
            revoke::note_revocation(&mut call.work, &authority, &serial, reason)?;
        }
        Ok(Empty {})
    }
}
