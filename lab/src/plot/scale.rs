//! Scales: from values to pixels, with round ticks, and numbers as people write them.

/// Values beyond this are not drawn; within it no sum or difference overflows.
const LARGEST: f64 = 1e100;

/// Whether a value can be drawn on such an axis.
pub(super) fn drawable(value: f64, log: bool) -> bool {
    value.is_finite() && value.abs() <= LARGEST && (!log || value >= 1.0 / LARGEST)
}

/// A labelled position on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// The value.
    pub(super) at: f64,
    /// Its label; empty for lines without one.
    pub(super) label: String,
}

/// Extent of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// As far as the values, including 0 if that is near.
    Figures,
    /// Always including 0, for bars.
    Zero,
    /// Exactly as far as the values.
    Tight,
}

/// A scale.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    /// Lowest value.
    pub(super) low: f64,
    /// Highest value.
    pub(super) high: f64,
    log: bool,
    /// Position of the lowest value, in pixels.
    from: f64,
    /// Position of the highest value.
    to: f64,
    /// Labelled ticks and lines without.
    pub(super) ticks: Vec<Tick>,
}

impl Scale {
    /// A scale for these values (those that cannot be drawn do not count) with about so many ticks.
    pub(super) fn new(
        values: impl Iterator<Item = f64>,
        log: bool,
        reach: Reach,
        wanted: f64,
    ) -> Self {
        let values = values.filter(|value| drawable(*value, log));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let some = low <= high;
        let mut scale = match (log, some) {
            (false, false) => Self::linear(0.0, 1.0, reach, wanted),
            (true, false) => Self::logarithmic(1.0, 10.0, wanted),
            (false, true) => Self::linear(low, high, reach, wanted),
            (true, true) => Self::logarithmic(low, high, wanted),
        };
        scale.log = log;
        scale
    }

    fn linear(mut low: f64, mut high: f64, reach: Reach, wanted: f64) -> Self {
        let near_zero = reach != Reach::Tight
            && (low >= 0.0 && low < 0.35 * high || high <= 0.0 && high > 0.35 * low);
        if reach == Reach::Zero || near_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low <= high.abs().max(low.abs()) * 1e-9 {
            let around = if high == 0.0 { 1.0 } else { high.abs() * 0.5 };
            (low, high) = if high == 0.0 { (0.0, 1.0) } else { (low - around, high + around) };
        }
        let step = round_step((high - low) / wanted.max(1.0));
        let first = (low / step + 1e-9).floor();
        let last = (high / step - 1e-9).ceil();
        let (from, to) =
            if reach == Reach::Tight { (low, high) } else { (first * step, last * step) };
        let count = whole(last - first).min(40);
        let ticks: Vec<f64> = (0..=count)
            .map(|n| (first + f64::from(n)) * step)
            .filter(|at| (from - step * 1e-6..=to + step * 1e-6).contains(at))
            .collect();
        let labels = labels(&ticks, step);
        let ticks = ticks.into_iter().zip(labels).map(|(at, label)| Tick { at, label }).collect();
        Self { low: from, high: to, log: false, from: 0.0, to: 1.0, ticks }
    }

    fn logarithmic(low: f64, high: f64, wanted: f64) -> Self {
        let (low, high) = (one_two_five(low, false), one_two_five(high, true));
        let (low, high) =
            if high <= low * 1.000_001 { (low / 2.0, high * 2.0) } else { (low, high) };
        let decades = (high / low).log10();
        let every = (decades / (wanted + 1.5)).ceil().max(1.0);
        let first = low.log10().floor();
        let count = whole(high.log10().ceil() - first).min(400);
        let mut ticks = Vec::new();
        for n in 0..=count {
            let decade = 10_f64.powf(first + f64::from(n));
            for digit in 1..10_u8 {
                let at = decade * f64::from(digit);
                if at < low * 0.999_999 || at > high * 1.000_001 {
                    continue;
                }
                let labelled = match digit {
                    1 => (f64::from(n) % every) == 0.0,
                    2 | 5 => decades <= wanted / 2.2,
                    _ => decades <= wanted / 8.0,
                };
                if labelled || (decades <= 5.0) || (digit == 1 && decades <= 12.0) {
                    ticks
                        .push(Tick { at, label: if labelled { short(at) } else { String::new() } });
                }
            }
        }
        Self { low, high, log: true, from: 0.0, to: 1.0, ticks }
    }

