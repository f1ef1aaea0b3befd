//! OCSP requests as the responder receives them, and responses as the verifier does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::ocsp::{Request, Response};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::parse(bytes) {
        // An accepted request can be encoded, and stays the same.
        let der = request.to_der().unwrap();
        assert_eq!(Request::parse(&der).unwrap(), request);
    }
    if let Ok(response) = Response::parse(bytes) {
        for certificate in &response.certificates {
            let _ = response.verify(certificate, certificate, None, 1_800_000_000);
        }
    }
});
