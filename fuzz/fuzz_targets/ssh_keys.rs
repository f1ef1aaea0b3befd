//! SSH public keys, certificates and private key files: whatever is parsed is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_ssh::{Certificate, CertificateKind, PrivateKey, PublicKey};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(key) = PublicKey::parse(bytes) {
        assert_eq!(key.blob(), bytes);
        assert_eq!(PublicKey::from_openssh_line(&key.to_openssh_line()).unwrap(), key);
        let _ = (key.fingerprint(), key.bits());
    }
    if let Ok(certificate) = Certificate::parse(bytes) {
        assert_eq!(certificate.blob(), bytes);
        let _ = certificate.check(CertificateKind::User, "alice", 1_700_000_000_000);
        let _ = certificate.check_source("192.0.2.1".parse().unwrap());
        let _ = certificate.forced_command();
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = PublicKey::from_openssh_line(text);
        let _ = Certificate::from_openssh_line(text);
        if let Ok(key) = PrivateKey::from_pem(text) {
            let written = key.to_openssh_pem("").unwrap();
            let again =
                PrivateKey::from_pem(std::str::from_utf8(written.expose()).unwrap()).unwrap();
            assert_eq!(key.public_key(), again.public_key());
        }
    }
});
