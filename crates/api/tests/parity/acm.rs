//! Certificate Manager.

use outlast_api::model::{acm as model, acm_acme as acme, acm_certificate, acm_search};
use outlast_api::ops::ACM;
use outlast_api::ops::acm as ops;
use outlast_api::wire::fields::fields_of;
use outlast_domain::acm::certificate::{Origin, REASONS, Status};

use super::{Part, set};

const AT_ONCE: &str = "a certificate is issued at once, or not at all";
const PUBLIC: &str = "there is no public CA here, so no domain is validated";
const PRIVATE: &str = "the domains of private certificates are not validated";
const HOLD: &str = "a private CA does not put certificates on hold";
const NOT_PCA: &str = "for public certificates";

pub(super) static PART: Part = Part {
    title: "Certificate Manager",
    model: "acm",
    service: &ACM,
    refused: &[("ManagedBy", "for public certificates of CloudFront")],
    idle: &[
        ("RequestCertificate", "DomainValidationOptions", PRIVATE),
        ("RequestCertificate", "ValidationMethod", "only policies can ask for it"),
    ],
    absent: &[
        ("*", "ManagedBy", "no other service manages certificates here"),
        ("CertificateDetail", "DomainValidationOptions", "AWS has it for public certificates only"),
        ("CertificateDetail", "FailureReason", AT_ONCE),
        ("CertificateDetail", "UpdateSummary", PUBLIC),
        ("AcmCertificateMetadata", "ValidationMethod", PUBLIC),
        (
            "DnsPrevalidationDetails",
            "HostedZoneId",
            "there is no Route 53; a request that names a zone is refused",
        ),
    ],
    values: &[
        ("CertificateManagedBy", "CLOUDFRONT", "no other service manages certificates here"),
        ("CertificateStatus", "FAILED", AT_ONCE),
        ("CertificateStatus", "INACTIVE", NOT_PCA),
        ("CertificateStatus", "PENDING_VALIDATION", AT_ONCE),
        ("CertificateStatus", "VALIDATION_TIMED_OUT", AT_ONCE),
        ("CertificateType", "AMAZON_ISSUED", "there is no public CA here"),
        ("FailureReason", "ADDITIONAL_VERIFICATION_REQUIRED", NOT_PCA),
        ("FailureReason", "CAA_ERROR", NOT_PCA),
        ("FailureReason", "DOMAIN_NOT_ALLOWED", NOT_PCA),
        ("FailureReason", "DOMAIN_VALIDATION_DENIED", NOT_PCA),
        ("FailureReason", "INVALID_PUBLIC_DOMAIN", NOT_PCA),
        ("FailureReason", "NO_AVAILABLE_CONTACTS", NOT_PCA),
        ("FailureReason", "OTHER", "every refusal of a private CA has a reason of its own"),
        ("FailureReason", "PCA_LIMIT_EXCEEDED", "a private CA has no such limit here"),
        (
            "FailureReason",
            "PCA_NAME_CONSTRAINTS_VALIDATION",
            "it is PCA_INVALID_ARGS, with the constraint's name in the text",
        ),
        ("FailureReason", "SLR_NOT_FOUND", "there are no service-linked roles"),
        ("KeyAlgorithm", "RSA_1024", "AWS-LC's Rust interface takes no RSA key below 2048 bits"),
        ("RenewalStatus", "PENDING_AUTO_RENEWAL", "a renewal is one step"),
        ("RenewalStatus", "PENDING_VALIDATION", PUBLIC),
        ("RevocationReason", "CERTIFICATE_HOLD", HOLD),
        ("RevocationReason", "REMOVE_FROM_CRL", HOLD),
        ("ValidationMethod", "DNS", PUBLIC),
        ("ValidationMethod", "EMAIL", PUBLIC),
        ("ValidationMethod", "HTTP", PUBLIC),
    ],
    // Pairs of certificates, and ACME endpoints with a private CA.
    beyond: &[
        ("ExportCertificate", "PairedCertificate"),
        ("ExportCertificate", "PairedCertificateChain"),
        ("ExportCertificate", "PairedPrivateKey"),
        ("GetCertificate", "PairedCertificate"),
        ("GetCertificate", "PairedCertificateChain"),
        ("CertificateAuthority", "PrivateCertificateAuthority"),
    ],
    answers_error: |name| {
        (name == "ResendValidationEmail")
            .then_some("answers with AWS's error for a certificate that is not validated by e-mail")
    },
    elsewhere: &[
        ("DnsValidationChallenge", PUBLIC),
        ("DomainValidation", PUBLIC),
        ("DomainValidationMethodUpdateSummary", PUBLIC),
        ("DomainValidationSummary", PUBLIC),
        ("EmailValidationChallenge", PUBLIC),
        ("HttpRedirect", PUBLIC),
        ("ThrottlingReason", "no call is throttled"),
        ("UpdateSummary", PUBLIC),
        ("ValidationChallenge", PUBLIC),
        ("ValidationConfiguration", PUBLIC),
    ],
    structures: || {
        let account = fields_of::<acme::AcmeAccount>();
        let binding = fields_of::<acme::AcmeExternalAccountBinding>();
        let endpoint = fields_of::<acme::AcmeEndpoint>();
        let validation = fields_of::<acme::AcmeDomainValidation>();
        let comparison = fields_of::<acm_search::Comparison>();
        vec![
            (
                "AcmCertificateMetadata",
                fields_of::<ops::search_certificates::CertificateMetadata>(),
            ),
            ("AcmCertificateMetadataFilter", fields_of::<acm_search::MetadataFilter>()),
            ("AcmeAccount", account),
            ("AcmeAccountSummary", account),
            ("AcmeDomainValidation", validation),
            ("AcmeDomainValidationSummary", validation),
            ("AcmeEndpoint", endpoint),
            ("AcmeEndpointSummary", endpoint),
            ("AcmeExternalAccountBinding", binding),
            ("AcmeExternalAccountBindingSummary", binding),
            ("CertificateAuthority", fields_of::<acme::CertificateAuthority>()),
            ("CertificateDetail", fields_of::<acm_certificate::CertificateDetail>()),
            ("CertificateFilter", fields_of::<acm_search::Filter>()),
            ("CertificateFilterStatement", fields_of::<acm_search::FilterStatement>()),
            ("CertificateMetadata", &["AcmCertificateMetadata"]),
            ("CertificateOptions", fields_of::<model::CertificateOptions>()),
            ("CertificateSearchResult", fields_of::<ops::search_certificates::SearchResult>()),
            ("CertificateSummary", fields_of::<acm_certificate::CertificateSummary>()),
            ("CommonNameFilter", comparison),
            ("CustomAttribute", fields_of::<acm_certificate::CustomAttribute>()),
            ("DistinguishedName", fields_of::<acm_certificate::DistinguishedName>()),
            ("DnsNameFilter", comparison),
            ("DnsPrevalidationDetails", fields_of::<acme::DnsPrevalidationDetails>()),
            ("DnsPrevalidationOptions", fields_of::<acme::DnsPrevalidationOptions>()),
            ("DomainScope", fields_of::<acme::DomainScopeOptions>()),
            (
                "DomainValidationOption",
                fields_of::<ops::request_certificate::DomainValidationOption>(),
            ),
            ("Expiration", fields_of::<acme::Expiration>()),
            ("ExpiryEventsConfiguration", fields_of::<model::ExpiryEvents>()),
            ("ExtendedKeyUsage", fields_of::<acm_certificate::ExtendedKeyUsage>()),
            ("FailureDetails", fields_of::<acme::FailureDetails>()),
            ("Filters", fields_of::<ops::list_certificates::Filters>()),
            ("GeneralName", acm_search::ALTERNATIVE_NAMES),
            ("KeyUsage", fields_of::<acm_certificate::KeyUsage>()),
            ("OtherName", fields_of::<acm_search::OtherName>()),
            ("PrevalidationDetails", fields_of::<acme::PrevalidationDetails>()),
            ("PrevalidationOptions", fields_of::<acme::PrevalidationOptions>()),
            ("PublicCertificateAuthority", fields_of::<acme::PublicCertificateAuthority>()),
            ("RenewalSummary", fields_of::<acm_certificate::RenewalSummary>()),
            ("ResourceRecord", fields_of::<acme::ResourceRecord>()),
            ("SubjectAlternativeNameFilter", fields_of::<acm_search::AlternativeNameFilter>()),
            ("SubjectFilter", fields_of::<acm_search::SubjectFilter>()),
            ("Tag", fields_of::<model::Tag>()),
            ("TimestampRange", fields_of::<acm_search::TimestampRange>()),
            ("X509AttributeFilter", fields_of::<acm_search::X509AttributeFilter>()),
            ("X509Attributes", fields_of::<acm_search::X509Attributes>()),
        ]
    },
    enumerations: || {
        let key_algorithms =
            model::KEY_ALGORITHMS.iter().copied().filter(|name| *name != "RSA_1024");
        vec![
            ("CertificateExport", set(model::ENABLED_OR_DISABLED.iter().copied())),
            ("CertificateKeyPairOrigin", set(Origin::ALL.iter().map(|one| one.name()))),
            ("CertificateManagedBy", set([])),
            (
                "CertificateStatus",
                set([Status::Expired, Status::Issued, Status::Revoked].map(Status::name)),
            ),
            ("CertificateType", set(Origin::ALL.iter().map(|one| one.kind()))),
            ("ComparisonOperator", set(acm_search::OPERATORS.iter().copied())),
            ("ExtendedKeyUsageName", set(model::extended_key_usages())),
            ("FailureReason", set(outlast_domain::acm::FAILURE_REASONS.iter().copied())),
            ("KeyAlgorithm", set(key_algorithms)),
            ("KeyUsageName", set(model::key_usages())),
            ("RenewalStatus", set(["SUCCESS", "FAILED"])),
            ("RevocationReason", set(REASONS.iter().map(|(name, _)| *name))),
            ("SearchCertificatesSortBy", set(acm_search::ORDERS.iter().map(|row| row.name))),
            ("SortOrder", set(model::SORT_ORDERS.iter().copied())),
            ("ValidationMethod", set([])),
        ]
    },
};
