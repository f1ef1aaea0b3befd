//! Imported key material: raw, PKCS #8, and ML-DSA and ML-KEM in their three forms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_crypto::keys::KEY_SPECS;

fuzz_target!(|bytes: &[u8]| {
    for spec in KEY_SPECS {
        if let Ok(imported) = spec.import(bytes) {
            // Accepted material can be used.
            assert!(spec.load(&imported.stored).is_ok());
        }
    }
});
