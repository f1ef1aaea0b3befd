//! `outlast verify`: verifies detached signatures without any service.

use std::path::{Path, PathBuf};

use clap::ValueHint;
use outlast_net::server::system_clock;
use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::{Signer, Time, TimeSource};
use outlast_pki::time::rfc3339;
use serde_json::json;

use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, PARTIAL, REFUSED};
use crate::output::{self, Output};
use crate::signing::signature_path;
use crate::verifying::{NOT_CHECKED, Verifier, summary};
use crate::{files, shell, trust, values};

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 every signature is valid; 1 failed: a file or the trust store cannot be read; 2 wrong usage;
3 a signature was refused, whatever else happened; 4 some of several files cannot be read, the others are
verified; 130 interrupted.";

/// Arguments of `verify`.
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// Signed files, not their signatures.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Trusted roots: a PEM or DER file, or a folder of them.
    #[arg(long, env = "OUTLAST_TRUST")]
    trust: PathBuf,
    /// Signature, for a single file [default: FILE.p7s].
    #[arg(long)]
    signature: Option<PathBuf>,
    /// More certificates, if the signature lacks some: a file or a folder.
    #[arg(long)]
    certificates: Option<PathBuf>,
    /// Time at which the certificates must be valid: signing-time (as the signer claims), now, or a time such as
    /// 2026-11-21T12:00:00Z.
    #[arg(long, default_value = "signing-time", value_parser = At::parse,
          value_hint = ValueHint::Other)]
    at: At,
    /// Whether revoked certificates are refused, by the CRLs and OCSP responses in the signature and by those that
    /// the next options give.
    #[arg(long, value_enum, default_value_t = Check::IfAvailable)]
    revocation: Check,
    /// File with CRLs; may be repeated.
    #[arg(long, value_name = "FILE")]
    crl: Vec<PathBuf>,
    /// File with an OCSP response; may be repeated.
    #[arg(long, value_name = "FILE")]
    ocsp: Vec<PathBuf>,
    /// Fetch OCSP responses and CRLs over http, from the URLs in the certificates.
    #[arg(long)]
    fetch: bool,
}

/// Verifies all files; prints each result.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if arguments.signature.is_some() && arguments.files.len() > 1 {
        return Err(Failure::new("--signature is for a single file")
            .hint("keep the signature of each FILE in FILE.p7s")
            .code(2));
    }
    let now = system_clock().div_euclid(1000);
    let mut evidence = Evidence::default();
    evidence.read(arguments.crl.iter().chain(&arguments.ocsp))?;
    let mut verifier = Verifier {
        roots: trust::authorities(&arguments.trust)?,
        extra: match &arguments.certificates {
            Some(path) => trust::load(path)?,
            None => Vec::new(),
        },
        now,
        time: arguments.at.resolve(now),
        revocation: arguments.revocation,
        fetch: arguments.fetch && arguments.revocation != Check::Off,
        evidence,
    };
    let progress = output::byte_bar(0);
    let mut list = Vec::new();
    let mut text = String::new();
    let mut failures = Vec::new();
    for path in &arguments.files {
        progress.set_message(path.display().to_string());
        let signature = arguments.signature.clone().unwrap_or_else(|| signature_path(path));
        let outcome = read_signature(path, &signature, arguments.signature.is_some())
            .and_then(|bytes| verifier.file(path, &bytes, &progress));
        match outcome {
            Ok(signers) => {
                text.push_str(&describe(path, &signers, &verifier));
                let revocation = worst(&signers);
                let signers: Vec<_> =
                    signers.iter().map(|signer| verifier.signer_json(signer)).collect();
                list.push(json!({
                    "file": path,
                    "outcome": "verified",
                    "verified": true,
                    "revocation": revocation,
                    "signers": signers,
                }));
            }
            Err(failure) => {
                let refused = failure.exit_code() == REFUSED;
                list.push(json!({
                    "file": path,
                    "outcome": if refused { "refused" } else { "failed" },
                    "verified": false,
                    "reason": failure.message(),
                    "error": failure.message(),
                }));
                failures.push(failure);
            }
        }
    }
    progress.finish_and_clear();
    if !text.is_empty() || output == Output::Json {
        output.result(&text, &list);
    }
    finish(arguments.files.len(), failures)
}

/// The signature of a file that must be there, too.
fn read_signature(path: &Path, signature: &Path, named: bool) -> Result<Vec<u8>, Failure> {
    std::fs::metadata(path).map_err(|error| files::io_failure(path, &error))?;
    if !named && !files::exists(signature)? {
        let failure = Failure::file(signature, &"No such file or directory");
        return Err(if path.extension().is_some_and(|kind| kind == "p7s") {
            failure.hint(format!(
                "name the signed file: outlast verify FILE --signature {}",
                shell::quoted(path)
            ))
        } else {
            failure.hint("sign the file, or name its signature with --signature")
        });
    }
    files::read(signature, MAX_MESSAGE_LEN)
}

fn finish(count: usize, mut failures: Vec<Failure>) -> Result<(), Failure> {
    if count == 1 {
        return failures.pop().map_or(Ok(()), Err);
    }
    if failures.is_empty() {
        return Ok(());
    }
    let refused = failures.iter().any(|failure| failure.exit_code() == REFUSED);
    for failure in &failures {
        failure.report();
    }
    let code = match (refused, failures.len() == count) {
        (true, _) => REFUSED,
        (false, true) => 1,
        (false, false) => PARTIAL,
    };
    Err(Failure::new(format!("{} of {count} files were not verified", failures.len())).code(code))
}

/// The time at which certificates must be valid, as an argument.
#[derive(Debug, Clone, Copy)]
enum At {
    SigningTime,
    Now,
    /// Seconds since 1970.
    Time(i64),
}

impl At {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "signing-time" => Ok(Self::SigningTime),
            "now" => Ok(Self::Now),
            other => values::time(other)
                .map(Self::Time)
                .map_err(|error| format!("neither signing-time nor now, and {error}")),
        }
    }

    /// The trusted time; `None` for the signers' claims.
    fn resolve(self, now: i64) -> Option<Time> {
        let at = match self {
            Self::SigningTime => return None,
            Self::Now => now,
            Self::Time(time) => time,
        };
        Some(Time { at, source: TimeSource::Verifier })
    }
}

/// What is known about the revocation of all signers: the least that is known of one.
fn worst(signers: &[Signer]) -> &'static str {
    let order = [NOT_CHECKED, "unknown", "revoked later"];
    let found: Vec<_> = signers.iter().map(summary).collect();
    order.into_iter().find(|one| found.contains(one)).unwrap_or("good")
}

fn describe(path: &Path, signers: &[Signer], verifier: &Verifier) -> String {
    let mut text = String::new();
    for signer in signers {
        text.push_str(&format!(
            "verified {}: {:?} by \"{}\", {}; {}\n",
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
