//! Charts as SVG and PNG.
//!
//! A chart is laid out here, by the measures of the font that the PNG uses, and written as SVG. Values that cannot be
//! drawn (missing, NaN, infinite, not above 0 on a logarithmic axis) are left out, and the chart says how many.

mod axes;
mod bars;
mod canvas;
mod colour;
mod fans;
mod font;
mod heat;
mod legend;
mod lines;
mod rules;
mod scale;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::error::LabError;
use crate::result::{Chart, Marks};
use canvas::Canvas;
use colour::Role;

pub use colour::{NEUTRALS, for_dark, series_colours};
pub use scale::figure;
pub(crate) use scale::rough;

/// Style of a drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Width in pixels; the height follows from the contents.
    pub width: f64,
    /// Whether to draw heading and paper: not on a page that has both already.
    pub alone: bool,
}

impl Look {
    /// For a separate file.
    pub const FILE: Self = Self { width: 960.0, alone: true };
    /// Inside a page on a wide screen.
    pub const WIDE: Self = Self { width: 900.0, alone: false };
    /// Inside a page on a phone.
    pub const NARROW: Self = Self { width: 400.0, alone: false };
}

/// Draws a chart.
pub fn svg(chart: &Chart) -> Result<String, LabError> {
    draw(chart, Look::FILE)
}

/// Draws a chart in this style.
pub fn draw(chart: &Chart, look: Look) -> Result<String, LabError> {
    // Laid out once to find its height, then drawn.
    let height = paint(&Canvas::new(look.width), chart, look);
    let canvas = Canvas::new(look.width);
    if look.alone {
        canvas.rect([0.0, 0.0, look.width, height], Role::Paper.colour(), 1.0);
    }
    paint(&canvas, chart, look);
    // On a page, the drawing is aligned with the text.
    let left = if look.alone { 0.0 } else { 14.0 };
    Ok(canvas.finish(left, height, &describe(chart)))
}

/// The chart in words, for readers who cannot see it.
pub fn describe(chart: &Chart) -> String {
    let names = |names: &mut dyn Iterator<Item = &str>| names.collect::<Vec<_>>().join(", ");
    let what = match &chart.marks {
        Marks::Lines { series } | Marks::Steps { series } => {
            names(&mut series.iter().map(|series| series.name.as_str()))
        }
        Marks::Fans { panels } => names(&mut panels.iter().map(|panel| panel.title.as_str())),
        Marks::Heat { rows, .. } => names(&mut rows.iter().map(String::as_str)),
        Marks::Bars { categories, .. } => names(&mut categories.iter().map(String::as_str)),
    };
    format!("{}. {} against {}: {what}", chart.title, chart.y.label, chart.x.label)
}

/// Converts a picture to PNG, at twice the size, for screens.
pub fn png(svg: &str) -> Result<Vec<u8>, LabError> {
    let options = Options { fontdb: font::database(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(LabError::failed)?;
    let size = tree.size().to_int_size();
    let (width, height) = (size.width().saturating_mul(2), size.height().saturating_mul(2));
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| LabError::failed(format!("a picture of {width} x {height} is too large")))?;
    resvg::render(&tree, Transform::from_scale(2.0, 2.0), &mut pixels.as_mut());
    pixels.encode_png().map_err(LabError::failed)
}

/// Draws everything; returns its height.
fn paint(canvas: &Canvas, chart: &Chart, look: Look) -> f64 {
    let mut top = if look.alone { 16.0 } else { 4.0 };
    if look.alone {
        for line in font::wrap(&chart.title, look.width - 32.0, 17.0, true, 3) {
            canvas.bold(16.0, top + 11.0, &line, 17.0);
            top += 23.0;
        }
        top += 6.0;
    }
    let (bottom, left_out) = match &chart.marks {
        Marks::Lines { series } => lines::paint(canvas, chart, series, false, top),
        Marks::Steps { series } => lines::paint(canvas, chart, series, true, top),
        Marks::Fans { panels } => fans::paint(canvas, chart, panels, top),
        Marks::Heat { rows, columns, values } => {
            heat::paint(canvas, chart, rows, columns, values, top)
        }
        Marks::Bars { categories, parts, grouped } => {
            let bars = bars::Bars { categories, parts, grouped: *grouped };
            bars::paint(canvas, chart, &bars, top)
        }
    };
    let mut bottom = bottom;
    if left_out > 0 {
        let plural = if left_out == 1 { "figure" } else { "figures" };
        let text = format!("{left_out} {plural} cannot be drawn on this axis and were left out");
        canvas.label(16.0, bottom + 10.0, &text, 11.0, canvas::Anchor::Start, Role::Muted);
        bottom += 20.0;
    }
    bottom + if look.alone { 12.0 } else { 4.0 }
}
