//! The source of a setting's value: its option, its variable, the settings file, or the default.

use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Error};

use super::file;
use super::row::Row;
use super::table::Settings;
use crate::failure::{Failure, USAGE};

/// The source, if it is the command line or a variable.
fn given(row: &Row, matches: &ArgMatches) -> Option<String> {
    let (option, variable) = row.given_by?;
    if !matches.ids().any(|id| id.as_str() == row.key) {
        return None;
    }
    match matches.value_source(row.key)? {
        ValueSource::CommandLine => Some(format!("--{option}")),
        ValueSource::EnvVariable => Some(variable.to_owned()),
        _ => None,
    }
}

/// The source of the value of a command's own option, which is named like its id.
fn own(name: &str, matches: &ArgMatches) -> Option<String> {
    if !matches.ids().any(|id| id.as_str() == name) {
        return None;
    }
    match matches.value_source(name)? {
        ValueSource::CommandLine => Some(format!("--{}", name.replace('_', "-"))),
        ValueSource::EnvVariable => Some(format!("OUTLAST_{}", name.to_uppercase())),
        _ => None,
    }
}

/// The source of a row's value, which must have one, for messages.
pub(crate) fn from(row: &Row, matches: &ArgMatches) -> String {
    let in_file = || settings_file(matches).map(|path| path.display().to_string());
    given(row, matches).or_else(in_file).unwrap_or_default()
}

/// The settings file of a command, if it has one.
fn settings_file(matches: &ArgMatches) -> Option<PathBuf> {
    let path = |name| matches.try_get_one::<PathBuf>(name).ok().flatten();
    match (path("config"), path("data")) {
        (Some(config), _) => Some(config.clone()),
        (None, Some(data)) => Some(file::path(None, data)),
        (None, None) => None,
    }
}

/// A failure with the source of the refused value: an option or a variable, for values from the command line, or the
/// settings file.
pub(crate) fn located(failure: Failure, matches: &ArgMatches) -> Failure {
    let Some(name) = failure.setting() else { return failure };
    let mut matches = matches;
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    let row = Settings::rows().find(|row| row.name() == name);
    match row.map_or_else(|| own(name, matches), |row| given(row, matches)) {
        Some(name) => {
            // A file with wrong contents is no misuse of the option that names it.
            let is_path = row.is_some_and(|row| row.kind.contains("path"));
            let failure = if is_path { failure } else { failure.code(USAGE) };
            if failure.message().contains(&name) { failure } else { failure.prefixed(&name) }
        }
        None => match settings_file(matches) {
            Some(path) if failure.message().contains(name) => failure.prefixed(&shown(&path)),
            Some(path) => failure.prefixed(&format!("{}: {name}", path.display())),
            None => failure,
        },
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Names the variable in an error about its value: `clap` only names the option.
pub(crate) fn name_variable(error: &mut Error) {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return };
    let option = argument.split(' ').next().unwrap_or_default().to_owned();
    let is_given = std::env::args().any(|word| word.split('=').next() == Some(&option));
    let rows = Settings::rows().filter_map(|row| row.given_by);
    let variable = rows.into_iter().find(|(long, _)| option.strip_prefix("--") == Some(long));
    if let Some((_, variable)) = variable
        && !is_given
        && std::env::var_os(variable).is_some()
    {
        let tip = StyledStr::from(format!("the value comes from the variable {variable}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
}
