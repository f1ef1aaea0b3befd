//! Paper to draw on: pixels as fractions, plotters underneath.

use std::cell::RefCell;

use plotters::coord::Shift;
use plotters::element::{Circle, Drawable, PathElement, PointCollection, Polygon, Rectangle, Text};
use plotters::prelude::{DrawingArea, IntoDrawingArea, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle, TextStyle,
};

use super::colour::Colour;
use crate::error::LabError;

/// plotters knows whole pixels only; ours are made of so many of its.
const FINE: f64 = 4.0;

/// A point in pixels, from the left and from the top.
pub(super) type Point = (f64, f64);

/// What a neutral colour is for. A page may show each in another colour in the dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Text.
    Ink,
    /// Less important text.
    Muted,
    /// Axes.
    Axis,
    /// Lines behind the data.
    Grid,
    /// The background.
    Paper,
    /// Text on dark cells; the same in the dark.
    OnDark,
    /// Text on light cells; the same in the dark.
    OnLight,
}

impl Role {
    /// The colour on white paper.
    pub(super) fn colour(self) -> Colour {
        match self {
            Self::Ink => Colour(0x1B, 0x1F, 0x24),
            Self::Muted => Colour(0x57, 0x60, 0x6A),
            Self::Axis => Colour(0x8C, 0x95, 0x9F),
            Self::Grid => Colour(0xE4, 0xE7, 0xEB),
            Self::Paper => Colour(0xFF, 0xFF, 0xFF),
            Self::OnDark => Colour(0xFD, 0xFD, 0xFE),
            Self::OnLight => Colour(0x0B, 0x0D, 0x10),
        }
    }
}

/// Which end of a text is where it is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// Shapes of markers: they tell lines apart without colour.
pub(super) const MARKERS: usize = 5;

/// Paper.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    /// Width in pixels.
    pub(super) width: f64,
    failed: RefCell<Option<String>>,
}

/// plotters' pixel. Nothing is drawn far outside the paper, so the limits are never seen.
fn fine(at: f64) -> i32 {
    let at = if at.is_finite() { (at * FINE).round().clamp(-400_000.0, 400_000.0) } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, reason = "a whole number within the limits")]
    let at = at as i32;
    at
}

fn pixels((x, y): Point) -> (i32, i32) {
    (fine(x), fine(y))
}

fn rgba(Colour(red, green, blue): Colour, opacity: f64) -> RGBAColor {
    RGBColor(red, green, blue).mix(opacity)
}

impl<'a> Canvas<'a> {
    /// Paper of this size.
    pub(super) fn new(text: &'a mut String, width: f64, height: f64) -> Self {
        let size = (fine(width).unsigned_abs(), fine(height).unsigned_abs());
        let area = SVGBackend::with_string(text, size).into_drawing_area();
        Self { area, width, failed: RefCell::new(None) }
    }

    /// Ends the drawing.
    pub(super) fn finish(self) -> Result<(), LabError> {
        if let Err(error) = self.area.present() {
            self.note(&error);
        }
        self.failed.into_inner().map_or(Ok(()), |error| Err(LabError::failed(error)))
    }

    fn note(&self, error: &dyn std::fmt::Display) {
        self.failed.borrow_mut().get_or_insert_with(|| error.to_string());
    }

    fn put<E>(&self, element: &E)
    where
        for<'b> &'b E: PointCollection<'b, (i32, i32)>,
        E: Drawable<SVGBackend<'a>>,
    {
        if let Err(error) = self.area.draw(element) {
            self.note(&error);
        }
    }

    /// A line through points.
    pub(super) fn line(&self, points: &[Point], colour: Colour, width: f64, opacity: f64) {
        if points.len() < 2 {
            return;
        }
        let style = ShapeStyle {
            color: rgba(colour, opacity),
            filled: false,
            stroke_width: fine(width).unsigned_abs(),
        };
        self.put(&PathElement::new(thinned(points), style));
    }

    /// A straight line in dashes.
    pub(super) fn dashes(&self, from: Point, to: Point, colour: Colour, width: f64) {
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let length = across.hypot(down);
        let mut done = 0.0;
        while done < length.min(4000.0) {
            let (begin, end) = (done / length, (done + 5.0).min(length) / length);
            let at = |share: f64| (from.0 + across * share, from.1 + down * share);
            self.line(&[at(begin), at(end)], colour, width, 1.0);
            done += 9.0;
        }
    }

    /// A filled shape.
    pub(super) fn polygon(&self, points: &[Point], colour: Colour, opacity: f64) {
        if points.len() < 3 {
            return;
        }
        self.put(&Polygon::new(thinned(points), rgba(colour, opacity).filled()));
    }

