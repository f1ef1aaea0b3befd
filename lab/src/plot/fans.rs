//! Quantile fans, one panel next to the other.

use super::axes::{self, Plot};
use super::canvas::{Anchor, Canvas, Point};
use super::colour::Role;
use super::colour::{self, Colour};
use super::legend::Swatch;
use super::scale::{Reach, Scale, short};
use super::{font, legend, lines, rules};
use crate::result::{Chart, Fan};

const PANEL: f64 = 230.0;

/// Draws fans; returns where the chart ends and how many values were left out.
pub(super) fn paint(canvas: &Canvas, chart: &Chart, panels: &[Fan], top: f64) -> (f64, usize) {
    let mut names: Vec<&str> = Vec::new();
    for name in panels.iter().flat_map(|panel| &panel.names) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let colours = colour::of(&names);
    let entries: Vec<_> = names
        .iter()
        .zip(&colours)
        .enumerate()
        .map(|(n, (name, colour))| (*name, *colour, Swatch::Line(n)))
        .collect();
    let mut top = legend::paint(canvas, &entries, 16.0, top);
    for line in font::wrap(&bands(panels), canvas.width - 32.0, 11.5, false, 3) {
        canvas.label(16.0, top + 7.0, &line, 11.5, Anchor::Start, Role::Muted);
        top += 16.0;
    }
    top = axes::name_above(canvas, &chart.y.label, 16.0, top + 2.0, canvas.width - 32.0);

    let columns = if canvas.width < 560.0 { 1 } else { panels.len().clamp(1, 3) };
    let columns = if panels.len() == 4 && columns == 3 { 2 } else { columns };
    let all: Vec<f64> = panels.iter().flat_map(figures).collect();
    let mut left_out = 0;
    let mut bottom = top;
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let width = (canvas.width - 24.0) / columns as f64;
    if panels.is_empty() {
        let plot = Plot { left: 60.0, top, right: canvas.width - 20.0, bottom: top + PANEL };
        axes::nothing(canvas, plot);
        bottom = plot.bottom;
    }
    for row in panels.chunks(columns) {
        let row_top = bottom;
        let mut left = 12.0;
        for panel in row {
            // Panels are compared, which requires the same scale, unless that makes one of them flat.
            let own: Vec<f64> = figures(panel).collect();
            let most = |values: &[f64]| {
                values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max)
            };
            let values = if chart.y.log || most(&own) * 3.0 >= most(&all) { &all } else { &own };
            let place = (left, row_top, width);
            let (end, missing) = one(canvas, chart, panel, values, place, &|name| {
                let place = names.iter().position(|other| *other == name).unwrap_or(0);
                (colours.get(place).copied().unwrap_or(Role::Ink.colour()), place)
            });
            bottom = bottom.max(end);
            left_out += missing;
            left += width;
        }
    }
    (bottom, left_out)
}

fn figures(panel: &Fan) -> impl Iterator<Item = f64> {
    panel.values.iter().flatten().flatten().copied()
}

/// The quantile of the line: the median, or the middle one; and the pairs of the bands, the widest first. If one side
/// has fewer, the line is the edge of the band.
fn pairs(shares: &[f64]) -> (usize, Vec<(usize, usize)>) {
    let median = shares.iter().position(|share| (share - 0.5).abs() < 1e-9);
    let line = median.unwrap_or(shares.len() / 2);
    let above = shares.len().saturating_sub(line + 1);
    let bands = (0..line.max(above))
        .map(|place| (place.min(line), (shares.len() - 1).saturating_sub(place).max(line)))
        .collect();
    (line, bands)
}

/// The meaning of line and bands.
fn bands(panels: &[Fan]) -> String {
    let Some(shares) =
        panels.first().map(|panel| &panel.shares).filter(|shares| !shares.is_empty())
    else {
        return String::new();
    };
    let name = |place: usize| {
        let share = shares.get(place).copied().unwrap_or(0.5);
        if (share - 0.5).abs() < 1e-9 {
            return "median".to_owned();
        }
        format!("p{}", short((share * 1000.0).round() / 10.0))
    };
    let (line, pairs) = pairs(shares);
    let pairs: Vec<String> =
        pairs.into_iter().map(|(low, high)| format!("{} to {}", name(low), name(high))).collect();
    if pairs.is_empty() {
        format!("Line: {}", name(line))
    } else {
        format!("Line: {}; bands: {}", name(line), pairs.join(", "))
    }
}

