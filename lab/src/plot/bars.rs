//! Bars: parts on top of each other or side by side. They are vertical if the names fit below them, and horizontal
//! otherwise.

use super::axes::{self, LABEL, Plot, TICK};
use super::canvas::{Anchor, Canvas};
use super::colour::Role;
use super::colour::{self, Colour};
use super::legend::Swatch;
use super::scale::{Reach, Scale, drawable, rough, short};
use super::{font, legend, rules};
use crate::result::Chart;

/// Font size of the values at the bars.
const FIGURE: f64 = 11.0;
/// Most bars that are drawn.
const MOST: usize = 400;

/// A text that is drawn after the rules, so that it covers them.
struct Note {
    at: (f64, f64),
    text: String,
    anchor: Anchor,
    role: Role,
    ground: Colour,
}

impl Note {
    fn outside(at: (f64, f64), text: String, anchor: Anchor) -> Self {
        Self { at, text, anchor, role: Role::Ink, ground: Role::Paper.colour() }
    }

    fn inside(at: (f64, f64), text: String, ground: Colour) -> Self {
        Self { at, text, anchor: Anchor::Middle, role: ground.ink(), ground }
    }

    fn paint(&self, canvas: &Canvas) {
        let (x, y) = self.at;
        let width = font::width(&self.text, FIGURE, false) + 4.0;
        let left = match self.anchor {
            Anchor::Start => x - 2.0,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width + 2.0,
        };
        canvas.rect([left, y - 6.5, width, 13.0], self.ground, 0.85);
        canvas.label(x, y, &self.text, FIGURE, self.anchor, self.role);
    }
}

/// The data.
pub(super) struct Bars<'a> {
    /// Names of the bars.
    pub(super) categories: &'a [String],
    /// Parts: name, and the value for each category.
    pub(super) parts: &'a [(String, Vec<f64>)],
    /// Whether the parts are side by side.
    pub(super) grouped: bool,
}

/// A part of a bar: start, end, colour, and its value.
struct Piece {
    from: f64,
    to: f64,
    colour: Colour,
    /// Position side by side.
    lane: usize,
    value: f64,
}

impl Bars<'_> {
    fn lanes(&self) -> usize {
        if self.grouped { self.parts.len().max(1) } else { 1 }
    }

    fn value(&self, part: usize, category: usize) -> Option<f64> {
        self.parts.get(part).and_then(|(_, values)| values.get(category)).copied()
    }

    /// The pieces of one bar, and the number of values that cannot be drawn.
    fn pieces(
        &self,
        category: usize,
        colours: &[Colour],
        log: bool,
        low: f64,
    ) -> (Vec<Piece>, usize) {
        let (mut up, mut down) = (0.0, 0.0);
        let mut left_out = 0;
        let mut pieces = Vec::new();
        for part in 0..self.parts.len() {
            let Some(value) = self.value(part, category) else { continue };
            if !drawable(value, false) || (log && value <= 0.0) {
                left_out += 1;
                continue;
            }
            let colour = colours.get(if self.parts.len() == 1 { category } else { part });
            let colour = colour.copied().unwrap_or(Role::Muted.colour());
            if self.grouped {
                let from = if log { low } else { 0.0 };
                pieces.push(Piece { from, to: value, colour, lane: part, value });
                continue;
            }
            let sum = if value < 0.0 { &mut down } else { &mut up };
            let from = if log && *sum == 0.0 { low } else { *sum };
            *sum += value;
            pieces.push(Piece { from, to: *sum, colour, lane: 0, value });
        }
        (pieces, left_out)
    }

    fn ends(&self, log: bool) -> Vec<f64> {
        (0..self.categories.len())
            .flat_map(|category| self.pieces(category, &[], log, 0.0).0)
            .map(|piece| piece.to)
            .collect()
    }
}

