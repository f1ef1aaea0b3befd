//! The rules for certificates ("Signature validation" of the user guide).

use outlast_pki::certificate::Certificate;
use outlast_pki::extensions::{CLIENT_AUTH, KeyUsages};
use outlast_pki::validate::{Material, Options, Rule, validate};

use super::RolesAnywhereError;
use crate::limits;

/// AWS's words for a certificate whose issuer is not trusted.
pub(super) const UNTRUSTED: &str = "Untrusted signing certificate";

/// Checks a certificate of a trust anchor: "The key usage MUST include Certificate Sign", "Basic constraints MUST include CA:
/// true", and the same algorithms as for others.
pub fn check_authority(certificate: &Certificate) -> Result<(), RolesAnywhereError> {
    let wrong = |text: &str| Err(RolesAnywhereError::validation(text));
    if !certificate.basic_constraints().is_some_and(|constraints| constraints.ca) {
        return wrong("Incorrect basic constraints for CA certificate");
    }
    if !certificate.key_usage().is_some_and(|(_, usage)| usage.key_cert_sign()) {
        return wrong("Incorrect key usage for CA certificate");
    }
    // The tables have no algorithm with MD5 or SHA-1.
    if !certificate.is_v3() || certificate.signature_row().is_none() {
        return wrong("Incorrect signature algorithm or version for CA certificate");
    }
    Ok(())
}

/// Validates the certificate that has signed a request: the path from it to a root, itself first.
///
/// An extended key usage must allow `clientAuth`, which AWS does not ask for: RFC 5280, section 4.2.1.12, says that a
/// certificate with purposes serves only those.
pub fn path(
    leaf: &Certificate,
    chain: &[Certificate],
    roots: &[Certificate],
    at: i64,
) -> Result<Vec<Certificate>, RolesAnywhereError> {
    let is_ca = leaf.basic_constraints().is_some_and(|constraints| constraints.ca);
    let signs = leaf.key_usage().is_some_and(|(_, usage)| usage.digital_signature());
    // "Certificates with empty subjects are NOT yet supported."
    let usable = leaf.is_v3() && !is_ca && signs && !leaf.subject().is_empty();
    if !usable {
        return Err(RolesAnywhereError::refused("Untrusted certificate. Insufficient certificate"));
    }
    let material = Material { roots, intermediates: chain, ..Material::default() };
    let options = Options {
        purposes: &[CLIENT_AUTH],
        key_usage: Some(KeyUsages::DigitalSignature),
        max_intermediates: limits::MAX_X509_CHAIN,
        ..Options::at(at)
    };
    match validate(leaf, &material, &options) {
        Ok(valid) => Ok(valid.path.into_iter().cloned().collect()),
        Err(refusal) => Err(RolesAnywhereError::Refused(match refusal.rule {
            Rule::UnknownIssuer(_) | Rule::Signature => UNTRUSTED.to_owned(),
            rule => format!("Untrusted certificate. {rule}"),
        })),
    }
}
