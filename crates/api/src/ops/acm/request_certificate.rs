//! `RequestCertificate`: has a private CA issue a certificate, whose key stays in the service until it is exported.
//! Without CertificateAuthorityArn it is the operator's default authority, once the names are proved in DNS.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RequestCertificate.html>

use outlast_domain::acm::certificate::{Options, Origin};
use outlast_domain::acm::conditions::Wanted;
use outlast_domain::acm::proof::Method;
use outlast_domain::acm::public::{self, NewPublicCertificate};
use outlast_domain::acm::request::{self, NewCertificate};
use outlast_domain::ca::permission::CERTIFICATE_MANAGER;
use outlast_domain::ca::{Authority, CaError};
use outlast_domain::identity::action;
use outlast_domain::{acm, ca};

pub use crate::aws::acm::{
    DomainValidationOption, RequestCertificate, RequestCertificateRequest as Input,
    RequestCertificateResponse as Output,
};
use crate::call::{Call, Run, input_digest};
use crate::model::acm::{CERTIFICATE, authorize_new_tags, check_domain, tags};
use crate::model::request_tags;
use crate::wire::ApiError;

impl Run for RequestCertificate {
    const READ_ONLY: bool = false;
    // RSA keys take long to generate.

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        check(&input)?;
        let configured = call.settings.public_certificates.authority(&call.scope);
        let Some(authority) = input.certificate_authority_arn.as_deref().or(configured) else {
            return Err(ApiError::new(
                "InvalidParameterException",
                "CertificateAuthorityArn is required: outlast has no public certificate authority, and its operator has \
                 named none for this account and Region ([acm] default_authority).",
            ));
        };
        let authority = authority.to_owned();
        call.notes.parameter("domainName", input.domain_name.as_str());
        let names = input.subject_alternative_names.clone().unwrap_or_default();
        call.notes.parameter("subjectAlternativeNames", names);
        call.notes.parameter("certificateAuthorityArn", authority.as_str());
        if let Some(algorithm) = &input.key_algorithm {
            call.notes.parameter("keyAlgorithm", algorithm.as_str());
        }
        let arn = match input.certificate_authority_arn {
            Some(_) => from_named_authority(call, input, &authority)?,
            None => from_default_authority(call, input, &authority)?,
        };
        call.notes.resource(arn.clone(), CERTIFICATE);
        call.notes.response("certificateArn", arn.as_str());
        Ok(Output { certificate_arn: arn })
    }
}

/// A private CA issues at once, and needs no proof of the names.
fn from_named_authority(
    call: &mut Call<'_>,
    input: Input,
    authority: &str,
) -> Result<String, ApiError> {
    let request_digest = input_digest(&input)?;
    let options = input.options.clone().unwrap_or_default().read();
    let tags = tags(input.tags.clone().unwrap_or_default(), "InvalidTagException")?;
    // Only an authorized caller learns whether the CA exists.
    let found = ca::find(&mut call.work, &call.scope, authority);
    conditions(call, &input, options, found.as_ref());
    request_tags(&mut call.conditions, &tags);
    let allowed =
        call.authorize(action::acm::RequestCertificate, &call.scope.arn("acm", "certificate/*"))?;
    authorize_new_tags(call, &tags)?;
    let authority = found.map_err(acm::refused_by_authority)?;
    let partner = request::partner(&mut call.work, &authority)?;
    // AWS also asks with the caller's own rights ("forward access").
    let action = action::acm_pca::IssueCertificate;
    call.conditions.set("acm-pca:TemplateArn", acm::template_arn());
    call.conditions.forward(CERTIFICATE_MANAGER);
    let at_authority = call.authorize_authority(action, &authority)?;
    let at_partner = match &partner {
        Some(partner) => Some((partner, call.authorize_authority(action, partner)?)),
        None => None,
    };
    let new = NewCertificate {
        issuers: acm::Issuers {
            authority: (&authority, &at_authority),
            partner: at_partner.as_ref().map(|(partner, allowed)| (*partner, allowed)),
            template: acm::private_template(),
        },
        exportable: is_exportable(&input, options),
        domain: input.domain_name,
        names: input.subject_alternative_names.unwrap_or_default(),
        key_algorithm: input.key_algorithm.as_deref(),
        transparency: is_transparent(options),
        tags,
        token: input.idempotency_token.as_deref(),
        request_digest,
    };
    Ok(request::request(&mut call.work, call.ring, &call.scope, new, &allowed)?)
}

