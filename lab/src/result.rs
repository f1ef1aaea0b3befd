//! Results of an experiment: tables, charts, findings, controls. All of it is stored as data, so that a report can be
//! made again from the files.

mod numbers;

use serde::{Deserialize, Serialize};

use crate::state::State;

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number, in the column's unit.
    Number(f64),
    /// A text, or why there is no number.
    Text(String),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A table: `NAME.csv` next to the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// File name without extension: lower case, digits, hyphens.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Column names with their units, such as `median (ms)`.
    pub columns: Vec<String>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// A note for readers.
    pub note: String,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Name of the quantity, with its unit.
    pub label: String,
    /// Whether it is logarithmic; only for positive values.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: false }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: true }
    }
}

/// A named row of points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y) in order of x.
    #[serde(deserialize_with = "numbers::read")]
    pub points: Vec<[f64; 2]>,
    /// Interval (low, high) for each point, or empty.
    #[serde(deserialize_with = "numbers::read")]
    pub band: Vec<[f64; 2]>,
}

/// Quantiles against x.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fan {
    /// Name of the panel, such as `RTT 30 ms`.
    pub title: String,
    /// Names of the things compared.
    pub names: Vec<String>,
    /// Positions on the x axis.
    #[serde(deserialize_with = "numbers::read")]
    pub x: Vec<f64>,
    /// Probabilities of the quantiles, increasing; the median, or else the middle one, is drawn as the line.
    pub shares: Vec<f64>,
    /// For each name, for each x, the quantiles.
    #[serde(deserialize_with = "numbers::read")]
    pub values: Vec<Vec<Vec<f64>>>,
}

/// Contents of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Marks {
    /// Lines with points and intervals.
    Lines {
        /// The lines.
        series: Vec<Series>,
    },
    /// Steps: distributions (ECDF), sorted times.
    Steps {
        /// The lines.
        series: Vec<Series>,
    },
    /// Quantile fans, one panel each.
    Fans {
        /// The panels.
        panels: Vec<Fan>,
    },
    /// A heat map.
    Heat {
        /// Names of the rows.
        rows: Vec<String>,
        /// Names of the columns.
        columns: Vec<String>,
        /// Values by row and column; `None` was not measured.
        values: Vec<Vec<Option<f64>>>,
    },
    /// Bars; by default the parts are stacked.
    Bars {
        /// Names of the bars.
        categories: Vec<String>,
        /// Parts: name, and the value for each category.
        #[serde(deserialize_with = "numbers::read")]
        parts: Vec<(String, Vec<f64>)>,
        /// Whether the parts are side by side instead.
        grouped: bool,
    },
}

/// A line across a chart, such as the MSS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Its name.
    pub label: String,
    /// Its value.
    #[serde(deserialize_with = "numbers::read")]
    pub at: f64,
}

/// A chart: `NAME.svg` and `NAME.png` next to the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// File name without extension: lower case, digits, hyphens.
    pub name: String,
    /// Heading: what the chart shows.
    pub title: String,
    /// The horizontal axis; bars and heat maps only use its label.
    pub x: Axis,
    /// The value axis.
    pub y: Axis,
    /// Contents.
    pub marks: Marks,
    /// Lines across the chart.
    pub rules: Vec<Rule>,
    /// A note for readers.
    pub caption: String,
}

/// Verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It holds, but by data that were used to make what measures it, so that this is no independent confirmation.
    HoldsInSample,
    /// It holds in part, or in direction but not in size.
    Partly,
    /// It does not hold here.
    Differs,
    /// The measurements do not decide it; the finding says why.
    Undecided,
    /// The published figure and ours are of different clocks.
    NotComparable,
}

/// What a time was measured by, or a rate was counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The wall clock: waiting for the network, the scheduler and others counts. The model's virtual time is one, too.
    Wall,
    /// Processor time: what a process or thread computed, in seconds.
    Cpu,
    /// Cycles of the core, whose rate follows load and temperature.
    Cycles,
    /// Ticks of the time-stamp counter, whose rate is constant.
    Ticks,
}

