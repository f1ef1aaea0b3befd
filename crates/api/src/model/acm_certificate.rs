//! Certificates as Certificate Manager describes and lists them.

use outlast_crypto::signatures::SignatureAlgorithm;
use outlast_domain::acm::certificate::{Certificate, Origin, Record, Text};
use outlast_domain::acm::proof::{Ended, Method, Name as ProvedName};
use outlast_domain::acm::public::statuses;
use outlast_pki::certificate::Certificate as X509;
use outlast_pki::name::{Name, attributes, common_names};

use super::acm::{CertificateOptions, enabled};
pub use crate::aws::acm::{
    CertificateDetail, CertificateSummary, CustomAttribute, DistinguishedName,
    DnsValidationChallenge, DomainValidation, DomainValidationSummary, ExtendedKeyUsage, KeyUsage,
    RenewalSummary, ResourceRecord, ValidationChallenge, ValidationConfiguration,
};
use crate::wire::Timestamp;

impl CertificateDetail {
    /// Describes a certificate at a time, milliseconds since 1970; it has a text once it is issued.
    pub fn new(certificate: &Certificate, text: Option<&Text>, now_ms: i64) -> Self {
        let record = certificate.record();
        let x509 = text.and_then(|text| X509::parse_one(text.certificate.as_bytes()).ok());
        let requested = record.domain.as_ref().filter(|_| text.is_none());
        let public = record.public.as_ref();
        let revoked = record.revoked.as_ref();
        let usages = record.details.key_usages.iter();
        let purposes = record.details.extended_key_usages.iter();
        Self {
            certificate_arn: certificate.arn(),
            domain_name: record.domain.clone(),
            subject_alternative_names: record.names().into_iter().map(str::to_owned).collect(),
            domain_validation_options: public.map(|_| domain_validations(record, false, now_ms)),
            serial: record.is_issued().then(|| serial(record)),
            subject: match &x509 {
                Some(x509) => Some(x509.subject().to_string()),
                None => requested.map(|domain| format!("CN={domain}")),
            },
            issuer: x509.as_ref().map(issuer_name),
            created_at: Timestamp::from_ms(record.created_ms),
            issued_at: record.issued_ms.map(Timestamp::from_ms),
            imported_at: record.imported_ms.map(Timestamp::from_ms),
            status: certificate.status(now_ms).name().to_owned(),
            revoked_at: revoked.map(|revoked| Timestamp::from_ms(revoked.at_ms)),
            revocation_reason: revoked.map(|revoked| revoked.reason.clone()),
            not_before: record.validity().map(|(begin, _)| Timestamp::from_seconds(begin)),
            not_after: record.validity().map(|(_, end)| Timestamp::from_seconds(end)),
            failure_reason: public.and_then(|public| match &public.ended {
                Some(Ended::Failed { reason }) => Some(reason.clone()),
                Some(Ended::TimedOut) | None => None,
            }),
            key_algorithm: told_algorithm(&record.details.key_algorithm),
            signature_algorithm: x509.as_ref().map(signature_name),
            in_use_by: Vec::new(),
            kind: record.kind().to_owned(),
            renewal_summary: record.renewal.as_ref().map(|summary| RenewalSummary {
                renewal_status: summary.status().to_owned(),
                domain_validation_options: domain_validations(record, true, now_ms),
                renewal_status_reason: summary.reason.clone(),
                updated_at: Timestamp::from_ms(summary.updated_ms),
            }),
            key_usages: usages.map(|name| KeyUsage { name: name.clone() }).collect(),
            extended_key_usages: purposes
                .map(|(name, oid)| ExtendedKeyUsage { name: name.clone(), oid: oid.clone() })
                .collect(),
            // A program that did not name the CA, and finds one here, takes the certificate for another.
            certificate_authority_arn: record.authority.clone().filter(|_| public.is_none()),
            renewal_eligibility: eligibility(record),
            options: (record.origin == Origin::Managed).then(|| CertificateOptions {
                certificate_transparency_logging_preference: Some(enabled(record.transparency)),
                export: Some(enabled(record.exportable)),
                validation_method: public.map(|public| public.method.name().to_owned()),
            }),
            certificate_key_pair_origin: record.origin.name().to_owned(),
            acme_endpoint_arn: record.acme.as_ref().map(|acme| acme.endpoint_arn.clone()),
            acme_account_id: record.acme.as_ref().map(|acme| acme.account_id.clone()),
        }
    }
}

impl CertificateSummary {
    /// Summarises a certificate at a time, milliseconds since 1970.
    pub fn new(certificate: &Certificate, now_ms: i64) -> Self {
        /// Most names of a certificate that a summary lists, by AWS's model.
        const NAMES: usize = 100;
        let record = certificate.record();
        let names = record.names();
        let purposes = record.details.extended_key_usages.iter();
        Self {
            certificate_arn: certificate.arn(),
            domain_name: record.domain.clone(),
            has_additional_subject_alternative_names: names.len() > NAMES,
            subject_alternative_name_summaries: names
                .into_iter()
                .take(NAMES)
                .map(str::to_owned)
                .collect(),
            status: certificate.status(now_ms).name().to_owned(),
            kind: record.kind().to_owned(),
            key_algorithm: told_algorithm(&record.details.key_algorithm),
            key_usages: record.details.key_usages.clone(),
            extended_key_usages: purposes.map(|(name, _)| name.clone()).collect(),
            export_option: enabled(record.exportable),
            in_use: false,
            exported: record.exported,
            renewal_eligibility: eligibility(record),
            not_before: record.validity().map(|(begin, _)| Timestamp::from_seconds(begin)),
            not_after: record.validity().map(|(_, end)| Timestamp::from_seconds(end)),
            created_at: Timestamp::from_ms(record.created_ms),
            issued_at: record.issued_ms.map(Timestamp::from_ms),
            imported_at: record.imported_ms.map(Timestamp::from_ms),
            revoked_at: record.revoked.as_ref().map(|revoked| Timestamp::from_ms(revoked.at_ms)),
            certificate_key_pair_origin: record.origin.name().to_owned(),
        }
    }
}

