//! `outlast log policy`: prints the policy (C2SP tlog-policy) that verifiers of the log need.

use outlast_net::policy::Policy;
use serde_json::json;

use super::checkpoint::begun;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::Output;
use crate::profile::Connection;

/// Arguments of `log policy`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let answer = crate::runtime::small()?.block_on(begun(&mut endpoint))?;
    let value = json!({ "verifierKeys": answer.verifier_keys, "policy": answer.policy });
    output.result(answer.policy.trim_end(), &value);
    Ok(())
}
