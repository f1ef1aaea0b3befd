//! Heat maps, with the value in every cell.

use super::axes::{LABEL, TICK};
use super::canvas::{Anchor, Canvas};
use super::colour;
use super::colour::Role;
use super::font;
use super::scale::{drawable, rough};
use crate::result::Chart;

/// Most cells of a row or column that are drawn.
const MOST: usize = 200;

/// Colours of the values from the lowest to the highest.
struct Shades {
    low: f64,
    high: f64,
    log: bool,
    both_ways: bool,
}

impl Shades {
    fn new(values: impl Iterator<Item = f64>, log: bool) -> Self {
        let (low, high) = values
            .filter(|value| drawable(*value, log))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let both_ways = !log && low < 0.0;
        Self { low, high, log, both_ways }
    }

    fn of(&self, value: f64) -> colour::Colour {
        let share = if self.both_ways {
            value / self.low.abs().max(self.high.abs())
        } else if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        colour::heat(if share.is_finite() { share } else { 0.0 }, self.both_ways)
    }

    /// The value at a position of the colour bar.
    fn at(&self, share: f64) -> f64 {
        if self.both_ways {
            let most = self.low.abs().max(self.high.abs());
            most * (share * 2.0 - 1.0)
        } else if self.log {
            self.low * (self.high / self.low).powf(share)
        } else {
            self.low + (self.high - self.low) * share
        }
    }
}

/// Draws a heat map; returns where the chart ends and how many values were left out.
pub(super) fn paint(
    canvas: &Canvas,
    chart: &Chart,
    rows: &[String],
    columns: &[String],
    values: &[Vec<Option<f64>>],
    top: f64,
) -> (f64, usize) {
    let (rows, columns) = (&rows[..rows.len().min(MOST)], &columns[..columns.len().min(MOST)]);
    let cells = || {
        values
            .iter()
            .take(rows.len())
            .flat_map(|row| row.iter().take(columns.len()).flatten().copied())
    };
    let shades = Shades::new(cells(), chart.y.log);
    let left_out = cells().filter(|value| !drawable(*value, chart.y.log)).count();
    let narrow = canvas.width < 560.0;

    let top = bar(canvas, chart, &shades, top);
    // On a phone the names of the rows are above them.
    let room = if narrow {
        0.0
    } else {
        (font::widest(rows, TICK) * 1.08 + 12.0).min(canvas.width * 0.38)
    };
    let left = 16.0 + room;
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let width = (canvas.width - 16.0 - left) / columns.len().max(1) as f64;
    let width = width.min(150.0);
    let top = heads(canvas, chart, columns, left, width, top);

    let mut y = top;
    for (row, name) in rows.iter().enumerate() {
        let lines = font::wrap(
            name,
            if narrow { canvas.width - 32.0 } else { room - 12.0 },
            TICK,
            false,
            3,
        );
        #[expect(clippy::cast_precision_loss, reason = "three at most")]
        let lines_height = lines.len() as f64 * 14.0;
        let height = if narrow { 26.0 } else { (lines_height + 6.0).max(28.0) };
        let first = if narrow { y + 9.0 } else { y + height / 2.0 - (lines_height - 14.0) / 2.0 };
        for (place, line) in (0_u8..).zip(&lines) {
            let at = first + f64::from(place) * 14.0;
            let (x, anchor) =
                if narrow { (16.0, Anchor::Start) } else { (left - 8.0, Anchor::End) };
            canvas.label(x, at, line, TICK, anchor, Role::Ink);
        }
        if narrow {
            y += lines_height + 4.0;
        }
        for column in 0..columns.len() {
            #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
            let x = left + width * column as f64;
            let value = values.get(row).and_then(|row| row.get(column)).copied().flatten();
            cell(
                canvas,
                [x, y, width, height],
                value.filter(|v| drawable(*v, chart.y.log)),
                &shades,
            );
        }
        y += height;
    }
    if rows.is_empty() || columns.is_empty() {
        canvas.label(
            canvas.width / 2.0,
            y + 40.0,
            "nothing was measured",
            13.0,
            Anchor::Middle,
            Role::Muted,
        );
        y += 80.0;
    }
    (y + 8.0, left_out)
}

