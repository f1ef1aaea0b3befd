//! Rules for a single certificate of a path.

use super::Rule;
use super::facts::Facts;
use crate::certificate::Certificate;

/// RFC 5280, section 6.1.3 (a)(2).
pub fn validity(certificate: &Certificate, at: i64) -> Result<(), Rule> {
    if at < certificate.not_before() {
        return Err(Rule::NotYetValid(certificate.not_before()));
    }
    if at > certificate.not_after() {
        return Err(Rule::Expired(certificate.not_after()));
    }
    Ok(())
}

/// RFC 5280, section 6.1.4 (k) and (n). A certificate of version 1 or 2 has no basic constraints.
pub fn may_issue(facts: &Facts) -> Result<(), Rule> {
    if !facts.is_ca() {
        return Err(Rule::NotCa);
    }
    if facts.key_usage.as_ref().is_some_and(|usage| !usage.key_cert_sign()) {
        return Err(Rule::KeyUsage("keyCertSign"));
    }
    Ok(())
}
