//! `outlast ledger export`.

use std::io::Write;
use std::path::PathBuf;

use outlast_ledger::export::{Exporter, FIELDS, csv};
use serde_json::{Map, Value, json};

use super::Source;
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output};
use crate::tables::plural;

/// Arguments of `export`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Format of the records.
    #[arg(long, value_enum, default_value_t = Format::Ndjson)]
    format: Format,
    /// Output file, which must not exist and appears whole or not at all [default: stdout].
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// JSON, one record per line.
    Ndjson,
    /// CSV with a header line.
    Csv,
}

impl Format {
    fn line(self, record: &Map<String, Value>) -> Result<String, Failure> {
        match self {
            Self::Csv => Ok(csv(record)),
            Self::Ndjson => {
                serde_json::to_string(record).map_err(|error| Failure::new(error.to_string()))
            }
        }
    }
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let heading = (arguments.format == Format::Csv).then(|| FIELDS.join(","));
    let Some(path) = &arguments.out else {
        return each(arguments, heading, |line| Ok(output::try_line(line))).map(|_| ());
    };
    let records = files::write_new(path, |file| {
        let mut file = std::io::BufWriter::new(file);
        let failed = |error: std::io::Error| files::io_failure(path, &error);
        let write = |line: &str| writeln!(file, "{line}").map(|()| true).map_err(failed);
        let records = each(arguments, heading, write)?;
        file.flush().map_err(failed)?;
        Ok(records)
    })?;
    let text = format!("wrote {} to {}", plural(records, "record", "records"), path.display());
    output.result(&text, &json!({ "file": files::json_path(path), "records": records }));
    Ok(())
}

/// Passes each line to `write`, until the reader goes away. Returns the number of records.
fn each(
    arguments: &Arguments,
    heading: Option<String>,
    mut write: impl FnMut(&str) -> Result<bool, Failure>,
) -> Result<u64, Failure> {
    let filter = arguments.source.filter();
    let mut exporter = Exporter::new(filter.clone());
    let (mut open, mut written) = (true, 0);
    if let Some(heading) = heading {
        open = write(&heading)?;
    }
    let mut give = |records: Vec<Map<String, Value>>| {
        for record in records {
            open = open && write(&arguments.format.line(&record)?)?;
            written += u64::from(open);
        }
        Ok::<_, Failure>(())
    };
    arguments.source.read(&filter, |line| give(exporter.add(line)))?;
    give(exporter.finish())?;
    Ok(written)
}
