//! Profile rules for certificates, checked before signing and for any file: RFC 5280, and the RFCs of each kind of
//! key.
//!
//! A rule is a row of [`RULES`]. It sees one certificate alone: path validation checks what needs the issuer's
//! certificate or a clock.

mod extensions;
mod fields;
mod keys;
mod names;
mod parts;

use crate::PkiError;
use parts::Parts;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Breaks a recommendation that has good exceptions.
    Notice,
    /// Breaks a SHOULD, or a rule that some verifiers enforce.
    Warning,
    /// Breaks a MUST: such a certificate is not issued.
    Error,
}

impl Severity {
    /// A lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A rule.
pub struct Rule {
    /// Its name, which never changes.
    pub name: &'static str,
    /// Its source.
    pub source: &'static str,
    /// Severity of breaking it.
    pub severity: Severity,
    check: fn(&Parts<'_>) -> Outcome,
}

/// What is wrong; `None` if the rule is kept.
type Outcome = Option<String>;

/// A rule that was broken.
#[derive(Debug)]
pub struct Finding {
    /// Row of [`RULES`].
    pub rule: &'static Rule,
    /// What breaks it.
    pub detail: String,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.rule.name, self.detail, self.rule.source)
    }
}

/// Checks a certificate in DER. One that cannot be parsed at all is [`PkiError::Malformed`].
pub fn certificate(der: &[u8]) -> Result<Vec<Finding>, PkiError> {
    Ok(findings(&Parts::of_certificate(der)?))
}

/// Checks a DER `TBSCertificate`, before it is signed.
pub fn to_be_signed(tbs: &[u8]) -> Result<Vec<Finding>, PkiError> {
    Ok(findings(&Parts::of_tbs(tbs)?))
}

/// The first finding that forbids issuing.
pub fn first_error(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| finding.rule.severity == Severity::Error)
}

fn findings(parts: &Parts<'_>) -> Vec<Finding> {
    let broken = |rule: &'static Rule| (rule.check)(parts).map(|detail| Finding { rule, detail });
    RULES.iter().filter_map(broken).collect()
}

const fn error(name: &'static str, source: &'static str, check: Check) -> Rule {
    Rule { name, source, severity: Severity::Error, check }
}

const fn warning(name: &'static str, source: &'static str, check: Check) -> Rule {
    Rule { name, source, severity: Severity::Warning, check }
}

const fn notice(name: &'static str, source: &'static str, check: Check) -> Rule {
    Rule { name, source, severity: Severity::Notice, check }
}

