//! Certificate requests in DER and PEM.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::csr::CertificateRequest;

fuzz_target!(|bytes: &[u8]| {
    let _ = CertificateRequest::parse_and_verify(bytes);
});
