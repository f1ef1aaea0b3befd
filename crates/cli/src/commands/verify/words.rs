//! What `outlast verify` says about verified signers.

use std::path::Path;

use outlast_pki::cms::verify::Signer;
use outlast_pki::time::rfc3339;

use crate::output;
use crate::verifying::{NOT_CHECKED, Verifier, summary};

/// What is known about the revocation of all signers: the least that is known of one.
pub(super) fn worst(signers: &[Signer]) -> &'static str {
    let order = [NOT_CHECKED, "unknown", "revoked later"];
    let found: Vec<_> = signers.iter().map(summary).collect();
    order.into_iter().find(|one| found.contains(one)).unwrap_or("good")
}

/// One line for each signer of a verified file. Warns of certificates that have expired since.
pub(super) fn describe(verb: &str, path: &Path, signers: &[Signer], verifier: &Verifier) -> String {
    let mut text = String::new();
    for signer in signers {
        text.push_str(&format!(
            "{verb} {}: {:?} by \"{}\", {}; {}\n",
            path.display(),
            signer.algorithm,
            signer.certificate.subject(),
            match signer.signing_time {
                Some(time) => format!("signed {} (as the signer claims)", rfc3339(time)),
                None => "without a signing time".to_owned(),
            },
            verifier.revocation_text(signer),
        ));
        if signer.certificate.not_after() < verifier.now && !signer.time.source.is_trusted() {
            output::warning(&format!(
                "{}: the certificate expired on {}; only the signer claims that the signature \
                 is older",
                path.display(),
                rfc3339(signer.certificate.not_after())
            ));
        }
    }
    text
}
