//! Two results folders side by side: first what was different about the machine and the settings, then what came out differently, the
//! biggest changes first, and whether a change is more than noise.

mod judge;
mod page;
mod tables;
mod text;

use std::path::Path;

use serde::Serialize;

use crate::error::LabError;
use crate::report::{Asked, Results};
use crate::result::{Table, Told, Verdict};
use crate::run::folder::repetition;
use crate::state::State;

pub use page::page;
pub use text::text;

/// Words in the names of facts that say which machine it was.
const MACHINE: [&str; 6] = ["processor", "cpu", "cores", "kernel", "memory", "model"];

/// What is different, and what of it matters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The first folder.
    pub a: Side,
    /// The second folder.
    pub b: Side,
    /// Whether processor and kernel are the same, as far as the facts say.
    pub same_machine: bool,
    /// Settings and facts that are different.
    pub differences: Vec<Difference>,
    /// Figures that are different: first those beyond their intervals, the biggest first.
    pub changes: Vec<Change>,
    /// Words in tables that are different, such as whether a flight fits.
    pub words: Vec<Word>,
    /// Findings whose verdict is another.
    pub verdicts: Vec<Turned>,
    /// Controls that do not hold, in either folder.
    pub controls: Vec<String>,
    /// What only the first has.
    pub only_a: Vec<String>,
    /// What only the second has.
    pub only_b: Vec<String>,
    /// Figures that were compared.
    pub compared: usize,
    /// How often the first run and the second measured each.
    pub repetitions: [usize; 2],
    /// How far the runs as wholes lie apart beyond the spread of their figures, as a share: the machine was another one, or all of it
    /// has changed. Each figure is held against that, too.
    pub drift: f64,
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Where it is.
    pub folder: String,
    /// When it began, in milliseconds since 1970.
    pub at_ms: u64,
    /// What was asked for.
    pub asked: Asked,
}

/// A setting or a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name.
    pub what: String,
    /// In the first.
    pub a: String,
    /// In the second.
    pub b: String,
}

/// Whether a change is more than noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// It is further apart than noise is, but for five in a hundred of those that are named.
    Outside,
    /// It was measured once, and has no interval.
    Unknown,
    /// Noise may be as far apart.
    Within,
}

/// A figure that is different.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The experiment.
    pub experiment: String,
    /// The table's name.
    pub table: String,
    /// Which row: its words, and the figures that tell it from others.
    pub row: String,
    /// The column, with its unit.
    pub column: String,
    /// In the first.
    pub a: f64,
    /// In the second.
    pub b: f64,
    /// By how many per cent the second is more; none if the first is 0.
    pub percent: Option<f64>,
    /// Whether it is more than noise.
    pub judgement: Judgement,
    /// What that was judged by.
    pub by: String,
}

/// A word that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Word {
    /// Experiment, table, row and column.
    pub place: String,
    /// In the first.
    pub a: String,
    /// In the second.
    pub b: String,
}

/// A finding with another verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turned {
    /// The experiment.
    pub experiment: String,
    /// The claim.
    pub claim: String,
    /// In the first: verdict and figure.
    pub a: (Verdict, String),
    /// In the second.
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

/// Compares two results folders.
pub fn compare(a: &Path, b: &Path) -> Result<Comparison, LabError> {
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
        compared: 0,
        repetitions: [all_a.len(), all_b.len()],
        drift: 0.0,
    };
    let mut figures = Vec::new();
    // The machine first.
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
    let judged = judge::all(&figures);
    comparison.drift = judged.drift;
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

/// A run, and what it has repeated.
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

/// What an experiment told in each repetition.
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

/// The tables of this name; none if the first has none.
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

/// What is not the same in two lists of names and values.
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
        // The same claim may be told of several places: the second of one belongs to the second of the other.
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
