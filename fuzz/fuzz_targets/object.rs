//! Any file, as `outlast inspect` reads it: objects, private keys, and their descriptions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_crypto::encrypted;
use outlast_pki::certificate::Certificate;
use outlast_pki::crl::Crl;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::object::{self, Kind};
use outlast_pki::ocsp::Response;
use outlast_pki::{describe, whatif};

fuzz_target!(|bytes: &[u8]| {
    let mut certificates = Vec::new();
    for object in object::read(bytes).into_iter().flatten() {
        let der = object.der.expose();
        let _ = (object.to_pem(), describe::signature_len(der), describe::public_key(der));
        match object.kind {
            Kind::Certificate => {
                let Ok(certificate) = Certificate::parse(der) else { continue };
                let _ = describe::revocation_urls(&certificate);
                for extension in certificate.extensions() {
                    let _ = describe::extension(extension);
                }
                certificates.push(der.to_vec());
            }
            Kind::CertificateRequest => drop(describe::request(der)),
            Kind::Crl => drop(Crl::parse(der)),
            Kind::OcspResponse => drop(Response::parse(der)),
            Kind::EncryptedPrivateKey => drop(encrypted::scheme(der)),
            _ => {
                if let Ok(key) = PrivateKey::read(&object) {
                    assert!(key.to_pkcs8().is_ok());
                }
            }
        }
    }
    let _ = whatif::ordered(&certificates);
});
