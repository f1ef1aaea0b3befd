//! `outlast sign request`, `requests` and `finish`: asks for approval of signatures, and makes them.

use std::path::{Path, PathBuf};

use outlast_api::aws::outlast::{SigningFile, SigningRequest, SigningRequestFile};
use outlast_api::ops::outlast::{
    delete_signing_approval_rule, list_signing_requests, put_signing_approval_rule,
    request_signing_approval,
};
use outlast_api::wire::Blob;
use outlast_crypto::digests::Digest;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::time::rfc3339;
use serde_json::{Value, json};

use super::{certificates, digest_row};
use crate::digest;
use crate::endpoint::Endpoint;
use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, USAGE};
use crate::files;
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::signing::approval::{self, printable};
use crate::signing::check::before_signing;
use crate::signing::{Signers, SigningIdentity};

/// Files of one request.
const MAX_FILES: usize = 50;

/// Arguments of `sign request`.
#[derive(clap::Args)]
pub(crate) struct RequestArguments {
    /// Files to sign, of any size; at most 50.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// KMS key: alias/NAME, key id or ARN.
    #[arg(long)]
    key: String,
    /// What it is for: the approvers read it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// PEM file with the signer's certificate and the CAs above it [default: from the key's tag
    /// outlast:certificate-arn].
    #[arg(long)]
    certificate: Option<PathBuf>,
    /// Digest of the files: sha512, shake256 or another that suits the key [default: sha512].
    #[arg(long, value_parser = digest_row, value_hint = clap::ValueHint::Other)]
    digest: Option<&'static Digest>,
    #[command(flatten)]
    connection: Connection,
}

/// Arguments of `sign finish`.
#[derive(clap::Args)]
pub(crate) struct FinishArguments {
    /// Id of the request.
    id: String,
    /// PEM file with the signer's certificate and the CAs above it [default: from the key's tag
    /// outlast:certificate-arn].
    #[arg(long)]
    certificate: Option<PathBuf>,
    /// Folder for the signatures, made if it is missing [default: next to the files].
    #[arg(long)]
    output_dir: Option<PathBuf>,
    /// Replace signatures that exist already.
    #[arg(long)]
    force: bool,
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
    if arguments.files.len() > MAX_FILES {
        let count = arguments.files.len();
        return Err(Failure::new(format!("{count} files are too many for one request"))
            .hint(format!("ask for at most {MAX_FILES} files at a time"))
            .code(USAGE));
    }
    let given = arguments.certificate.as_deref().map(certificates).transpose()?;
    let runtime = crate::runtime::runtime()?;
    let made = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let signers = one_signer(&mut endpoint, &arguments.key, given, arguments.digest).await?;
        let identity = sole(&signers)?;
        check_certificate(identity).await?;
        let now = system_clock().div_euclid(1000);
        let mut files = Vec::with_capacity(arguments.files.len());
        for path in &arguments.files {
            files.push(described(&signers, identity, path, now)?);
        }
        let input = request_signing_approval::Input {
            key_id: identity.key_arn().to_owned(),
            files,
            reason: arguments.reason.clone(),
        };
        let called = endpoint.call::<request_signing_approval::RequestSigningApproval>(&input);
        called.await.map_err(Failure::from)
    })?;
    let ends = rfc3339(made.expires_at.ms.div_euclid(1000));
    let text = format!(
        "request: {}\ndigest:  {}\nneeds {} approvals before {ends}\n\
         approve: outlast sign approve {}\nfinish:  outlast sign finish {}\n",
        made.request_id,
        made.request_digest,
        made.approvers_required,
        made.request_id,
        made.request_id
    );
    let value = json!({
        "id": made.request_id,
        "digest": made.request_digest,
        "key": made.key_id,
        "approvals_required": made.approvers_required,
        "ends": ends,
    });
    output.result(&text, &value);
    Ok(())
}

