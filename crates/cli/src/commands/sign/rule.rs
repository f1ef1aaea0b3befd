//! `outlast sign rule`: who must approve what a key signs.

use std::path::PathBuf;

use outlast_api::aws::outlast::{SigningApprovalRule, SigningApprover};
use outlast_api::ops::outlast::{
    delete_signing_approval_rule, get_signing_approval_rule, put_signing_approval_rule,
};
use outlast_api::wire::Blob;
use outlast_net::policy::Policy;
use outlast_pki::object::{self, Kind};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::failure::{Failure, USAGE};
use crate::files;
use crate::output::Output;
use crate::profile::Connection;
use crate::signing::approval::rule_text;

/// Largest file with a public key, in bytes.
const MAX_PUBLIC_KEY: usize = 1 << 16;

/// Arguments of `sign rule`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Set the rule of a key. If there is one, it has to approve the new one.
    Put(PutArguments),
    /// Show the rule of a key.
    Show(KeyArguments),
    /// Remove the rule of a key, which it has to approve.
    Delete(KeyArguments),
}

#[derive(clap::Args)]
struct PutArguments {
    /// KMS key: alias/NAME, key id or ARN.
    #[arg(long)]
    key: String,
    /// ARN of a user or role that may approve; may be repeated.
    #[arg(long, value_name = "ARN", required = true)]
    approver: Vec<String>,
    /// Number of approvers that a request needs.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..=20))]
    required: i64,
    /// Accept approvals of the approver ARN only with a signature by this public key (PEM); may be repeated.
    #[arg(long, num_args = 2, value_names = ["ARN", "FILE"])]
    public_key: Vec<String>,
    /// Minutes after a request was made in which it can be approved and finished.
    #[arg(long, value_name = "NUMBER", default_value_t = 1440,
          value_parser = clap::value_parser!(i64).range(1..=43_200))]
    valid_minutes: i64,
    /// Count the approval of the principal who made the request.
    #[arg(long)]
    requester_may_approve: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(clap::Args)]
struct KeyArguments {
    /// KMS key: alias/NAME, key id or ARN.
    #[arg(long)]
    key: String,
    #[command(flatten)]
    connection: Connection,
}

/// Sets, shows or removes a rule.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let runtime = crate::runtime::runtime()?;
    let (text, value) = runtime.block_on(async {
        match &arguments.command {
            Command::Put(put) => set(put).await,
            Command::Show(of) => show(of).await,
            Command::Delete(of) => remove(of).await,
        }
    })?;
    output.result(&text, &value);
    Ok(())
}

async fn set(arguments: &PutArguments) -> Result<(String, Value), Failure> {
    let mut approvers: Vec<_> = arguments
        .approver
        .iter()
        .map(|arn| SigningApprover { principal_arn: arn.clone(), public_key: None })
        .collect();
    for pair in arguments.public_key.chunks_exact(2) {
        let [arn, path] = pair else { continue };
        let approver = approvers.iter_mut().find(|one| one.principal_arn == *arn);
        let approver = approver.ok_or_else(|| {
            Failure::new(format!("--public-key is for {arn}, which is no --approver")).code(USAGE)
        })?;
        approver.public_key = Some(Blob(public_key(&PathBuf::from(path))?));
    }
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let input = put_signing_approval_rule::Input {
        key_id: arguments.key.clone(),
        rule: SigningApprovalRule {
            approvers_required: arguments.required,
            approvers,
            valid_for_minutes: Some(arguments.valid_minutes),
            requester_may_approve: Some(arguments.requester_may_approve),
        },
        reason: None,
    };
    let called = endpoint.call::<put_signing_approval_rule::PutSigningApprovalRule>(&input);
    let done = called.await.map_err(Failure::from)?;
    Ok(outcome("set", &done.key_id, &done.status, done.request_id.as_deref()))
}

async fn show(arguments: &KeyArguments) -> Result<(String, Value), Failure> {
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let input = get_signing_approval_rule::Input { key_id: arguments.key.clone() };
    let called = endpoint.call::<get_signing_approval_rule::GetSigningApprovalRule>(&input);
    let found = called.await.map_err(Failure::from)?;
    let approvers: Vec<_> = found
        .rule
        .approvers
        .iter()
        .map(|one| {
            let key = one.public_key.as_ref().map(|key| hex::encode(&key.0));
            json!({ "principal": one.principal_arn, "public_key": key })
        })
        .collect();
    let value = json!({
        "key": found.key_id,
        "required": found.rule.approvers_required,
        "approvers": approvers,
        "valid_minutes": found.rule.valid_for_minutes,
        "requester_may_approve": found.rule.requester_may_approve,
    });
    Ok((format!("{}: {}\n", found.key_id, rule_text(&found.rule)), value))
}

async fn remove(arguments: &KeyArguments) -> Result<(String, Value), Failure> {
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let input = delete_signing_approval_rule::Input { key_id: arguments.key.clone(), reason: None };
    let called = endpoint.call::<delete_signing_approval_rule::DeleteSigningApprovalRule>(&input);
    let done = called.await.map_err(Failure::from)?;
    Ok(outcome("removed", &done.key_id, &done.status, done.request_id.as_deref()))
}

fn outcome(done: &str, key: &str, status: &str, request: Option<&str>) -> (String, Value) {
    let text = match request {
        None => format!("the rule of {key} is {done}\n"),
        Some(id) => format!(
            "the rule in force has to approve this\nrequest: {id}\n\
             approve: outlast sign approve {id}\nfinish:  outlast sign finish {id}\n"
        ),
    };
    (text, json!({ "key": key, "status": status, "request": request }))
}

/// The public key in a PEM or DER file.
fn public_key(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let bytes = files::read(path, MAX_PUBLIC_KEY)?;
    let objects = object::read(&bytes).map_err(|error| Failure::file(path, &error))?;
    let found = objects.into_iter().find(|object| object.kind == Kind::PublicKey);
    found.map(|object| object.der.expose().to_vec()).ok_or_else(|| {
        Failure::file(path, &"it contains no public key")
            .hint("give a PEM file that begins with -----BEGIN PUBLIC KEY-----")
    })
}
