//! Matches the rows of two tables, and their figures.

use std::collections::{BTreeMap, BTreeSet};

use super::judge::{Figure, Role};
use super::{Change, Comparison, Judgement, Word};
use crate::plot::{figure, rough};
use crate::result::{Table, Value};
use crate::statistics::mean;

/// Most rows of only one table that are named.
const NAMED: usize = 20;
/// Words in the names of columns with numbers of samples.
const COUNTS: [&str; 3] = ["samples", "rounds", "repetitions"];

/// A column of both tables.
struct Column<'a> {
    name: &'a str,
    a: usize,
    b: usize,
}

/// A figure, with its interval if the cell has one, such as `1.188 [1.187, 1.189]`.
#[derive(Clone, Copy)]
struct Measured {
    value: f64,
    interval: Option<(f64, f64)>,
}

/// Statistics of which one is enough to judge a quantity by, the best first.
const MIDDLE: [&str; 4] = ["median", "p50", "p10", "mean"];
/// Other words for a statistic of a distribution.
const ENDS: [&str; 7] = ["max", "min", "highest", "lowest", "slowest", "fastest", "worst"];
/// Words in the names of columns with figures that are differences of others.
const DIFFERENCES: [&str; 3] = ["difference", "more", "less"];
/// Units of sizes.
const SIZES: [&str; 2] = ["packets", "bytes"];
/// Units in which other figures are counted.
const COUNTED: [&str; 3] = ["connections", "handshakes", "flows"];

/// Tables with the same name: of each repetition of the first run, and of the second.
pub(super) struct Pair<'a> {
    pub(super) experiment: &'a str,
    pub(super) a: Vec<&'a Table>,
    pub(super) b: Vec<&'a Table>,
}

/// Compares two tables with the same name, and adds their figures to those that are to be judged, each with its index
/// among the changes if it is one.
pub(super) fn compare(
    comparison: &mut Comparison,
    figures: &mut Vec<(Figure, Option<usize>)>,
    pair: &Pair<'_>,
) {
    let experiment = pair.experiment;
    let ([a, again_a @ ..], [b, again_b @ ..]) = (pair.a.as_slice(), pair.b.as_slice()) else {
        return;
    };
    let columns: Vec<Column<'_>> = a
        .columns
        .iter()
        .enumerate()
        .filter_map(|(place, name)| {
            // Of columns with equal names, the second matches the second.
            let nth = a.columns.iter().take(place).filter(|other| *other == name).count();
            let same = |(place, other): (usize, &String)| (other == name).then_some(place);
            let other = b.columns.iter().enumerate().filter_map(same).nth(nth)?;
            Some(Column { name, a: place, b: other })
        })
        .collect();
    for (table, other, only) in [(a, b, &mut comparison.only_a), (b, a, &mut comparison.only_b)] {
        for name in table.columns.iter().filter(|name| !other.columns.contains(name)) {
            only.push(format!("{experiment}: column {name} of {}", table.name));
        }
    }
    let keys = keys(a, b, &columns);
    let rows_a = named(a, keys.iter().map(|key| key.a));
    let rows_b = named(b, keys.iter().map(|key| key.b));
    for (rows, others, only) in
        [(&rows_a, &rows_b, &mut comparison.only_a), (&rows_b, &rows_a, &mut comparison.only_b)]
    {
        let missing: Vec<&String> =
            rows.keys().filter(|name| !others.contains_key(*name)).collect();
        only.extend(
            missing.iter().take(NAMED).map(|row| format!("{experiment}: {} in {}", row, a.name)),
        );
        if missing.len() > NAMED {
            only.push(format!(
                "{experiment}: {} further rows in {}",
                missing.len() - NAMED,
                a.name
            ));
        }
    }
    let again_a = repeated(a, again_a, keys.iter().map(|key| key.a).collect());
    let again_b = repeated(b, again_b, keys.iter().map(|key| key.b).collect());
    let intervals = intervals(&columns);
    let roles = roles(&columns, &intervals);
    for (name, row_a) in &rows_a {
        let Some(row_b) = rows_b.get(name) else { continue };
        for (place, column) in columns.iter().enumerate() {
            let is_key = keys.iter().any(|key| key.a == column.a);
            let is_end = intervals.iter().any(|(_, low, high)| *low == place || *high == place);
            let (Some(cell_a), Some(cell_b)) = (row_a.get(column.a), row_b.get(column.b)) else {
                continue;
            };
            if is_key || is_end || is_count_of_samples(column.name) {
                continue;
            }
            let (measured_a, measured_b) = (measured(cell_a), measured(cell_b));
            let (Some(value_a), Some(value_b)) = (measured_a, measured_b) else {
                let (a_text, b_text) = (said(cell_a), said(cell_b));
                if a_text != b_text {
                    let place = format!("{experiment}: {}, {name}, {}", a.name, column.name);
                    comparison.words.push(Word { place, a: a_text, b: b_text });
                }
                continue;
            };
            comparison.compared += 1;
            let has_interval =
                intervals.iter().any(|(value, ..)| *value == place) || value_a.interval.is_some();
            let in_all = |first: f64, again: &[BTreeMap<String, &[Value]>], place: usize| {
                let others = again.iter().filter_map(|rows| measured(rows.get(name)?.get(place)?));
                std::iter::once(first).chain(others.map(|other| other.value)).collect::<Vec<_>>()
            };
            let runs = [
                in_all(value_a.value, &again_a, column.a),
                in_all(value_b.value, &again_b, column.b),
            ];
            let (x, y) = (mean(&runs[0]), mean(&runs[1]));
            let role = match roles.get(place) {
                Some(Role::Main) if runs.iter().flatten().any(|value| *value < 0.0) => {
                    Role::Difference
                }
                Some(Role::Main) if !has_interval => counted(column.name, &runs),
                role => role.copied().unwrap_or(Role::Main),
            };
            let whole_column = format!("{experiment}: {}: {}", a.name, column.name);
            let figure = Figure { column: whole_column, row: name.clone(), role, runs };
            let is_change = !(x.total_cmp(&y).is_eq() || x.is_nan() || y.is_nan());
            figures.push((figure, is_change.then_some(comparison.changes.len())));
            if !is_change {
                continue;
            }
            let percent = Some((y / x - 1.0) * 100.0).filter(|percent| percent.is_finite());
            let (judgement, by) = (Judgement::Unknown, String::new());
            comparison.changes.push(Change {
                experiment: experiment.to_owned(),
                table: a.name.clone(),
                row: name.clone(),
                column: column.name.to_owned(),
                a: x,
                b: y,
                percent,
                judgement,
                by,
            });
        }
    }
}

