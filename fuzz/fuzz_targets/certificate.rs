//! Certificates in DER and PEM, and everything extracted from them; certificate requests and names from the same
//! bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::certificate::Certificate;
use outlast_pki::csr::Received;
use outlast_pki::general_name::decode_names;
use outlast_pki::{lint, path, pem};

fuzz_target!(|bytes: &[u8]| {
    let _ = lint::certificate(bytes);
    let _ = lint::to_be_signed(bytes);
    let _ = Received::read(bytes);
    for name in decode_names(bytes).into_iter().flatten() {
        let _ = (name.check(), name.to_string(), name.to_der());
    }
    let Ok(list) = pem::read_certificates(bytes) else { return };
    for der in &list {
        let Ok(certificate) = Certificate::parse(der) else { continue };
        let _ = (certificate.serial(), certificate.subject().to_string(), certificate.not_after());
        let _ = (certificate.subject_alternative_names(), certificate.extended_key_usage());
        let _ = certificate.signed_by(&certificate);
        let _ = path::verify_code_signing(&certificate, &list, &list, 1_800_000_000);
    }
});