    /// A filled rectangle: left, top, width, height.
    pub(super) fn rect(&self, [x, y, width, height]: [f64; 4], colour: Colour, opacity: f64) {
        let corners = [pixels((x, y)), pixels((x + width, y + height))];
        self.put(&Rectangle::new(corners, rgba(colour, opacity).filled()));
    }

    /// A marker of one of the shapes.
    pub(super) fn marker(&self, (x, y): Point, shape: usize, radius: f64, colour: Colour) {
        let around = |corners: &[Point]| {
            let corners: Vec<Point> =
                corners.iter().map(|(dx, dy)| (x + dx * radius, y + dy * radius)).collect();
            self.polygon(&corners, colour, 1.0);
        };
        match shape % MARKERS {
            0 => self.put(&Circle::new(
                pixels((x, y)),
                fine(radius).unsigned_abs(),
                rgba(colour, 1.0).filled(),
            )),
            1 => self.rect(
                [x - radius * 0.9, y - radius * 0.9, radius * 1.8, radius * 1.8],
                colour,
                1.0,
            ),
            2 => around(&[(0.0, -1.25), (1.15, 0.85), (-1.15, 0.85)]),
            3 => around(&[(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)]),
            _ => around(&[(0.0, 1.25), (1.15, -0.85), (-1.15, -0.85)]),
        }
    }

    /// A text, its middle at this height.
    pub(super) fn label(&self, x: f64, y: f64, text: &str, size: f64, anchor: Anchor, role: Role) {
        self.text((x, y), text, size, anchor, role, FontStyle::Normal, FontTransform::None);
    }

    /// A text in bold that begins here.
    pub(super) fn bold(&self, x: f64, y: f64, text: &str, size: f64) {
        let (anchor, role) = (Anchor::Start, Role::Ink);
        self.text((x, y), text, size, anchor, role, FontStyle::Bold, FontTransform::None);
    }

    /// A text that is read upwards; it begins at the bottom.
    pub(super) fn upwards(&self, x: f64, y: f64, text: &str, size: f64, role: Role) {
        let (anchor, turn) = (Anchor::Start, FontTransform::Rotate270);
        self.text((x, y), text, size, anchor, role, FontStyle::Normal, turn);
    }

    #[expect(clippy::too_many_arguments, reason = "the three functions above give them names")]
    fn text(
        &self,
        (x, y): Point,
        text: &str,
        size: f64,
        anchor: Anchor,
        role: Role,
        style: FontStyle,
        turn: FontTransform,
    ) {
        if text.is_empty() {
            return;
        }
        let h_pos = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        // plotters centres the small letters; figures and capitals look right a little lower. It also divides sizes by 1.24.
        let lower = size * 0.09;
        let at =
            if matches!(turn, FontTransform::Rotate270) { (x + lower, y) } else { (x, y + lower) };
        let font = ("sans-serif", size * FINE * 1.24).into_font().style(style).transform(turn);
        let colour = rgba(role.colour(), 1.0);
        let style = TextStyle::from(font).color(&colour).pos(Pos::new(h_pos, VPos::Center));
        // Characters that XML 1.0 cannot have (section 2.2) would make the picture unreadable.
        let text: String = text
            .chars()
            .map(|c| if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') { ' ' } else { c })
            .collect();
        self.put(&Text::new(text, pixels(at), style));
    }
}

/// Without the points that nobody can tell from their neighbours.
fn thinned(points: &[Point]) -> Vec<(i32, i32)> {
    let mut thin: Vec<(i32, i32)> = Vec::new();
    for point in points.iter().copied().map(pixels) {
        if let [.., before, last] = thin.as_slice() {
            let level = before.1 == last.1 && last.1 == point.1;
            let upright = before.0 == last.0 && last.0 == point.0;
            if *last == point {
                continue;
            }
            let onward = |a: i32, b: i32, c: i32| (a <= b && b <= c) || (a >= b && b >= c);
            if (level && onward(before.0, last.0, point.0))
                || (upright && onward(before.1, last.1, point.1))
            {
                thin.pop();
            }
        }
        thin.push(point);
    }
    thin
}

/// The picture with a head that scales, that says what it shows, and that names the font.
///
/// `left` is cut off.
pub(super) fn header(text: &str, [left, width, height]: [f64; 3], description: &str) -> String {
    let body = text.split_once('\n').map_or("", |(_, body)| body);
    let mut escaped = String::new();
    for character in description.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    let (from, wide, high) = (fine(left), fine(width - left), fine(height));
    let width = width - left;
    let body = body.replace(
        " font-family=\"sans-serif\"",
        " font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\"",
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"{from} 0 {wide} {high}\" role=\"img\" aria-label=\"{escaped}\">\n{body}"
    )
}
