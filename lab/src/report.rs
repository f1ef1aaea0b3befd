//! `report.html`: one page with everything, and the files that it links to: tables as CSV, charts as SVG and PNG.
//!
//! It is made from `run.json`, `state.json` and each experiment's `result.json`, and can be made again at any time.

mod files;
mod lead;
mod page;
mod paper;
mod results;
mod tables;

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::plot;
use crate::result::{Table, Told};

pub(crate) use files::write_whole;
pub(crate) use page::{date, mode, render};
pub use results::{Asked, Results};

/// Draws all charts of a results folder again and writes its `report.html`.
pub fn write(folder: &Path) -> Result<PathBuf, LabError> {
    let results = Results::read(folder)?;
    for told in &results.told {
        write_files(folder, told)?;
    }
    let path = folder.join("report.html");
    write_whole(&path, page::page(folder, &results)?.as_bytes())?;
    Ok(path)
}

/// The files of a paper.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Paper {
    /// The text, in Markdown.
    pub page: PathBuf,
    /// The charts in it, as SVG.
    pub charts: Vec<PathBuf>,
}

/// Writes a results folder as a short paper in Markdown, `NAME.md` and its charts, into another folder, which must exist.
///
/// # Errors
/// The results cannot be read, or a file cannot be written.
pub fn write_paper(folder: &Path, name: &str, into: &Path) -> Result<Paper, LabError> {
    paper::write(&Results::read(folder)?, name, into)
}

/// Writes a table as CSV.
pub fn write_csv(file: &Path, table: &Table) -> Result<(), LabError> {
    write_whole(file, &tables::csv(table)?)
}

/// Tables as CSV, charts as SVG and PNG.
fn write_files(folder: &Path, told: &Told) -> Result<(), LabError> {
    let folder = folder.join(&told.experiment);
    for table in &told.findings.tables {
        let name = files::plain(&table.name);
        write_whole(&folder.join(format!("{name}.csv")), &tables::csv(table)?)?;
    }
    for chart in &told.findings.charts {
        let name = files::plain(&chart.name);
        let svg = plot::svg(chart)?;
        write_whole(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
        write_whole(&folder.join(format!("{name}.png")), &plot::png(&svg)?)?;
    }
    Ok(())
}
