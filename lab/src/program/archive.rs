//! `outlast lab archive`: one file of a run, to be cited and read elsewhere; and reading of such files.

use std::path::{Path, PathBuf};

use outlast_lab::archive::{self, pack, unpack};

use super::{failure, results_folder};
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab archive`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Results folder of a run.
    dir: PathBuf,
    /// File to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Put in the raw samples, too.
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let folder = results_folder(&arguments.dir)?;
    let summary = pack(folder, arguments.raw, &arguments.out).map_err(|error| failure(&error))?;
    let archive::Summary { sha256, files, bytes, left_out } = &summary;
    let mut text =
        format!("{}: {files} files, {bytes} bytes, SHA-256 {sha256}", arguments.out.display());
    if !left_out.is_empty() {
        text += &format!(
            "\n{} files of raw samples are left out; their hashes are in it",
            left_out.len()
        );
    }
    output.result(&text, &summary);
    Ok(())
}

/// Results of a run: a folder, or an archive that is unpacked into a temporary one.
pub(crate) struct Opened {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// Whether it is temporary, and removed with this.
    _temporary: Option<tempfile::TempDir>,
}

/// Opens a results folder or an archive.
pub(crate) fn open(path: &Path) -> Result<Opened, Failure> {
    if !path.is_file() {
        let folder = results_folder(path)?.to_path_buf();
        return Ok(Opened { folder, _temporary: None });
    }
    let temporary = tempfile::tempdir()
        .map_err(|error| Failure::new(format!("no temporary folder could be made: {error}")))?;
    let folder = temporary.path().join("results");
    unpack(path, &folder).map_err(|error| {
        failure(&error).hint("name the folder that \"outlast lab run --out DIR\" wrote, or a file by \"outlast lab archive\"")
    })?;
    results_folder(&folder)?;
    Ok(Opened { folder, _temporary: Some(temporary) })
}
