//! Condition keys about certificates.
//!
//! Source: "Use condition keys with ACM" of the Certificate Manager user guide, and "Condition keys for ACME
//! certificate requests" there. Every key that applies is always set: `ForAllValues:` matches an absent key.

use super::certificate::{Certificate, Origin};
use super::tags::Tags;
use crate::policy::ConditionKeys;

/// A requested certificate.
pub struct Wanted<'a> {
    /// `DomainName` and `SubjectAlternativeNames`.
    pub names: &'a [String],
    /// Type of its key.
    pub key_algorithm: &'a str,
    /// ARN of its issuer.
    pub authority: &'a str,
    /// Where the key comes from.
    pub origin: Origin,
    /// `ValidationMethod`
    pub validation_method: &'a str,
    /// `Options.Export`
    pub exportable: bool,
    /// `Options.CertificateTransparencyLoggingPreference`
    pub transparency: bool,
}

impl Wanted<'_> {
    /// Sets the keys of a request.
    pub fn set(&self, keys: &mut ConditionKeys) {
        names(keys, self.names.iter().map(String::as_str));
        keys.set("acm:KeyAlgorithm", self.key_algorithm);
        keys.set("acm:CertificateAuthority", self.authority);
        keys.set("acm:CertificateKeyPairOrigin", self.origin.name());
        keys.set("acm:ValidationMethod", self.validation_method);
        options(keys, self.exportable, self.transparency);
    }
}

/// Sets the keys of an existing certificate, tags included.
pub fn of_certificate(keys: &mut ConditionKeys, certificate: &Certificate) {
    let record = &certificate.record;
    names(keys, record.names());
    keys.set("acm:KeyAlgorithm", record.details.key_algorithm.as_str());
    if let Some(authority) = &record.authority {
        keys.set("acm:CertificateAuthority", authority.as_str());
    }
    keys.set("acm:CertificateKeyPairOrigin", record.origin.name());
    options(keys, record.exportable, record.transparency);
    resource_tags(keys, &record.tags);
}

/// Sets the keys of a resource's tags.
pub fn resource_tags(keys: &mut ConditionKeys, tags: &Tags) {
    keys.set_tags("aws:ResourceTag", tags);
}

/// Domain names are compared without regard to case, so policies see them in lower case.
pub(crate) fn names<'a>(keys: &mut ConditionKeys, names: impl IntoIterator<Item = &'a str>) {
    let names = names.into_iter().map(str::to_ascii_lowercase).collect();
    keys.set_many("acm:DomainNames", names);
}

fn options(keys: &mut ConditionKeys, exportable: bool, transparency: bool) {
    let enabled = |value| if value { "ENABLED" } else { "DISABLED" };
    keys.set("acm:Export", enabled(exportable));
    keys.set("acm:CertificateTransparencyLogging", enabled(transparency));
}
