//! Names that CAs may certify: the name constraints of the authority and of those above it.

use outlast_pki::certificate::Certificate;
use outlast_pki::validate;

use super::CaError;
use super::authority::Authority;

/// Whether a CA may certify some names only.
pub(super) fn is_constrained(certificate: &Certificate) -> bool {
    let id = const_oid::db::rfc5280::ID_CE_NAME_CONSTRAINTS;
    certificate.extensions().iter().any(|extension| extension.extn_id == id)
}

/// Refuses a certificate (DER of what is to be signed) with a name that a CA above it must not certify.
pub(super) fn check(authority: &Authority, to_be_signed: &[u8]) -> Result<(), CaError> {
    // Authorities of the first version do not say; reading the chain each time is for them and the constrained.
    if authority.is_constrained() == Some(false) {
        return Ok(());
    }
    validate::check_names(to_be_signed, &authority.path()?)
        .map_err(|rule| CaError::InvalidArgs(format!("The certificate cannot be issued: {rule}.")))
}
