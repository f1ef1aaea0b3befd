//! Compares two results folders: first the differences of machine and settings, then those of the figures, the
//! biggest first, and whether each change is more than noise ([`judge`]).

pub mod baseline;
mod judge;
mod page;
mod tables;
mod text;

use std::path::Path;

use serde::Serialize;

use crate::error::LabError;
use crate::report::{Asked, Results};
use crate::result::{Table, Told, Verdict};
use crate::run::folder::{other_machine, read_json, repetition};
use crate::state::State;

use baseline::Baseline;
pub use judge::Moved;
pub use page::page;
pub use text::text;

/// Words in the names of facts that identify the machine.
const MACHINE: [&str; 6] = ["processor", "cpu", "cores", "kernel", "memory", "model"];

/// The differences of two folders.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// The first folder.
    pub a: Side,
    /// The second folder.
    pub b: Side,
    /// Whether processor and kernel are the same, according to the facts.
    pub same_machine: bool,
    /// Settings and facts that differ.
    pub differences: Vec<Difference>,
    /// Figures that differ: first those that are more than noise, the biggest first.
    pub changes: Vec<Change>,
    /// Words in tables that differ, such as whether a flight fits.
    pub words: Vec<Word>,
    /// Findings with different verdicts.
    pub verdicts: Vec<Turned>,
    /// Controls that do not hold, in either folder.
    pub controls: Vec<String>,
    /// Rows that only the first has.
    pub only_a: Vec<String>,
    /// Rows that only the second has.
    pub only_b: Vec<String>,
    /// Columns that changed as wholes: their figures are judged relative to that.
    pub columns: Vec<Moved>,
    /// Number of figures that were compared.
    pub compared: usize,
    /// Number of figures that were tested; the others have reasons why not.
    pub tested: usize,
    /// The grounds of the judgement between runs, in words.
    pub grounds: String,
    /// Number of repetitions in the first run and in the second.
    pub repetitions: [usize; 2],
    /// Distance of the runs as wholes beyond the spread of their figures, as a share: another machine, or a change of
    /// everything. Each figure is judged with that added to its spread.
    pub drift: f64,
}

/// One of the folders.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Side {
    /// Path.
    pub folder: String,
    /// Start of the run, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its settings.
    pub asked: Asked,
}

/// A setting or a fact that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name.
    pub what: String,
    /// Value in the first.
    pub a: String,
    /// Value in the second.
    pub b: String,
}

/// Whether a change is more than noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It is more than noise; five in a hundred of those so judged are expected to be wrong.
    Outside,
    /// It is not judged: the reason says why.
    Unknown,
    /// Noise can explain it.
    Within,
}

/// A figure that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The experiment.
    pub experiment: String,
    /// The table's name.
    pub table: String,
    /// The row: its words, and the figures that identify it.
    pub row: String,
    /// The column, with its unit.
    pub column: String,
    /// Value in the first.
    pub a: f64,
    /// Value in the second.
    pub b: f64,
    /// How much larger the second is, in per cent; `None` if the first is 0.
    pub percent: Option<f64>,
    /// Whether it is more than noise.
    pub judgement: Judgement,
    /// Reason of the judgement.
    pub by: String,
}

/// A word that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Word {
    /// Experiment, table, row and column.
    pub place: String,
    /// Word in the first.
    pub a: String,
    /// Word in the second.
    pub b: String,
}

/// A finding with different verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turned {
    /// The experiment.
    pub experiment: String,
    /// The claim.
    pub claim: String,
    /// Verdict and figure in the first.
    pub a: (Verdict, String),
    /// Verdict and figure in the second.
    pub b: (Verdict, String),
}

/// Writes the comparison of two folders as a page.
pub fn write_page(
    comparison: &Comparison,
    a: &Path,
    b: &Path,
    file: &Path,
) -> Result<(), LabError> {
    crate::report::write_whole(file, page(comparison, a, b)?.as_bytes())
}

