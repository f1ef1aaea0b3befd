//! Certificate Manager's structures of ACME endpoints.

use std::collections::BTreeMap;

use outlast_domain::acme::{
    self, AUTHORIZATION_BEHAVIORS, Account, AuthorizationBehavior, Binding, CONTACTS, Contact,
    Endpoint, Idempotency, Validation, ValidationStatus,
};
use outlast_domain::arn::shown_in;
use outlast_domain::ca::permission::CERTIFICATE_MANAGER;
use outlast_domain::identity::Permit;
use outlast_domain::identity::action;
use outlast_domain::kms::Access;

pub use super::acm::authorize_tagged;
use super::acm::enabled;
use super::{marker, unique_tags};
use crate::acme::resource::Urls;
pub use crate::aws::acm::{
    AcmeAccount, AcmeDomainValidation, AcmeEndpoint, AcmeExternalAccountBinding,
    CertificateAuthority, DnsPrevalidationDetails, DnsPrevalidationOptions, DomainScope,
    Expiration, FailureDetails, PrevalidationDetails, PrevalidationOptions,
    PrivateCertificateAuthority, PublicCertificateAuthority, ResourceRecord, Tag,
};
use crate::call::Call;
use crate::wire::{ApiError, Timestamp, validate};
pub use outlast_domain::acme::{AUTHORITY_TAG, SERVICE_PRINCIPAL};

/// CloudTrail's type of an endpoint.
pub const ENDPOINT: &str = "AWS::CertificateManager::AcmeEndpoint";
/// CloudTrail's type of an external account binding.
pub const BINDING: &str = "AWS::CertificateManager::AcmeExternalAccountBinding";
/// CloudTrail's type of a domain validation.
pub const VALIDATION: &str = "AWS::CertificateManager::AcmeDomainValidation";

/// What a [`CertificateAuthority`] says: the CA's ARN, if it names one, and the key algorithms.
pub struct WantedAuthority {
    /// ARN of the CA.
    pub arn: Option<String>,
    /// `AllowedKeyAlgorithms`.
    pub key_algorithms: Option<Vec<String>>,
}

impl CertificateAuthority {
    /// Reads the union.
    pub fn read(self) -> Result<WantedAuthority, ApiError> {
        let wanted = match (self.public_certificate_authority, self.private_certificate_authority) {
            (Some(public), None) => {
                WantedAuthority { arn: None, key_algorithms: public.allowed_key_algorithms }
            }
            (None, Some(private)) => WantedAuthority {
                arn: Some(private.certificate_authority_arn),
                key_algorithms: private.allowed_key_algorithms,
            },
            _ => {
                return Err(ApiError::validation(
                    "CertificateAuthority must have exactly one member: PublicCertificateAuthority or \
                     PrivateCertificateAuthority.",
                ));
            }
        };
        if let Some(arn) = &wanted.arn {
            validate::length("CertificateAuthorityArn", arn.chars().count(), 5, 200)?;
        }
        let names = key_algorithms();
        let count = wanted.key_algorithms.as_ref().map_or(0, Vec::len);
        validate::length("AllowedKeyAlgorithms", count, 0, names.len())?;
        let given = wanted.key_algorithms.iter().flatten();
        for name in given {
            validate::one_of("AllowedKeyAlgorithms", name, &names)?;
        }
        Ok(wanted)
    }
}

/// AWS's three key algorithms, and those beyond AWS.
fn key_algorithms() -> Vec<&'static str> {
    let specs = outlast_crypto::keys::KEY_SPECS.iter();
    specs.filter_map(|spec| spec.pca_name).collect()
}

/// Notes the key algorithms for the audit record, if the request names any.
pub fn note_key_algorithms(call: &mut Call<'_>, wanted: &WantedAuthority) {
    if let Some(names) = &wanted.key_algorithms {
        call.notes.parameter("allowedKeyAlgorithms", names.clone());
    }
}

