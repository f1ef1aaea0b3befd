//! `outlast audit clear-alarm`: lets servers start again after an operator has investigated an alarm.

use outlast_domain::audit::alarm;
use outlast_net::server::system_clock;
use serde_json::json;

use crate::data::{Data, StoreArguments, store_event, store_failure};
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `audit clear-alarm`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
}

/// Clears the alarm, and records that in an event of its own.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let data = Data::open_beside(&arguments.store.location()?, &arguments.store.provider()?)?;
    let mut work = data.service.work(system_clock());
    let Some(reason) = alarm::clear(&mut work)? else {
        output.result("there is no alarm", &json!({ "cleared": null }));
        return Ok(());
    };
    let event = store_event(work.now_ms(), "ClearAuditAlarm", &json!({ "reason": reason }))?;
    let transaction = work.into_transaction(vec![event]);
    data.service.store().commit_and_wait(transaction).map_err(store_failure)?;
    output.result(&format!("cleared: {reason}"), &json!({ "cleared": reason }));
    Ok(())
}