/// The rows of the repetitions of a table, by name. All are by the same program: a table with another shape is
/// ignored.
fn repeated<'a>(
    first: &Table,
    again: &[&'a Table],
    places: Vec<usize>,
) -> Vec<BTreeMap<String, &'a [Value]>> {
    let same = again.iter().filter(|other| other.columns == first.columns);
    same.map(|other| named(other, places.iter().copied())).collect()
}

/// Whether a column is a number of samples, which is not compared.
fn is_count_of_samples(name: &str) -> bool {
    words(name).any(|word| COUNTS.contains(&word.as_str()))
}

fn words(name: &str) -> impl Iterator<Item = String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}

/// Whether a word names a statistic: `p99`, `median`.
fn is_statistic(word: &str) -> bool {
    let percentile = word.strip_prefix('p').is_some_and(|rest| rest.parse::<u32>().is_ok());
    percentile || MIDDLE.contains(&word) || ENDS.contains(&word)
}

/// What the figures of each column are. Of the statistics of one quantity, the one with an interval is judged, else the
/// median or the mean; percentiles and ends alone are not.
fn roles(columns: &[Column<'_>], intervals: &[(usize, usize, usize)]) -> Vec<Role> {
    const TAIL: usize = 9;
    let quantities: Vec<(Vec<String>, usize)> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let (statistics, rest): (Vec<String>, Vec<String>) =
                words(column.name).partition(|word| is_statistic(word));
            let best = |word: &String| MIDDLE.iter().position(|one| one == word);
            let rank = match statistics.iter().filter_map(best).min() {
                _ if intervals.iter().any(|(value, ..)| *value == place) => 0,
                Some(rank) => rank + 1,
                None if statistics.is_empty() => 1,
                None => TAIL,
            };
            (rest, rank)
        })
        .collect();
    quantities
        .iter()
        .enumerate()
        .map(|(place, (quantity, rank))| {
            let better = |(other, (same, rival)): (usize, &(Vec<String>, usize))| {
                same == quantity && (*rival, other) < (*rank, place)
            };
            if quantity.iter().any(|word| DIFFERENCES.contains(&word.as_str())) {
                Role::Difference
            } else if *rank == TAIL || quantities.iter().enumerate().any(better) {
                Role::Tail
            } else {
                Role::Main
            }
        })
        .collect()
}