fn cell(canvas: &Canvas, [x, y, width, height]: [f64; 4], value: Option<f64>, shades: &Shades) {
    let inner = [x + 0.75, y + 0.75, (width - 1.5).max(0.5), height - 1.5];
    let (middle, centre) = (x + width / 2.0, y + height / 2.0);
    let Some(value) = value else {
        canvas.rect(inner, Role::Grid.colour(), 0.55);
        canvas.label(middle, centre, "–", 11.0, Anchor::Middle, Role::Muted);
        return;
    };
    let colour = shades.of(value);
    canvas.rect(inner, colour, 1.0);
    let texts = [(4.0, 11.5), (3.0, 11.5), (3.0, 8.5), (2.0, 8.5), (1.0, 8.0)]
        .map(|(digits, size)| (rough(value, digits), size));
    if let Some((text, size)) =
        texts.iter().find(|(text, size)| font::width(text, *size, false) <= width - size * 0.4)
    {
        canvas.label(middle, centre, text, *size, Anchor::Middle, colour.ink());
    }
}

/// The colour bar with its values and its name; returns where it ends.
fn bar(canvas: &Canvas, chart: &Chart, shades: &Shades, top: f64) -> f64 {
    let mut y = top;
    for line in font::wrap(&chart.y.label, canvas.width - 32.0, LABEL, false, 2) {
        canvas.label(16.0, y + 8.0, &line, LABEL, Anchor::Start, Role::Muted);
        y += 16.0;
    }
    if shades.low > shades.high || !shades.low.is_finite() {
        return y + 4.0;
    }
    let width = (canvas.width - 32.0).min(300.0);
    let steps = 60_u8;
    for step in 0..steps {
        let share = f64::from(step) / f64::from(steps - 1);
        let x = 16.0 + width * f64::from(step) / f64::from(steps);
        let part = [x, y + 4.0, width / f64::from(steps) + 0.5, 10.0];
        canvas.rect(part, shades.of(shades.at(share)), 1.0);
    }
    let middle = shades.at(0.5);
    let ends = [
        (shades.at(0.0), 0.0, Anchor::Start),
        (middle, 0.5, Anchor::Middle),
        (shades.at(1.0), 1.0, Anchor::End),
    ];
    for (value, share, anchor) in ends {
        canvas.label(16.0 + width * share, y + 22.0, &rough(value, 3.0), 10.5, anchor, Role::Muted);
    }
    y + 36.0
}

/// Names of the columns, rotated if they do not fit; returns where they end.
fn heads(
    canvas: &Canvas,
    chart: &Chart,
    columns: &[String],
    left: f64,
    width: f64,
    top: f64,
) -> f64 {
    let mut y = top;
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let across = width * columns.len() as f64;
    for line in font::wrap(&chart.x.label, across.max(160.0), LABEL, false, 2) {
        canvas.label(left, y + 8.0, &line, LABEL, Anchor::Start, Role::Muted);
        y += 16.0;
    }
    let word = columns
        .iter()
        .flat_map(|name| name.split_whitespace())
        .map(|word| font::width(word, TICK, false))
        .fold(0.0, f64::max);
    let wrapped: Vec<Vec<String>> =
        columns.iter().map(|name| font::wrap(name, width - 6.0, TICK, false, 3)).collect();
    let lines = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    let whole = wrapped.iter().all(|lines| !lines.iter().any(|line| line.ends_with('…')));
    if word <= width - 6.0 && whole {
        for (column, lines_of) in wrapped.iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
            let middle = left + width * (column as f64 + 0.5);
            for (place, line) in lines_of.iter().enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "three at most")]
                let at = y + 9.0 + 14.0 * (place + lines - lines_of.len()) as f64;
                canvas.label(middle, at, line, TICK, Anchor::Middle, Role::Ink);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "three at most")]
        let lines = lines as f64;
        return y + 4.0 + lines * 14.0 + 2.0;
    }
    let room = font::widest(columns, TICK).min(190.0);
    for (column, name) in columns.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let middle = left + width * (column as f64 + 0.5);
        if width >= 11.0 || column % 2 == 0 {
            let name = font::wrap(name, room, TICK, false, 1).concat();
            canvas.upwards(middle, y + room + 4.0, &name, TICK, Role::Ink);
        }
    }
    y + room + 10.0
}
