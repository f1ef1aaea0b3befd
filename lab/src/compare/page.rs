//! A comparison as a page, with the charts of both runs side by side.

use std::path::Path;

use minijinja::context;
use serde::Serialize;

use super::text::{how, judged, percent, word};
use super::{Comparison, Judgement};
use crate::error::LabError;
use crate::plot::{self, Look, figure};
use crate::report::{Results, date, mode, render};

/// Most changes on the page.
const MOST: usize = 400;

#[derive(Serialize)]
struct Row {
    class: &'static str,
    word: &'static str,
    change: String,
    exact: Option<f64>,
    a: String,
    b: String,
    column: String,
    place: String,
    row: String,
    by: String,
}

#[derive(Serialize)]
struct Pair {
    experiment: String,
    title: String,
    a: String,
    b: String,
}

/// The page for two folders that were compared.
pub fn page(comparison: &Comparison, a: &Path, b: &Path) -> Result<String, LabError> {
    let changes: Vec<Row> = comparison
        .changes
        .iter()
        .take(MOST)
        .map(|change| Row {
            class: match change.judgement {
                Judgement::Outside => "differs",
                Judgement::Unknown => "undecided",
                Judgement::Within => "holds",
            },
            word: judged(change.judgement),
            change: percent(change),
            exact: change.percent,
            a: figure(change.a),
            b: figure(change.b),
            column: change.column.clone(),
            place: format!("{}/{}", change.experiment, change.table),
            row: change.row.clone(),
            by: change.by.clone(),
        })
        .collect();
    let verdicts: Vec<_> = comparison
        .verdicts
        .iter()
        .map(|turned| {
            context! {
                experiment => turned.experiment, claim => turned.claim,
                a => context! { word => word(turned.a.0), measured => turned.a.1 },
                b => context! { word => word(turned.b.0), measured => turned.b.1 },
            }
        })
        .collect();
    let count =
        |judgement| comparison.changes.iter().filter(|one| one.judgement == judgement).count();
    let sides: Vec<_> = [("A", &comparison.a), ("B", &comparison.b)]
        .into_iter()
        .map(|(name, side)| {
            let (at, mode) = (date(side.at_ms), mode(side.asked.quick));
            context! { name, folder => side.folder, at, mode, version => side.asked.version }
        })
        .collect();
    render(
        include_str!("page.html"),
        context! {
            comparison, sides, changes, verdicts,
            how => how(comparison),
            left_out => comparison.changes.len().saturating_sub(MOST),
            outside => count(Judgement::Outside),
            within => count(Judgement::Within),
            unknown => count(Judgement::Unknown),
            pairs => pairs(a, b)?,
        },
    )
}

/// Charts that both have.
fn pairs(a: &Path, b: &Path) -> Result<Vec<Pair>, LabError> {
    let (first, second) = (Results::read(a)?, Results::read(b)?);
    let look = Look { width: 560.0, alone: false };
    let mut pairs = Vec::new();
    for told in &first.told {
        let Some(other) = second.told.iter().find(|other| other.experiment == told.experiment)
        else {
            continue;
        };
        for chart in &told.findings.charts {
            let Some(twin) = other.findings.charts.iter().find(|twin| twin.name == chart.name)
            else {
                continue;
            };
            pairs.push(Pair {
                experiment: told.title.clone(),
                title: chart.title.clone(),
                a: plot::draw(chart, look)?,
                b: plot::draw(twin, look)?,
            });
        }
    }
    Ok(pairs)
}
