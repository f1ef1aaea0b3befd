//! `CreateCertificateAuthority`: makes a root or subordinate CA with its key and certificate request.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_CreateCertificateAuthority.html>

use outlast_crypto::keys::{KEY_SPECS, KeySpec};
use outlast_crypto::signatures::{SIGNATURES, SignatureAlgorithm};
use outlast_domain::ca;
use outlast_domain::identity::action;
use outlast_domain::settings::KeyStorage;

pub use crate::aws::acm_pca::{
    CreateCertificateAuthority, CreateCertificateAuthorityRequest as Input,
    CreateCertificateAuthorityResponse as Output,
};
use crate::call::{Call, Run, input_digest};
use crate::model::acm_pca::{request_tags, tags};
use crate::wire::{ApiError, validate};

impl Run for CreateCertificateAuthority {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let request_digest = input_digest(&input)?;
        let configuration = input.certificate_authority_configuration;
        let csr_extensions = match &configuration.csr_extensions {
            None => Vec::new(),
            Some(given) => given.read()?,
        };
        let shown = configuration.csr_extensions.as_ref().map(|given| serde_json::json!(given));
        let key_names: Vec<_> = KEY_SPECS.iter().filter_map(|row| row.pca_name).collect();
        validate::one_of("KeyAlgorithm", &configuration.key_algorithm, &key_names)?;
        let signing_names: Vec<_> = SIGNATURES.iter().filter_map(|row| row.pca_name).collect();
        validate::one_of("SigningAlgorithm", &configuration.signing_algorithm, &signing_names)?;
        let usage_mode = input.usage_mode.unwrap_or_else(|| "GENERAL_PURPOSE".into());
        let key_storage =
            key_storage(call.settings.key_storage, input.key_storage_security_standard.as_deref())?;
        let unknown = || ApiError::validation("the algorithm is unknown");
        call.notes.parameter("certificateAuthorityType", input.certificate_authority_type.as_str());
        call.notes.parameter("keyAlgorithm", configuration.key_algorithm.as_str());
        let tags = tags(input.tags.unwrap_or_default())?;
        request_tags(call, &tags);
        let resource = call.scope.arn("acm-pca", "certificate-authority/*");
        let allowed = call.authorize(action::acm_pca::CreateCertificateAuthority, &resource)?;
        if !tags.is_empty() {
            call.authorize(action::acm_pca::TagCertificateAuthority, &resource)?;
        }
        let revocation = match input.revocation_configuration {
            None => ca::Revocation::default(),
            Some(given) => given.apply(&ca::Revocation::default(), &call.settings)?,
        };
        let new = ca::NewAuthority {
            kind: match input.certificate_authority_type.as_str() {
                "ROOT" => ca::Kind::Root,
                _ => ca::Kind::Subordinate,
            },
            spec: KeySpec::by_pca_name(&configuration.key_algorithm).ok_or_else(unknown)?,
            algorithm: SignatureAlgorithm::by_pca_name(&configuration.signing_algorithm)
                .ok_or_else(unknown)?,
            subject: configuration.subject.into(),
            csr_extensions,
            shown_csr_extensions: shown,
            usage_mode,
            key_storage: key_storage.to_owned(),
            revocation,
            tags,
            token: input.idempotency_token,
            request_digest,
        };
        let arn = ca::create(&mut call.work, &call.scope, new, &allowed)?;
        call.notes.resource(arn.clone(), "AWS::ACMPCA::CertificateAuthority");
        call.notes.response("certificateAuthorityArn", arn.as_str());
        Ok(Output { certificate_authority_arn: arn })
    }
}

/// The key storage standard of the new authority: the requested one if the operator's claim meets it, or else
/// everything that the operator claims; empty if that is nothing.
fn key_storage(
    claimed: Option<&'static KeyStorage>,
    wanted: Option<&str>,
) -> Result<&'static str, ApiError> {
    let Some(wanted) = wanted else { return Ok(claimed.map_or("", |claimed| claimed.name)) };
    match KeyStorage::by_name(wanted) {
        Some(row) if claimed.is_some_and(|claimed| claimed.meets(row.name)) => Ok(row.name),
        // The first sentence is AWS's, for Regions that lack the standard.
        _ => Err(ca::CaError::InvalidArgs(format!(
            "A certificate authority cannot be created in this region with the specified security standard. \
             This server does not claim {wanted}: leave KeyStorageSecurityStandard out, or have its operator keep the \
             root key in a token that is certified to it and set key_storage_standard."
        ))
        .into()),
    }
}