/// What figures of a quantity without an interval are: whole numbers of a unit that is counted, or of none, are counted,
/// not measured.
fn counted(name: &str, runs: &[Vec<f64>; 2]) -> Role {
    if runs.iter().flatten().any(|value| value.fract() != 0.0) {
        return Role::Main;
    }
    match name.rsplit_once(" (").and_then(|(_, rest)| rest.strip_suffix(')')) {
        Some(unit) if SIZES.contains(&unit) => Role::Size,
        Some(unit) if !COUNTED.contains(&unit) => Role::Main,
        _ => Role::Count,
    }
}

/// The columns that identify rows: those with words in both tables, and then, while rows are not unique, those with
/// the same figures on both sides (RTT, loss), from the left.
fn keys<'a, 'b>(a: &Table, b: &Table, columns: &'b [Column<'a>]) -> Vec<&'b Column<'a>> {
    let texts = |table: &Table, place: usize| -> BTreeSet<String> {
        table.rows.iter().filter_map(|row| row.get(place)).map(said).collect()
    };
    let has_words = |column: &&Column<'_>| {
        let words = |table: &Table, place: usize| {
            let cells = table.rows.iter().filter_map(|row| row.get(place));
            cells.filter(|cell| matches!(cell, Value::Text(_)) && measured(cell).is_none()).count()
        };
        let (words_a, words_b) = (words(a, column.a), words(b, column.b));
        if words_a * 2 < a.rows.len() || words_b * 2 < b.rows.len() || words_a + words_b == 0 {
            return false;
        }
        let (left, right) = (texts(a, column.a), texts(b, column.b));
        let common = left.intersection(&right).count();
        // A verdict or a remark may change; the first column with words names the row in any case.
        common * 2 >= left.len().max(right.len())
    };
    let words: Vec<&Column<'_>> = columns.iter().filter(has_words).collect();
    let unique = |keys: &[&Column<'_>]| {
        let all = |table: &Table, places: Vec<usize>| {
            let names: BTreeSet<String> = table.rows.iter().map(|row| name(row, &places)).collect();
            names.len() == table.rows.len()
        };
        all(a, keys.iter().map(|key| key.a).collect())
            && all(b, keys.iter().map(|key| key.b).collect())
    };
    // The fewest columns with words that suffice, from the left: those further right are compared, not used as names.
    let mut keys: Vec<&Column<'_>> = Vec::new();
    for column in words.iter().copied() {
        if !keys.is_empty() && unique(&keys) {
            break;
        }
        keys.push(column);
    }
    for column in columns {
        if unique(&keys) {
            break;
        }
        let known = keys.iter().any(|key| key.a == column.a);
        if !known && texts(a, column.a) == texts(b, column.b) && texts(a, column.a).len() > 1 {
            keys.push(column);
        }
    }
    keys
}

/// The row in words.
fn name(row: &[Value], places: &[usize]) -> String {
    let cells = places.iter().filter_map(|place| row.get(*place)).map(said);
    cells.collect::<Vec<_>>().join(", ")
}

/// Rows by name; equal names are numbered.
fn named(table: &Table, places: impl Iterator<Item = usize>) -> BTreeMap<String, &[Value]> {
    let places: Vec<usize> = places.collect();
    let titles = |place: &usize| table.columns.get(*place).cloned().unwrap_or_default();
    let mut rows: BTreeMap<String, &[Value]> = BTreeMap::new();
    for row in &table.rows {
        // Figures need the column's name to be understood.
        let cells = places.iter().filter_map(|place| Some((place, row.get(*place)?)));
        let words = cells.map(|(place, cell)| match cell {
            Value::Text(text) => text.clone(),
            Value::Number(_) => {
                let title = titles(place);
                match title
                    .split_once(" (")
                    .and_then(|(name, unit)| Some((name, unit.strip_suffix(')')?)))
                {
                    Some((name, unit)) => format!("{name} {} {unit}", short(cell)),
                    None => format!("{title} {}", short(cell)),
                }
            }
        });
        let plain = words.collect::<Vec<_>>().join(", ");
        let mut name = plain.clone();
        let mut number = 2;
        while rows.contains_key(&name) {
            name = format!("{plain} #{number}");
            number += 1;
        }
        rows.insert(name, row);
    }
    rows
}

