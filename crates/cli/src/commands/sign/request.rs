//! `outlast sign request` and `requests`: asks for approval of signatures. [`super::finish`] makes them.

use std::path::{Path, PathBuf};

use outlast_api::aws::outlast::{SigningFile, SigningRequestKey};
use outlast_api::ops::outlast::{list_signing_requests, request_signing_approval};
use outlast_api::wire::Blob;
use outlast_crypto::digests::Digest;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::time::rfc3339;
use serde_json::{Value, json};

use super::{certificates, digest_row};
use crate::digest;
use crate::endpoint::{CallError, Endpoint};
use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, USAGE};
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::signing::approval::{self, printable};
use crate::signing::check::before_signing;
use crate::signing::{Signers, SigningIdentity};

/// Messages of one request.
const MAX_FILES: usize = 50;

/// Arguments of `sign request`.
#[derive(clap::Args)]
pub(crate) struct RequestArguments {
    /// Files to sign, of any size; at most 50, with two keys 25.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// KMS key: alias/NAME, key id or ARN. Given twice, both sign, in one message, and the rules of both must be satisfied.
    #[arg(long, required = true)]
    key: Vec<String>,
    /// What it is for: the approvers read it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// PEM file with the signer's certificate and the CAs above it; one for each --key [default: from the key's
    /// tag outlast:certificate-arn].
    #[arg(long)]
    certificate: Vec<PathBuf>,
    /// Digest of the files: sha512, shake256 or another that suits the key [default: sha512].
    #[arg(long, value_parser = digest_row, value_hint = clap::ValueHint::Other)]
    digest: Option<&'static Digest>,
    /// Ask also for FILE.classical.p7s, by the classical keys alone, for verifiers that refuse a message with an algorithm
    /// that they do not know.
    #[arg(long)]
    classical_copy: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Arguments of `sign requests`.
#[derive(clap::Args)]
pub(crate) struct RequestsArguments {
    /// Show also those that have ended.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Asks for approval.
pub(crate) fn request(arguments: &RequestArguments, output: Output) -> Result<(), Failure> {
    let given = arguments.certificate.iter().map(|path| certificates(path));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let runtime = crate::runtime::runtime()?;
    let made = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let signers =
            Signers::resolve(&mut endpoint, &arguments.key, given, arguments.digest).await?;
        let classical = arguments.classical_copy.then(|| signers.classical()).transpose()?;
        let all: Vec<_> = std::iter::once(&signers).chain(&classical).collect();
        let most = MAX_FILES / all.iter().map(|one| one.identities().len()).sum::<usize>().max(1);
        if arguments.files.len() > most {
            let count = arguments.files.len();
            return Err(Failure::new(format!("{count} files are too many for one request"))
                .hint(format!("ask for at most {most} files at a time"))
                .code(USAGE));
        }
        for identity in signers.identities() {
            check_certificate(identity).await?;
        }
        let now = system_clock().div_euclid(1000);
        let mut files = Vec::new();
        for path in &arguments.files {
            files.extend(described(&all, path, now)?);
        }
        let input = request_signing_approval::Input {
            key_id: first_key(&all).to_owned(),
            files,
            reason: arguments.reason.clone(),
        };
        let called = endpoint.call::<request_signing_approval::RequestSigningApproval>(&input);
        called.await.map_err(explained)
    })?;
    let ends = rfc3339(made.expires_at.ms.div_euclid(1000));
    let text = format!(
        "request: {}\ndigest:  {}\nneeds {} approvals{} before {ends}\n\
         approve: outlast sign approve {}\nfinish:  outlast sign finish {}\n",
        made.request_id,
        made.request_digest,
        made.approvers_required,
        also(made.other_keys.as_deref()),
        made.request_id,
        made.request_id
    );
    let value = json!({
        "id": made.request_id,
        "digest": made.request_digest,
        "key": made.key_id,
        "approvals_required": made.approvers_required,
        "other_keys": approval::others_value(made.other_keys.as_deref()),
        "ends": ends,
    });
    output.result(&text, &value);
    Ok(())
}

/// What the other keys need, if there are some.
fn also(others: Option<&[SigningRequestKey]>) -> String {
    let one = |key: &SigningRequestKey| {
        format!(", {} for {}", key.approvers_required.unwrap_or_default(), key.key_id)
    };
    others.unwrap_or_default().iter().map(one).collect()
}

