//! Names that CAs may certify: the name constraints of the authority and of those above it.

use outlast_pki::validate;

use super::CaError;
use super::authority::Authority;

/// Refuses a certificate (DER of what is to be signed) with a name that a CA above it must not certify.
pub(super) fn check(authority: &Authority, to_be_signed: &[u8]) -> Result<(), CaError> {
    // Authorities of the first version do not record whether they are constrained; only for them and for constrained
    // ones the chain is parsed each time.
    if authority.is_constrained() == Some(false) {
        return Ok(());
    }
    validate::check_names(to_be_signed, &authority.path()?)
        .map_err(|rule| CaError::InvalidArgs(format!("The certificate cannot be issued: {rule}.")))
}