impl Clock {
    /// Its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall clock",
            Self::Cpu => "processor time",
            Self::Cycles => "cycles of the core",
            Self::Ticks => "ticks of the time-stamp counter",
        }
    }
}

impl Verdict {
    /// The verdict, if both figures are by the same clock.
    #[must_use]
    pub fn of_clocks(self, published: Clock, measured: Clock) -> Self {
        if published == measured { self } else { Self::NotComparable }
    }
}

/// Origin of a claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Published by others, who measured it.
    #[default]
    Published,
    /// The project's own, from earlier trials.
    Earlier,
    /// A standard's: parameters from FIPS or an RFC.
    Standard,
    /// The lab's own expectation, or its reading of others' figures.
    Own,
}

/// A claim, and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Origin; only published claims are counted as such.
    #[serde(default)]
    pub kind: ClaimKind,
    /// Publication: authors, title, year, table or figure.
    pub source: String,
    /// The claim.
    pub claim: String,
    /// The published figure.
    pub published: String,
    /// Our figure, with its interval.
    pub measured: String,
    /// Verdict.
    pub verdict: Verdict,
    /// Why they differ, or what must be the same for them to agree.
    pub why: String,
}

/// The same thing measured twice as if it were two: the effect of noise alone on a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// What was measured twice.
    pub what: String,
    /// Ratio of the two, by the statistic that the experiment uses.
    #[serde(deserialize_with = "numbers::read")]
    pub ratio: f64,
    /// Low end of its 95 % interval.
    #[serde(deserialize_with = "numbers::read")]
    pub low: f64,
    /// High end.
    #[serde(deserialize_with = "numbers::read")]
    pub high: f64,
}

/// What a control is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// It could have failed, and its interval contains 1.
    Holds,
    /// Its interval does not contain 1: the run's comparisons cannot be trusted.
    Fails,
    /// It cannot fail: its interval is so wide that it contains 1 whatever happens, or it has no width. It says nothing,
    /// and is not counted.
    CannotFail,
}

/// Largest half width of a control's interval: with a wider one a change of a tenth would go unnoticed.
const BLIND: f64 = 0.1;

impl Control {
    /// Whether its interval contains 1, so that the run's comparisons can be trusted.
    pub fn holds(&self) -> bool {
        self.low <= 1.0 && 1.0 <= self.high
    }

    /// Whether comparisons can be judged beside it: it holds, and its interval has a width. The same numbers twice have
    /// none, and would make every difference an effect.
    pub fn can_judge(&self) -> bool {
        self.holds() && self.high > self.low
    }

    /// The change that a comparison must exceed to be called an effect, as a share. A report prints what decides
    /// ([`Self::noise`]) and not half the width of the interval, which can be as little as half of it.
    pub fn resolution(&self) -> f64 {
        self.noise()
    }

    /// The largest effect that noise alone shows, as a share: the far end of its interval from 1. A comparison shows an
    /// effect only if it is larger.
    pub fn noise(&self) -> f64 {
        (self.high - 1.0).abs().max((1.0 - self.low).abs())
    }

    /// Whether it holds, and whether it could have failed.
    pub fn worth(&self) -> Worth {
        if !self.holds() {
            Worth::Fails
        } else if !self.can_judge() || (self.high - self.low) / 2.0 > BLIND {
            Worth::CannotFail
        } else {
            Worth::Holds
        }
    }
}

/// Results of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The conclusions, in sentences, for a hurried reader.
    pub summary: Vec<String>,
    /// The claims.
    pub findings: Vec<Finding>,
    /// The A/A controls.
    pub controls: Vec<Control>,
    /// The charts.
    pub charts: Vec<Chart>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Pictures that are not charts, such as flame graphs: file name (`.svg`) and caption.
    pub pictures: Vec<(String, String)>,
    /// What was left out and why, and the limits of the figures.
    pub notes: Vec<String>,
}

