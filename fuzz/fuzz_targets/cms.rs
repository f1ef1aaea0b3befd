//! CMS messages in DER, BER and PEM: parsed, described, and verified without trusted certificates.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::cms::verify::{SignedMessage, Time, TimeSource, Verifier};
use outlast_pki::validate::Revocation;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = SignedMessage::parse(bytes) {
        let _ = message.claims();
        if let Ok(rows) = message.digests() {
            let digests: Vec<_> = rows.iter().map(|row| row.digest(b"")).collect();
            let roots = message.certificates.clone();
            for source in [TimeSource::Verifier, TimeSource::Signer] {
                let time = Some(Time { at: 1_800_000_000, source });
                let verifier = Verifier {
                    roots: &roots,
                    now: 1_800_000_000,
                    time,
                    revocation: Revocation::IfPresent,
                    ..Verifier::default()
                };
                let _ = message.verify(&digests, &verifier);
            }
        }
    }
});
