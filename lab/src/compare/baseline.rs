//! A baseline of a machine: how much the figures of equal runs differ on it.
//!
//! The passes of one run follow each other, and so do not show what varies from one run to the next: the load of other
//! tenants, the processor's clock, where memory lies. Several equal runs do, made at different times. A baseline keeps the variances of
//! their figures by column, as shares squared.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::judge::anchor::{LEAST_FIGURES, medians};
use super::judge::spread::variance;
use super::judge::{Figure, LEAST_PASSES, count};
use super::{folder_facts, matched, repetitions};
use crate::error::LabError;
use crate::report::{Asked, Results};
use crate::run::folder::{other_machine, read_json, write_json};
use crate::state::at_ms;
use crate::statistics::mean;

/// Least number of equal runs: fewer say nothing about what varies between runs.
const LEAST_RUNS: usize = 3;
/// Most runs that are read.
const MOST_RUNS: usize = 100;
/// Name of the file in a results folder.
pub const FILE: &str = "baseline.json";

/// How much figures of equal runs differ on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// Version of the program that measured.
    pub version: Option<String>,
    /// Facts about the machine.
    pub facts: Vec<(String, String)>,
    /// Number of passes of each run.
    pub passes: Vec<usize>,
    /// The columns.
    pub columns: Vec<Group>,
}

/// How much the figures of a column differ; variances of logarithms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Experiment, table and column.
    pub column: String,
    /// Number of figures.
    pub figures: usize,
    /// Variance of a figure between the passes of a run, relative to the anchor.
    pub within: f64,
    /// Variance that runs add to it.
    pub between: f64,
    /// Degrees of freedom of these two.
    pub df: f64,
    /// Variance of the anchor between the passes of a run; 0 for a column without an anchor.
    pub anchor_within: f64,
    /// Variance that runs add to it.
    pub anchor_between: f64,
    /// Degrees of freedom of these two.
    pub runs_df: f64,
}

impl Baseline {
    /// Learns from equal runs.
    pub fn learn(folders: &[&Path]) -> Result<Self, LabError> {
        let fail = |what: String| Err(LabError::Plan(what));
        if !(LEAST_RUNS..=MOST_RUNS).contains(&folders.len()) {
            return fail(format!(
                "a baseline needs {LEAST_RUNS} to {MOST_RUNS} equal runs, at different times, not {}",
                folders.len()
            ));
        }
        let (Some(first_folder), mut runs) = (folders.first(), Vec::new()) else {
            return fail("no results".to_owned());
        };
        for folder in folders {
            runs.push(repetitions(folder)?);
        }
        let (facts, Some(first)) = (folder_facts(&runs[0]), runs.first()) else {
            return fail("no results".to_owned());
        };
        for (folder, run) in folders.iter().zip(&runs).skip(1) {
            let name = folder.display();
            if let Some(what) = other_machine(&facts, &folder_facts(run)) {
                return fail(format!("{name} was measured on another machine ({what})"));
            }
            // Each run may have passes of its own number.
            let asked =
                |run: &[Results]| run.first().map(|one| Asked { passes: 0, ..one.asked.clone() });
            if asked(run) != asked(first) {
                return fail(format!(
                    "{name} has other settings than {}: all runs of a baseline must be equal",
                    first_folder.display()
                ));
            }
        }
        // Each figure in all runs: matched with those of the first.
        let mut all: BTreeMap<(String, String), Vec<Vec<f64>>> = BTreeMap::new();
        for (place, run) in runs.iter().enumerate().skip(1) {
            for Figure { column, row, runs: [a, b], .. } in matched(first, run) {
                let known = all.entry((column, row)).or_insert_with(|| vec![a]);
                // Of rows with equal names only the first counts.
                if known.len() == place {
                    known.push(b);
                }
            }
        }
        let mut columns: BTreeMap<String, Vec<Vec<Vec<f64>>>> = BTreeMap::new();
        for ((column, _), figure) in all {
            let positive = figure.iter().flatten().all(|value| *value > 0.0 && value.is_finite());
            if figure.len() == runs.len() && positive {
                let logs = figure.into_iter().map(|run| run.into_iter().map(f64::ln).collect());
                columns.entry(column).or_default().push(logs.collect());
            }
        }
        Ok(Self {
            at_ms: at_ms(),
            version: first.first().and_then(|one| one.asked.version.clone()),
            facts: facts.facts,
            passes: runs.iter().map(Vec::len).collect(),
            columns: columns
                .into_iter()
                .map(|(column, figures)| Group::of(column, figures))
                .collect(),
        })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        read_json(path)?.ok_or_else(|| LabError::file(path, std::io::ErrorKind::NotFound.into()))
    }

