//! `outlast verify`: verifies detached signatures without any service.

use std::path::{Path, PathBuf};

use clap::ValueHint;
use outlast_net::server::system_clock;
use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::{Signer, ValidAt};
use outlast_pki::time::rfc3339;
use serde_json::json;

use crate::failure::{Failure, PARTIAL, REFUSED};
use crate::output::{self, Output};
use crate::signing::{signature_path, signer_json, verify_file};
use crate::{files, shell, trust, values};

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 every signature is valid; 1 failed: a file or the trust store cannot be read; 2 wrong usage;
3 a signature was refused, whatever else happened; 4 some of several files cannot be read, the others are
verified; 130 interrupted.

Whether a certificate is revoked is not checked: outlast cert verify --fetch does that.";

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
}

/// Verifies all files; prints each result.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if arguments.signature.is_some() && arguments.files.len() > 1 {
        return Err(Failure::new("--signature is for a single file")
            .hint("keep the signature of each FILE in FILE.p7s")
            .code(2));
    }
    let now = system_clock().div_euclid(1000);
    let valid_at = arguments.at.resolve(now);
    let roots = trust::authorities(&arguments.trust)?;
    let extra = match &arguments.certificates {
        Some(path) => trust::load(path)?,
        None => Vec::new(),
    };
    let progress = output::byte_bar(0);
    let mut list = Vec::new();
    let mut text = String::new();
    let mut failures = Vec::new();
    for path in &arguments.files {
        progress.set_message(path.display().to_string());
        let signature = arguments.signature.clone().unwrap_or_else(|| signature_path(path));
        let outcome = read_signature(path, &signature, arguments.signature.is_some())
            .and_then(|bytes| verify_file(path, &bytes, &roots, &extra, valid_at, &progress));
        match outcome {
            Ok(signers) => {
                text.push_str(&describe(path, &signers, now));
                let signers: Vec<_> = signers.iter().map(signer_json).collect();
                list.push(json!({
                    "file": path,
                    "outcome": "verified",
                    "verified": true,
                    "revocation": "not checked",
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

    fn resolve(self, now: i64) -> ValidAt {
        match self {
            Self::SigningTime => ValidAt::SigningTime { now },
            Self::Now => ValidAt::Time(now),
            Self::Time(time) => ValidAt::Time(time),
        }
    }
}

fn describe(path: &Path, signers: &[Signer], now: i64) -> String {
    let mut text = String::new();
    for signer in signers {
        text.push_str(&format!(
            "verified {}: {:?} by \"{}\", {}; revocation not checked\n",
            path.display(),
            signer.algorithm,
            signer.certificate.subject(),
            match signer.signing_time {
                Some(time) => format!("signed {} (as the signer claims)", rfc3339(time)),
                None => "without a signing time".to_owned(),
            }
        ));
        if signer.certificate.not_after() < now {
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