/// Draws bars; returns where the chart ends and how many values were left out.
pub(super) fn paint(canvas: &Canvas, chart: &Chart, bars: &Bars<'_>, top: f64) -> (f64, usize) {
    let categories = &bars.categories[..bars.categories.len().min(MOST)];
    let bars = &Bars { categories, parts: bars.parts, grouped: bars.grouped };
    let names: Vec<&str> = bars.parts.iter().map(|(name, _)| name.as_str()).collect();
    let mut top = top;
    let colours = if bars.parts.len() == 1 {
        colour::of_bars(bars.categories)
    } else {
        let colours = colour::of(&names);
        let entries: Vec<_> = names
            .iter()
            .zip(&colours)
            .map(|(name, colour)| (*name, *colour, Swatch::Area))
            .collect();
        top = legend::paint(canvas, &entries, 16.0, top);
        colours
    };
    let ends = bars.ends(chart.y.log);
    let with_rules = rules::figures(&chart.rules, ends.iter().copied());
    let values = || ends.iter().copied().chain(with_rules.iter().copied());

    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let (count, lanes) = (bars.categories.len().max(1) as f64, bars.lanes() as f64);
    let slot = (canvas.width - 80.0) / count;
    let fits = slot >= 26.0 + 14.0 * (lanes - 1.0)
        && bars.categories.iter().all(|name| {
            let words =
                name.split_whitespace().all(|word| font::width(word, TICK, false) <= slot - 8.0);
            words && font::wrap(name, slot - 8.0, TICK, false, 4).len() <= 3
        });
    if fits {
        standing(canvas, chart, bars, &colours, values, top)
    } else {
        lying(canvas, chart, bars, &colours, values, top)
    }
}

fn standing<I: Iterator<Item = f64>>(
    canvas: &Canvas,
    chart: &Chart,
    bars: &Bars<'_>,
    colours: &[Colour],
    values: impl Fn() -> I,
    top: f64,
) -> (f64, usize) {
    let top = axes::name_above(canvas, &chart.y.label, 16.0, top, canvas.width - 32.0);
    let y = Scale::new(values(), chart.y.log, Reach::Zero, 6.0);
    // Room for values below bars that point down.
    let y = if y.low < 0.0 { y.padded(0.05) } else { y };
    let height = (canvas.width * 0.4).clamp(240.0, 360.0);
    let left = (16.0 + axes::margin(&y.ticks)).min(canvas.width / 2.0);
    let plot =
        Plot { left, top: top + 14.0, right: canvas.width - 16.0, bottom: top + 14.0 + height };
    let y = y.between(plot.bottom, plot.top);
    axes::vertical(canvas, plot, &y);
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let (slot, lanes) = (plot.width() / bars.categories.len().max(1) as f64, bars.lanes() as f64);
    let broad = (slot * 0.72).min(90.0 * lanes);
    let lane = broad / lanes;
    let mut left_out = 0;
    let mut lines_most = 0;
    let mut notes: Vec<Note> = Vec::new();
    let digits = digits(bars, lane - 3.0);
    let mut data: Vec<[f64; 4]> = Vec::new();
    for (category, name) in bars.categories.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let middle = plot.left + slot * (category as f64 + 0.5);
        let (pieces, missing) = bars.pieces(category, colours, chart.y.log, y.low);
        left_out += missing;
        let mut highest = f64::INFINITY;
        let mut lowest = f64::NEG_INFINITY;
        for piece in &pieces {
            let (Some(from), Some(to)) = (y.place(piece.from), y.place(piece.to)) else { continue };
            #[expect(clippy::cast_precision_loss, reason = "a handful")]
            let x = middle - broad / 2.0 + lane * piece.lane as f64;
            let gap = if bars.grouped { 1.0 } else { 0.0 };
            data.push([x, from.min(to) - 15.0, x + lane, from.max(to)]);
            if bars.grouped && y.is_log() {
                // Without a zero the length of a bar has no meaning.
                canvas.line(
                    &[(x + lane / 2.0, from), (x + lane / 2.0, to)],
                    piece.colour,
                    1.0,
                    0.35,
                );
                canvas.marker((x + lane / 2.0, to), 0, 4.5, piece.colour);
            } else {
                canvas.rect(
                    [x + gap, from.min(to), lane - 2.0 * gap, (from - to).abs()],
                    piece.colour,
                    1.0,
                );
            }
            if bars.grouped {
                let at = if piece.value < 0.0 { to + 9.0 } else { to - 8.0 };
                if let Some(digits) = digits {
                    let text = rough(piece.value, digits);
                    notes.push(Note::outside((x + lane / 2.0, at), text, Anchor::Middle));
                }
            } else if bars.parts.len() > 1 && (from - to).abs() >= 15.0 {
                let text = short(piece.value);
                if font::width(&text, FIGURE, false) <= lane - 2.0 {
                    let at = (x + lane / 2.0, f64::midpoint(from, to));
                    notes.push(Note::inside(at, text, piece.colour));
                }
            }
            highest = highest.min(to);
            lowest = lowest.max(to);
        }
        if !bars.grouped && highest.is_finite() {
            let sum: f64 = pieces.iter().map(|piece| piece.value).sum();
            let text = short(rounded(sum));
            let at = if sum < 0.0 { lowest + 9.0 } else { highest - 8.0 };
            if font::width(&text, FIGURE, false) <= slot - 2.0 {
                notes.push(Note::outside((middle, at), text, Anchor::Middle));
            }
        }
        let lines = font::wrap(name, slot - 8.0, TICK, false, 3);
        for (place, line) in (0_u8..).zip(&lines) {
            let at = plot.bottom + 14.0 + f64::from(place) * 14.0;
            canvas.label(middle, at, line, TICK, Anchor::Middle, Role::Ink);
        }
        lines_most = lines_most.max(lines.len());
    }
    if y.low < 0.0 || chart.y.log {
        canvas.line(
            &[(plot.left, plot.bottom), (plot.right, plot.bottom)],
            Role::Axis.colour(),
            1.0,
            1.0,
        );
    }
    rules::across(canvas, plot, &chart.rules, &y, &data);
    notes.iter().for_each(|note| note.paint(canvas));
    if bars.categories.is_empty() || bars.parts.is_empty() {
        axes::nothing(canvas, plot);
    }
    let mut bottom = plot.bottom + 10.0 + 14.0 * f64::from(u8::try_from(lines_most).unwrap_or(3));
    for line in font::wrap(&chart.x.label, plot.width(), LABEL, false, 2) {
        canvas.label(
            f64::midpoint(plot.left, plot.right),
            bottom + 8.0,
            &line,
            LABEL,
            Anchor::Middle,
            Role::Muted,
        );
        bottom += 16.0;
    }
    (bottom + 6.0, left_out)
}