fn one(
    canvas: &Canvas,
    chart: &Chart,
    panel: &Fan,
    values: &[f64],
    (left, top, width): (f64, f64, f64),
    look: &dyn Fn(&str) -> (Colour, usize),
) -> (f64, usize) {
    let mut top = top + 4.0;
    for line in font::wrap(&panel.title, width - 24.0, 12.5, true, 2) {
        canvas.bold(left + 4.0, top + 8.0, &line, 12.5);
        top += 17.0;
    }
    let with_rules = rules::figures(&chart.rules, values.iter().copied());
    let y = Scale::new(values.iter().copied().chain(with_rules), chart.y.log, Reach::Figures, 5.0);
    let plot_left = (left + 4.0 + axes::margin(&y.ticks)).min(left + width / 2.0);
    let plot = Plot {
        left: plot_left,
        top: top + 6.0,
        right: left + width - 14.0,
        bottom: top + 6.0 + PANEL,
    };
    let y = y.between(plot.bottom, plot.top);
    let x = lines::across(panel.x.iter().copied(), chart.x.log, false, plot);
    axes::vertical(canvas, plot, &y);
    let bottom = axes::horizontal(canvas, plot, &x, &chart.x.label, false);

    let quantile = |value: &[f64], n: usize| value.get(n).and_then(|value| y.place(*value));
    let (middle, pairs) = pairs(&panel.shares);
    let mut left_out = 0;
    let mut drawn = false;
    for (name, values) in panel.names.iter().zip(&panel.values) {
        let (colour, _) = look(name);
        for (pair, opposite) in pairs.iter().copied() {
            let edge = |n: usize| -> Vec<Point> {
                panel
                    .x
                    .iter()
                    .zip(values)
                    .filter_map(|(at, value)| {
                        // Both ends must exist.
                        quantile(value, pair).and(quantile(value, opposite))?;
                        Some((x.place(*at)?, quantile(value, n)?))
                    })
                    .collect()
            };
            let mut around = edge(pair);
            // Where bands overlap, their edges tell them apart.
            for edge in [&around, &edge(opposite)] {
                canvas.line(edge, colour, 1.0, 0.75);
            }
            if let [(x, low)] = around.as_slice()
                && let [(_, high)] = edge(opposite).as_slice()
            {
                canvas.line(&[(*x, *low), (*x, *high)], colour, 4.0, 0.3);
            }
            around.extend(edge(opposite).into_iter().rev());
            canvas.polygon(&around, colour, if panel.names.len() > 2 { 0.04 } else { 0.10 });
        }
    }
    for (name, values) in panel.names.iter().zip(&panel.values) {
        let (colour, shape) = look(name);
        let line: Vec<Point> = panel
            .x
            .iter()
            .zip(values)
            .filter_map(|(at, value)| Some((x.place(*at)?, quantile(value, middle)?)))
            .collect();
        left_out += panel.x.len().min(values.len()) - line.len();
        canvas.line(&line, colour, 2.0, 1.0);
        for point in &line {
            canvas.marker(*point, shape, 3.2, colour);
            drawn = true;
        }
    }
    rules::across(canvas, plot, &chart.rules, &y, &[]);
    if !drawn {
        axes::nothing(canvas, plot);
    }
    (bottom, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_line_and_bands_go_around_it() {
        assert_eq!(pairs(&[0.05, 0.25, 0.5, 0.75, 0.95]), (2, vec![(0, 4), (1, 3)]));
        assert_eq!(pairs(&[0.25, 0.5, 0.75, 0.95, 0.99]), (1, vec![(0, 4), (1, 3), (1, 2)]));
        assert_eq!(pairs(&[0.1, 0.4, 0.9]), (1, vec![(0, 2)]));
        assert_eq!(pairs(&[0.5]), (0, vec![]));
        assert_eq!(pairs(&[]), (0, vec![]));
    }
}
