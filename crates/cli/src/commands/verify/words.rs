//! What `outlast verify` says about verified signers.

use std::path::Path;

use outlast_pki::cms::verify::{Signer, TimeSource};
use outlast_pki::time::rfc3339;
use outlast_pki::trusted_time::{Outcome, Timed};

use crate::output;
use crate::verifying::{Holder, NOT_CHECKED, Verifier, summary, time};

/// What is known about the revocation of all signers: the least that is known of one.
pub(in crate::commands) fn worst<'a>(
    signers: impl IntoIterator<Item = &'a Signer>,
) -> &'static str {
    let order = [NOT_CHECKED, "unknown", "revoked later"];
    let found: Vec<_> = signers.into_iter().map(|signer| summary(&signer.statuses)).collect();
    order.into_iter().find(|one| found.contains(one)).unwrap_or("good")
}

/// What is known of the signers of a verified file and their timestamps.
pub(super) fn describe_timed(
    verb: &str,
    path: &Path,
    timed: &[Timed<Signer>],
    verifier: &Verifier,
) -> String {
    let mut text = String::new();
    for one in timed {
        text.push_str(&describe(verb, path, std::slice::from_ref(&one.signer), verifier));
        text.push_str(&time::tokens_text(path, &one.tokens, verifier));
    }
    text
}

/// One line for each signer of a verified file. Warns of certificates that have expired since.
pub(in crate::commands) fn describe(
    verb: &str,
    path: &Path,
    signers: &[Signer],
    verifier: &Verifier,
) -> String {
    let mut text = String::new();
    for signer in signers {
        text.push_str(&format!(
            "{verb} {}: {:?} by \"{}\", {}; {}\n",
            path.display(),
            signer.algorithm,
            signer.certificate.subject(),
            when(signer),
            verifier.revocation_text(&signer.statuses, Holder::Signature),
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

/// When it was signed, and who says so.
fn when(signer: &Signer) -> String {
    let at = rfc3339(signer.time.at);
    match (&signer.time.source, signer.signing_time) {
        (TimeSource::Timestamp, _) => format!("signed before {at} (by a timestamp)"),
        (TimeSource::EvidenceRecord, _) => format!("signed before {at} (by an evidence record)"),
        (_, Some(time)) => format!("signed {} (as the signer claims)", rfc3339(time)),
        (_, None) => "without a signing time".to_owned(),
    }
}

/// Warns of the timestamps of a signer that do not count.
pub(super) fn warn_of(path: &Path, signer: &str, tokens: &[Outcome]) {
    for token in tokens {
        let Err(reason) = &token.result else { continue };
        let of = token.states.map(|at| format!(" of {}", rfc3339(at))).unwrap_or_default();
        let by = token.authority.as_ref().map(|name| format!(" by \"{name}\"")).unwrap_or_default();
        output::warning(&format!(
            "{}: a timestamp{of}{by} on the signature by \"{signer}\" does not count: {reason}",
            path.display()
        ));
    }
}