/// Compares two results folders. Without a baseline of the machine, that of the first folder or of the second is used.
pub fn compare(a: &Path, b: &Path, baseline: Option<&Baseline>) -> Result<Comparison, LabError> {
    let (all_a, all_b) = (repetitions(a)?, repetitions(b)?);
    let (Some(first), Some(second)) = (all_a.first(), all_b.first()) else {
        return Err(LabError::failed("no results"));
    };
    let (state_a, state_b) = (state(first), state(second));
    let side = |folder: &Path, results: &Results, state: &State| Side {
        folder: folder.display().to_string(),
        at_ms: state.at_ms,
        asked: results.asked.clone(),
    };
    let facts = facts(&state_a, &state_b);
    let of_machine = |difference: &Difference| {
        let name = difference.what.to_lowercase();
        MACHINE.iter().any(|word| name.contains(word))
    };
    let mut comparison = Comparison {
        a: side(a, first, &state_a),
        b: side(b, second, &state_b),
        same_machine: !facts.iter().any(of_machine),
        differences: settings(&first.asked, &second.asked),
        changes: Vec::new(),
        words: Vec::new(),
        verdicts: Vec::new(),
        controls: Vec::new(),
        only_a: Vec::new(),
        only_b: Vec::new(),
        columns: Vec::new(),
        compared: 0,
        tested: 0,
        grounds: String::new(),
        repetitions: [all_a.len(), all_b.len()],
        drift: 0.0,
    };
    let mut figures = Vec::new();
    // Facts about the machine come first.
    let (machine, others): (Vec<_>, Vec<_>) = facts.into_iter().partition(of_machine);
    comparison.differences.splice(0..0, machine);
    comparison.differences.extend(others);
    for (results, only) in [(first, &mut comparison.only_a), (second, &mut comparison.only_b)] {
        only.extend(
            results
                .unreadable
                .iter()
                .map(|(name, why)| format!("{name}, which cannot be read: {why}")),
        );
    }
    for told in &first.told {
        match second.told.iter().find(|other| other.experiment == told.experiment) {
            Some(other) => {
                experiment(&mut comparison, told, other);
                let a = of_experiment(&all_a, &told.experiment);
                let b = of_experiment(&all_b, &told.experiment);
                tables(&mut comparison, &mut figures, &a, &b);
            }
            None => comparison.only_a.push(told.experiment.clone()),
        }
    }
    let missing =
        |told: &&Told| !first.told.iter().any(|other| other.experiment == told.experiment);
    comparison
        .only_b
        .extend(second.told.iter().filter(missing).map(|told| told.experiment.clone()));
    for (name, results) in [("A", first), ("B", second)] {
        for told in &results.told {
            for control in told.findings.controls.iter().filter(|control| !control.holds()) {
                comparison.controls.push(format!(
                    "{}, {name}: {}: {:.4} [{:.4}, {:.4}]",
                    told.experiment, control.what, control.ratio, control.low, control.high
                ));
            }
        }
    }
    let (figures, places): (Vec<_>, Vec<_>) = figures.into_iter().unzip();
    let own = match baseline {
        Some(_) => None,
        None => stored(a, &state_a)?.or(stored(b, &state_b)?),
    };
    let baseline = baseline.or(own.as_ref()).filter(|one| of_this_machine(one, &state_a));
    comparison.grounds = baseline::words(baseline);
    let judged = judge::all(&figures, baseline);
    comparison.drift = judged.drift;
    comparison.tested = judged.judged;
    comparison.columns = judged.columns;
    comparison.columns.sort_by(|one, other| other.percent.abs().total_cmp(&one.percent.abs()));
    for ((judgement, by), place) in judged.figures.into_iter().zip(places) {
        if let Some(change) = place.and_then(|place: usize| comparison.changes.get_mut(place)) {
            (change.judgement, change.by) = (judgement, by);
        }
    }
    let size = |change: &Change| change.percent.map_or(f64::MAX, f64::abs);
    comparison.changes.sort_by(|one, other| {
        one.judgement.cmp(&other.judgement).then_with(|| size(other).total_cmp(&size(one)))
    });
    Ok(comparison)
}

/// The baseline that a run was given, if it is of the machine of the run.
fn stored(folder: &Path, state: &State) -> Result<Option<Baseline>, LabError> {
    let baseline: Option<Baseline> = read_json(&folder.join(baseline::FILE))?;
    Ok(baseline.filter(|one| of_this_machine(one, state)))
}

fn of_this_machine(baseline: &Baseline, state: &State) -> bool {
    let of = State { facts: baseline.facts.clone(), ..State::default() };
    other_machine(&of, state).is_none()
}

/// The state of the machine during a run.
fn folder_facts(run: &[Results]) -> State {
    run.first().map(state).unwrap_or_default()
}

/// The figures of two runs, matched.
fn matched(a: &[Results], b: &[Results]) -> Vec<judge::Figure> {
    let mut ignored = Comparison::default();
    let mut figures = Vec::new();
    for told in a.first().map(|first| first.told.as_slice()).unwrap_or_default() {
        let (a, b) = (of_experiment(a, &told.experiment), of_experiment(b, &told.experiment));
        tables(&mut ignored, &mut figures, &a, &b);
    }
    figures.into_iter().map(|(figure, _)| figure).collect()
}