/// The proofs of a certificate's names: those of its last renewal, or those before it was issued.
fn domain_validations(record: &Record, of_renewal: bool, now_ms: i64) -> Vec<DomainValidation> {
    let Some(public) = &record.public else { return Vec::new() };
    let statuses = statuses(record, of_renewal, now_ms);
    let validation = |(name, status): (&ProvedName, &'static str)| DomainValidation {
        domain_name: name.name.clone(),
        validation_domain: Some(name.name.clone()),
        validation_status: Some(status.to_owned()),
        resource_record: resource_record(public.method, name),
        validation_method: Some(public.method.name().to_owned()),
    };
    public.names.iter().zip(statuses.iter().map(|status| status.name())).map(validation).collect()
}

fn resource_record(method: Method, name: &ProvedName) -> Option<ResourceRecord> {
    let (record_name, value) = name.resource_record();
    (method == Method::Dns).then(|| ResourceRecord {
        name: record_name,
        kind: "CNAME".into(),
        value,
    })
}

/// The same as `ListCertificateDomainValidations` tells it.
pub fn domain_validation_summaries(record: &Record, now_ms: i64) -> Vec<DomainValidationSummary> {
    let summary = |validation: DomainValidation| DomainValidationSummary {
        domain_name: validation.domain_name,
        active_validation_configuration: Some(ValidationConfiguration {
            validation_method: validation.validation_method,
            validation_challenge: validation.resource_record.map(|resource_record| {
                let resource_record = Some(resource_record);
                let dns = DnsValidationChallenge { resource_record };
                ValidationChallenge { dns_validation_challenge: Some(dns) }
            }),
            validation_status: validation.validation_status,
        }),
    };
    domain_validations(record, false, now_ms).into_iter().map(summary).collect()
}

/// `RenewalEligibility` of a certificate.
pub fn eligibility(record: &Record) -> String {
    if record.is_renewable() { "ELIGIBLE" } else { "INELIGIBLE" }.to_owned()
}

/// The serial number as Certificate Manager writes it: `0a:1b`.
pub fn serial(record: &Record) -> String {
    let digits = record.details.serial.as_bytes();
    let pairs: Vec<_> = digits.chunks(2).map(|pair| String::from_utf8_lossy(pair)).collect();
    pairs.join(":")
}

/// The issuer as Certificate Manager shows it: its organization, or else its common name, or else the whole name.
fn issuer_name(x509: &X509) -> String {
    let organization =
        attributes(x509.issuer()).into_iter().find(|(oid, _)| oid.to_string() == "2.5.4.10");
    organization
        .map(|(_, value)| value)
        .or_else(|| common_names(x509.issuer()).next())
        .unwrap_or_else(|| x509.issuer().to_string())
}

/// Private CA's name of the signature algorithm, or else the RFCs' name.
fn signature_name(x509: &X509) -> String {
    let oid = x509.signature_algorithm();
    SignatureAlgorithm::by_oid(oid)
        .and_then(|row| row.pca_name)
        .or_else(|| outlast_pki::oid_name(oid))
        .map_or_else(|| oid.to_string(), str::to_owned)
}

/// RFC 4519, section 2.4.
const DOMAIN_COMPONENT: &str = "0.9.2342.19200300.100.1.25";

impl From<&Name> for DistinguishedName {
    fn from(name: &Name) -> Self {
        let mut out = Self::default();
        for (oid, value) in attributes(name) {
            let row = outlast_pki::name::FIELDS.iter().find(|row| row.oid == oid);
            let oid = oid.to_string();
            let member = match row.map(|row| row.name) {
                Some("CommonName") => &mut out.common_name,
                Some("Country") => &mut out.country,
                Some("DistinguishedNameQualifier") => &mut out.distinguished_name_qualifier,
                Some("GenerationQualifier") => &mut out.generation_qualifier,
                Some("GivenName") => &mut out.given_name,
                Some("Initials") => &mut out.initials,
                Some("Locality") => &mut out.locality,
                Some("Organization") => &mut out.organization,
                Some("OrganizationalUnit") => &mut out.organizational_unit,
                Some("Pseudonym") => &mut out.pseudonym,
                Some("SerialNumber") => &mut out.serial_number,
                Some("State") => &mut out.state,
                Some("Surname") => &mut out.surname,
                Some("Title") => &mut out.title,
                _ if oid == DOMAIN_COMPONENT => {
                    out.domain_components.get_or_insert_default().push(value);
                    continue;
                }
                _ => {
                    let custom = CustomAttribute { object_identifier: oid, value };
                    out.custom_attributes.get_or_insert_default().push(custom);
                    continue;
                }
            };
            // The first of several values wins.
            member.get_or_insert(value);
        }
        out
    }
}

/// A key algorithm as answers spell it: `RSA-2048`, where requests and policies spell `RSA_2048`.
pub fn told_algorithm(name: &str) -> String {
    name.replace("RSA_", "RSA-")
}