    /// Writes a file.
    pub fn write(&self, path: &Path) -> Result<(), LabError> {
        write_json(path, self)
    }

    /// What it knows about a column.
    pub(super) fn group(&self, column: &str) -> Option<&Group> {
        self.columns.iter().find(|group| group.column == column)
    }
}

impl Group {
    /// Of the logarithms of each figure, by run and pass.
    fn of(column: String, mut figures: Vec<Vec<Vec<f64>>>) -> Self {
        let runs = figures.first().map_or(0, Vec::len);
        let mut anchors: Vec<Vec<f64>> = Vec::new();
        for figure in &mut figures {
            let middle = mean(&figure.iter().map(|run| mean(run)).collect::<Vec<_>>());
            figure.iter_mut().flatten().for_each(|value| *value -= middle);
        }
        if figures.len() >= LEAST_FIGURES {
            let of = |run: usize| -> Vec<&[f64]> {
                figures.iter().filter_map(|figure| figure.get(run).map(Vec::as_slice)).collect()
            };
            anchors = (0..runs).map(|run| medians(&of(run))).collect();
            for (list, anchor) in
                figures.iter_mut().flat_map(|figure| figure.iter_mut().zip(&anchors))
            {
                list.truncate(anchor.len());
                list.iter_mut().zip(anchor).for_each(|(value, anchor)| *value -= anchor);
            }
        }
        let (within, between) = components(&figures);
        let (anchor_within, anchor_between) = match anchors.is_empty() {
            true => (0.0, 0.0),
            false => components(&[anchors]),
        };
        let runs_df = count(runs) - 1.0;
        Self {
            column,
            figures: figures.len(),
            within,
            between,
            // Figures of a column are not independent: a hundred of them are not worth a hundred.
            df: runs_df * count(figures.len()).sqrt(),
            anchor_within,
            anchor_between,
            runs_df,
        }
    }
}

/// The variance between passes, and what runs add to it: means over the figures.
fn components(figures: &[Vec<Vec<f64>>]) -> (f64, f64) {
    let within: Vec<f64> =
        figures.iter().flatten().filter(|run| run.len() > 1).map(|run| variance(run)).collect();
    let within = mean_or_zero(&within);
    let of_means: Vec<f64> = figures
        .iter()
        .map(|figure| variance(&figure.iter().map(|run| mean(run)).collect::<Vec<_>>()))
        .collect();
    let share: Vec<f64> =
        figures.iter().flatten().map(|run| 1.0 / count(run.len()).max(1.0)).collect();
    (within, (mean_or_zero(&of_means) - within * mean_or_zero(&share)).max(0.0))
}

fn mean_or_zero(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { mean(values) }
}

/// What a reader should know about it.
pub(super) fn words(baseline: Option<&Baseline>) -> String {
    match baseline {
        Some(baseline) => {
            format!("what varies between runs is from a baseline of {} runs", baseline.passes.len())
        }
        None => format!(
            "without a baseline of the machine (outlast lab baseline), so runs of fewer than {LEAST_PASSES} passes are not judged"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variances_are_told_apart() {
        // Two figures, three runs of two passes: 0.1 apart within a run, runs 1 apart.
        let figure = |base: f64| -> Vec<Vec<f64>> {
            (0..3).map(|run| [0.0, 0.1].map(|pass| base + f64::from(run) + pass).to_vec()).collect()
        };
        let (within, between) = components(&[figure(0.0), figure(5.0)]);
        assert!((within - 0.005).abs() < 1e-12, "{within}");
        assert!((between - (1.0 - 0.0025)).abs() < 1e-12, "{between}");
        // Six figures that move together: only their anchor moves.
        let group = Group::of("c".into(), (0..6).map(|n| figure(f64::from(n))).collect());
        assert!(group.within < 1e-12 && group.between < 1e-12, "{group:?}");
        assert!((group.anchor_between - (1.0 - 0.0025)).abs() < 1e-12, "{group:?}");
        assert_eq!((group.figures, group.runs_df), (6, 2.0));
    }
}