/// Columns of values, with the columns of their intervals: `low (ms)` and `high (ms)` belong to the nearest value to
/// their left, `p95 low` and `p95 high` to `p95`.
fn intervals(columns: &[Column<'_>]) -> Vec<(usize, usize, usize)> {
    let without = |name: &str, end: &str| -> Option<Vec<String>> {
        let mut words: Vec<String> = words(name).collect();
        let place = words.iter().position(|word| word == end)?;
        words.remove(place);
        Some(words)
    };
    let mut found = Vec::new();
    for (low, column) in columns.iter().enumerate() {
        let Some(rest) = without(column.name, "low") else { continue };
        let Some(high) =
            columns.iter().position(|other| without(other.name, "high").as_ref() == Some(&rest))
        else {
            continue;
        };
        let is_end = |name: &str| without(name, "low").is_some() || without(name, "high").is_some();
        let same = columns
            .iter()
            .position(|other| words(other.name).eq(rest.iter().cloned()) && !is_end(other.name));
        let left = (0..low)
            .rev()
            .find(|place| columns.get(*place).is_some_and(|other| !is_end(other.name)));
        if let Some(value) = same.or(left) {
            found.push((value, low, high));
        }
    }
    found
}

fn said(cell: &Value) -> String {
    match cell {
        Value::Text(text) => text.clone(),
        Value::Number(number) => figure(*number),
    }
}

/// Figures with few digits, which people chose, such as a loss of 0.5 %.
fn short(cell: &Value) -> String {
    match cell {
        Value::Text(text) => text.clone(),
        Value::Number(number) => rough(*number, 4.0),
    }
}

/// The figure of a cell.
fn measured(cell: &Value) -> Option<Measured> {
    let text = match cell {
        Value::Number(value) => return Some(Measured { value: *value, interval: None }),
        Value::Text(text) => text,
    };
    let (value, rest) = text.split_once('[')?;
    let (low, high) = rest.trim_end().strip_suffix(']')?.split_once(',')?;
    let parse =
        |text: &str| text.trim().replace('−', "-").trim_start_matches('+').parse::<f64>().ok();
    Some(Measured { value: parse(value)?, interval: Some((parse(low)?, parse(high)?)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &[&str]) -> Vec<(usize, usize, usize)> {
        let columns: Vec<Column<'_>> =
            names.iter().enumerate().map(|(n, name)| Column { name, a: n, b: n }).collect();
        intervals(&columns)
    }

    #[test]
    fn ends_of_intervals_find_their_value() {
        assert_eq!(pairs(&["subject", "median (ms)", "low (ms)", "high (ms)"]), [(1, 2, 3)]);
        assert_eq!(
            pairs(&["subject", "p50 (ms)", "p95 (ms)", "p95 low (ms)", "p95 high (ms)"]),
            [(2, 3, 4)]
        );
        assert_eq!(pairs(&["flow", "slow (ms)", "highest (ms)"]), []);
        assert_eq!(pairs(&["low"]), []);
    }

    #[test]
    fn one_figure_of_a_quantity_is_judged() {
        let of = |names: &[&str]| -> Vec<Role> {
            let columns: Vec<Column<'_>> =
                names.iter().enumerate().map(|(n, name)| Column { name, a: n, b: n }).collect();
            roles(&columns, &intervals(&columns))
        };
        use Role::{Difference, Main, Tail};
        assert_eq!(
            of(&["median (ms)", "p95 (ms)", "mean (ms)", "rate (1/s)"]),
            [Main, Tail, Tail, Main]
        );
        assert_eq!(of(&["p75 since SYN (ms)", "median since connect (ms)"]), [Tail, Main]);
        assert_eq!(
            of(&["median (ms)", "p99 (ms)", "p99 low (ms)", "p99 high (ms)"])[..2],
            [Tail, Main],
            "an interval is worth more than the middle"
        );
        assert_eq!(of(&["paired difference, mean (ms)"]), [Difference]);
        let whole = [vec![3.0], vec![4.0]];
        assert_eq!(counted("retransmissions", &whole), Role::Count);
        assert_eq!(counted("opened (connections)", &whole), Role::Count);
        assert_eq!(counted("time (us)", &whole), Main);
        assert_eq!(counted("server's flight (packets)", &whole), Role::Size);
        assert_eq!(counted("leaf (bytes)", &[vec![3.5], vec![4.0]]), Main);
    }

    #[test]
    fn figures_with_intervals_are_read() {
        let one = measured(&Value::from("1.188 [1.187, 1.189]")).unwrap();
        assert_eq!((one.value, one.interval), (1.188, Some((1.187, 1.189))));
        assert_eq!(measured(&Value::from("−8.4 [-12, −4]")).unwrap().value, -8.4);
        assert!(measured(&Value::from("X25519 [hybrid]")).is_none());
        assert!(measured(&Value::from("yes")).is_none());
    }
}
