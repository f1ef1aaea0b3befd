//! What an experiment tells: tables, charts, findings, controls. All of it is data that is stored, so that a report can be made
//! again from the files.

mod numbers;

use serde::{Deserialize, Serialize};

use crate::state::State;

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A figure, in the column's unit.
    Number(f64),
    /// A word, or why there is no figure.
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

/// A table: `NAME.csv` beside the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// File name without ending: lower case, digits, hyphens.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Column names with their units, such as `median (ms)`.
    pub columns: Vec<String>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// What a reader must know.
    pub note: String,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What it shows, with its unit.
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
    /// Interval (low, high) of each point, or empty.
    #[serde(deserialize_with = "numbers::read")]
    pub band: Vec<[f64; 2]>,
}

/// Quantiles against x.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fan {
    /// Name of the panel, such as `RTT 30 ms`.
    pub title: String,
    /// Name of each of the things compared.
    pub names: Vec<String>,
    /// Positions on the x axis.
    #[serde(deserialize_with = "numbers::read")]
    pub x: Vec<f64>,
    /// Shares of the quantiles, rising; the median, or else the middle one, is drawn as the line.
    pub shares: Vec<f64>,
    /// For each name, for each x, the quantiles.
    #[serde(deserialize_with = "numbers::read")]
    pub values: Vec<Vec<Vec<f64>>>,
}

/// What a chart draws.
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
    /// Bars; each category has the parts on top of each other.
    Bars {
        /// Names of the bars.
        categories: Vec<String>,
        /// Parts: name, and the value for each category.
        #[serde(deserialize_with = "numbers::read")]
        parts: Vec<(String, Vec<f64>)>,
        /// Whether the parts stand beside each other instead.
        grouped: bool,
    },
}

/// A line across a chart, such as the MSS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What it is.
    pub label: String,
    /// Where it is on the axis of values.
    #[serde(deserialize_with = "numbers::read")]
    pub at: f64,
}

/// A chart: `NAME.svg` and `NAME.png` beside the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// File name without ending: lower case, digits, hyphens.
    pub name: String,
    /// Heading: what one sees.
    pub title: String,
    /// The axis across; categories of bars and columns of a heat map use its label only.
    pub x: Axis,
    /// The axis of values.
    pub y: Axis,
    /// What is drawn.
    pub marks: Marks,
    /// Lines across.
    pub rules: Vec<Rule>,
    /// What a reader must know.
    pub caption: String,
}

/// What came of a published claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds here, too.
    Holds,
    /// It holds in part, or in direction but not in size.
    Partly,
    /// It does not hold here.
    Differs,
    /// What was measured cannot decide it; the finding says why.
    Undecided,
}

/// Whose claim it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Somebody else's, of something that was measured.
    #[default]
    Published,
    /// The project's own, of earlier trials.
    Earlier,
    /// A standard's: parameters of FIPS or RFC.
    Standard,
    /// The lab's own: what it expects, or reads from others' figures.
    Own,
}

/// A claim beside what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Whose claim it is; only published ones are counted as such.
    #[serde(default)]
    pub kind: ClaimKind,
    /// Where it was published: authors, title, year, table or figure.
    pub source: String,
    /// The claim.
    pub claim: String,
    /// The published figure.
    pub published: String,
    /// Ours, with its interval.
    pub measured: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Why they differ, or what must be the same for them to agree.
    pub why: String,
}

/// The same thing measured twice as if it were two: how far noise alone takes a comparison.
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

impl Control {
    /// Whether its interval contains 1, so that the comparisons of the run may be believed.
    pub fn holds(&self) -> bool {
        self.low <= 1.0 && 1.0 <= self.high
    }
}

/// All that an experiment tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// What it comes to, in sentences: what a hurried reader takes home.
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
    /// What was left out and why, and what limits the figures.
    pub notes: Vec<String>,
}

/// What came of an experiment: `DIR/EXPERIMENT/result.json`.
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
    /// The machine when it began.
    pub state: State,
    /// The machine when it ended.
    #[serde(default)]
    pub after: Option<State>,
    /// How long it took.
    pub seconds: f64,
    /// What it tells.
    pub findings: Findings,
    /// Why it, or the rest of it, was not measured.
    pub skipped: Option<String>,
    /// Why it ended before its end; what it tells is what it had by then.
    #[serde(default)]
    pub failed: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JSON has no word for what is not a number; it comes back all the same.
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
