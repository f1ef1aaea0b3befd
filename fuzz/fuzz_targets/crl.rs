//! CRLs in DER and PEM, and everything extracted from them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::crl::Crl;

fuzz_target!(|bytes: &[u8]| {
    let Ok(crl) = Crl::parse(bytes) else { return };
    let _ = (crl.number(), crl.authority_key_identifier(), crl.distribution_urls());
    let _ = (crl.issuer().to_string(), crl.next_update(), crl.unusable());
    for entry in crl.entries().take(1_000) {
        let _ = crl.entry(&entry.serial);
    }
});
