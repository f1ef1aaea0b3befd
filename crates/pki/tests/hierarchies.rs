//! Certificates of every algorithm: issued, signed by, and validated as a path.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use common::{START, issue_with};
use outlast_crypto::keys::KEY_SPECS;
use outlast_crypto::signatures::ML_DSA_44;
use outlast_pki::certificate::{Certificate, signature_row};
use outlast_pki::path::verify_code_signing;
use x509_cert::der::Decode;

#[test]
fn every_algorithm_makes_a_chain_that_verifies() {
    for spec in KEY_SPECS {
        for algorithm in spec.signing.iter().copied().filter(|row| row.oid.is_some()) {
            // Large RSA keys take long to generate: one algorithm is enough.
            let large = spec.name.starts_with("RSA") && spec.name != "RSA_2048";
            if large && algorithm != spec.signing[0] {
                continue;
            }
            let root = issue_with(spec.name, algorithm, "Root", "RootCACertificate", 10, None);
            // SLH-DSA takes seconds without optimization, and is meant for roots.
            let (below, signed) =
                if algorithm.slow { ("ML_DSA_44", &ML_DSA_44) } else { (spec.name, algorithm) };
            let name = "SubordinateCACertificate_PathLen0";
            let sub = issue_with(below, signed, "Sub", name, 5, Some(&root));
            let row = "CodeSigningCertificate";
            let leaf = issue_with(below, signed, "Leaf", row, 1, Some(&sub));
            assert!(leaf.certificate.signed_by(&sub.certificate), "{} {algorithm:?}", spec.name);
            assert!(sub.certificate.signed_by(&root.certificate));
            assert!(root.certificate.signed_by(&root.certificate));
            assert!(!leaf.certificate.signed_by(&root.certificate));
            let parsed = x509_cert::Certificate::from_der(sub.certificate.der()).unwrap();
            assert_eq!(signature_row(parsed.signature_algorithm()).unwrap(), algorithm);
            let mut forged = leaf.certificate.der().to_vec();
            *forged.last_mut().unwrap() ^= 1;
            let forged = Certificate::parse(&forged).unwrap();
            assert!(!forged.signed_by(&sub.certificate));
            // webpki has no secp256k1.
            if spec.name == "ECC_SECG_P256K1" {
                continue;
            }
            let between = [sub.certificate.der().to_vec()];
            let roots = [root.certificate.der().to_vec()];
            verify_code_signing(&leaf.certificate, &between, &roots, START + 1000)
                .unwrap_or_else(|error| panic!("{} {algorithm:?}: {error}", spec.name));
            assert!(verify_code_signing(&forged, &between, &roots, START + 1000).is_err());
        }
    }
}
