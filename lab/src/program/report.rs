//! `outlast lab report`: makes the report of a results folder again.

use std::path::PathBuf;

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
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
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
    output.result(&page.display().to_string(), &json!({ "page": page }));
    Ok(())
}
