//! `outlast audit policy`: prints the policy (C2SP tlog-policy) that verifiers need, and nothing else of the store.

use outlast_domain::audit::LogKey;
use outlast_net::server::system_clock;
use serde_json::json;

use super::open;
use crate::audit_options;
use crate::data::{Data, StoreArguments};
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `audit policy`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let data = open(&arguments.store)?;
    let keys = keys(&data)?;
    let text = audit_options::choose(arguments.store.settings()?.audit)?.policy(&keys);
    let shown: Vec<_> = keys.verifiers().iter().map(ToString::to_string).collect();
    output.result(&text, &json!({ "origin": keys.origin, "verifierKeys": shown, "policy": text }));
    Ok(())
}

/// The keys of a store's log.
pub(super) fn keys(data: &Data) -> Result<LogKey, Failure> {
    Ok(LogKey::read(&mut data.service.work(system_clock()))?)
}
