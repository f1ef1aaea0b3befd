//! `outlast log checkpoint`: prints the log's newest head.

use outlast_api::ops::outlast::get_log_checkpoint;
use outlast_net::policy::Policy;
use outlast_tlog::SignedCheckpoint;
use serde_json::json;

use crate::artifact_log::explained;
use crate::endpoint::{CallError, Endpoint};
use crate::failure::Failure;
use crate::output::Output;
use crate::profile::Connection;

/// Arguments of `log checkpoint`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let answer = crate::runtime::small()?.block_on(begun(&mut endpoint))?;
    let head = SignedCheckpoint::parse(answer.checkpoint.as_bytes())
        .map_err(|error| Failure::new(error.to_string()))?;
    let head = head.checkpoint();
    output.result(
        answer.checkpoint.trim_end(),
        &json!({
            "origin": head.origin(),
            "size": head.size(),
            "root": hex::encode(head.root()),
            "verifierKeys": answer.verifier_keys,
            "checkpoint": answer.checkpoint,
        }),
    );
    Ok(())
}

/// The service's newest head, its keys and the policy; `None` if the log has no entry yet.
pub(super) async fn fetch(
    endpoint: &mut Endpoint,
) -> Result<Option<get_log_checkpoint::Output>, Failure> {
    let outcome =
        endpoint.call::<get_log_checkpoint::GetLogCheckpoint>(&get_log_checkpoint::Input {}).await;
    match outcome {
        Ok(answer) => Ok(Some(answer)),
        Err(CallError::Service(error)) if error.code == "NotFoundException" => Ok(None),
        Err(error) => Err(explained(error, "outlast:GetLogCheckpoint")),
    }
}

/// The same of a log that must have begun.
pub(super) async fn begun(endpoint: &mut Endpoint) -> Result<get_log_checkpoint::Output, Failure> {
    fetch(endpoint).await?.ok_or_else(|| {
        Failure::new("the artifact log has no entry yet")
            .hint("sign a file with: outlast sign --log")
    })
}