fn lying<I: Iterator<Item = f64>>(
    canvas: &Canvas,
    chart: &Chart,
    bars: &Bars<'_>,
    colours: &[Colour],
    values: impl Fn() -> I,
    top: f64,
) -> (f64, usize) {
    let narrow = canvas.width < 560.0;
    let top = axes::name_above(canvas, &chart.x.label, 16.0, top, canvas.width - 32.0);
    // On a phone the names are above their bars.
    let room = if narrow {
        0.0
    } else {
        (font::widest(bars.categories, TICK) + 12.0).min(canvas.width * 0.36)
    };
    let left = 16.0 + room;
    let figure = ends_width(bars);
    let right = canvas.width - 16.0 - figure;
    let wanted = ((right - left) / 95.0).clamp(2.0, 8.0);
    let x = Scale::new(values(), chart.y.log, Reach::Zero, wanted).between(left, right);
    let above = rules::room_above(&chart.rules, &x, canvas);

    let lane = if bars.grouped { 15.0 } else { 20.0 };
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let broad = lane * bars.lanes() as f64;
    let names: Vec<Vec<String>> = bars
        .categories
        .iter()
        .map(|name| {
            font::wrap(name, if narrow { canvas.width - 32.0 } else { room - 12.0 }, TICK, false, 3)
        })
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "three at most")]
    let heights: Vec<f64> = names
        .iter()
        .map(|lines| {
            let text = lines.len() as f64 * 14.0;
            if narrow { broad + text + 12.0 } else { broad.max(text) + 10.0 }
        })
        .collect();
    let plot = Plot {
        left,
        top: top + above + 4.0,
        right,
        bottom: top + above + 4.0 + heights.iter().sum::<f64>().max(40.0),
    };
    let bottom = axes::horizontal(canvas, plot, &x, &chart.y.label, true);

    let mut y = plot.top;
    let mut left_out = 0;
    let mut notes: Vec<Note> = Vec::new();
    let mut said: Vec<(f64, &str)> = Vec::new();
    for ((category, lines), height) in names.iter().enumerate().zip(&heights) {
        #[expect(clippy::cast_precision_loss, reason = "three at most")]
        let text = lines.len() as f64 * 14.0;
        let (first, bar) = if narrow {
            (y + 9.0, y + text + 4.0)
        } else {
            (y + height / 2.0 - text / 2.0 + 7.0, y + (height - broad) / 2.0)
        };
        let places = (0_u8..).map(|place| first + f64::from(place) * 14.0);
        said.extend(places.zip(lines.iter().map(String::as_str)));
        let (pieces, missing) = bars.pieces(category, colours, chart.y.log, x.low);
        left_out += missing;
        row(canvas, bars, &pieces, &x, (bar, lane), &mut notes);
        y += height;
    }
    // Above the bars, below the words.
    rules::upright(canvas, plot, &chart.rules, &x);
    for (at, line) in said {
        if narrow {
            let width = font::width(line, TICK, false);
            canvas.rect([16.0, at - 7.0, width + 4.0, 14.0], Role::Paper.colour(), 0.9);
            canvas.label(17.0, at, line, TICK, Anchor::Start, Role::Ink);
        } else {
            canvas.label(left - 8.0, at, line, TICK, Anchor::End, Role::Ink);
        }
    }
    notes.iter().for_each(|note| note.paint(canvas));
    if bars.categories.is_empty() || bars.parts.is_empty() {
        axes::nothing(canvas, plot);
    }
    (bottom, left_out)
}

