//! The header of a backup file, which is parsed before anything is authenticated.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = outlast_domain::backup::header(&mut &bytes[..]);
});
