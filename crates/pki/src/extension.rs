//! One extension of a certificate, CRL or OCSP message.

use const_oid::ObjectIdentifier;
use der::Encode;
use der::asn1::OctetString;
use x509_cert::ext::Extension;

use crate::PkiError;

/// An extension with this criticality.
pub fn extension(
    oid: ObjectIdentifier,
    critical: bool,
    value: &impl Encode,
) -> Result<Extension, PkiError> {
    let encode = || OctetString::new(value.to_der()?);
    Ok(Extension {
        extn_id: oid,
        critical,
        extn_value: encode().map_err(|error| PkiError::malformed("extension", &error))?,
    })
}
