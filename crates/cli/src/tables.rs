//! Tables for people.

use time::OffsetDateTime;
use time::macros::format_description;

/// Longest cell by default, in characters.
const MAX_CELL: usize = 72;
/// Width of the terminal that reports fit unless `--wide` is given, in columns.
pub(crate) const TERMINAL: usize = 100;
/// Width below which no column is shortened.
const MIN_CELL: usize = 8;

/// A table: its columns are aligned, numbers to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
    longest: usize,
    /// Columns that may be shortened so that lines fit a terminal.
    flexible: Vec<usize>,
}

impl Table {
    /// A table with these headings; the columns with these numbers are aligned to the right.
    pub(crate) fn new(headings: &[&str], right: &[usize]) -> Self {
        Self {
            rows: vec![headings.iter().map(|text| (*text).to_owned()).collect()],
            right: right.to_vec(),
            longest: MAX_CELL,
            flexible: Vec::new(),
        }
    }

    /// Sets the longest cell, in characters.
    pub(crate) fn longest(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// Fits [`TERMINAL`] by shortening these columns, the widest first; the others are not shortened.
    pub(crate) fn fitting(self, flexible: &[usize]) -> Self {
        Self { flexible: flexible.to_vec(), ..self }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| shown(cell, self.longest)).collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    pub(crate) fn render(&self, indent: usize) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<_> = (0..columns).map(width).collect();
        let gaps = indent + 2 * columns.saturating_sub(1);
        while !self.flexible.is_empty() && gaps + widths.iter().sum::<usize>() > TERMINAL {
            let widest = self.flexible.iter().copied().max_by_key(|column| widths[*column]);
            match widest {
                Some(column) if widths[column] > MIN_CELL => widths[column] -= 1,
                _ => break,
            }
        }
        let mut out = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column > 0 {
                    line.push_str("  ");
                }
                let width = *width;
                let cell = shown(cell, width.max(1));
                if self.right.contains(&column) {
                    line.push_str(&format!("{cell:>width$}"));
                } else {
                    line.push_str(&format!("{cell:<width$}"));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Text in lines that fit a terminal, with an indent; lines after the first are indented further.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let (mut out, mut line) = (String::new(), " ".repeat(indent));
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > TERMINAL {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(indent + 2);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}

/// The text with its long lines [`wrapped`], each at its own indent or list mark.
pub(crate) fn fitted(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.chars().count() <= TERMINAL {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let rest = line.trim_start_matches([' ', '-', '+']);
        let mark = &line[..line.len() - rest.len()];
        let lines = wrapped(rest, mark.len());
        out.push_str(mark);
        out.push_str(&lines[mark.len()..]);
    }
    out
}

/// Rows in columns: numbers are aligned to the right, except in the first column.
pub(crate) fn table(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let is_number = |cell: &String| cell.chars().all(|c| c.is_ascii_digit() || "-,.x".contains(c));
    let right: Vec<_> = (1..headings.len())
        .filter(|column| rows.iter().filter_map(|row| row.get(*column)).all(is_number))
        .collect();
    let mut table = Table::new(headings, &right).longest(usize::MAX - 1);
    for row in rows {
        table.row(row);
    }
    table.render(0)
}

/// Text made safe for a terminal: clients choose some of it.
fn shown(text: &str, longest: usize) -> String {
    let plain = text.chars().map(|c| if is_unseen(c) { '\u{fffd}' } else { c });
    let mut out: String = plain.take(longest + 1).collect();
    if out.chars().count() > longest {
        out = out.chars().take(longest.saturating_sub(3)).collect();
        out.push_str("...");
    }
    out
}

/// Characters that control a terminal, change the direction of text, or are invisible.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A time to the second, UTC.
pub(crate) fn moment(time_ms: Option<i64>) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    time_ms
        .and_then(|time_ms| OffsetDateTime::from_unix_timestamp(time_ms.div_euclid(1000)).ok())
        .and_then(|time| time.format(&format).ok())
        .unwrap_or_else(|| "-".into())
}

/// A share as a percentage.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{share:.1} %"))
}

/// A number of bytes in the most readable unit.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// A number and its noun.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

#[cfg(test)]
mod tests {
    use super::{TERMINAL, Table, fitted, shown, table, wrapped};

    #[test]
    fn only_flexible_columns_are_shortened() {
        let mut table = Table::new(&["name", "from", "what"], &[]).fitting(&[0, 2]);
        table.row(vec!["n".repeat(60), "2001:db8:1:2::/64".into(), "w".repeat(60)]);
        let text = table.render(2);
        assert!(text.lines().all(|line| line.chars().count() <= TERMINAL), "{text}");
        assert!(text.contains("2001:db8:1:2::/64") && text.contains("www..."), "{text}");
        let text = wrapped(&"word ".repeat(50), 2);
        assert!(text.lines().all(|line| line.len() <= TERMINAL && line.starts_with("  ")));
        let text = fitted(&format!("short\n  - {}", "word ".repeat(30)));
        assert!(
            text.starts_with("short\n  - word word") && text.contains("\n      word"),
            "{text}"
        );
    }

    #[test]
    fn numbers_stand_to_the_right() {
        let rows = vec![vec!["a".into(), "5".into()], vec!["longer".into(), "1,234".into()]];
        assert_eq!(
            table(&["name", "bytes"], rows),
            "name    bytes\na           5\nlonger  1,234\n"
        );
    }

    #[test]
    fn what_is_not_seen_is_shown() {
        for c in ['\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'] {
            assert_eq!(shown(&format!("a{c}b"), 3), "a\u{fffd}b");
        }
        assert_eq!(shown("müller", 6), "müller");
    }
}
