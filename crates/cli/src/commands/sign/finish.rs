//! `outlast sign finish`: makes the signatures, or the change of the rule, that a request has asked for.
//!
//! An approval is used up with the signature. So each signature is written at once; timestamps and the log's proof come after
//! it, and the same command adds them later if they could not be had.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outlast_api::aws::outlast::{SigningRequest, SigningRequestFile};
use outlast_api::ops::outlast::{delete_signing_approval_rule, put_signing_approval_rule};
use outlast_crypto::digests::Digest;
use outlast_net::policy::Policy;
use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::sign::Unsigned;
use outlast_pki::cms::verify::SignedMessage;
use serde_json::{Value, json};

use super::additions::Additions;
use super::request::check_certificate;
use super::{certificates, write};
use crate::artifact_log::{self, Waiting};
use crate::digest;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::signing::Signers;
use crate::signing::approval::{self, printable};
use crate::signing::jobs::{self, classical_path, proof_of};
use crate::timestamping::{Client, Taken};

/// Arguments of `sign finish`.
#[derive(clap::Args)]
pub(crate) struct FinishArguments {
    /// Id of the request.
    id: String,
    /// PEM file with the signer's certificate and the CAs above it; one for each key of the request, in its order [default:
    /// from the key's tag outlast:certificate-arn].
    #[arg(long)]
    certificate: Vec<PathBuf>,
    /// Folder for the signatures, made if it is missing [default: next to the files].
    #[arg(long)]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    additions: Additions,
    /// Replace signatures that exist already.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Makes the signatures, or the change of the rule, that a request has asked for.
pub(crate) fn finish(arguments: &FinishArguments, output: Output) -> Result<(), Failure> {
    let given = arguments.certificate.iter().map(|path| certificates(path));
    let given = given.collect::<Result<Vec<_>, _>>()?;
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

/// The signatures of one file.
struct Plan<'a> {
    name: &'a str,
    entries: Vec<&'a SigningRequestFile>,
    /// FILE.p7s, and FILE.classical.p7s if that was asked for.
    messages: Vec<Message>,
    proof: Option<PathBuf>,
    /// Whether they were made before.
    is_signed: bool,
}

/// A message to be made, of signers whose signatures belong together.
struct Message {
    signers: Signers,
    unsigned: Unsigned,
    path: PathBuf,
}

impl Message {
    /// Takes what each signer is to sign out of `left`: exactly these bytes must have been approved.
    fn new(
        request: &SigningRequest,
        signers: Signers,
        path: PathBuf,
        left: &mut Vec<&SigningRequestFile>,
    ) -> Option<Self> {
        let time = left.first().and_then(|file| approval::signing_time(file))?;
        let rows = signers.digests();
        let digest = |row: &&'static Digest| {
            let file = left.iter().find(|file| file.digest_algorithm == row.name)?;
            Some(file.digest.0.clone())
        };
        let digests = rows.iter().map(digest).collect::<Option<Vec<_>>>()?;
        let unsigned = signers.unsigned(&rows, &digests, time).ok()?;
        for (identity, message) in signers.identities().iter().zip(&unsigned.to_be_signed) {
            let is_it = |file: &&SigningRequestFile| {
                approval::signed_by(request, file) == identity.key_arn()
                    && file.message.0 == *message
            };
            left.remove(left.iter().position(is_it)?);
        }
        Some(Self { signers, unsigned, path })
    }

    async fn sign(self, endpoint: &mut Endpoint) -> Result<Vec<u8>, Failure> {
        let mut signatures = Vec::new();
        for (identity, message) in self.signers.identities().iter().zip(&self.unsigned.to_be_signed)
        {
            signatures.push(identity.sign(endpoint, message.clone()).await?);
        }
        Ok(self.unsigned.assemble(&signatures)?)
    }
}

impl<'a> Plan<'a> {
    fn new(
        request: &'a SigningRequest,
        signers: &Signers,
        (name, entries): (&'a str, Vec<&'a SigningRequestFile>),
        arguments: &FinishArguments,
    ) -> Result<Self, Failure> {
        let differs = || {
            Failure::new(format!("{name:?} was not requested by this program's rules"))
                .hint("call Sign with the request's Message, or ask again: outlast sign request")
        };
        let signers = signers.with_digests(|key| {
            let mut all = entries.iter();
            let file = all.find(|file| approval::signed_by(request, file) == key)?;
            Digest::by_name(&file.digest_algorithm)
        })?;
        let target = approval::target(name, arguments.output_dir.as_deref());
        let classical = classical_path(&target);
        let proof = arguments.additions.log.then(|| proof_of(&target));
        let mut left = entries.clone();
        let alone = signers.classical();
        let first = Message::new(request, signers, target, &mut left).ok_or_else(differs)?;
        let mut messages = vec![first];
        if !left.is_empty() {
            let alone = alone.map_err(|_| differs())?;
            let copy = Message::new(request, alone, classical, &mut left);
            messages.push(copy.ok_or_else(differs)?);
        }
        if !left.is_empty() {
            return Err(differs());
        }
        let is_signed = entries.iter().all(|file| file.signed_at.is_some());
        Ok(Self { name, entries, messages, proof, is_signed })
    }

