//! Lines across a chart, such as the MSS, with labels that do not overlap.

use super::axes::Plot;
use super::canvas::{Anchor, Canvas};
use super::colour::Role;
use super::font;
use super::scale::{Scale, drawable, short};
use crate::result::Rule;

const SIZE: f64 = 11.0;

/// The rules' values, for the scale. One that is far beyond the data would flatten it and does not count.
pub(super) fn figures(rules: &[Rule], data: impl Iterator<Item = f64>) -> Vec<f64> {
    let largest =
        data.filter(|value| value.is_finite()).fold(0.0_f64, |most, value| most.max(value.abs()));
    rules
        .iter()
        .map(|rule| rule.at)
        .filter(|at| at.is_finite() && (largest == 0.0 || at.abs() <= largest * 8.0))
        .collect()
}

/// The rule's name with its value, unless the name contains it.
fn named(rule: &Rule) -> String {
    let figure = short(rule.at);
    if rule.label.chars().any(|c| c.is_ascii_digit())
        && rule.label.replace(',', "").contains(&figure.replace(',', ""))
    {
        rule.label.clone()
    } else {
        format!("{} ({figure})", rule.label)
    }
}

fn inside<'a>(rules: &'a [Rule], scale: &'a Scale) -> impl Iterator<Item = (&'a Rule, f64)> {
    rules.iter().filter_map(|rule| {
        let within =
            drawable(rule.at, scale.is_log()) && rule.at >= scale.low && rule.at <= scale.high;
        scale.place(rule.at).filter(|_| within).map(|place| (rule, place))
    })
}

/// Height of the labels above a plot with a horizontal value axis.
pub(super) fn room_above(rules: &[Rule], scale: &Scale, canvas: &Canvas) -> f64 {
    let rows = rows(rules, scale, canvas);
    let most = rows.iter().map(|(_, _, row)| row + 1).max().unwrap_or(0);
    f64::from(most) * 15.0
}

/// Label, its middle, its row from below.
fn rows(rules: &[Rule], scale: &Scale, canvas: &Canvas) -> Vec<(String, f64, u8)> {
    let mut sorted: Vec<(&Rule, f64)> = inside(rules, scale).collect();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut free: Vec<f64> = Vec::new();
    sorted
        .into_iter()
        .map(|(rule, x)| {
            let name = font::wrap(&named(rule), canvas.width - 8.0, SIZE, false, 1).concat();
            let half = font::width(&name, SIZE, false) / 2.0;
            let middle = x.min(canvas.width - half - 3.0).max(half + 16.0);
            let row = free.iter().position(|end| middle - half > *end).unwrap_or_else(|| {
                free.push(0.0);
                free.len() - 1
            });
            if let Some(end) = free.get_mut(row) {
                *end = middle + half + 10.0;
            }
            (name, middle, u8::try_from(row).unwrap_or(u8::MAX))
        })
        .collect()
}

/// Rules for a horizontal value axis: vertical lines, labels above the plot.
pub(super) fn upright(canvas: &Canvas, plot: Plot, rules: &[Rule], scale: &Scale) {
    for (_, x) in inside(rules, scale) {
        canvas.dashes((x, plot.top - 3.0), (x, plot.bottom), Role::Ink.colour(), 1.2);
    }
    for (name, middle, row) in rows(rules, scale, canvas) {
        let y = plot.top - 11.0 - f64::from(row) * 15.0;
        canvas.label(middle, y, &name, SIZE, Anchor::Middle, Role::Ink);
    }
}

/// How much of the data, as boxes from top left to bottom right, a label here would cover.
fn covered(data: &[[f64; 4]], [x, y, width, height]: [f64; 4]) -> usize {
    let hit = |one: &&[f64; 4]| {
        let [left, top, right, bottom] = **one;
        left <= x + width && right >= x && top <= y + height && bottom >= y
    };
    data.iter().filter(hit).count()
}

/// Rules for a vertical value axis: horizontal lines, labels above or below them, at the end where they cover least
/// of the data.
pub(super) fn across(
    canvas: &Canvas,
    plot: Plot,
    rules: &[Rule],
    scale: &Scale,
    data: &[[f64; 4]],
) {
    let mut sorted: Vec<(&Rule, f64)> = inside(rules, scale).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut taken: Vec<f64> = Vec::new();
    for (rule, y) in sorted {
        canvas.dashes((plot.left, y), (plot.right, y), Role::Ink.colour(), 1.2);
        let name = font::wrap(&named(rule), plot.width() - 8.0, SIZE, false, 1).concat();
        let width = font::width(&name, SIZE, false);
        let above = y - 9.0;
        let free = |at: f64, taken: &[f64]| taken.iter().all(|other| (other - at).abs() > 13.0);
        let ends = [plot.right - width - 6.0, plot.left, f64::midpoint(plot.left, plot.right)];
        let (left, at) = ends
            .into_iter()
            .flat_map(|left| [above, y + 10.0, above - 14.0, y + 24.0].map(|at| (left, at)))
            .filter(|(_, at)| free(*at, &taken) && *at > plot.top - 8.0)
            .min_by_key(|(left, at)| covered(data, [*left, at - 7.5, width + 6.0, 15.0]))
            .unwrap_or((ends[0], above));
        taken.push(at);
        canvas.rect([left, at - 7.5, width + 6.0, 15.0], Role::Paper.colour(), 0.85);
        canvas.label(left + 3.0, at, &name, SIZE, Anchor::Start, Role::Ink);
    }
}