    /// Sets the pixels of its ends.
    pub(super) fn between(mut self, from: f64, to: f64) -> Self {
        (self.from, self.to) = (from, to);
        self
    }

    /// Adds a margin at both ends.
    pub(super) fn padded(mut self, share: f64) -> Self {
        if self.log {
            let more = (self.high / self.low).powf(share);
            (self.low, self.high) = (self.low / more, self.high * more);
        } else {
            let more = (self.high - self.low) * share;
            (self.low, self.high) = (self.low - more, self.high + more);
        }
        self
    }

    /// Sets its ends to these values, if they can be drawn.
    pub(super) fn exactly(mut self, low: f64, high: f64) -> Self {
        if drawable(low, self.log) && drawable(high, self.log) && low < high {
            (self.low, self.high) = (low, high);
            self.ticks.retain(|tick| tick.at >= low && tick.at <= high);
        }
        self
    }

    /// Puts ticks at these values instead, if their labels do not overlap.
    pub(super) fn ticks_at(mut self, figures: &[f64], width: impl Fn(&str) -> f64) -> Self {
        let mut ticks: Vec<Tick> = Vec::new();
        let mut free = f64::NEG_INFINITY;
        for at in figures.iter().copied().filter(|at| drawable(*at, self.log)) {
            let label = short(at);
            let Some(place) = self.place(at) else { continue };
            let half = width(&label) / 2.0;
            if place - half > free {
                free = place + half + 6.0;
                ticks.push(Tick { at, label });
            }
        }
        if ticks.len() > 1 || self.ticks.is_empty() {
            self.ticks = ticks;
        }
        self
    }

    /// Position of a value in pixels; that of the end if it is outside; `None` if it cannot be drawn.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !drawable(value, self.log) {
            return None;
        }
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
        Some(self.from + (self.to - self.from) * share)
    }

    /// Whether it is logarithmic.
    pub(super) fn is_log(&self) -> bool {
        self.log
    }
}

/// The next power of ten, or twice or five times one, at or beyond this value.
fn one_two_five(value: f64, up: bool) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let mut steps = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0].map(|step| step * decade);
    if up {
        steps.into_iter().find(|step| *step >= value * 0.999_999).unwrap_or(value)
    } else {
        steps.reverse();
        steps.into_iter().find(|step| *step <= value * 1.000_001).unwrap_or(value)
    }
}

/// The smallest round step of at least this size.
fn round_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.abs().max(1e-200).log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|step| step * decade)
        .find(|step| *step >= least * 0.999_999)
        .unwrap_or(decade * 10.0)
}

fn whole(value: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the limits"
    )]
    let value = value.clamp(0.0, 10_000.0).round() as u32;
    value
}

const LARGE: [(f64, &str); 4] = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1.0, "")];

/// Labels of evenly spaced ticks, with the same unit and as many decimals as the step needs.
fn labels(ticks: &[f64], step: f64) -> Vec<String> {
    let largest = ticks.iter().fold(0.0_f64, |largest, tick| largest.max(tick.abs()));
    if !(1e-5..1e16).contains(&largest) && largest != 0.0 {
        return ticks
            .iter()
            .map(|tick| if *tick == 0.0 { "0".to_owned() } else { power(*tick) })
            .collect();
    }
    let (unit, suffix) =
        LARGE.into_iter().find(|(unit, _)| largest >= *unit && *unit >= 1e6).unwrap_or((1.0, ""));
    let mut decimals = 0;
    // 2.5 needs one more decimal than 2.
    while decimals < 8 {
        let scaled = step / unit * 10_f64.powf(f64::from(decimals));
        if (scaled - scaled.round()).abs() < 1e-6 * scaled.abs().max(1.0) && scaled >= 0.999 {
            break;
        }
        decimals += 1;
    }
    ticks
        .iter()
        .map(|tick| {
            let places = usize::try_from(decimals).unwrap_or(0);
            let text = separated(tick / unit, places);
            if text.trim_start_matches('−').chars().all(|c| matches!(c, '0' | '.')) {
                "0".to_owned()
            } else {
                text + suffix
            }
        })
        .collect()
}

