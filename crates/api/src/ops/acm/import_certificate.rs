//! `ImportCertificate`: imports a certificate with its key and chain.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_ImportCertificate.html>

use outlast_crypto::Secret;
use outlast_domain::acm::certificate::Origin;
use outlast_domain::acm::import;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm::{
    CERTIFICATE, Tag, authorize_certificate, authorize_new_tags, find_certificate, tags,
};
use crate::model::request_tags;
use crate::ops::{ACM, Call, Operation, ServiceRow};
use crate::wire::{ApiError, Blob, validate};

/// The operation.
pub struct ImportCertificate;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: Option<String>,
    pub certificate: Blob,
    pub private_key: Blob,
    pub certificate_chain: Option<Blob>,
    pub tags: Option<Vec<Tag>>,
}

/// Response body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Output {
    pub certificate_arn: String,
}

impl Operation for ImportCertificate {
    const NAME: &'static str = "ImportCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Output;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        validate::length("Certificate", input.certificate.0.len(), 1, 32_768)?;
        let private_key = Secret::new(input.private_key.0);
        validate::length("PrivateKey", private_key.len(), 1, 8192)?;
        if let Some(chain) = &input.certificate_chain {
            validate::length("CertificateChain", chain.0.len(), 1, 2_097_152)?;
        }
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
