//! The frame of a chart: axes, grid, labels.

use super::canvas::{Anchor, Canvas};
use super::colour::Role;
use super::font;
use super::scale::{Scale, Tick};

/// Size of the labels of ticks.
pub(super) const TICK: f64 = 11.5;
/// Size of the labels of axes.
pub(super) const LABEL: f64 = 12.0;

/// The area of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plot {
    /// Left edge.
    pub(super) left: f64,
    /// Top edge.
    pub(super) top: f64,
    /// Right edge.
    pub(super) right: f64,
    /// Bottom edge.
    pub(super) bottom: f64,
}

impl Plot {
    /// Its width.
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }
}

/// Width of the labels of a vertical axis.
pub(super) fn margin(ticks: &[Tick]) -> f64 {
    let labels: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
    font::widest(&labels, TICK) + 8.0
}

/// The name of the value axis, above it; returns where it ends.
pub(super) fn name_above(canvas: &Canvas, text: &str, x: f64, top: f64, room: f64) -> f64 {
    let mut y = top;
    for line in font::wrap(text, room, LABEL, false, 2) {
        canvas.label(x, y + 8.0, &line, LABEL, Anchor::Start, Role::Muted);
        y += 16.0;
    }
    y + 5.0
}

/// Grid and labels of a vertical axis.
pub(super) fn vertical(canvas: &Canvas, plot: Plot, scale: &Scale) {
    for tick in &scale.ticks {
        let Some(y) = scale.place(tick.at) else { continue };
        let line = [(plot.left, y), (plot.right, y)];
        if tick.at == 0.0 && !scale.is_log() {
            canvas.line(&line, Role::Axis.colour(), 1.0, 1.0);
        } else {
            let opacity = if tick.label.is_empty() { 0.5 } else { 1.0 };
            canvas.line(&line, Role::Grid.colour(), 1.0, opacity);
        }
        canvas.label(plot.left - 7.0, y, &tick.label, TICK, Anchor::End, Role::Muted);
    }
}

/// Ticks, labels and name of a horizontal axis below the plot, optionally with a grid; returns where they end.
pub(super) fn horizontal(
    canvas: &Canvas,
    plot: Plot,
    scale: &Scale,
    name: &str,
    grid: bool,
) -> f64 {
    if !grid {
        canvas.line(
            &[(plot.left, plot.bottom), (plot.right, plot.bottom)],
            Role::Axis.colour(),
            1.0,
            1.0,
        );
    }
    let mut free = f64::NEG_INFINITY;
    for tick in &scale.ticks {
        let Some(x) = scale.place(tick.at) else { continue };
        if grid {
            let zero = tick.at == 0.0 && !scale.is_log();
            let role = if zero { Role::Axis } else { Role::Grid };
            let opacity = if tick.label.is_empty() { 0.5 } else { 1.0 };
            canvas.line(&[(x, plot.top), (x, plot.bottom)], role.colour(), 1.0, opacity);
        } else {
            let length = if tick.label.is_empty() { 3.0 } else { 5.0 };
            canvas.line(
                &[(x, plot.bottom), (x, plot.bottom + length)],
                Role::Axis.colour(),
                1.0,
                1.0,
            );
        }
        let half = font::width(&tick.label, TICK, false) / 2.0;
        if !tick.label.is_empty() && x - half > free {
            // The last label must stay on the paper.
            let middle = x.min(canvas.width - half - 1.0);
            canvas.label(
                middle,
                plot.bottom + 15.0,
                &tick.label,
                TICK,
                Anchor::Middle,
                Role::Muted,
            );
            free = x + half + 5.0;
        }
    }
    let mut y = plot.bottom + 26.0;
    for line in font::wrap(name, plot.width().max(120.0), LABEL, false, 2) {
        let half = font::width(&line, LABEL, false) / 2.0;
        let middle = f64::midpoint(plot.left, plot.right).min(canvas.width - half - 2.0);
        canvas.label(middle, y + 8.0, &line, LABEL, Anchor::Middle, Role::Muted);
        y += 16.0;
    }
    y + 4.0
}

/// Says that there is nothing to draw.
pub(super) fn nothing(canvas: &Canvas, plot: Plot) {
    let (x, y) = (f64::midpoint(plot.left, plot.right), f64::midpoint(plot.top, plot.bottom));
    canvas.label(x, y, "nothing was measured", 13.0, Anchor::Middle, Role::Muted);
}
