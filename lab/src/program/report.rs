//! `outlast lab report`: makes the report of a results folder again.

use std::path::{Path, PathBuf};

use serde_json::json;

use outlast_lab::archive::unpack;

use super::results_folder;
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab report`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Results folder of a run, or its archive.
    dir: PathBuf,
    /// New folder for the results of an archive, and for the report on them.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the results as a short paper: Markdown in this file, and its charts beside it.
    #[arg(long, value_name = "FILE.md")]
    paper: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let place = arguments.paper.as_deref().map(place).transpose()?;
    let folder = match (&arguments.out, arguments.dir.is_file()) {
        (Some(out), true) => {
            unpack(&arguments.dir, out).map_err(|error| super::failure(&error))?;
            out
        }
        (Some(_), false) => {
            let hint = "without --out the report of a folder is written into it";
            return Err(Failure::new("--out is for archives").hint(hint).code(2));
        }
        (None, true) => {
            let what = format!(
                "{} is a file: --out DIR says where its report goes",
                arguments.dir.display()
            );
            return Err(Failure::new(what)
                .hint("or name the folder that \"outlast lab run --out DIR\" wrote")
                .code(2));
        }
        (None, false) => &arguments.dir,
    };
    let folder = results_folder(folder)?;
    let page = outlast_lab::report::write(folder).map_err(|error| super::failure(&error))?;
    let mut text = page.display().to_string();
    let mut paper = None;
    if let Some((name, into)) = place {
        let written = outlast_lab::report::write_paper(folder, &name, &into)
            .map_err(|error| super::failure(&error))?;
        text = format!("{text}\n{}", written.page.display());
        paper = Some(written);
    }
    output.result(&text, &json!({ "page": page, "paper": paper }));
    Ok(())
}

/// Name and folder of a paper.
fn place(file: &Path) -> Result<(String, PathBuf), Failure> {
    let name = file.file_stem().and_then(|name| name.to_str());
    match (name, file.extension().and_then(|ending| ending.to_str())) {
        (Some(name), Some("md")) => {
            let into = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            Ok((name.to_owned(), into.unwrap_or(Path::new(".")).to_path_buf()))
        }
        _ => Err(Failure::new(format!("{}: the paper is Markdown", file.display()))
            .hint("give it a name that ends in .md")
            .code(2)),
    }
}