/// A run, and its repetitions.
fn repetitions(folder: &Path) -> Result<Vec<Results>, LabError> {
    let mut all = vec![Results::read(folder)?];
    for number in 2.. {
        let again = repetition(folder, number);
        if !again.join("run.json").exists() {
            break;
        }
        all.push(Results::read(&again)?);
    }
    Ok(all)
}

/// Results of an experiment in each repetition.
fn of_experiment<'a>(all: &'a [Results], name: &str) -> Vec<&'a Told> {
    let of = |results: &'a Results| results.told.iter().find(|told| told.experiment == name);
    all.iter().filter_map(of).collect()
}

/// Compares the tables of an experiment.
fn tables(
    comparison: &mut Comparison,
    figures: &mut Vec<(judge::Figure, Option<usize>)>,
    a: &[&Told],
    b: &[&Told],
) {
    let (Some(first), Some(second)) = (a.first(), b.first()) else { return };
    for table in &first.findings.tables {
        let (a, b) = (named(a, &table.name), named(b, &table.name));
        if b.is_empty() {
            comparison.only_a.push(format!("{}: table {}", first.experiment, table.name));
            continue;
        }
        let pair = tables::Pair { experiment: &first.experiment, a, b };
        tables::compare(comparison, figures, &pair);
    }
    for table in &second.findings.tables {
        if named(a, &table.name).is_empty() {
            comparison.only_b.push(format!("{}: table {}", first.experiment, table.name));
        }
    }
}

/// The tables with this name; none if the first repetition has none.
fn named<'a>(all: &[&'a Told], name: &str) -> Vec<&'a Table> {
    let of = |told: &&'a Told| told.findings.tables.iter().find(|table| table.name == name);
    match all.first().and_then(of) {
        Some(_) => all.iter().filter_map(of).collect(),
        None => Vec::new(),
    }
}

fn state(results: &Results) -> State {
    let first = || results.told.first().map(|told| told.state.clone());
    results.state.clone().or_else(first).unwrap_or_default()
}

/// The differences between two lists of names and values.
fn facts(a: &State, b: &State) -> Vec<Difference> {
    let value = |state: &State, name: &str| {
        let fact = state.facts.iter().find(|(other, _)| other == name);
        fact.map_or_else(|| "–".to_owned(), |(_, value)| value.clone())
    };
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in a.facts.iter().chain(&b.facts) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .map(|name| Difference { what: name.clone(), a: value(a, name), b: value(b, name) })
        .filter(|difference| difference.a != difference.b)
        .collect()
}

fn settings(a: &Asked, b: &Asked) -> Vec<Difference> {
    fn said<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(|| "–".to_owned(), |value| value.to_string())
    }
    let form = |asked: &Asked| crate::report::mode(asked.quick).to_owned();
    let rows = [
        ("version", said(a.version.as_ref()), said(b.version.as_ref())),
        ("form", form(a), form(b)),
        ("seed", said(a.seed), said(b.seed)),
        ("plan", said(a.plan.as_ref()), said(b.plan.as_ref())),
    ];
    rows.into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| Difference { what: what.to_owned(), a, b })
        .collect()
}

fn experiment(comparison: &mut Comparison, a: &Told, b: &Told) {
    let name = &a.experiment;
    let (findings_a, findings_b) = (&a.findings.findings, &b.findings.findings);
    for (place, finding) in findings_a.iter().enumerate() {
        let same = |other: &&crate::result::Finding| {
            other.claim == finding.claim && other.source == finding.source
        };
        // The same claim may occur for several places: the second in one list matches the second in the other.
        let nth = findings_a.iter().take(place).filter(same).count();
        match findings_b.iter().filter(same).nth(nth) {
            Some(other) if other.verdict != finding.verdict => comparison.verdicts.push(Turned {
                experiment: name.clone(),
                claim: finding.claim.clone(),
                a: (finding.verdict, finding.measured.clone()),
                b: (other.verdict, other.measured.clone()),
            }),
            Some(_) => {}
            None => comparison.only_a.push(format!("{name}: finding \"{}\"", finding.claim)),
        }
    }
    for finding in findings_b {
        if !findings_a
            .iter()
            .any(|other| other.claim == finding.claim && other.source == finding.source)
        {
            comparison.only_b.push(format!("{name}: finding \"{}\"", finding.claim));
        }
    }
    for (one, other, only) in [(a, b, &mut comparison.only_a), (b, a, &mut comparison.only_b)] {
        if let (Some(reason), None) = (&other.skipped, &one.skipped) {
            only.push(format!("{name}: all of it; the other says: {reason}"));
        }
        if let (Some(reason), None) = (&other.failed, &one.failed) {
            only.push(format!("{name}: the end of it; the other failed: {reason}"));
        }
    }
}