    /// Checks everything that could prevent the signatures from being made and written.
    fn check(&self, force: bool) -> Result<(), Failure> {
        check_file(self.name, &self.entries)?;
        let again = "ask again: outlast sign request";
        if !self.is_signed && self.entries.iter().any(|file| file.signed_at.is_some()) {
            let name = printable(self.name);
            return Err(Failure::new(format!(
                "{name}: the approvals were used for a part of its signatures"
            ))
            .hint(again));
        }
        for Message { path, .. } in &self.messages {
            let exists = files::exists(path)?;
            if self.is_signed && !exists {
                let reason = "it is missing, and the approvals were used for it";
                return Err(Failure::file(path, &reason).hint(again));
            }
            if !self.is_signed && !force && exists {
                return Err(files::exists_already(path));
            }
        }
        match &self.proof {
            Some(proof) if !self.is_signed && !force && files::exists(proof)? => {
                Err(files::exists_already(proof))
            }
            _ => Ok(()),
        }
    }

    /// The signature that was written before.
    fn read(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        let bytes = files::read(path, MAX_MESSAGE_LEN)?;
        let message = SignedMessage::parse(&bytes).map_err(|error| Failure::file(path, &error))?;
        let is_own = |digest: Option<&Vec<u8>>| {
            digest.is_some_and(|digest| self.entries.iter().any(|file| file.digest.0 == *digest))
        };
        if message.claims().iter().all(|claim| is_own(claim.message_digest.as_ref())) {
            return Ok(bytes);
        }
        Err(Failure::file(path, &"it is not the signature that was approved")
            .hint("move it away, and ask again: outlast sign request"))
    }
}

/// What finishes signatures after they were made.
struct Finisher<'a> {
    arguments: &'a FinishArguments,
    client: Option<Client>,
    waiting: Waiting,
}

impl Finisher<'_> {
    /// Makes the signatures of a file, or reads those that were made before; returns the timestamps that were added.
    async fn finish(
        &self,
        endpoint: &mut Endpoint,
        mut plan: Plan<'_>,
    ) -> Result<Vec<Taken>, Failure> {
        let force = self.arguments.force;
        let mut made = Vec::new();
        for message in std::mem::take(&mut plan.messages) {
            let path = message.path.clone();
            let bytes = if plan.is_signed {
                plan.read(&path)?
            } else {
                let bytes = message.sign(endpoint).await?;
                write(&path, &bytes, force)?;
                bytes
            };
            made.push((path, bytes));
        }
        let mut taken = Vec::new();
        if let Some(client) = &self.client {
            for (path, bytes) in made.iter_mut().filter(|(_, bytes)| !has_timestamps(bytes)) {
                let stamped = client.stamp(bytes).await;
                let (stamped, of) = stamped.map_err(|failure| self.written(failure, path))?;
                files::write(path, &stamped, 0o644)?;
                *bytes = stamped;
                taken.extend(of);
            }
        }
        if let Some(proof) = &plan.proof
            && !(plan.is_signed && files::exists(proof)?)
        {
            let messages: Vec<_> = made.iter().map(|(_, bytes)| bytes.as_slice()).collect();
            let with_name = self.arguments.additions.log_name;
            let name = Path::new(plan.name).file_name().filter(|_| with_name);
            let name = name.map(|name| name.to_string_lossy().into_owned());
            let entered = artifact_log::enter(endpoint, &messages, name).await;
            let path = made.first().map_or(proof.as_path(), |(path, _)| path.as_path());
            let entered = entered.map_err(|failure| self.written(failure, path))?;
            write(proof, entered.proof.as_bytes(), force)?;
            if !entered.is_cosigned {
                self.waiting.add(proof, entered.index);
            }
        }
        Ok(taken)
    }

    /// A failure after the signature was written.
    fn written(&self, failure: Failure, path: &Path) -> Failure {
        failure.prefixed(&format!("{} is signed, but not complete", path.display())).hint(format!(
            "the approvals are used up, and the signature stays; add what is missing with the same command: outlast sign finish {}",
            self.arguments.id
        ))
    }
}

