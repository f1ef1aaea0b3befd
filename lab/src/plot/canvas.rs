//! A canvas in pixels; SVG gets quarters of a pixel as whole numbers.

use std::cell::RefCell;
use std::fmt::{self, Display};

use outlast_svg::{Picture, Points};

use super::colour::{Colour, Role};

/// Units of the picture per pixel: whole numbers are shorter, and the difference cannot be seen.
const FINE: f64 = 4.0;

/// A point in pixels, from the left and from the top.
pub(super) type Point = (f64, f64);

/// Which end of a text its position means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The start.
    Start,
    /// The middle.
    Middle,
    /// The end.
    End,
}

/// Shapes of markers, which tell lines apart without colour.
pub(super) const MARKERS: usize = 5;

/// A canvas.
pub(super) struct Canvas {
    picture: RefCell<Picture>,
    /// Width in pixels.
    pub(super) width: f64,
}

/// Converts to units of the picture. Nothing is drawn far outside the paper, so the limits are never reached.
fn fine(at: f64) -> i32 {
    let at = if at.is_finite() { (at * FINE).round().clamp(-400_000.0, 400_000.0) } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, reason = "a whole number within the limits")]
    let at = at as i32;
    at
}

fn pixels((x, y): Point) -> (i32, i32) {
    (fine(x), fine(y))
}

impl Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hand {
    Plain,
    Bold,
    /// Rotated, read upwards.
    Upwards,
}

impl Canvas {
    /// A canvas of this width.
    pub(super) fn new(width: f64) -> Self {
        Self { picture: RefCell::default(), width }
    }

    /// The picture, with a head that scales it and describes it. `left` is cut off.
    pub(super) fn finish(self, left: f64, height: f64, description: &str) -> String {
        let box_ = format!("{} 0 {} {}", fine(left), fine(self.width - left), fine(height));
        self.picture.into_inner().finish(&[
            ("width", &(self.width - left)),
            ("height", &height),
            ("viewBox", &box_),
            ("role", &"img"),
            ("aria-label", &description),
        ])
    }

    fn put(&self, name: &str, attributes: outlast_svg::Attributes<'_>) {
        self.picture.borrow_mut().shape(name, attributes);
    }

    /// A line through points.
    pub(super) fn line(&self, points: &[Point], colour: Colour, width: f64, opacity: f64) {
        if points.len() < 2 {
            return;
        }
        self.put(
            "polyline",
            &[
                ("fill", &"none"),
                ("opacity", &opacity),
                ("stroke", &colour),
                ("stroke-width", &fine(width)),
                ("points", &Points(&thinned(points))),
            ],
        );
    }

    /// A dashed straight line.
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
        let points = thinned(points);
        let points = Points(&points);
        self.put("polygon", &[("opacity", &opacity), ("fill", &colour), ("points", &points)]);
    }

    /// A filled rectangle: left, top, width, height.
    pub(super) fn rect(&self, [x, y, width, height]: [f64; 4], colour: Colour, opacity: f64) {
        let ((left, top), (right, bottom)) = (pixels((x, y)), pixels((x + width, y + height)));
        self.put(
            "rect",
            &[
                ("x", &left.min(right)),
                ("y", &top.min(bottom)),
                ("width", &left.abs_diff(right)),
                ("height", &top.abs_diff(bottom)),
                ("opacity", &opacity),
                ("fill", &colour),
            ],
        );
    }

    /// A marker of one of the shapes.
    pub(super) fn marker(&self, (x, y): Point, shape: usize, radius: f64, colour: Colour) {
        let around = |corners: &[Point]| {
            let corners: Vec<Point> =
                corners.iter().map(|(dx, dy)| (x + dx * radius, y + dy * radius)).collect();
            self.polygon(&corners, colour, 1.0);
        };
        match shape % MARKERS {
            0 => self.put(
                "circle",
                &[("cx", &fine(x)), ("cy", &fine(y)), ("r", &fine(radius)), ("fill", &colour)],
            ),
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

    /// A text whose middle is at this height.
    pub(super) fn label(&self, x: f64, y: f64, text: &str, size: f64, anchor: Anchor, role: Role) {
        self.text((x, y), text, size, anchor, role, Hand::Plain);
    }

    /// A bold text that starts here.
    pub(super) fn bold(&self, x: f64, y: f64, text: &str, size: f64) {
        let (anchor, role) = (Anchor::Start, Role::Ink);
        self.text((x, y), text, size, anchor, role, Hand::Bold);
    }

    /// A rotated text, read upwards, that starts at the bottom.
    pub(super) fn upwards(&self, x: f64, y: f64, text: &str, size: f64, role: Role) {
        self.text((x, y), text, size, Anchor::Start, role, Hand::Upwards);
    }

    fn text(&self, (x, y): Point, text: &str, size: f64, anchor: Anchor, role: Role, hand: Hand) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        // Half an ex-height centres small letters; digits and capitals look right a little lower.
        let lower = size * 0.09;
        let (x, y) = pixels(if hand == Hand::Upwards { (x + lower, y) } else { (x, y + lower) });
        let turn = format!("rotate(270, {x}, {y})");
        let (colour, size) = (role.colour(), fine(size));
        let mut attributes: Vec<(&str, &dyn Display)> = vec![
            ("x", &x),
            ("y", &y),
            ("dy", &"0.5ex"),
            ("text-anchor", &anchor),
            ("font-family", &FONTS),
            ("font-size", &size),
            ("fill", &colour),
        ];
        match hand {
            Hand::Plain => {}
            Hand::Bold => attributes.push(("font-weight", &"bold")),
            Hand::Upwards => attributes.push(("transform", &turn)),
        }
        self.picture.borrow_mut().text(&attributes, text);
    }
}

/// Without the embedded font, browsers use the next of these.
const FONTS: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// Drops points that cannot be told from their neighbours.
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