/// Notes the scope of a domain validation for the audit record.
pub fn note_scope(call: &mut Call<'_>, scope: acme::DomainScope) {
    call.notes.parameter(
        "domainScope",
        serde_json::json!({
            "exactDomain": enabled(scope.exact),
            "subdomains": enabled(scope.subdomains),
            "wildcards": enabled(scope.wildcards),
        }),
    );
}

/// Reads `Contact`.
pub fn contact(name: &str) -> Result<Contact, ApiError> {
    by_name("Contact", name, CONTACTS)
}

/// Reads `AuthorizationBehavior`.
pub fn authorization(name: &str) -> Result<AuthorizationBehavior, ApiError> {
    by_name("AuthorizationBehavior", name, AUTHORIZATION_BEHAVIORS)
}

fn by_name<T: Copy>(member: &str, name: &str, rows: &[(&str, T)]) -> Result<T, ApiError> {
    let found = rows.iter().find(|row| row.0 == name).map(|row| row.1);
    found.ok_or_else(|| ApiError::validation(format!("{member} is unknown")))
}

fn name_of<T: PartialEq>(value: &T, rows: &[(&'static str, T)]) -> String {
    rows.iter().find(|row| row.1 == *value).map_or("", |row| row.0).to_owned()
}

impl AcmeEndpoint {
    /// Describes an endpoint, with the URLs of this server.
    pub fn new(endpoint: &Endpoint, call: &Call<'_>) -> Self {
        let authority = endpoint.authority();
        let names = &authority.key_algorithms;
        let allowed_key_algorithms = (!names.is_empty()).then(|| names.clone());
        let certificate_authority = if authority.by_tag {
            let public = PublicCertificateAuthority { allowed_key_algorithms };
            CertificateAuthority {
                public_certificate_authority: Some(public),
                ..CertificateAuthority::default()
            }
        } else {
            let private = PrivateCertificateAuthority {
                certificate_authority_arn: authority.arn.clone(),
                allowed_key_algorithms,
            };
            CertificateAuthority {
                private_certificate_authority: Some(private),
                ..CertificateAuthority::default()
            }
        };
        let tags = endpoint.certificate_tags();
        Self {
            acme_endpoint_arn: endpoint.arn(),
            endpoint_url: urls(call, endpoint).directory(),
            status: "ACTIVE".into(),
            failure_reason: None,
            authorization_behavior: name_of(&endpoint.authorization(), AUTHORIZATION_BEHAVIORS),
            contact: name_of(&endpoint.contact(), CONTACTS),
            certificate_authority,
            certificate_tags: (!tags.is_empty()).then(|| tag_list(tags)),
            created_at: Timestamp::from_ms(endpoint.created_ms()),
            updated_at: Timestamp::from_ms(endpoint.updated_ms()),
        }
    }
}

fn tag_list(tags: &BTreeMap<String, String>) -> Vec<Tag> {
    let pairs = tags.iter();
    pairs.map(|(key, value)| Tag { key: key.clone(), value: Some(value.clone()) }).collect()
}

/// The URLs of an endpoint, at the address that the operator has set for this server.
pub fn urls(call: &Call<'_>, endpoint: &Endpoint) -> Urls {
    Urls::new(&call.settings.service_url, endpoint.id())
}

/// The id in the URL of an account, under whichever host name of the server the account was made.
pub fn account_id<'a>(endpoint: &Endpoint, url: &'a str) -> Option<&'a str> {
    let path = url.strip_prefix("https://")?;
    let path = &path[path.find('/')?..];
    path.strip_prefix(crate::acme::resource::PREFIX)?
        .strip_prefix(endpoint.id())?
        .strip_prefix("/account/")
}

