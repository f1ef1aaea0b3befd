//! Legends: as many columns as fit, with unshortened names.

use super::canvas::{Anchor, Canvas};
use super::colour::Colour;
use super::colour::Role;
use super::font;

const SIZE: f64 = 12.0;
const SWATCH: f64 = 30.0;

/// The mark of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swatch {
    /// A line with a marker of this shape.
    Line(usize),
    /// A filled area.
    Area,
}

/// Draws a legend from the top; returns where it ends.
pub(super) fn paint(
    canvas: &Canvas,
    entries: &[(&str, Colour, Swatch)],
    left: f64,
    top: f64,
) -> f64 {
    let room = canvas.width - left - 16.0;
    let names: Vec<&str> = entries.iter().map(|(name, ..)| *name).collect();
    let widest = font::widest(&names, SIZE) + SWATCH + 22.0;
    let sum: f64 = names.iter().map(|name| font::width(name, SIZE, false) + SWATCH + 22.0).sum();
    let columns = if sum <= room { usize::MAX } else { columns(room, widest) };
    let mut y = top;
    for row in entries.chunks(columns.min(entries.len().max(1))) {
        let mut x = left;
        let mut lines_most = 1;
        for (name, colour, swatch) in row {
            let middle = y + 9.0;
            match swatch {
                Swatch::Line(shape) => {
                    canvas.line(&[(x, middle), (x + 22.0, middle)], *colour, 2.2, 1.0);
                    canvas.marker((x + 11.0, middle), *shape, 3.6, *colour);
                }
                Swatch::Area => canvas.rect([x, middle - 5.5, 20.0, 11.0], *colour, 1.0),
            }
            let lines = font::wrap(name, room - SWATCH, SIZE, false, 3);
            for (place, line) in (0_u8..).zip(&lines) {
                let y = middle + f64::from(place) * 15.0;
                canvas.label(x + SWATCH, y, line, SIZE, Anchor::Start, Role::Ink);
            }
            lines_most = lines_most.max(lines.len());
            x += if columns == usize::MAX {
                font::width(name, SIZE, false) + SWATCH + 22.0
            } else {
                widest
            };
        }
        y += 4.0 + 15.0 * f64::from(u8::try_from(lines_most).unwrap_or(3));
    }
    if entries.is_empty() { top } else { y + 4.0 }
}

fn columns(room: f64, widest: f64) -> usize {
    (1..8_u8).rev().find(|count| f64::from(*count) * widest <= room + 22.0).map_or(1, usize::from)
}