/// A file with its digest, and the attributes that are to be signed.
fn described(
    signers: &Signers,
    identity: &SigningIdentity,
    path: &Path,
    now: i64,
) -> Result<SigningFile, Failure> {
    let row = identity.digest();
    let progress = output::byte_bar(0);
    let digests = tokio::task::block_in_place(|| digest::file(path, &[row], &progress))?;
    progress.finish_and_clear();
    let name = path.to_str().ok_or_else(|| Failure::file(path, &"its name is not UTF-8"))?;
    let mut unsigned = signers.unsigned(&[row], &digests, now)?;
    let (Some(message), Some(digest)) = (unsigned.to_be_signed.pop(), digests.into_iter().next())
    else {
        return Err(Failure::new("there is nothing to sign"));
    };
    Ok(SigningFile {
        name: name.to_owned(),
        digest_algorithm: row.name.to_owned(),
        digest: Blob(digest),
        signing_algorithm: identity.algorithm().kms_name.to_owned(),
        message: Blob(message),
    })
}

async fn one_signer(
    endpoint: &mut Endpoint,
    key: &str,
    given: Option<Vec<Vec<u8>>>,
    digest: Option<&'static Digest>,
) -> Result<Signers, Failure> {
    let given = given.into_iter().collect();
    Signers::resolve(endpoint, &[key.to_owned()], given, digest).await
}

fn sole(signers: &Signers) -> Result<&SigningIdentity, Failure> {
    match signers.identities() {
        [identity] => Ok(identity),
        _ => Err(Failure::new(
            "the key has a second one: signatures by two keys cannot be approved",
        )
        .hint("name a key without the tag outlast:second-key-arn, or ask for each key by itself")),
    }
}

async fn check_certificate(identity: &SigningIdentity) -> Result<(), Failure> {
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
            "{} {} {} of {required}, {what}, by {}, until {} {reason}\n",
            one.request_id,
            one.status,
            one.approvals_counted,
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
                "files": one.file_count,
                "changes_rule": one.changes_rule,
            })
        })
        .collect();
    output.result(&text, &value);
    Ok(())
}

/// Makes the signatures, or the change of the rule, that a request has asked for.
pub(crate) fn finish(arguments: &FinishArguments, output: Output) -> Result<(), Failure> {
    let given = arguments.certificate.as_deref().map(certificates).transpose()?;
    let runtime = crate::runtime::runtime()?;
    let (text, value) = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let request = approval::read(&mut endpoint, &arguments.id).await?;
        let id = &request.request_id;
        match request.status.as_str() {
            "APPROVED" | "FINISHED" => {}
            "PENDING" => {
                return Err(Failure::new(format!(
                    "the request {id} is {}",
                    approval::status(&request)
                ))
                .hint(format!("its approvers approve it with: outlast sign approve {id}")));
            }
            _ => {
                return Err(Failure::new(format!("the request {id} is {}", request.status))
                    .hint("ask again: outlast sign request"));
            }
        }
        if request.new_rule.is_some() || request.removes_rule {
            return change_rule(&mut endpoint, &request).await;
        }
        sign_all(arguments, &mut endpoint, given, &request).await
    })?;
    output.result(&text, &value);
    Ok(())
}

async fn change_rule(
    endpoint: &mut Endpoint,
    request: &SigningRequest,
) -> Result<(String, Value), Failure> {
    let key_id = request.key_id.clone();
    if request.status == "FINISHED" {
        return Err(Failure::new(format!("the request {} is finished", request.request_id)));
    }
    let status = match request.new_rule.clone() {
        Some(rule) => {
            let input = put_signing_approval_rule::Input { key_id, rule, reason: None };
            let put = endpoint.call::<put_signing_approval_rule::PutSigningApprovalRule>(&input);
            put.await.map_err(Failure::from)?.status
        }
        None => {
            let input = delete_signing_approval_rule::Input { key_id, reason: None };
            let called =
                endpoint.call::<delete_signing_approval_rule::DeleteSigningApprovalRule>(&input);
            called.await.map_err(Failure::from)?.status
        }
    };
    if status != "APPLIED" {
        return Err(Failure::new(
            "the rule is not changed: another request was made for the change",
        )
        .hint("the principal who has made the approved request finishes it"));
    }
    let text = format!("changed the rule of {}\n", request.key_id);
    Ok((text, json!({ "key": request.key_id, "outcome": "rule-changed" })))
}

