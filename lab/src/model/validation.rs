//! How the model was checked: against published measurements, and against real TCP over the emulated link.
//!
//! CPU times and a machine's own overhead are calibrated without loss. But the profile for the published data, `linux-5.0-netem`, owes three of
//! its properties to those data with loss: whole pieces are lost, a SYN-ACK that was repeated leaves a window of one packet, and the client's
//! probe is patient. docs/lab-model.md says how that was decided. The default profile owes them nothing.

mod live;
mod paquin;

use std::sync::Mutex;

pub use live::against_live;
pub use paquin::{against_paquin, against_paquin_with, paquin_trace};

use crate::result::Table;

/// What a comparison came to.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Every point: published or measured, the model's, their difference.
    pub table: Table,
    /// Figures that were compared.
    pub compared: usize,
    /// Those within the limits.
    pub within: usize,
    /// Those beyond, but at a jump of the distribution that explains it by sampling.
    pub at_jump: usize,
    /// Share of the figures that have to be within the limits or at a jump.
    pub needed: f64,
    /// What the limits are, in words.
    pub limits: String,
    /// What stands beside it for information, in words: no limit belongs to it.
    pub beside: Vec<String>,
}

impl Comparison {
    /// Figures that nothing explains.
    pub fn beyond(&self) -> usize {
        self.compared.saturating_sub(self.within + self.at_jump)
    }

    /// Whether enough was within the limits.
    #[expect(clippy::cast_precision_loss, reason = "hundreds of figures")]
    pub fn met(&self) -> bool {
        let good = (self.within + self.at_jump) as f64;
        good >= self.needed * self.compared as f64
    }

    /// A sentence for a report.
    pub fn sentence(&self) -> String {
        format!(
            "{} of {} figures strictly within, {} at a jump, {} beyond",
            self.within,
            self.compared,
            self.at_jump,
            self.beyond()
        )
    }
}

/// The tables of the comparisons that this process made, each once, for the caller of the checks to write down.
pub fn tables() -> Vec<Table> {
    TABLES.lock().map(|tables| tables.clone()).unwrap_or_default()
}

static TABLES: Mutex<Vec<Table>> = Mutex::new(Vec::new());

/// The latest of its name.
fn keep(table: &Table) {
    if let Ok(mut tables) = TABLES.lock() {
        tables.retain(|one| one.name != table.name);
        tables.push(table.clone());
    }
}

/// A ratio as a difference in percent.
fn percent(of: f64, to: f64) -> f64 {
    if to == 0.0 { 0.0 } else { (of / to - 1.0) * 100.0 }
}

/// Three digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