/// The operator's default authority issues when the names are proved, by what it permits Certificate Manager to do: the
/// caller needs no rights at it, as at AWS.
fn from_default_authority(
    call: &mut Call<'_>,
    input: Input,
    authority: &str,
) -> Result<String, ApiError> {
    let request_digest = input_digest(&input)?;
    let options = input.options.clone().unwrap_or_default().read();
    let tags = tags(input.tags.clone().unwrap_or_default(), "InvalidTagException")?;
    let found = ca::find(&mut call.work, &call.scope, authority);
    conditions(call, &input, options, found.as_ref());
    request_tags(&mut call.conditions, &tags);
    let allowed =
        call.authorize(action::acm::RequestCertificate, &call.scope.arn("acm", "certificate/*"))?;
    authorize_new_tags(call, &tags)?;
    let method = match validation_method(&input) {
        "DNS" => Method::Dns,
        "EMAIL" => Method::Email,
        other => {
            return Err(ApiError::new(
                "InvalidParameterException",
                format!(
                    "ValidationMethod {other} is for CloudFront, which outlast does not have; request DNS."
                ),
            ));
        }
    };
    let new = NewPublicCertificate {
        authority,
        method,
        exportable: is_exportable(&input, options),
        domain: input.domain_name,
        names: input.subject_alternative_names.unwrap_or_default(),
        key_algorithm: input.key_algorithm.as_deref(),
        transparency: is_transparent(options),
        tags,
        token: input.idempotency_token.as_deref(),
        request_digest,
    };
    Ok(public::request(&mut call.work, call.ring, &call.scope, new, &allowed)?)
}

/// Checks the members. Those about validation by e-mail have no effect: none is sent.
fn check(input: &Input) -> Result<(), ApiError> {
    check_domain("DomainName", &input.domain_name)?;
    let names = input.subject_alternative_names.as_deref();
    for name in names.unwrap_or_default() {
        check_domain("SubjectAlternativeNames", name)?;
    }
    if input.managed_by.is_some() {
        return Err(ApiError::new(
            "InvalidParameterException",
            "ManagedBy is for public certificates of a service that outlast does not have.",
        ));
    }
    let options = input.domain_validation_options.as_deref();
    for option in options.unwrap_or_default() {
        check_domain("DomainName", &option.domain_name)?;
        check_domain("ValidationDomain", &option.validation_domain)?;
        let is_named = std::iter::once(&input.domain_name)
            .chain(names.unwrap_or_default())
            .any(|name| name.eq_ignore_ascii_case(&option.domain_name));
        let (domain, above) = (
            option.domain_name.to_ascii_lowercase(),
            option.validation_domain.to_ascii_lowercase(),
        );
        if !is_named || !(domain == above || domain.ends_with(&format!(".{above}"))) {
            return Err(ApiError::new(
                "InvalidDomainValidationOptionsException",
                "Each DomainName must be one that is requested, and its ValidationDomain must be the same or a domain \
                 above it.",
            ));
        }
    }
    Ok(())
}

/// Whether the key can be exported. Without an option AWS's default holds: for a private certificate yes, for others no.
fn is_exportable(input: &Input, options: Options) -> bool {
    options.exportable.unwrap_or(input.certificate_authority_arn.is_some())
}

/// The validation method that is requested. AWS's default is EMAIL; where the default authority issues it is DNS, because no
/// e-mail is sent.
fn validation_method(input: &Input) -> &str {
    let of_options = || input.options.as_ref()?.validation_method.as_deref();
    let default = if input.certificate_authority_arn.is_some() { "EMAIL" } else { "DNS" };
    input.validation_method.as_deref().or_else(of_options).unwrap_or(default)
}

fn is_transparent(options: Options) -> bool {
    options.transparency.unwrap_or(true)
}

/// Sets the condition keys of a request to what will hold in the end, defaults included.
fn conditions(
    call: &mut Call<'_>,
    input: &Input,
    options: Options,
    found: Result<&Authority, &CaError>,
) {
    let mut names = vec![input.domain_name.clone()];
    names.extend(input.subject_alternative_names.iter().flatten().cloned());
    let by_default = found.map_or("RSA_2048", acm::default_key);
    let wanted = Wanted {
        names: &names,
        key_algorithm: input.key_algorithm.as_deref().unwrap_or(by_default),
        // A CA that does not exist is refused later on.
        authority: &found.map(Authority::arn).unwrap_or_default(),
        origin: Origin::Managed,
        validation_method: validation_method(input),
        exportable: is_exportable(input, options),
        transparency: is_transparent(options),
    };
    wanted.set(&mut call.conditions);
}