/// A failed request, with advice: keys that sign together all need a rule.
fn explained(error: CallError) -> Failure {
    let has_no_rule = match &error {
        CallError::Service(error) => error.message.contains("has no rule of approvals"),
        _ => false,
    };
    let failure = Failure::from(error);
    if has_no_rule {
        return failure
            .hint("give it one: outlast sign rule put; of keys that sign together, each");
    }
    failure
}

fn first_key<'a>(all: &[&'a Signers]) -> &'a str {
    let first = all.first().and_then(|signers| signers.identities().first());
    first.map(SigningIdentity::key_arn).unwrap_or_default()
}

/// A file with its digests, and the attributes that each key is to sign. `all` are the signers of each message.
fn described(all: &[&Signers], path: &Path, now: i64) -> Result<Vec<SigningFile>, Failure> {
    let rows = all.first().map(|signers| signers.digests()).unwrap_or_default();
    let progress = output::byte_bar(0);
    let digests = tokio::task::block_in_place(|| digest::file(path, &rows, &progress))?;
    progress.finish_and_clear();
    let name = path.to_str().ok_or_else(|| Failure::file(path, &"its name is not UTF-8"))?;
    let first = first_key(all);
    let mut out = Vec::new();
    for signers in all {
        let unsigned = signers.unsigned(&rows, &digests, now)?;
        for (identity, message) in signers.identities().iter().zip(unsigned.to_be_signed) {
            let row = identity.digest();
            let at = rows.iter().position(|one| one.oid == row.oid);
            let digest = at.and_then(|at| digests.get(at)).cloned();
            out.push(SigningFile {
                name: name.to_owned(),
                digest_algorithm: row.name.to_owned(),
                digest: Blob(digest.ok_or_else(|| Failure::new("there is nothing to sign"))?),
                key_id: (identity.key_arn() != first).then(|| identity.key_arn().to_owned()),
                signing_algorithm: identity.algorithm().kms_name.to_owned(),
                message: Blob(message),
            });
        }
    }
    Ok(out)
}

/// Checks the certificate of a key before anything is asked of it.
pub(super) async fn check_certificate(identity: &SigningIdentity) -> Result<(), Failure> {
    let now = system_clock().div_euclid(1000);
    before_signing(identity, Check::IfAvailable, &mut Evidence::default(), now).await
}

/// Lists requests.
pub(crate) fn requests(arguments: &RequestsArguments, output: Output) -> Result<(), Failure> {
    let runtime = crate::runtime::runtime()?;
    let found = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let mut all = Vec::new();
        let mut next_token = None;
        loop {
            let input = list_signing_requests::Input { max_results: None, next_token };
            let called = endpoint.call::<list_signing_requests::ListSigningRequests>(&input);
            let page = called.await.map_err(Failure::from)?;
            all.extend(page.requests);
            next_token = page.next_token;
            if next_token.is_none() {
                return Ok::<_, Failure>(all);
            }
        }
    })?;
    let is_open = |status: &str| matches!(status, "PENDING" | "APPROVED");
    let shown: Vec<_> = found.iter().filter(|one| arguments.all || is_open(&one.status)).collect();
    let mut text = String::new();
    for one in &shown {
        let what = match (one.changes_rule, one.file_count) {
            (true, _) => "a change of the rule".to_owned(),
            (false, 1) => "1 file".to_owned(),
            (false, count) => format!("{count} files"),
        };
        let required = one.approvers_required.map_or_else(|| "-".into(), |count| count.to_string());
        let reason = one.reason.as_deref().map(printable).unwrap_or_default();
        text.push_str(&format!(
            "{} {} {} of {required}{}, {what}, by {}, until {} {reason}\n",
            one.request_id,
            one.status,
            one.approvals_counted,
            approval::of_others(one.other_keys.as_deref()),
            one.requester_arn,
            rfc3339(one.ends_at.ms.div_euclid(1000)),
        ));
    }
    if shown.is_empty() {
        text.push_str("no requests\n");
    }
    let value: Vec<Value> = shown
        .iter()
        .map(|one| {
            json!({
                "id": one.request_id,
                "key": one.key_id,
                "requester": one.requester_arn,
                "reason": one.reason,
                "status": one.status,
                "ends": rfc3339(one.ends_at.ms.div_euclid(1000)),
                "approvals_required": one.approvers_required,
                "approvals_counted": one.approvals_counted,
                "other_keys": approval::others_value(one.other_keys.as_deref()),
                "files": one.file_count,
                "changes_rule": one.changes_rule,
            })
        })
        .collect();
    output.result(&text, &value);
    Ok(())
}
