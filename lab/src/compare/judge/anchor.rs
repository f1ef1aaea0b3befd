//! Anchors: how much faster or slower a column was in each pass than in all passes of both runs, so that a pass that is
//! slower as a whole changes no figure. It is the median over the column's figures, each relative to its own mean.

use std::collections::BTreeMap;

use super::Figure;
use crate::statistics::{mean, quantile_of};

/// Figures that a column needs for an anchor: the median of fewer follows each of them.
pub(in crate::compare) const LEAST_FIGURES: usize = 5;

/// The anchors of all columns that have one, by column.
pub(in crate::compare) struct Anchors(BTreeMap<String, [Vec<f64>; 2]>);

impl Anchors {
    /// Of the figures that can be tested.
    pub(in crate::compare) fn of(figures: &[Figure]) -> Self {
        let mut columns: BTreeMap<&String, Vec<&Figure>> = BTreeMap::new();
        for figure in figures.iter().filter(|figure| figure.is_tested()) {
            columns.entry(&figure.column).or_default().push(figure);
        }
        let mut anchors = BTreeMap::new();
        for (column, figures) in columns {
            if figures.len() < LEAST_FIGURES {
                continue;
            }
            let logs: Vec<[Vec<f64>; 2]> =
                figures.iter().map(|figure| centred(&figure.runs)).collect();
            let runs = [0, 1].map(|run: usize| {
                medians(&logs.iter().map(|figure| figure[run].as_slice()).collect::<Vec<_>>())
            });
            if runs.iter().all(|run| !run.is_empty()) {
                anchors.insert(column.clone(), runs);
            }
        }
        Self(anchors)
    }

    /// Whether a column has one.
    pub(super) fn has(&self, column: &str) -> bool {
        self.0.contains_key(column)
    }

    /// Its logarithm in each pass of both runs.
    pub(in crate::compare) fn of_column(&self, column: &str) -> Option<&[Vec<f64>; 2]> {
        self.0.get(column)
    }

    /// Logarithms of a figure in the passes of a run, less those of its anchor.
    pub(in crate::compare) fn relative(&self, figure: &Figure, run: usize) -> Vec<f64> {
        let values = figure.runs[run].iter().map(|value| value.ln());
        match self.0.get(&figure.column) {
            Some(anchors) => {
                values.zip(&anchors[run]).map(|(value, anchor)| value - anchor).collect()
            }
            None => values.collect(),
        }
    }
}

/// Logarithms less the mean of both runs, of which each counts as much.
fn centred(runs: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    let logs = runs.each_ref().map(|run| run.iter().map(|value| value.ln()).collect::<Vec<f64>>());
    let middle = f64::midpoint(mean(&logs[0]), mean(&logs[1]));
    logs.map(|run| run.into_iter().map(|value| value - middle).collect())
}

/// The median of several figures in each pass.
pub(in crate::compare) fn medians(figures: &[&[f64]]) -> Vec<f64> {
    let passes = figures.iter().map(|figure| figure.len()).min().unwrap_or(0);
    let at = |pass: usize| figures.iter().filter_map(|figure| figure.get(pass).copied()).collect();
    (0..passes).map(|pass| quantile_of(&at(pass) as &Vec<f64>, 0.5)).collect()
}
