//! The published examples of RFC 9881 and RFC 9882, where the machine has them.
//!
//! They are not part of this repository: set `OUTLAST_VECTORS` to their folder, or have it beside the
//! checkout as `../shared/vectors`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use std::path::PathBuf;

use outlast_crypto::digests::Digest;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::verify::{SignedMessage, ValidAt, VerifyError};
use outlast_pki::path::PathError;

fn vectors() -> Option<PathBuf> {
    let folder = std::env::var_os("OUTLAST_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors"),
        PathBuf::from,
    );
    if !folder.is_dir() {
        eprintln!("skipped: vectors not present");
        return None;
    }
    Some(folder)
}

#[test]
fn rfc9881_certificates_are_signed_by_themselves() {
    let Some(folder) = vectors() else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.join("rfc9881")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let Ok(certificate) = Certificate::parse_one(&bytes) else { continue };
        assert!(certificate.signed_by(&certificate), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 3, "{seen} certificates found");
}

/// The example's signer is a self-signed certificate that is no code-signing leaf. So everything up to the
/// chain must hold (the signature is checked before the chain), and the chain must be refused.
#[test]
fn rfc9882_messages_have_valid_signatures() {
    let Some(folder) = vectors() else { return };
    for set in ["44", "65", "87"] {
        let pem =
            std::fs::read(folder.join(format!("rfc9882/mldsa{set}-signed-attrs.pem"))).unwrap();
        let message = SignedMessage::parse(&pem).unwrap();
        let digests: Vec<&Digest> = message.digests().unwrap();
        assert_eq!(digests.len(), 1);
        let content = message.content().unwrap();
        let roots = certificates(&folder, set);
        let at = ValidAt::Time(1_800_000_000);
        let outcome = message.verify(&[digests[0].digest(content)], &roots, &roots, at);
        assert!(
            matches!(outcome, Err(VerifyError::Path(PathError::Purpose(_)))),
            "{set}: {outcome:?}"
        );
        let outcome = message.verify(&[digests[0].digest(b"other")], &roots, &roots, at);
        assert_eq!(outcome.map(|_| ()), Err(VerifyError::ContentMismatch));
    }
}

fn certificates(folder: &std::path::Path, set: &str) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder.join("rfc9881")).unwrap() {
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
