//! Timestamp responses and tokens in DER, BER and PEM: parsed, and verified with the certificates in them as roots.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::timestamp::{Response, Token, Trust};
use outlast_pki::validate::Revocation;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(response) = Response::parse(bytes) {
        let _ = response.explanation();
    }
    if let Ok(token) = Token::parse_response(bytes) {
        let roots = token.certificates().to_vec();
        for existed_at in [None, Some(1_900_000_000)] {
            let trust = Trust {
                roots: &roots,
                now: 1_900_000_000,
                existed_at,
                revocation: Revocation::IfPresent,
                ..Trust::default()
            };
            let _ = token.verify(&token.imprint().clone(), &trust);
        }
    }
});
