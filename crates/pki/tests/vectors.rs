//! The published examples of RFC 9881 and RFC 9882, where the machine has them.
//!
//! They are not part of this repository: [`vectors`] says where they come from.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use outlast_crypto::digests::Digest;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::verify::{SignedMessage, Time, TimeSource, Verifier, VerifyError};
use outlast_pki::path::PathError;
use outlast_testing::vectors;

#[test]
fn rfc9881_certificates_are_signed_by_themselves() {
    let Some(folder) = vectors("rfc9881") else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let Ok(certificate) = Certificate::parse_one(&bytes) else { continue };
        assert!(certificate.signed_by(&certificate), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 3, "{seen} certificates found");
}

/// The example's signer has a self-signed certificate that is not for code signing. So everything up to the chain
/// must be valid (the signature is verified before the chain), and the chain must be refused.
#[test]
fn rfc9882_messages_have_valid_signatures() {
    let Some(keys) = vectors("rfc9881") else { return };
    let Some(folder) = vectors("rfc9882") else { return };
    for set in ["44", "65", "87"] {
        let pem = std::fs::read(folder.join(format!("mldsa{set}-signed-attrs.pem"))).unwrap();
        let message = SignedMessage::parse(&pem).unwrap();
        let digests: Vec<&Digest> = message.digests().unwrap();
        assert_eq!(digests.len(), 1);
        let content = message.content().unwrap();
        let roots = certificates(&keys, set);
        let verifier = Verifier {
            roots: &roots,
            certificates: &roots,
            time: Some(Time { at: 1_800_000_000, source: TimeSource::Verifier }),
            ..Verifier::default()
        };
        let outcome = message.verify(&[digests[0].digest(content)], &verifier);
        assert!(
            matches!(outcome, Err(VerifyError::Path(PathError::Purpose(_)))),
            "{set}: {outcome:?}"
        );
        let outcome = message.verify(&[digests[0].digest(b"other")], &verifier);
        assert_eq!(outcome.map(|_| ()), Err(VerifyError::ContentMismatch));
    }
}

fn certificates(folder: &std::path::Path, set: &str) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_string_lossy().contains(set) {
            continue;
        }
        if let Ok(certificate) = Certificate::parse_one(&std::fs::read(&path).unwrap()) {
            out.push(certificate.der().to_vec());
        }
    }
    out
}
