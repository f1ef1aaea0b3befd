//! Progress of a run: a bar with the remaining time on a terminal, otherwise a line at the start and end of each
//! experiment.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use outlast_lab::error::LabError;
use outlast_lab::run::Progress;

use outlast_terminal::output;

/// Shows progress on standard error.
pub(crate) struct Shown {
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

struct State {
    /// Position of the bar when the present experiment ends.
    until: u64,
    begun: Instant,
    experiment: &'static str,
}

impl Shown {
    /// For a run of this estimated duration.
    pub(crate) fn new(total: Duration) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(millis(total).max(1));
            let style =
                ProgressStyle::with_template("{bar:24} {percent:>3} %, {eta} left  {wide_msg}");
            bar.enable_steady_tick(Duration::from_millis(250));
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        let state = State { until: 0, begun: Instant::now(), experiment: "" };
        Self { bar, state: Mutex::new(state) }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Prints a line above the bar.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::notice(text)),
            None => output::notice(text),
        }
    }
}

impl Progress for Shown {
    fn begin(&self, experiment: &'static str, estimate: Duration) {
        self.with(|state| {
            state.until += millis(estimate);
            state.begun = Instant::now();
            state.experiment = experiment;
        });
        match &self.bar {
            Some(bar) => bar.set_message(experiment),
            None => self.line(&format!("{experiment}: about {}", length(estimate))),
        }
    }

    fn measuring(&self, key: &str) {
        if let Some(bar) = &self.bar {
            let experiment = self.with(|state| state.experiment);
            bar.set_message(format!("{experiment}: {key}"));
        }
    }

    fn done(&self, cost: Duration, _: bool) {
        if let Some(bar) = &self.bar {
            let until = self.with(|state| state.until);
            // An experiment that takes longer than estimated must not use the next one's part of the bar.
            bar.set_position((bar.position() + millis(cost)).min(until));
        }
    }

    fn say(&self, text: &str) {
        self.line(text);
    }

    fn end(&self, experiment: &'static str, outcome: &Result<(), LabError>) {
        let (until, took) = self.with(|state| (state.until, state.begun.elapsed()));
        if let Some(bar) = &self.bar {
            bar.set_position(until);
        }
        match outcome {
            Ok(()) => self.line(&format!("{experiment}: done in {}", length(took))),
            Err(LabError::Interrupted) => {}
            Err(error) => self.line(&format!("{experiment}: {error}")),
        }
    }
}

/// A duration for people.
pub(crate) fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.0} s", time.as_secs_f64()),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