/// The results file of an experiment: `DIR/EXPERIMENT/result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Name of the experiment, and of its folder.
    pub experiment: String,
    /// Heading.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// What it reproduces or extends.
    pub source: String,
    /// State of the machine at the start.
    pub state: State,
    /// State of the machine at the end.
    #[serde(default)]
    pub after: Option<State>,
    /// Duration in seconds.
    pub seconds: f64,
    /// The results.
    pub findings: Findings,
    /// Why it, or the rest of it, was not measured, if so.
    pub skipped: Option<String>,
    /// Why it ended early, if it did; the results are those until then.
    #[serde(default)]
    pub failed: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_that_cannot_fail_is_not_counted() {
        let worth = |low, high| Control { what: String::new(), ratio: 1.0, low, high }.worth();
        assert_eq!(worth(0.99, 1.01), Worth::Holds);
        assert_eq!(worth(1.001, 1.01), Worth::Fails);
        assert_eq!(worth(0.5, 0.9), Worth::Fails, "wide, and fails all the same");
        // Of a quick run: the width of the interval hides a change of a tenth.
        assert_eq!(worth(0.82, 1.06), Worth::CannotFail);
        // The same seed twice.
        assert_eq!(worth(1.0, 1.0), Worth::CannotFail);
        assert_eq!(worth(f64::NAN, 1.01), Worth::Fails);
        let control = Control { what: String::new(), ratio: 1.0, low: 0.97, high: 1.01 };
        // What is printed is what decides.
        assert!((control.noise() - 0.03).abs() < 1e-9);
        assert_eq!(control.resolution(), control.noise());
        let judges = |low, high| Control { what: String::new(), ratio: 1.0, low, high }.can_judge();
        assert!(judges(0.99, 1.01) && !judges(1.0, 1.0) && !judges(1.01, 1.02));
    }

    #[test]
    fn figures_of_two_clocks_are_not_compared() {
        for verdict in [Verdict::Holds, Verdict::Differs, Verdict::Undecided] {
            assert_eq!(verdict.of_clocks(Clock::Wall, Clock::Wall), verdict);
            assert_eq!(verdict.of_clocks(Clock::Wall, Clock::Cpu), Verdict::NotComparable);
            assert_eq!(verdict.of_clocks(Clock::Cycles, Clock::Ticks), Verdict::NotComparable);
        }
    }

    /// JSON cannot express NaN; it is read back nevertheless.
    #[test]
    fn odd_figures_do_not_make_results_unreadable() {
        let findings = Findings {
            controls: vec![Control {
                what: "a".into(),
                ratio: f64::NAN,
                low: 1.0,
                high: f64::INFINITY,
            }],
            tables: vec![Table {
                name: "t".into(),
                title: "T".into(),
                columns: vec!["a".into(), "b".into()],
                rows: vec![vec![Value::Number(f64::NAN), Value::from("b")]],
                note: String::new(),
            }],
            charts: vec![Chart {
                name: "c".into(),
                title: "C".into(),
                x: Axis::linear("x"),
                y: Axis::linear("y"),
                marks: Marks::Lines {
                    series: vec![Series {
                        name: "s".into(),
                        points: vec![[0.0, f64::NAN]],
                        band: Vec::new(),
                    }],
                },
                rules: vec![Rule { label: "r".into(), at: f64::NAN }],
                caption: String::new(),
            }],
            ..Findings::default()
        };
        let text = serde_json::to_string(&findings).unwrap();
        let again: Findings = serde_json::from_str(&text).unwrap();
        assert!(again.controls[0].ratio.is_nan() && !again.controls[0].holds());
        assert!(matches!(again.tables[0].rows[0][0], Value::Number(number) if number.is_nan()));
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
        let bars = Marks::Bars {
            categories: vec!["a".into()],
            parts: vec![("p".into(), vec![f64::NEG_INFINITY])],
            grouped: true,
        };
        let text = serde_json::to_string(&bars).unwrap();
        assert!(serde_json::from_str::<Marks>(&text).is_ok());
    }
}