impl From<&Binding> for AcmeExternalAccountBinding {
    fn from(binding: &Binding) -> Self {
        Self {
            acme_external_account_binding_arn: binding.arn(),
            acme_endpoint_arn: binding.endpoint().arn(),
            role_arn: shown_in(&binding.endpoint().scope().region, &binding.role_arn()),
            expires_at: binding.expires_ms().map(Timestamp::from_ms),
            revoked_at: binding.revoked_ms().map(Timestamp::from_ms),
            last_used_at: binding.last_used_ms().map(Timestamp::from_ms),
            created_at: Timestamp::from_ms(binding.created_ms()),
            updated_at: Timestamp::from_ms(binding.updated_ms()),
        }
    }
}

impl Expiration {
    /// Adds the duration to a time in milliseconds since 1970.
    pub fn after(&self, now_ms: i64) -> Result<i64, ApiError> {
        let units = [("MINUTES", 60_000), ("HOURS", 3_600_000), ("DAYS", 86_400_000)];
        let unit = by_name("Type", &self.kind, &units)?;
        (self.value >= 1)
            .then(|| now_ms.checked_add(self.value.checked_mul(unit)?))
            .flatten()
            .ok_or_else(|| {
                ApiError::validation(
                    "Value must be greater than or equal to 1, and small enough for a valid date.",
                )
            })
    }
}

impl PrevalidationOptions {
    /// The requested scope, if there is one.
    pub fn read(self) -> Result<Option<acme::DomainScope>, ApiError> {
        let Some(dns) = self.dns_prevalidation else {
            return Err(ApiError::validation(
                "PrevalidationOptions must have exactly one member: DnsPrevalidation.",
            ));
        };
        if dns.hosted_zone_id.is_some() {
            return Err(ApiError::validation(
                "HostedZoneId is for Route 53, which outlast has no access to: leave it out and make the CNAME \
                 record of DescribeAcmeDomainValidation in your DNS.",
            ));
        }
        let Some(scope) = dns.domain_scope else { return Ok(None) };
        let read = |name: &str, option: Option<String>| match option.as_deref() {
            None => Ok(false),
            Some(value) => by_name(name, value, &[("ENABLED", true), ("DISABLED", false)]),
        };
        Ok(Some(acme::DomainScope {
            exact: read("ExactDomain", scope.exact_domain)?,
            subdomains: read("Subdomains", scope.subdomains)?,
            wildcards: read("Wildcards", scope.wildcards)?,
        }))
    }
}

impl From<&Validation> for AcmeDomainValidation {
    fn from(validation: &Validation) -> Self {
        let option = |on| Some(enabled(on));
        let scope = validation.scope();
        let (name, value) = validation.resource_record();
        let failure_details = (validation.status() != ValidationStatus::Valid)
            .then(|| validation.message())
            .flatten()
            .map(|message| FailureDetails {
                reason: (validation.status() == ValidationStatus::Invalid)
                    .then(|| "TIMED_OUT".to_owned()),
                message: Some(message.to_owned()),
            });
        Self {
            acme_domain_validation_arn: validation.arn(),
            acme_endpoint_arn: validation.endpoint().arn(),
            domain_name: validation.domain().to_owned(),
            prevalidation_type: "DNS_PREVALIDATION".into(),
            prevalidation_details: PrevalidationDetails {
                dns_prevalidation: DnsPrevalidationDetails {
                    domain_scope: DomainScope {
                        exact_domain: option(scope.exact),
                        subdomains: option(scope.subdomains),
                        wildcards: option(scope.wildcards),
                    },
                    resource_record: ResourceRecord { name, kind: "CNAME".into(), value },
                },
            },
            status: validation.status().name().to_owned(),
            failure_details,
            created_at: Timestamp::from_ms(validation.created_ms()),
            updated_at: Timestamp::from_ms(validation.updated_ms()),
        }
    }
}

impl AcmeAccount {
    /// Describes an account, with the URLs of this server.
    pub fn new(account: &Account, call: &Call<'_>) -> Self {
        Self {
            account_url: urls(call, account.endpoint()).account(account.id()),
            public_key_thumbprint: account.key().thumbprint.clone(),
            status: account.status().name().to_ascii_uppercase(),
            created_at: Timestamp::from_ms(account.created_ms()),
            acme_external_account_binding_arn: account.binding_arn(),
            contacts: account.contacts().to_vec(),
        }
    }
}