async fn sign_all(
    arguments: &FinishArguments,
    endpoint: &mut Endpoint,
    given: Option<Vec<Vec<u8>>>,
    request: &SigningRequest,
) -> Result<(String, Value), Failure> {
    let folder = arguments.output_dir.as_deref();
    let targets: Vec<_> =
        request.files.iter().map(|file| approval::target(&file.name, folder)).collect();
    // All of it is checked before an approval is used up.
    for (file, target) in request.files.iter().zip(&targets) {
        check_file(file)?;
        if file.signed_at.is_some() && !files::exists(target)? {
            return Err(Failure::file(
                target,
                &"it is missing, and the approvals were used for it",
            )
            .hint("ask again: outlast sign request"));
        }
        if file.signed_at.is_none() && !arguments.force && files::exists(target)? {
            return Err(files::exists_already(target));
        }
    }
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(|error| files::io_failure(folder, &error))?;
    }
    let (mut text, mut list) = (String::new(), Vec::new());
    for (file, target) in request.files.iter().zip(&targets) {
        let outcome = if file.signed_at.is_some() { "signed-before" } else { "signed" };
        if file.signed_at.is_none() {
            let signature = sign_one(endpoint, given.clone(), request, file).await?;
            let write = if arguments.force { files::write } else { files::write_absent };
            write(target, &signature, 0o644)?;
        }
        text.push_str(&format!(
            "{} {}: {}\n",
            outcome.replace('-', " "),
            printable(&file.name),
            target.display()
        ));
        list.push(
            json!({ "file": file.name, "outcome": outcome, "signature": files::json_path(target) }),
        );
    }
    Ok((text, json!(list)))
}

/// A file that is there must still be the one that was approved.
fn check_file(file: &SigningRequestFile) -> Result<(), Failure> {
    let path = Path::new(&file.name);
    if !files::exists(path)? {
        return Ok(());
    }
    let row = Digest::by_name(&file.digest_algorithm)
        .ok_or_else(|| Failure::new(format!("{} is not known", file.digest_algorithm)))?;
    let progress = output::byte_bar(0);
    let digests = tokio::task::block_in_place(|| digest::file(path, &[row], &progress))?;
    progress.finish_and_clear();
    if digests.first() == Some(&file.digest.0) {
        return Ok(());
    }
    Err(Failure::file(path, &"it is not the file that was approved")
        .hint("restore it, or ask for approval of the new one: outlast sign request"))
}

async fn sign_one(
    endpoint: &mut Endpoint,
    given: Option<Vec<Vec<u8>>>,
    request: &SigningRequest,
    file: &SigningRequestFile,
) -> Result<Vec<u8>, Failure> {
    let row = Digest::by_name(&file.digest_algorithm);
    let signers = one_signer(endpoint, &request.key_id, given, row).await?;
    let identity = sole(&signers)?;
    check_certificate(identity).await?;
    let differs = || {
        Failure::new(format!("{:?} was not requested by this program's rules", file.name))
            .hint("call Sign with the request's Message, or ask again: outlast sign request")
    };
    let time = approval::signing_time(file).ok_or_else(differs)?;
    let digests = [file.digest.0.clone()];
    let unsigned = signers.unsigned(&[identity.digest()], &digests, time)?;
    if unsigned.to_be_signed.first() != Some(&file.message.0) {
        return Err(differs());
    }
    let signature = identity.sign(endpoint, file.message.0.clone()).await?;
    Ok(unsigned.assemble(&[signature])?)
}