fn has_timestamps(message: &[u8]) -> bool {
    SignedMessage::parse(message)
        .is_ok_and(|message| message.claims().iter().all(|claim| !claim.tokens.is_empty()))
}

async fn sign_all(
    arguments: &FinishArguments,
    endpoint: &mut Endpoint,
    given: Vec<Vec<Vec<u8>>>,
    request: &SigningRequest,
) -> Result<(String, Value), Failure> {
    let keys: Vec<_> = approval::keys(request).into_iter().map(str::to_owned).collect();
    let signers = Signers::resolve(endpoint, &keys, given, None).await?;
    for identity in signers.identities() {
        check_certificate(identity).await?;
    }
    let client = arguments.additions.stamper(&arguments.connection)?;
    // All of it is checked before an approval is used up.
    let mut plans = Vec::new();
    for group in approval::by_name(request) {
        let plan = Plan::new(request, &signers, group, arguments)?;
        plan.check(arguments.force)?;
        plans.push(plan);
    }
    check_places(&plans, arguments.output_dir.is_some())?;
    if let Some(folder) = &arguments.output_dir {
        std::fs::create_dir_all(folder).map_err(|error| files::io_failure(folder, &error))?;
    }
    let finisher = Finisher { arguments, client, waiting: Waiting::default() };
    let (mut text, mut list) = (String::new(), Vec::new());
    for plan in plans {
        let outcome = if plan.is_signed { "signed-before" } else { "signed" };
        let paths: Vec<_> = plan.messages.iter().map(|message| message.path.clone()).collect();
        let (name, proof) = (plan.name, plan.proof.clone());
        let taken = finisher.finish(endpoint, plan).await?;
        let said = outcome.replace('-', " ");
        for path in &paths {
            text.push_str(&format!("{said} {}: {}\n", printable(name), path.display()));
        }
        for one in &taken {
            text.push_str(&format!("{}: {}\n", printable(name), one.text()));
        }
        let first = paths.first().map(|path| files::json_path(path));
        let mut value = json!({ "file": name, "outcome": outcome, "signature": first });
        if let Some(path) = paths.get(1) {
            value["classical_signature"] = json!(files::json_path(path));
        }
        if !taken.is_empty() {
            value["timestamps"] = taken.iter().map(Taken::json).collect();
        }
        if let Some(path) = proof {
            value["log_proof"] = json!(files::json_path(&path));
        }
        list.push(value);
    }
    arguments.additions.cosigned(&arguments.connection, finisher.waiting).await;
    Ok((text, json!(list)))
}

/// Checks that each file that will be written has a place of its own, in a folder that is there or will be made.
fn check_places(plans: &[Plan<'_>], makes_folder: bool) -> Result<(), Failure> {
    let mut places = BTreeSet::new();
    let mut written = Vec::new();
    for plan in plans {
        let messages = plan.messages.iter().map(|message| &message.path);
        for path in messages.chain(&plan.proof) {
            written.push((path.as_path(), Path::new(plan.name)));
            if !places.insert(path) {
                let reason = "two files of the request would be written here";
                return Err(Failure::file(path, &reason).hint(
                    "finish it without --output-dir, where each signature goes next to its file",
                ));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|folder| !makes_folder && !folder.is_dir()) {
                return Err(Failure::file(folder, &"the folder for the signature is missing")
                    .hint(
                        "run it where the request was made, or name a folder: --output-dir DIR",
                    ));
            }
        }
    }
    let signed: Vec<_> = plans.iter().map(|plan| Path::new(plan.name)).collect();
    jobs::check_places(&written, &signed)
}

/// A file that is there must still be the one that was approved.
fn check_file(name: &str, entries: &[&SigningRequestFile]) -> Result<(), Failure> {
    let path = Path::new(name);
    if !files::exists(path)? {
        return Ok(());
    }
    let mut rows: Vec<&'static Digest> = Vec::new();
    for file in entries {
        let row = Digest::by_name(&file.digest_algorithm);
        let row =
            row.ok_or_else(|| Failure::new(format!("{} is not known", file.digest_algorithm)))?;
        if !rows.iter().any(|known| known.oid == row.oid) {
            rows.push(row);
        }
    }
    let progress = output::byte_bar(0);
    let digests = tokio::task::block_in_place(|| digest::file(path, &rows, &progress))?;
    progress.finish_and_clear();
    let is_it = |file: &&SigningRequestFile| {
        let mut all = rows.iter().zip(&digests);
        all.any(|(row, digest)| row.name == file.digest_algorithm && file.digest.0 == *digest)
    };
    if entries.iter().all(is_it) {
        return Ok(());
    }
    Err(Failure::file(path, &"it is not the file that was approved")
        .hint("restore it, or ask for approval of the new one: outlast sign request"))
}
