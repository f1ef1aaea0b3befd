//! Lines with intervals, and steps (distributions, sorted times).

use super::axes::{self, Plot};
use super::canvas::{Canvas, Point};
use super::legend::Swatch;
use super::scale::{Reach, Scale, drawable};
use super::{colour, font, legend, rules};
use crate::result::{Chart, Series};

/// Draws lines, or steps; returns where the chart ends and how many values were left out.
pub(super) fn paint(
    canvas: &Canvas,
    chart: &Chart,
    series: &[Series],
    steps: bool,
    top: f64,
) -> (f64, usize) {
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    let colours = colour::of(&names);
    let mut top = top;
    if series.len() > 1 || names.iter().any(|name| !name.is_empty()) {
        let entries: Vec<_> = names
            .iter()
            .zip(&colours)
            .enumerate()
            .map(|(n, (name, colour))| (*name, *colour, Swatch::Line(n)))
            .collect();
        top = legend::paint(canvas, &entries, 16.0, top);
    }
    top = axes::name_above(canvas, &chart.y.label, 16.0, top, canvas.width - 32.0);

    let x_values = || series.iter().flat_map(|series| series.points.iter().map(|point| point[0]));
    let y_values = || {
        let points = series.iter().flat_map(|series| series.points.iter().map(|point| point[1]));
        points.chain(series.iter().flat_map(|series| series.band.iter().flatten().copied()))
    };
    let height = (canvas.width * 0.42).clamp(260.0, 400.0);
    let with_rules = rules::figures(&chart.rules, y_values());
    let y = Scale::new(y_values().chain(with_rules), chart.y.log, Reach::Figures, 6.0);
    let left = (16.0 + axes::margin(&y.ticks)).min(canvas.width / 2.0);
    let plot =
        Plot { left, top: top + 4.0, right: canvas.width - 20.0, bottom: top + 4.0 + height };
    let y = y.between(plot.bottom, plot.top);
    let x = across(x_values(), chart.x.log, steps, plot);

    axes::vertical(canvas, plot, &y);
    let bottom = axes::horizontal(canvas, plot, &x, &chart.x.label, false);
    let mut left_out = 0;
    let mut drawn = 0;
    for (series, colour) in series.iter().zip(&colours) {
        // Intervals first, so that they hide no line.
        if series.band.len() == series.points.len() {
            for part in runs(series.points.iter().zip(&series.band).map(|(point, [low, high])| {
                // An interval that reaches below a logarithmic axis is drawn to its end.
                let low = if chart.y.log && *low <= 0.0 { y.low } else { *low };
                Some((x.place(point[0])?, y.place(low)?, y.place(*high)?))
            })) {
                let there = part.iter().map(|(x, low, _)| (*x, *low));
                let back = part.iter().rev().map(|(x, _, high)| (*x, *high));
                let around: Vec<Point> = there.chain(back).collect();
                canvas.polygon(&around, *colour, 0.16);
                if let [(x, low, high)] = part.as_slice() {
                    canvas.line(&[(*x, *low), (*x, *high)], *colour, 1.5, 0.6);
                }
            }
        }
    }
    let mut data: Vec<[f64; 4]> = Vec::new();
    for (shape, (series, colour)) in series.iter().zip(&colours).enumerate() {
        let places =
            series.points.iter().map(|point| Some((x.place(point[0])?, y.place(point[1])?)));
        let parts = runs(places);
        let seen: usize = parts.iter().map(Vec::len).sum();
        drawn += seen;
        left_out += series.points.len() - seen;
        for (number, part) in parts.iter().enumerate() {
            let path = if steps { stairs(part) } else { part.clone() };
            canvas.line(&path, *colour, 2.0, 1.0);
            data.extend(path.windows(2).map(|pair| {
                let ((x, y), (right, bottom)) = (pair[0], pair[1]);
                [x.min(right), y.min(bottom), x.max(right), y.max(bottom)]
            }));
            let marked = if steps { marks(part, shape) } else { sparse(part) };
            for point in marked {
                canvas.marker(point, shape, 3.4, *colour);
            }
            if part.len() == 1 && (steps || number > 0) {
                canvas.marker(part[0], shape, 3.4, *colour);
            }
        }
    }
    rules::across(canvas, plot, &chart.rules, &y, &data);
    if drawn == 0 {
        axes::nothing(canvas, plot);
    }
    (bottom, left_out)
}

/// The horizontal axis: with ticks at the values themselves if these are few, such as the sizes of a pool.
pub(super) fn across(
    values: impl Iterator<Item = f64>,
    log: bool,
    tight: bool,
    plot: Plot,
) -> Scale {
    let mut values: Vec<f64> = values.filter(|value| drawable(*value, log)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let wanted = (plot.width() / 90.0).clamp(2.0, 10.0);
    let few = values.len() <= 10;
    let reach = if tight || few { Reach::Tight } else { Reach::Figures };
    let scale = Scale::new(values.iter().copied(), log, reach, wanted);
    if few && values.len() > 1 && !tight {
        let scale = scale.exactly(values[0], values[values.len() - 1]).padded(0.03);
        let scale = scale.between(plot.left, plot.right);
        return scale.ticks_at(&values, |label| font::width(label, axes::TICK, false));
    }
    scale.between(plot.left, plot.right)
}

/// The stretches without gaps.
fn runs<T>(places: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let mut parts = vec![Vec::new()];
    for place in places {
        match (place, parts.last_mut()) {
            (Some(place), Some(part)) => part.push(place),
            _ => parts.push(Vec::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Horizontal first, then vertical.
fn stairs(points: &[Point]) -> Vec<Point> {
    let mut path: Vec<Point> = Vec::with_capacity(points.len() * 2);
    for point in points {
        if let Some(last) = path.last().copied() {
            path.push((point.0, last.1));
        }
        path.push(*point);
    }
    path
}

/// All points, if they are few enough to be seen separately.
fn sparse(points: &[Point]) -> Vec<Point> {
    let apart =
        points.windows(2).all(|pair| (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1) > 7.0);
    if points.len() <= 60 && (apart || points.len() <= 12) {
        points.to_vec()
    } else {
        marks(points, 0)
    }
}

/// A few points along the line, at different places for each, so that lines that coincide can be told apart.
fn marks(points: &[Point], shape: usize) -> Vec<Point> {
    let many = points.len();
    if many < 2 {
        return Vec::new();
    }
    let share = 7 * many;
    (0..7)
        .filter_map(|n| {
            points.get((n * many + (shape % 5) * many / 5 + many / 10) * many / share.max(1))
        })
        .copied()
        .collect()
}
