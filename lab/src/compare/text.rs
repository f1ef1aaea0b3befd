//! A comparison for the terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Change, Comparison, Judgement, Side};
use crate::plot::{figure, rough};
use crate::report::{date, mode};
use crate::result::Verdict;

/// Longest cell, in characters.
const WIDEST: usize = 64;

/// Most columns that are named as having changed as wholes.
const COLUMNS: usize = 8;

/// Verdicts in words.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::HoldsInSample => "holds in-sample",
        Verdict::Partly => "holds in part",
        Verdict::Differs => "differs",
        Verdict::Undecided => "undecided",
        Verdict::NotComparable => "not comparable",
    }
}

/// A change in per cent.
pub(super) fn percent(change: &Change) -> String {
    let Some(percent) = change.percent else { return "from 0".to_owned() };
    let sign = if percent > 0.0 { "+" } else { "" };
    format!("{sign}{} %", rough(percent, 3.0))
}

/// A judgement in words.
pub(super) fn judged(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Outside => "more than noise",
        Judgement::Unknown => "not judged",
        Judgement::Within => "within noise",
    }
}

/// The comparison as text, with at most this many of the biggest changes.
pub fn text(comparison: &Comparison, most: usize) -> String {
    let mut out = String::new();
    let side = |side: &Side| {
        let version = side
            .asked
            .version
            .as_ref()
            .map_or(String::new(), |version| format!(", version {version}"));
        format!("{}  ({}, {}{version})", side.folder, date(side.at_ms), mode(side.asked.quick))
    };
    let _ = writeln!(out, "A  {}", side(&comparison.a));
    let _ = writeln!(out, "B  {}\n", side(&comparison.b));
    if !comparison.same_machine {
        let _ =
            writeln!(out, "not the same machine: differences of time are not the algorithms'\n");
    }
    if !comparison.differences.is_empty() {
        let _ = writeln!(out, "settings and machine");
        let rows = comparison.differences.iter();
        out += &columns(
            &["what", "A", "B"],
            rows.map(|row| vec![row.what.clone(), row.a.clone(), row.b.clone()]).collect(),
            &[],
        );
    }
    if !comparison.controls.is_empty() {
        let _ = writeln!(out, "A/A controls that do not hold");
        for control in &comparison.controls {
            let _ = writeln!(out, "  {control}");
        }
        out.push('\n');
    }
    let count = |judgement: Judgement| {
        comparison.changes.iter().filter(|one| one.judgement == judgement).count()
    };
    let _ = writeln!(
        out,
        "{} figures compared, {} differ: {} more than noise, {} within noise, {} not judged",
        comparison.compared,
        comparison.changes.len(),
        count(Judgement::Outside),
        count(Judgement::Within),
        count(Judgement::Unknown),
    );
    out += &how(comparison);
    if !comparison.changes.is_empty() {
        let rows = comparison.changes.iter().take(most).map(|change| {
            vec![
                percent(change),
                figure(change.a),
                figure(change.b),
                change.column.clone(),
                format!("{}/{}", change.experiment, change.table),
                change.row.clone(),
                judged(change.judgement).to_owned(),
            ]
        });
        out += &columns(
            &["change", "A", "B", "figure", "table", "row", ""],
            rows.collect(),
            &[0, 1, 2],
        );
        if comparison.changes.len() > most {
            out.truncate(out.trim_end().len());
            let _ = writeln!(
                out,
                "\n  and {} further, smaller or less certain\n",
                comparison.changes.len() - most
            );
        }
    }
    if !comparison.verdicts.is_empty() {
        let _ = writeln!(out, "verdicts that turned");
        let rows = comparison.verdicts.iter().map(|turned| {
            let side = |(verdict, measured): &(Verdict, String)| {
                format!("{} ({measured})", word(*verdict))
            };
            vec![side(&turned.a), side(&turned.b), turned.claim.clone(), turned.experiment.clone()]
        });
        out += &columns(&["A", "B", "claim", "experiment"], rows.collect(), &[]);
    }
    if !comparison.words.is_empty() {
        let _ = writeln!(out, "words that differ");
        let rows = comparison.words.iter().take(most);
        let rows = rows.map(|word| vec![word.a.clone(), word.b.clone(), word.place.clone()]);
        out += &columns(&["A", "B", "where"], rows.collect(), &[]);
    }
    for (name, only) in [("only in A", &comparison.only_a), ("only in B", &comparison.only_b)] {
        if !only.is_empty() {
            let _ = writeln!(out, "{name}");
            for what in only {
                let _ = writeln!(out, "  {what}");
            }
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// How far the judgements can be trusted.
pub(super) fn how(comparison: &Comparison) -> String {
    let [a, b] = comparison.repetitions;
    let mut text = format!(
        "judged by {a} and {b} passes, {} of the figures; {}; of what is named about one in twenty is noise\n",
        comparison.tested, comparison.grounds
    );
    for (reason, count) in reasons(comparison) {
        let _ = writeln!(text, "not judged: {count} that differ ({reason})");
    }
    if comparison.drift > 0.0 {
        let _ = writeln!(
            text,
            "the runs lie {} % further apart than their passes explain: so much is added to the noise of each figure",
            rough(comparison.drift * 100.0, 2.0)
        );
    }
    for moved in comparison.columns.iter().take(COLUMNS) {
        let judged = match moved.judgement {
            Judgement::Unknown => "which may be a busier machine or a change of everything",
            known => judged(known),
        };
        let _ = writeln!(text, "as a whole {:+.1} %, {judged}: {}", moved.percent, moved.column);
    }
    if comparison.columns.len() > COLUMNS {
        let _ =
            writeln!(text, "and {} further columns as wholes", comparison.columns.len() - COLUMNS);
    }
    text
}

/// Why figures that differ are not judged, and how many they are.
fn reasons(comparison: &Comparison) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    for change in comparison.changes.iter().filter(|one| one.judgement == Judgement::Unknown) {
        *reasons.entry(change.by.as_str()).or_default() += 1;
    }
    reasons
}

/// Aligned columns; those of figures to the right.
fn columns(heads: &[&str], rows: Vec<Vec<String>>, right: &[usize]) -> String {
    let mut rows: Vec<Vec<String>> = rows;
    rows.insert(0, heads.iter().map(|head| (*head).to_owned()).collect());
    for cell in rows.iter_mut().flatten() {
        // Control characters in another person's file must not reach the terminal.
        *cell = cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if cell.chars().count() > WIDEST {
            *cell = cell.chars().take(WIDEST - 1).chain(['…']).collect();
        }
    }
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line += "  ";
            if right.contains(&column) {
                let _ = write!(line, "{cell:>width$}");
            } else {
                let _ = write!(line, "{cell:<width$}");
            }
        }
        out += line.trim_end();
        out.push('\n');
    }
    out.push('\n');
    out
}