type Check = fn(&Parts<'_>) -> Outcome;

/// All rules.
pub static RULES: &[Rule] = &[
    // RFC 5280: the fields.
    error("rfc5280.version.v3", "RFC 5280, 4.1.2.1", fields::version),
    error("rfc5280.serial_number.positive", "RFC 5280, 4.1.2.2", fields::serial_positive),
    error("rfc5280.serial_number.length", "RFC 5280, 4.1.2.2", fields::serial_len),
    error("rfc5280.signature.same_inside_and_outside", "RFC 5280, 4.1.1.2", fields::same_algorithm),
    error(
        "pkix.signature.parameters",
        "RFC 4055, 3.1 and 5; RFC 5758, 3.2; RFC 9881, 2; RFC 9909, 3",
        fields::algorithm_parameters,
    ),
    error("rfc5280.issuer.not_empty", "RFC 5280, 4.1.2.4", fields::issuer_not_empty),
    error("rfc5280.validity.format", "RFC 5280, 4.1.2.5.1 and 4.1.2.5.2", fields::time_format),
    error("rfc5280.validity.utc_time_before_2050", "RFC 5280, 4.1.2.5", fields::time_type),
    error("rfc5280.validity.order", "RFC 5280, 4.1.2.5", fields::time_order),
    error("rfc5280.unique_identifier.absent", "RFC 5280, 4.1.2.8", fields::no_unique_identifiers),
    error("x690.der", "X.690, 10 and 11", fields::canonical),
    // RFC 5280: distinguished names.
    error("rfc5280.subject.not_empty_in_ca", "RFC 5280, 4.1.2.6", names::ca_subject),
    error(
        "rfc5280.subject.empty_needs_critical_name",
        "RFC 5280, 4.1.2.6 and 4.2.1.6",
        names::empty_subject,
    ),
    error("rfc5280.name.attribute_length", "RFC 5280, appendix A.1", names::attribute_len),
    error(
        "rfc5280.name.attribute_type",
        "RFC 5280, 4.1.2.4 and appendix A.1",
        names::attribute_type,
    ),
    error("rfc5280.name.attribute_characters", "X.680, 41", names::attribute_characters),
    error("rfc5280.name.country", "RFC 5280, appendix A.1", names::country_len),
    warning("iso3166.name.country", "ISO 3166-1", names::country),
    warning("rfc5280.subject.email_address", "RFC 5280, 4.1.2.6", names::email_in_subject),
    // RFC 5280: all extensions.
    error("rfc5280.extensions.not_empty", "RFC 5280, 4.1", extensions::not_empty),
    error("rfc5280.extensions.unique", "RFC 5280, 4.2", extensions::unique),
    error("rfc5280.extensions.syntax", "RFC 5280, 4.2", extensions::syntax),
    warning("rfc5280.extensions.unknown_critical", "RFC 5280, 4.2", extensions::unknown_critical),
    error(
        "rfc5280.extensions.never_critical",
        "RFC 5280, 4.2.1.1, 4.2.1.2, 4.2.1.8, 4.2.1.15 and 4.2.2",
        extensions::never_critical,
    ),
    warning(
        "rfc5280.extensions.rarely_critical",
        "RFC 5280, 4.2.1.7 and 4.2.1.13; RFC 6960, 4.2.2.2.1",
        extensions::rarely_critical,
    ),
    error(
        "rfc5280.extensions.always_critical",
        "RFC 5280, 4.2.1.10, 4.2.1.11 and 4.2.1.14",
        extensions::always_critical,
    ),
    warning(
        "rfc5280.extensions.mostly_critical",
        "RFC 5280, 4.2.1.3 and 4.2.1.5",
        extensions::mostly_critical,
    ),
    error(
        "rfc5280.extensions.for_cas_only",
        "RFC 5280, 4.2.1.5, 4.2.1.10, 4.2.1.11 and 4.2.1.14",
        extensions::for_cas,
    ),
    // RFC 5280: each extension.
    error("rfc5280.authority_key_identifier.present", "RFC 5280, 4.2.1.1", extensions::aki_present),
    error("rfc5280.authority_key_identifier.pair", "RFC 5280, appendix A.2", extensions::aki_pair),
    error("rfc5280.subject_key_identifier.in_ca", "RFC 5280, 4.2.1.2", extensions::ski_in_ca),
    notice(
        "rfc5280.subject_key_identifier.in_end_entity",
        "RFC 5280, 4.2.1.2",
        extensions::ski_in_leaf,
    ),
    error(
        "rfc5280.subject_key_identifier.not_empty",
        "RFC 5280, 4.2.1.2",
        extensions::ski_not_empty,
    ),
    error("rfc5280.key_usage.in_ca", "RFC 5280, 4.2.1.3", extensions::usage_in_ca),
    error("rfc5280.key_usage.not_empty", "RFC 5280, 4.2.1.3", extensions::usage_not_empty),
    error("rfc5280.key_usage.named_bits", "X.690, 11.2.2", extensions::usage_encoding),
    error(
        "rfc5280.key_usage.cert_sign_without_ca",
        "RFC 5280, 4.2.1.3 and 4.2.1.9",
        extensions::cert_sign,
    ),
    warning(
        "rfc5280.key_usage.crl_sign_without_ca",
        "RFC 5280, 4.2.1.3 and 6.3.3",
        extensions::crl_sign,
    ),
    warning(
        "rfc5280.key_usage.ca_without_cert_sign",
        "RFC 5280, 4.2.1.9",
        extensions::ca_cert_sign,
    ),
    warning(
        "rfc5280.key_usage.only_with_agreement",
        "RFC 5280, 4.2.1.3",
        extensions::encipher_only,
    ),
    error(
        "rfc5280.basic_constraints.critical_in_ca",
        "RFC 5280, 4.2.1.9",
        extensions::constraints_critical,
    ),
    error("rfc5280.basic_constraints.path_length", "RFC 5280, 4.2.1.9", extensions::path_len),
    error("rfc5280.basic_constraints.default", "X.690, 11.5", extensions::constraints_encoding),
    error("rfc5280.name_constraints.subtrees", "RFC 5280, 4.2.1.10", extensions::name_constraints),
    error("rfc5280.certificate_policies.unique", "RFC 5280, 4.2.1.4", extensions::policies_unique),
    error(
        "rfc5280.certificate_policies.not_empty",
        "RFC 5280, 4.2.1.4",
        extensions::policies_not_empty,
    ),
    error("rfc6818.user_notice.explicit_text", "RFC 6818, 3", extensions::explicit_text),
    warning("rfc6818.user_notice.utf8", "RFC 6818, 3", extensions::explicit_text_utf8),
    error("rfc5280.policy_mappings.no_any_policy", "RFC 5280, 4.2.1.5", extensions::mappings),
    error(
        "rfc5280.policy_constraints.not_empty",
        "RFC 5280, 4.2.1.11",
        extensions::policy_constraints,
    ),
    error(
        "rfc5280.extended_key_usage.not_empty",
        "RFC 5280, 4.2.1.12",
        extensions::purposes_not_empty,
    ),
    warning(
        "rfc5280.extended_key_usage.any_not_critical",
        "RFC 5280, 4.2.1.12",
        extensions::any_purpose_critical,
    ),
    warning(
        "rfc5280.extended_key_usage.fits_key_usage",
        "RFC 5280, 4.2.1.12; RFC 4945, 5.1.3.2",
        extensions::purposes_fit_usage,
    ),
    error(
        "rfc5280.crl_distribution_points.not_empty",
        "RFC 5280, 4.2.1.13",
        extensions::distribution_points,
    ),
    error("rfc5280.information_access.not_empty", "RFC 5280, 4.2.2", extensions::access_not_empty),
    error("rfc5280.location.uri", "RFC 5280, 4.2.1.6, 4.2.1.13 and 4.2.2", extensions::locations),
    // RFC 5280: general names.
    warning(
        "rfc5280.subject_alternative_name.not_critical",
        "RFC 5280, 4.2.1.6",
        names::san_criticality,
    ),
    error(
        "rfc5280.general_name.dns",
        "RFC 5280, 4.2.1.6; RFC 1034, 3.5; RFC 9525, 6.3",
        names::dns_name,
    ),
    warning(
        "rfc5280.general_name.dns_underscore",
        "RFC 5280, 4.2.1.6; RFC 1034, 3.5",
        names::dns_underscore,
    ),
    error("rfc5280.general_name.rfc822", "RFC 5280, 4.2.1.6; RFC 5321, 4.1.2", names::rfc822_name),
    error("rfc5280.general_name.uri", "RFC 5280, 4.2.1.6; RFC 3986", names::uri),
    error("rfc5280.general_name.ip", "RFC 5280, 4.2.1.6", names::ip_address),
    error("rfc5280.general_name.other", "RFC 5280, 4.2.1.6", names::other_names),
    // The key and its usage.
    warning("pkix.public_key.known", "RFC 5280, 4.1.2.7", keys::known),
    error("rfc3279.rsa.public_key", "RFC 3279, 2.3.1; SP 800-131A", keys::rsa),
    error("rfc5480.ec.public_key", "RFC 5480, 2.1.1 and 2.2", keys::ec),
    error("rfc8410.ed25519.public_key", "RFC 8410, 3 and 4", keys::ed25519),
    error("rfc9881.ml_dsa.public_key", "RFC 9881, 2 and 4", keys::ml_dsa),
    error("rfc9909.slh_dsa.public_key", "RFC 9909, 3 and 5", keys::slh_dsa),
    error("rfc9935.ml_kem.public_key", "RFC 9935, 3 and 4", keys::ml_kem),
    error("composite.ml_dsa.public_key", "draft-ietf-lamps-pq-composite-sigs, 4", keys::composite),
    error("rfc3279.rsa.key_usage", "RFC 3279, 2.3.1", keys::rsa_usage),
    error("rfc8813.ec.key_usage", "RFC 8813, 3", keys::ec_usage),
    error("rfc9295.ed25519.key_usage", "RFC 9295, 3", keys::ed25519_usage),
    error("rfc9881.ml_dsa.key_usage", "RFC 9881, 5", keys::ml_dsa_usage),
    error("rfc9909.slh_dsa.key_usage", "RFC 9909, 6", keys::slh_dsa_usage),
    error("rfc9935.ml_kem.key_usage", "RFC 9935, 5", keys::ml_kem_usage),
    error(
        "composite.ml_dsa.key_usage",
        "draft-ietf-lamps-pq-composite-sigs, 5",
        keys::composite_usage,
    ),
];
