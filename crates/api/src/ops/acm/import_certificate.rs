//! `ImportCertificate`: imports a certificate with its key and chain.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ImportCertificate.html>

use outlast_crypto::Secret;
use outlast_domain::acm::certificate::Origin;
use outlast_domain::acm::import;
use outlast_domain::identity::action;

pub use crate::aws::acm::{
    ImportCertificate, ImportCertificateRequest as Input, ImportCertificateResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::acm::{
    CERTIFICATE, authorize_certificate, authorize_new_tags, find_certificate, tags,
};
use crate::model::request_tags;
use crate::wire::ApiError;

impl Run for ImportCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let private_key = Secret::new(input.private_key.0);
        let tags = tags(input.tags.unwrap_or_default(), "InvalidTagException")?;
        request_tags(&mut call.conditions, &tags);
        call.conditions.set("acm:CertificateKeyPairOrigin", Origin::Imported.name());
        let action = action::acm::ImportCertificate;
        let (replaces, allowed) = match &input.certificate_arn {
            Some(arn) => {
                let found = find_certificate(call, arn)?;
                let allowed = authorize_certificate(call, action, &found)?;
                (Some(found), allowed)
            }
            None => {
                let allowed = call.authorize(action, &call.scope.arn("acm", "certificate/*"))?;
                authorize_new_tags(call, &tags)?;
                (None, allowed)
            }
        };
        let new = import::Import {
            certificate: &input.certificate.0,
            private_key: private_key.expose(),
            chain: input.certificate_chain.as_ref().map(|chain| chain.0.as_slice()),
            replaces,
            tags,
        };
        let arn = import::import(&mut call.work, &call.scope, new, &allowed)?;
        if input.certificate_arn.is_none() {
            call.notes.resource(arn.clone(), CERTIFICATE);
        }
        call.notes.response("certificateArn", arn.as_str());
        Ok(Output { certificate_arn: arn })
    }
}
