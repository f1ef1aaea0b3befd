//! `outlast man`: prints or writes the manual pages and the page of settings.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde_json::json;

use crate::failure::{Failure, USAGE};
use crate::output::Output;
use crate::{files, output, settings};

/// The exit codes of all commands.
const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "done"),
    ("1", "failed"),
    ("2", "wrong usage: the message names the option"),
    ("3", "a signature, certificate or proof was refused"),
    ("4", "some of several files failed; the others are done"),
    ("5", "the command found what it searched for, such as clients that would break"),
    ("130", "interrupted; no partial files are left"),
];

/// Arguments of `man`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Command whose page to print, such as sign or cert request [default: the program's page].
    #[arg(value_name = "COMMAND", conflicts_with_all = ["out", "markdown"])]
    commands: Vec<String>,
    /// Folder for the pages of all commands, such as /usr/local/share/man/man1 [default: one page, to stdout].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the server's settings as Markdown.
    #[arg(long, conflicts_with = "out")]
    markdown: bool,
}

/// Prints or writes pages.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if arguments.markdown {
        output::line(settings::markdown().trim_end());
        return Ok(());
    }
    let mut program = crate::Arguments::command().disable_help_subcommand(true);
    program.build();
    let Some(folder) = &arguments.out else {
        let found = find(&program, &arguments.commands)?;
        let page = page(found, &program)
            .map_err(|error| Failure::new(format!("the page cannot be written: {error}")))?;
        output::line(String::from_utf8_lossy(&page).trim_end());
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(|error| files::io_failure(folder, &error))?;
    let mut written = 0;
    write(&program, &program, folder, &mut written)?;
    let text = format!("wrote {written} manual pages to {}", folder.display());
    output.result(&text, &json!({ "folder": files::json_path(folder), "pages": written }));
    Ok(())
}

/// The command with these names below the program.
fn find<'a>(program: &'a Command, names: &[String]) -> Result<&'a Command, Failure> {
    let mut found = program;
    for name in names {
        found = found.find_subcommand(name).ok_or_else(|| {
            Failure::new(format!("{} has no command {name}", bin_name(found)))
                .hint("outlast --help lists the commands")
                .code(USAGE)
        })?;
    }
    Ok(found)
}

/// Writes the pages of a command and of those below it.
fn write(
    command: &Command,
    program: &Command,
    folder: &Path,
    written: &mut usize,
) -> Result<(), Failure> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write(inner, program, folder, written)?;
    }
    let path = folder.join(Man::new(command.clone()).get_filename());
    let page = page(command, program).map_err(|error| files::io_failure(&path, &error))?;
    files::write(&path, &page, 0o644)?;
    *written += 1;
    Ok(())
}

fn bin_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// A command's page; the program's has the settings.
fn page(command: &Command, program: &Command) -> io::Result<Vec<u8>> {
    let is_program = command.get_name() == program.get_name();
    let source = format!("outlast {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("Outlast");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    exit_status(command).to_writer(&mut page)?;
    if is_program {
        settings::manual().to_writer(&mut page)?;
    }
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// Options with their values, which `clap_mangen` leaves out.
fn synopsis(command: &Command) -> Roff {
    let mut line = vec![bold(bin_name(command))];
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let (positional, options): (Vec<_>, Vec<_>) = shown.partition(|one| one.is_positional());
    for argument in options.into_iter().chain(positional) {
        let (open, close) = if argument.is_required_set() { ("", "") } else { ("[", "]") };
        line.push(roman(format!(" {open}")));
        if let Some(long) = argument.get_long() {
            line.push(bold(format!("--{long}")));
            if takes_value(argument) {
                line.push(roman(" "));
            }
        }
        if takes_value(argument) {
            let names = argument.get_value_names().unwrap_or_default();
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            line.push(clap_mangen::roff::italic(names.join(" ")));
        }
        let repeated = argument.get_num_args().is_some_and(|count| count.max_values() > 1);
        let more = repeated || matches!(argument.get_action(), ArgAction::Append);
        line.push(roman(format!("{close}{}", if more { "..." } else { "" })));
    }
    if command.has_subcommands() {
        line.push(roman(" "));
        line.push(clap_mangen::roff::italic("COMMAND"));
    }
    let mut page = Roff::new();
    page.control("SH", ["SYNOPSIS"]);
    page.text(line);
    page
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// The command's own codes, or those of all commands.
fn exit_status(command: &Command) -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["EXIT STATUS"]);
    if let Some(text) = command.get_after_help() {
        for paragraph in text.to_string().split("\n\n") {
            page.control("PP", []);
            let words = paragraph.replace('\n', " ");
            page.text([roman(words.strip_prefix("Exit status: ").unwrap_or(&words))]);
        }
        return page;
    }
    for (code, meaning) in EXIT_STATUS {
        page.control("TP", []);
        page.text([bold(*code)]);
        page.text([roman(*meaning)]);
    }
    page
}
