//! HTTP/3 from strangers: frames and fields, on several streams at a time, in pieces of any size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_net::quic::scripted::play;

fuzz_target!(|script: &[u8]| {
    let outcome = play(script);
    // No request is answered that was not sent, and no body is longer than the input.
    let read: usize = outcome.requests.iter().map(|(_, _, len)| len).sum();
    assert!(read <= script.len());
    assert!(outcome.requests.len() + outcome.refused <= 4);
});
