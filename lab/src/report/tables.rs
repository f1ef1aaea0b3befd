//! Tables: as CSV (RFC 4180) and for the page.

use serde::Serialize;

use crate::error::LabError;
use crate::plot::figure;
use crate::result::{Table, Value};

/// Most rows of a table on the page; the CSV has all.
const MOST: usize = 600;
/// Rows that are shown at first.
pub(super) const FIRST: usize = 8;

/// A table as CSV: numbers with all digits, `.` as the decimal sign, empty if missing.
pub(super) fn csv(table: &Table) -> Result<Vec<u8>, LabError> {
    let mut writer = csv::WriterBuilder::new()
        .flexible(true)
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    writer.write_record(&table.columns).map_err(LabError::failed)?;
    for row in &table.rows {
        let cells = row.iter().map(|value| match value {
            Value::Number(number) if number.is_finite() => number.to_string(),
            Value::Number(_) => String::new(),
            Value::Text(text) => text.clone(),
        });
        writer.write_record(cells).map_err(LabError::failed)?;
    }
    writer.into_inner().map_err(LabError::failed)
}

/// A table for the page.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    pub(super) id: String,
    pub(super) file: String,
    title: String,
    note: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Number of all rows, including those that the page leaves out.
    count: usize,
    left_out: usize,
    long: bool,
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    number: bool,
}

#[derive(Debug, Serialize)]
struct Cell {
    text: String,
    /// Whether it is short enough not to be broken into lines.
    short: bool,
    /// Sort key, with all digits; texts have none.
    exact: Option<String>,
}

impl Shown {
    /// The same table in another place of the page, whole.
    pub(super) fn named(mut self, place: &str) -> Self {
        self.id = format!("{place}-{}", self.id);
        self.long = false;
        self
    }
}

/// Prepares a table for the page.
pub(super) fn shown(experiment: &str, table: &Table) -> Shown {
    let name = super::files::plain(&table.name);
    let columns = table
        .columns
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let mut cells = table.rows.iter().filter_map(|row| row.get(place)).peekable();
            let some = cells.peek().is_some();
            let numbers = cells.filter(|value| matches!(value, Value::Number(_))).count();
            Column { name: name.clone(), number: some && numbers * 2 >= table.rows.len() }
        })
        .collect();
    let cell = |value: &Value| match value {
        Value::Number(number) => {
            Cell { text: figure(*number), short: true, exact: Some(number.to_string()) }
        }
        Value::Text(text) => {
            Cell { text: text.clone(), short: text.chars().count() <= 56, exact: None }
        }
    };
    let width = table.columns.len();
    let row = |row: &Vec<Value>| row.iter().take(width).map(cell).collect();
    Shown {
        id: format!("{experiment}-{name}"),
        file: format!("{experiment}/{name}.csv"),
        title: table.title.clone(),
        note: table.note.clone(),
        columns,
        rows: table.rows.iter().take(MOST).map(row).collect(),
        count: table.rows.len(),
        left_out: table.rows.len().saturating_sub(MOST),
        long: table.rows.len() > FIRST + 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4180, section 2: fields with commas, quotes or line breaks are quoted, quotes are doubled, lines end in CRLF.
    #[test]
    fn csv_is_quoted() {
        let table = Table {
            name: "t".into(),
            title: "T".into(),
            columns: vec!["name".into(), "median (ms)".into(), "a, b".into()],
            rows: vec![
                vec!["X25519 + \"x\"".into(), 1.5.into(), "a\r\nb".into()],
                vec!["plain".into(), f64::NAN.into(), "1,5".into()],
                vec!["short".into(), 1e-9.into()],
            ],
            note: String::new(),
        };
        let text = String::from_utf8(csv(&table).unwrap()).unwrap();
        assert_eq!(
            text,
            "name,median (ms),\"a, b\"\r\n\"X25519 + \"\"x\"\"\",1.5,\"a\r\nb\"\r\nplain,,\"1,5\"\r\nshort,0.000000001\r\n"
        );
    }
}
