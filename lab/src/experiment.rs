//! Experiments as rows.

use std::time::Duration;

use crate::error::LabError;
use crate::experiments;
use crate::result::{Findings, Told};
use crate::run::{Run, Settings};
use crate::state::State;

/// An engine for measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// In-memory handshakes.
    Cpu,
    /// Linux TCP in virtual time.
    Model,
    /// Real stacks over an emulated link; needs root.
    Live,
    /// s2n-quic in virtual time, and live QUIC.
    Quic,
    /// A real Outlast server on this machine.
    Server,
}

impl Engine {
    /// Name in the list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Model => "model",
            Self::Live => "live (root)",
            Self::Quic => "QUIC",
            Self::Server => "server",
        }
    }
}

/// An experiment.
pub struct Experiment {
    /// Name on the command line.
    pub name: &'static str,
    /// Heading in the report.
    pub title: &'static str,
    /// The question it answers, in the reader's words.
    pub question: &'static str,
    /// What it reproduces or extends: authors, title, year, link.
    pub source: &'static str,
    /// Engines that it uses.
    pub engines: &'static [Engine],
    /// Its duration on two ordinary cores.
    pub estimate: fn(&Settings) -> Duration,
    /// Runs it.
    pub run: fn(&mut Run<'_>) -> Result<(), LabError>,
}

/// All experiments, in the order of the report.
pub static EXPERIMENTS: &[Experiment] = &[
    experiments::tls_matrix::EXPERIMENT,
    experiments::handshake_cost::EXPERIMENT,
    experiments::requests::EXPERIMENT,
    experiments::pool::EXPERIMENT,
    experiments::idle::EXPERIMENT,
    experiments::quic_rate::EXPERIMENT,
    experiments::cpu::EXPERIMENT,
    experiments::sizes::EXPERIMENT,
];

impl Experiment {
    /// The row with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|row| row.name == name)
    }

    /// The results of this experiment.
    pub fn told(&self, state: State, findings: Findings) -> Told {
        Told {
            experiment: self.name.to_owned(),
            title: self.title.to_owned(),
            question: self.question.to_owned(),
            source: self.source.to_owned(),
            state,
            after: None,
            seconds: 0.0,
            findings,
            skipped: None,
            failed: None,
        }
    }
}
