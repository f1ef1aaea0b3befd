//! Timestamp requests: parsed, and encoded again as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::timestamp::Request;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::parse(bytes) {
        let again = request.to_der().expect("what was read can be written");
        assert_eq!(Request::parse(&again).as_ref(), Ok(&request));
    }
});
