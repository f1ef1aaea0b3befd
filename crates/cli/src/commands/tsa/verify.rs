//! `outlast tsa verify`: verifies the timestamp of a file.

use std::path::{Path, PathBuf};

use clap::ValueHint;
use outlast_net::server::system_clock;
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::timestamp::{
    Imprint, MAX_RESPONSE_LEN, Request, TimestampError, Token, Trust, Verified,
};
use outlast_pki::validate::Revocation;
use serde_json::{Value, json};

use super::shared::{instant, policy, token_path};
use crate::evidence::Evidence;
use crate::failure::{Failure, REFUSED};
use crate::output::{self, Output};
use crate::{digest, files, trust};

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 the timestamp is valid; 1 failed: a file cannot be read; 2 wrong usage; 3 the timestamp was refused.";

/// Arguments of `tsa verify`.
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// The file that was timestamped.
    file: PathBuf,
    /// Response or token in DER, BER or PEM [default: FILE.tsr].
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// Trusted roots: a PEM or DER file, or a folder of them.
    #[arg(long, env = "OUTLAST_TRUST")]
    trust: PathBuf,
    /// More certificates, if the token lacks some: a file or a folder.
    #[arg(long)]
    certificates: Option<PathBuf>,
    /// The request that the timestamp must answer.
    #[arg(long, value_name = "FILE")]
    query: Option<PathBuf>,
    /// Policy that is accepted, an object identifier; may be repeated [default: any].
    #[arg(long, value_name = "OID", value_parser = policy, value_hint = ValueHint::Other)]
    policy: Vec<ObjectIdentifier>,
    /// File with CRLs; may be repeated.
    #[arg(long, value_name = "FILE")]
    crl: Vec<PathBuf>,
    /// File with an OCSP response; may be repeated.
    #[arg(long, value_name = "FILE")]
    ocsp: Vec<PathBuf>,
}

/// Verifies it; prints what it says.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let file = &arguments.file;
    let path = arguments.token.clone().unwrap_or_else(|| token_path(file));
    let refused =
        |error: TimestampError| Failure::file(&path, &error).hint(hint(&error)).code(REFUSED);
    let roots = trust::authorities(&arguments.trust)?;
    let extra = arguments.certificates.as_deref().map(trust::load).transpose()?.unwrap_or_default();
    let mut evidence = Evidence::default();
    evidence.read(arguments.crl.iter().chain(&arguments.ocsp))?;
    let token = Token::parse_response(&files::read(&path, MAX_RESPONSE_LEN)?).map_err(refused)?;
    let row = token.imprint().digest;
    let progress = output::byte_bar(0);
    let digests = digest::file(file, &[row], &progress);
    progress.finish_and_clear();
    let imprint = Imprint::new(row, digests?.first().map_or(&[][..], Vec::as_slice))?;
    let query = match &arguments.query {
        Some(path) => {
            let bytes = files::read(path, outlast_pki::timestamp::MAX_REQUEST_LEN)?;
            Some(Request::parse(&bytes).map_err(|error| Failure::file(path, &error))?)
        }
        None => None,
    };
    if let Some(query) = &query {
        token.answers(query).map_err(refused)?;
    }
    let trust = Trust {
        roots: &roots,
        certificates: &extra,
        now: system_clock().div_euclid(1000),
        policies: &arguments.policy,
        nonce: query.as_ref().and_then(|query| query.nonce.as_ref()),
        revocation: Revocation::IfPresent,
        crls: &evidence.crls,
        ocsp: &evidence.ocsp,
        ..Trust::default()
    };
    let found = token.verify(&imprint, &trust).map_err(refused)?;
    let checked = !evidence.crls.is_empty() || !evidence.ocsp.is_empty();
    output.result(&text(file, &found, checked), &json(file, &path, &found, checked));
    Ok(())
}

fn text(file: &Path, found: &Verified, checked: bool) -> String {
    let accuracy = match found.accuracy {
        Some(accuracy) => format!(", within {accuracy}"),
        None => String::new(),
    };
    format!(
        "verified {}: it existed at {}{accuracy}, as \"{}\" says (policy {}, serial number {}, {})\n",
        file.display(),
        instant(found.time_ms),
        found.certificate.subject(),
        found.policy,
        hex::encode(&found.serial),
        if checked { "revocation checked by the files given" } else { "revocation not checked" },
    )
}

fn json(file: &Path, token: &Path, found: &Verified, checked: bool) -> Value {
    let subjects: Vec<_> =
        found.chain.iter().map(|one: &Certificate| one.subject().to_string()).collect();
    json!({
        "file": files::json_path(file),
        "token": files::json_path(token),
        "verified": true,
        "time": instant(found.time_ms),
        "accuracy_us": found.accuracy.map(|accuracy| accuracy.micros),
        "serial": hex::encode(&found.serial),
        "policy": found.policy.to_string(),
        "ordering": found.ordering,
        "authority": found.certificate.subject().to_string(),
        "algorithm": found.algorithm.kms_name,
        "digest": found.digest.name,
        "chain": subjects,
        "revocation_checked": checked,
    })
}

fn hint(error: &TimestampError) -> &'static str {
    match error {
        TimestampError::OtherData => "name the file as it was when it was timestamped",
        TimestampError::Nonce => "name the request of this timestamp with --query, or leave it out",
        TimestampError::Policy(_) => "accept it with --policy, if you trust it",
        TimestampError::Malformed(_) => "name the response or token with --token FILE",
        _ => "--trust takes the root above the time-stamping authority",
    }
}
