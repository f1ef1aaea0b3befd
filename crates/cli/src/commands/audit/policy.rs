//! `outlast audit policy`: the policy (C2SP tlog-policy) that verifiers need, and nothing else from the store.

use outlast_domain::audit::LogKey;
use outlast_net::server::system_clock;
use serde_json::json;

use super::open;
use crate::data::{Data, StoreArguments};
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `audit policy`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
}

/// Prints it.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let data = open(&arguments.store)?;
    let keys = keys(&data)?;
    let text = text(&keys);
    let shown: Vec<_> = keys.verifiers().iter().map(ToString::to_string).collect();
    output.result(&text, &json!({ "origin": keys.origin, "verifierKeys": shown, "policy": text }));
    Ok(())
}

/// The keys of a store's log.
pub(super) fn keys(data: &Data) -> Result<LogKey, Failure> {
    Ok(LogKey::read(&mut data.service.work(system_clock()))?)
}

/// A policy that believes the log alone.
pub(super) fn text(keys: &LogKey) -> String {
    let [ml_dsa_44, _] = keys.verifiers();
    format!("log {ml_dsa_44}\nquorum none\n")
}
