//! CMS messages in DER, BER and PEM: parsed, described, and verified without trusted certificates.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::cms::verify::{SignedMessage, ValidAt};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = SignedMessage::parse(bytes) {
        let _ = message.claims();
        if let Ok(rows) = message.digests() {
            let digests: Vec<_> = rows.iter().map(|row| row.digest(b"")).collect();
            let roots = message.certificates.clone();
            let _ = message.verify(&digests, &roots, &[], ValidAt::Time(1_800_000_000));
        }
    }
});
