//! `outlast man`: prints or writes the manual pages and the page of settings.

use std::io;
use std::path::PathBuf;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::failure::Failure;
use crate::{files, output, settings};

/// Arguments of `man`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder for the pages of all commands, such as /usr/local/share/man/man1 [default: one page, to stdout].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the server's settings as Markdown.
    #[arg(long, conflicts_with = "out")]
    markdown: bool,
}

/// Prints or writes pages.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.markdown {
        output::line(settings::markdown().trim_end());
        return Ok(());
    }
    let page = page(crate::Arguments::command())
        .map_err(|error| Failure::new(format!("the page cannot be written: {error}")))?;
    let Some(folder) = &arguments.out else {
        output::line(String::from_utf8_lossy(&page).trim_end());
        return Ok(());
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(crate::Arguments::command(), folder))
        .map_err(|error| files::io_failure(folder, &error))?;
    // The first page has sections that `clap_mangen` does not make.
    files::write(&folder.join("outlast.1"), &page, 0o644)
}

/// The program's page, with the settings.
fn page(command: Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    man.render_subcommands_section(&mut page)?;
    settings::manual().to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}