/// Reads `Tags` or `CertificateTags`.
pub fn tags(list: Option<Vec<Tag>>) -> Result<BTreeMap<String, String>, ApiError> {
    let Some(list) = list else { return Ok(BTreeMap::new()) };
    let pairs = list.into_iter().map(|tag| (tag.key, tag.value.unwrap_or_default()));
    unique_tags(pairs, "ValidationException")
}

/// Reads `IdempotencyToken`, bound to the digest of the whole request.
pub fn idempotency(token: Option<String>, request: String) -> Result<Idempotency, ApiError> {
    if let Some(token) = &token {
        validate::length("IdempotencyToken", token.chars().count(), 1, 128)?;
    }
    Ok(Idempotency { token, request })
}

/// Reverses [`marker::wrap`].
pub fn next_token(token: Option<&str>) -> Result<Option<String>, ApiError> {
    marker::unwrap(token, "ValidationException")
}

/// Finds an endpoint and notes it for the audit record.
pub fn find_endpoint(call: &mut Call<'_>, arn: &str) -> Result<Endpoint, ApiError> {
    call.notes.parameter("acmeEndpointArn", arn);
    let found = acme::find_endpoint(&mut call.work, &call.scope, arn)?;
    call.notes.resource(found.arn(), ENDPOINT);
    Ok(found)
}

/// Authorizes issuance from the CA of an endpoint; from then on the request names the CA by its ARN.
pub fn authorize_issuing(
    call: &mut Call<'_>,
    authority: &mut acme::Authority,
) -> Result<Permit<action::acm_pca::IssueCertificate>, ApiError> {
    let scope = call.scope.clone();
    let found = acme::authority_of(&mut call.work, &scope, authority)?;
    authority.arn = found.arn();
    call.notes.resource(found.arn(), "AWS::ACMPCA::CertificateAuthority");
    // Certificate Manager acts with the caller's rights, for this one permission.
    let mut conditions = call.conditions.clone();
    conditions.set("acm-pca:TemplateArn", outlast_domain::acm::template_arn());
    conditions.forward(CERTIFICATE_MANAGER);
    let (work, access) = call.split();
    let access = Access { conditions: &conditions, ..access };
    Ok(outlast_domain::ca::authorize(work, access, action::acm_pca::IssueCertificate, &found)?)
}

/// Finds an external account binding and notes it for the audit record.
pub fn find_binding(call: &mut Call<'_>, arn: &str) -> Result<Binding, ApiError> {
    call.notes.parameter("acmeExternalAccountBindingArn", arn);
    let found = acme::find_binding(&mut call.work, &call.scope, arn)?;
    call.notes.resource(found.arn(), BINDING);
    Ok(found)
}

/// Finds a domain validation and notes it for the audit record.
pub fn find_validation(call: &mut Call<'_>, arn: &str) -> Result<Validation, ApiError> {
    call.notes.parameter("acmeDomainValidationArn", arn);
    let found = acme::find_validation(&mut call.work, &call.scope, arn)?;
    call.notes.resource(found.arn(), VALIDATION);
    Ok(found)
}

/// Finds an account by its URL.
pub fn find_account(
    call: &mut Call<'_>,
    endpoint: &Endpoint,
    url: &str,
) -> Result<Account, ApiError> {
    validate::length("AccountUrl", url.chars().count(), 1, 2048)?;
    call.notes.parameter("accountUrl", url);
    let found = match account_id(endpoint, url) {
        Some(id) => acme::find_account(&mut call.work, endpoint, id)?,
        None => None,
    };
    found.ok_or_else(|| {
        ApiError::new(
            "ResourceNotFoundException",
            "Could not find an ACME account with that URL at the endpoint.",
        )
    })
}
