//! `outlast events`: tries the targets of events. Opens no store.

use std::path::PathBuf;

use outlast_api::service::events::{event_json, sample_event};
use outlast_net::server::system_clock;
use serde_json::json;

use crate::events::{Configured, Target};
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::Settings;
use crate::tables::Table;

/// Arguments of `events`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Send each target one event of a kind that it wants, and show whether it took it.
    ///
    /// The event is of account 000000000000 and about a resource that does not exist. It is sent once, by this command.
    Test(Test),
}

#[derive(clap::Args)]
struct Test {
    /// Data folder, made by `outlast init`.
    #[arg(long, env = "OUTLAST_DATA")]
    data: PathBuf,
    /// Settings file [default: outlast.toml in the data folder].
    #[arg(long, env = "OUTLAST_CONFIG")]
    config: Option<PathBuf>,
    /// Try only this target; may be repeated.
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let Command::Test(test) = &arguments.command;
    let settings = Settings::load(test.config.as_deref(), &test.data)?;
    let configured = Configured::choose(settings.events)?;
    let all = configured.targets();
    if let Some(odd) = test.targets.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        return Err(Failure::new(format!("[events] has no target {odd}"))
            .hint("outlast settings --data DIR shows the targets"));
    }
    if all.is_empty() {
        return Err(Failure::new("[events] names no target").hint(
            "add one to outlast.toml, such as [events.targets.mail] with program = [\"/usr/local/bin/mail\"]",
        ));
    }
    let asked: Vec<_> = all
        .iter()
        .filter(|target| test.targets.is_empty() || test.targets.contains(&target.name))
        .collect();
    let runtime = crate::runtime::runtime()?;
    let mut table = Table::new(&["target", "event", "outcome"], &[]);
    let (mut shown, mut failed) = (Vec::new(), Vec::new());
    for target in asked {
        let (detail_type, id, outcome) = runtime.block_on(send(target))?;
        let said = outcome.as_ref().err().map_or("delivered", String::as_str);
        table.row(vec![target.name.clone(), detail_type.to_owned(), said.to_owned()]);
        shown.push(json!({
            "target": target.name,
            "detailType": detail_type,
            "id": id,
            "isDelivered": outcome.is_ok(),
            "error": outcome.as_ref().err(),
        }));
        if outcome.is_err() {
            failed.push(target.name.as_str());
        }
    }
    output.result(&table.render(0), &json!({ "targets": shown }));
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("not delivered: {}", failed.join(", ")))
        .hint("check that the target runs and takes JSON, and the entry in [events.targets]"))
}

/// Sends a target an event; returns its type, its id, and the outcome.
async fn send(target: &Target) -> Result<(&'static str, String, Result<(), String>), Failure> {
    let kind = target.kind().ok_or_else(|| Failure::new("the target wants no event"))?;
    let event = sample_event(kind, system_clock())?;
    let outcome = target.send(&event_json(&event)).await;
    Ok((kind.detail_type, event.id, outcome))
}
