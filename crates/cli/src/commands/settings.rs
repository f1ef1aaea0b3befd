//! `outlast settings`: shows the settings that a server would start with, and the source of each. Opens no store.

use clap::ArgMatches;
use serde_json::{Value, json};

use super::server::Arguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::{Settings, from};
use crate::tables::Table;

/// Shown instead of a value that may hold a password or a PIN.
const HIDDEN: &str = "(set; it may hold a secret)";

/// Runs the command. The arguments are those of `server`, and `matches` the command's own.
pub(crate) fn run(
    arguments: &Arguments,
    matches: Option<&ArgMatches>,
    output: Output,
) -> Result<(), Failure> {
    let settings = arguments.settings()?;
    let mut table = Table::new(&["setting", "value", "from"], &[]).longest(MAX_VALUE);
    let mut all: Vec<Value> = Vec::new();
    for (row, value) in settings.shown() {
        let (_, default) = row.meaning_and_default();
        let value = value.map(|value| if is_secret(row.key) { HIDDEN.to_owned() } else { value });
        let origin = match (&value, matches) {
            (Some(_), Some(matches)) => from(row, matches),
            _ => "default".to_owned(),
        };
        all.push(json!({
            "name": row.name(),
            "option": row.given_by.map(|(option, _)| format!("--{option}")),
            "variable": row.given_by.map(|(_, variable)| variable),
            "kind": row.kind,
            "default": default,
            "value": value,
            "from": origin,
        }));
        table.row(vec![row.name(), value.unwrap_or(default), origin]);
    }
    output.result(&table.render(0), &json!({ "settings": all, "limits": settings.limits }));
    Ok(())
}

/// Longest value that is shown, in characters.
const MAX_VALUE: usize = 80;

/// Whether the value may hold a secret: then the help hides its variable's value, too.
fn is_secret(key: &str) -> bool {
    let command = <Settings as clap::Args>::augment_args(clap::Command::new(""));
    let argument = command.get_arguments().find(|argument| argument.get_id() == key);
    argument.is_some_and(clap::Arg::is_hide_env_values_set)
}
