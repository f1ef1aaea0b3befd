//! `outlast sign approve` and `deny`: shows a request, and decides it.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use outlast_api::aws::outlast::{SigningRequest, SigningRequestFile};
use outlast_api::ops::outlast::{approve_signing, deny_signing};
use outlast_api::wire::Blob;
use outlast_crypto::digests::Digest;
use outlast_domain::kms::approval::approval_message;
use outlast_net::policy::Policy;
use serde_json::json;

use crate::digest;
use crate::endpoint::{CallError, Endpoint};
use crate::failure::{Failure, USAGE};
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::signing::{approval, sign_message};

/// Arguments of `sign approve`.
#[derive(clap::Args)]
pub(crate) struct ApproveArguments {
    /// Id of the request.
    id: String,
    /// Your own copy of a file of the request, which must have the same digest; may be repeated.
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Your own KMS key, if the rule wants approvals of yours to be signed: alias/NAME, key id or ARN.
    #[arg(long, value_name = "KEY")]
    approval_key: Option<String>,
    /// Approve without asking.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Arguments of `sign deny`.
#[derive(clap::Args)]
pub(crate) struct DenyArguments {
    /// Id of the request.
    id: String,
    /// Why: the requester reads it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Shows a request and approves it.
pub(crate) fn approve(arguments: &ApproveArguments, output: Output) -> Result<(), Failure> {
    if !arguments.yes && !std::io::stdin().is_terminal() {
        return Err(Failure::new("there is no terminal to confirm the approval on")
            .hint("look at the request with outlast sign show, then approve it with --yes")
            .code(USAGE));
    }
    let runtime = crate::runtime::runtime()?;
    let done = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let request = approval::read(&mut endpoint, &arguments.id).await?;
        let digest = approval::digest(&request)?;
        compare(&request, &arguments.file)?;
        if !arguments.yes {
            output::notice(&approval::text(&request));
            confirm(&request)?;
        }
        let signed = match &arguments.approval_key {
            None => None,
            Some(key) => {
                let message = approval_message(&request.request_arn, &digest);
                Some(sign_message(&mut endpoint, key, message).await?)
            }
        };
        let (signing_algorithm, signature) = signed.unzip();
        let input = approve_signing::Input {
            request_id: request.request_id.clone(),
            request_digest: digest,
            signing_algorithm,
            signature: signature.map(Blob),
        };
        match endpoint.call::<approve_signing::ApproveSigning>(&input).await {
            Ok(done) => Ok(done),
            Err(CallError::Service(error))
                if error.message.contains("names a key for this approver") =>
            {
                Err(Failure::new(error.to_string())
                    .hint("give the key that the rule names for you: --approval-key alias/NAME"))
            }
            Err(error) => Err(error.into()),
        }
    })?;
    let text = format!(
        "approved {}: {} of {} approvals{}\n",
        done.request_id,
        done.approvals_counted,
        done.approvers_required,
        approval::of_others(done.other_keys.as_deref())
    );
    let value = json!({
        "id": done.request_id,
        "status": done.status,
        "approvals_counted": done.approvals_counted,
        "approvals_required": done.approvers_required,
        "other_keys": approval::others_value(done.other_keys.as_deref()),
    });
    output.result(&text, &value);
    Ok(())
}

/// Each of these files must be one of the request's, by its digest.
fn compare(request: &SigningRequest, own: &[PathBuf]) -> Result<(), Failure> {
    let mut rows: Vec<&'static Digest> = Vec::new();
    for file in &request.files {
        if let Some(row) = Digest::by_name(&file.digest_algorithm)
            && !rows.iter().any(|known| known.oid == row.oid)
        {
            rows.push(row);
        }
    }
    let has_several = approval::keys(request).len() > 1;
    let mut compared = vec![false; request.files.len()];
    for path in own {
        let progress = output::byte_bar(0);
        let digests = tokio::task::block_in_place(|| digest::file(path, &rows, &progress))?;
        progress.finish_and_clear();
        let is_same = |file: &SigningRequestFile| {
            rows.iter()
                .zip(&digests)
                .any(|(row, digest)| row.name == file.digest_algorithm && *digest == file.digest.0)
        };
        let same: Vec<_> = request.files.iter().map(is_same).collect();
        if !same.contains(&true) {
            return Err(not_in(path));
        }
        for (file, is_same) in request.files.iter().zip(&same) {
            // Of one file the keys may sign different digests: all of them must be those of this file.
            let mut others = request.files.iter().zip(&same);
            if others.any(|(other, is)| has_several && other.name == file.name && is != is_same) {
                return Err(Failure::file(
                    path,
                    &format!(
                        "only some of the digests of {:?} are its own",
                        approval::printable(&file.name)
                    ),
                )
                .hint("do not approve it: the keys would sign different files"));
            }
        }
        for (compared, same) in compared.iter_mut().zip(same) {
            *compared |= same;
        }
    }
    let mut named = std::collections::BTreeSet::new();
    for (file, compared) in request.files.iter().zip(compared) {
        if !compared && !own.is_empty() && named.insert(&file.name) {
            let name = approval::printable(&file.name);
            output::warning(&format!("{name} was not compared with a file of yours"));
        }
    }
    Ok(())
}

fn not_in(path: &Path) -> Failure {
    Failure::file(path, &"no file of the request has its digest")
        .hint("do not approve unless you know why they differ: the request is for another file")
}

fn confirm(request: &SigningRequest) -> Result<(), Failure> {
    output::notice("Approve this? Type yes:");
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::new(format!("standard input: {error}")))?;
    if line.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::new(format!("the request {} was not approved", request.request_id))
        .hint("to end it for everybody: outlast sign deny"))
}

/// Denies a request, or withdraws it.
pub(crate) fn deny(arguments: &DenyArguments, output: Output) -> Result<(), Failure> {
    let runtime = crate::runtime::runtime()?;
    let done = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let input = deny_signing::Input {
            request_id: arguments.id.clone(),
            reason: arguments.reason.clone(),
        };
        let called = endpoint.call::<deny_signing::DenySigning>(&input);
        called.await.map_err(Failure::from)
    })?;
    let value = json!({ "id": done.request_id, "status": done.status });
    output.result(&format!("denied {}\n", done.request_id), &value);
    Ok(())
}

/// Arguments of `sign show`.
#[derive(clap::Args)]
pub(crate) struct ShowArguments {
    /// Id of the request.
    id: String,
    #[command(flatten)]
    connection: Connection,
}

/// Shows a request.
pub(crate) fn show(arguments: &ShowArguments, output: Output) -> Result<(), Failure> {
    let runtime = crate::runtime::runtime()?;
    let request = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        approval::read(&mut endpoint, &arguments.id).await
    })?;
    approval::digest(&request)?;
    output.result(&approval::text(&request), &approval::value(&request));
    Ok(())
}
