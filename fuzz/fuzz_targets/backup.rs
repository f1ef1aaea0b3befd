//! The head of a backup file, which is read before anything is known of it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = outlast_domain::backup::header(&mut &bytes[..]);
});