/// `1e-7` as people write it.
fn power(value: f64) -> String {
    let text = format!("{value:.1e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches(".0").replace('-', "−");
    let exponent: String = exponent
        .chars()
        .map(|digit| match digit {
            '-' => '⁻',
            '0' => '⁰',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            _ => '⁹',
        })
        .collect();
    format!("{digits}×10{exponent}")
}

/// With thousands separators and a true minus sign.
fn separated(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 && text.chars().any(|digit| ('1'..='9').contains(&digit)) {
        out.push('−');
    }
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out
}

/// A number for a tick or a cell: as many digits as matter there, without trailing zeros.
pub(super) fn short(value: f64) -> String {
    let text = figure(value);
    if text.contains('.') && !text.contains('×') && !text.contains(' ') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// The same with fewer digits, where there is little room.
pub(crate) fn rough(value: f64, digits: f64) -> String {
    let size = value.abs();
    if size == 0.0 || !(1e-4..1e7).contains(&size) {
        return short(value);
    }
    let unit = 10_f64.powf((digits - 1.0 - size.log10().floor()).max(0.0));
    short((value * unit).round() / unit)
}

/// A number for a reader: four digits, with thousands separators, large ones in millions.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        return "–".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞".to_owned() } else { "−∞".to_owned() };
    }
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&size) {
        return power(value);
    }
    if size >= 1e7 {
        let (unit, suffix) = LARGE.into_iter().find(|(unit, _)| size >= *unit).unwrap_or((1.0, ""));
        return separated(value / unit, decimals(size / unit)) + suffix;
    }
    if value.fract() == 0.0 {
        return separated(value, 0);
    }
    separated(value, decimals(size))
}

/// Number of decimals for four digits.
fn decimals(size: f64) -> usize {
    let before = size.log10().floor();
    usize::try_from(whole(3.0 - before)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(scale: &Scale) -> Vec<&str> {
        scale
            .ticks
            .iter()
            .map(|tick| tick.label.as_str())
            .filter(|label| !label.is_empty())
            .collect()
    }

    #[test]
    fn ticks_are_round() {
        let scale =
            |values: &[f64], log| Scale::new(values.iter().copied(), log, Reach::Figures, 5.0);
        assert_eq!(said(&scale(&[3.0, 97.0], false)), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(said(&scale(&[0.0, 14_480.0], false)), ["0", "5,000", "10,000", "15,000"]);
        assert_eq!(
            said(&scale(&[1.187, 1.189], false)),
            ["1.1870", "1.1875", "1.1880", "1.1885", "1.1890"]
        );
        assert_eq!(said(&scale(&[-4.0, 6.0], false)), ["−4", "−2", "0", "2", "4", "6"]);
        assert_eq!(
            said(&scale(&[0.0, 2.5e6], false)),
            ["0", "0.5 M", "1.0 M", "1.5 M", "2.0 M", "2.5 M"]
        );
        assert_eq!(said(&scale(&[4.0, 900.0], true)), ["10", "100", "1,000"]);
        assert_eq!(said(&scale(&[0.001, 1e6], true)), ["0.001", "0.1", "10", "1,000", "100,000"]);
        assert_eq!(rough(161.83, 3.0), "162");
        assert_eq!(rough(-0.012_345, 2.0), "−0.012");
    }

    #[test]
    fn odd_figures_have_a_scale_too() {
        let far = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-300, 1e300, f64::MAX, 1e99, -1e99, 7.0];
        for values in [&[][..], &[0.0], &[7.0], &[-7.0], &[1e15, 1e15 + 1.0], &far] {
            for log in [false, true] {
                for reach in [Reach::Figures, Reach::Zero, Reach::Tight] {
                    let scale =
                        Scale::new(values.iter().copied(), log, reach, 6.0).between(0.0, 100.0);
                    assert!(scale.low < scale.high, "{values:?} {log} {reach:?} {scale:?}");
                    assert!(scale.ticks.len() < 500);
                    for value in values {
                        if let Some(place) = scale.place(*value) {
                            assert!((0.0..=100.0).contains(&place), "{value} {place}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn figures_as_people_write_them() {
        for (value, text) in [
            (0.0, "0"),
            (108.7, "108.7"),
            (14_480.0, "14,480"),
            (0.216, "0.2160"),
            (75_069_418.0, "75.07 M"),
            (-2.345_67, "−2.346"),
            (1_234_567.0, "1,234,567"),
            (0.000_012_3, "1.2×10⁻⁵"),
            (f64::NAN, "–"),
            (6000.5, "6,000"),
        ] {
            assert_eq!(figure(value), text, "{value}");
        }
        assert_eq!(short(0.5), "0.5");
        assert_eq!(short(100.0), "100");
        assert_eq!(short(12.50), "12.5");
    }
}
