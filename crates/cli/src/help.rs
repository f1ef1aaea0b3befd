//! `outlast --help`: the commands in groups, by purpose.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};

/// The groups, and the commands of each in the order in which a newcomer needs them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Serve", &["init", "server", "settings", "proxy", "forward", "sftp", "sftp-server"]),
    ("On the machines that use it", &["agent", "credentials"]),
    ("Administer", &["principal", "audit", "root-key", "backup", "restore", "store", "events"]),
    ("Endpoints: what is negotiated, and by whom", &["policy", "ledger"]),
    (
        "Signatures and certificates",
        &["quickstart", "sign", "verify", "attest", "git", "tsa", "log", "inspect", "cert", "ssh"],
    ),
    ("Measure", &["lab", "siege", "serve-echo"]),
    ("This program", &["completions", "man", "help"]),
];

/// The command with its subcommands in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let mut command = command;
    // `help` only exists once the command is built.
    command.build();
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{title}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:<13}{about}\n"));
        }
        text.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// The usage of the command without the options that variables give: `clap` shows them as if they were required.
pub(crate) fn plain_usage(error: &mut Error) {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return;
    }
    let program = grouped(crate::Arguments::command());
    let mut command = &program;
    for word in std::env::args().skip(1) {
        command = command.find_subcommand(&word).unwrap_or(command);
    }
    let usage = command.clone().render_usage();
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::{GROUPS, grouped};

    /// Width of the terminal that the help must fit, in columns.
    const COLUMNS: usize = 100;

    #[test]
    fn every_command_is_in_one_group_and_fits_a_line() {
        let mut command = grouped(crate::Arguments::command());
        let listed: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let there: BTreeSet<_> = command
            .get_subcommands()
            .filter(|one| !one.is_hide_set())
            .map(|one| one.get_name().to_owned())
            .collect();
        assert_eq!(listed.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), there);
        assert_eq!(listed.len(), there.len());
        for help in [command.render_help(), command.render_long_help()] {
            for line in help.to_string().lines() {
                assert!(line.chars().count() <= COLUMNS, "{line}");
            }
        }
    }
}