/// The pieces of one horizontal bar, with their values.
fn row(
    canvas: &Canvas,
    bars: &Bars<'_>,
    pieces: &[Piece],
    x: &Scale,
    (bar, lane): (f64, f64),
    notes: &mut Vec<Note>,
) {
    let mut farthest = f64::NEG_INFINITY;
    for piece in pieces {
        let (Some(from), Some(to)) = (x.place(piece.from), x.place(piece.to)) else { continue };
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let at = bar + lane * piece.lane as f64;
        if bars.grouped && x.is_log() {
            // Without a zero the length of a bar has no meaning.
            let middle = at + lane / 2.0;
            canvas.line(&[(from, middle), (to, middle)], piece.colour, 1.0, 0.35);
            canvas.marker((to, middle), 0, 4.5, piece.colour);
        } else {
            canvas.rect([from.min(to), at + 1.0, (to - from).abs(), lane - 2.0], piece.colour, 1.0);
        }
        let text = short(piece.value);
        let width = font::width(&text, FIGURE, false);
        if bars.grouped {
            let at = (from.max(to) + 5.0, at + lane / 2.0);
            notes.push(Note::outside(at, text, Anchor::Start));
        } else if bars.parts.len() > 1 && width + 6.0 <= (to - from).abs() {
            let at = (f64::midpoint(from, to), at + lane / 2.0);
            notes.push(Note::inside(at, text, piece.colour));
        }
        farthest = farthest.max(from.max(to));
    }
    if !bars.grouped && farthest.is_finite() {
        let sum: f64 = pieces.iter().map(|piece| piece.value).sum();
        let text = short(rounded(sum));
        notes.push(Note::outside((farthest + 5.0, bar + lane / 2.0), text, Anchor::Start));
    }
}

/// The number of digits with which the values of all bars fit side by side, if any.
fn digits(bars: &Bars<'_>, room: f64) -> Option<f64> {
    let fits = |digits: f64| {
        let values = bars.parts.iter().flat_map(|(_, values)| values.iter().copied());
        let mut values = values.filter(|value| drawable(*value, false));
        values.all(|value| font::width(&rough(value, digits), FIGURE, false) <= room)
    };
    [4.0, 3.0, 2.0].into_iter().find(|digits| fits(*digits))
}

/// Room for the values at the ends.
fn ends_width(bars: &Bars<'_>) -> f64 {
    let texts: Vec<String> = (0..bars.categories.len())
        .flat_map(|category| {
            let values: Vec<f64> = (0..bars.parts.len())
                .filter_map(|part| bars.value(part, category))
                .filter(|v| v.is_finite())
                .collect();
            let sum = if bars.grouped { None } else { Some(values.iter().sum()) };
            let single = if bars.grouped { values } else { Vec::new() };
            single.into_iter().chain(sum).map(|value| short(rounded(value)))
        })
        .collect();
    font::widest(&texts, FIGURE) + 10.0
}

/// Without the rounding errors of sums.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 10_f64.powf(9.0 - value.abs().log10().floor());
    let round = (value * digits).round() / digits;
    if round.is_finite() { round } else { value }
}
